"""timeout: everything is lost, and then the connection."""

from __future__ import annotations

import pytest

from lab.faults.flow import End
from tests.faults.toxics.stages import Driven


def test_it_closes_after_the_time_without_a_byte() -> None:
    driven = Driven("timeout", timeout=500)
    driven.run_to(9)
    assert driven.log == [(0.5, End.CLOSE)]


def test_each_lost_chunk_begins_the_time_again_and_an_end_does_not() -> None:
    driven = Driven("timeout", timeout=500)
    driven.feed(b"a", at=0.25)
    driven.feed(b"b", at=0.5)
    driven.feed(End.EOF, at=0.75)
    driven.run_to(9)
    assert driven.log == [(1.0, End.CLOSE)]


@pytest.mark.parametrize("timeout", [0, -1])
def test_no_time_never_closes(timeout: int) -> None:
    driven = Driven("timeout", timeout=timeout)
    driven.feed(b"a", End.EOF)
    driven.run_to(10_000)
    assert driven.log == []
    assert driven.stage.held == 0


def test_an_update_begins_the_time_again() -> None:
    driven = Driven("timeout", timeout=500)
    driven.run_to(0.25)
    driven.update(timeout=1000)
    driven.run_to(9)
    assert driven.log == [(1.25, End.CLOSE)]


def test_it_closes_once() -> None:
    driven = Driven("timeout", timeout=500)
    driven.run_to(1)
    driven.feed(b"late")
    driven.run_to(9)
    assert driven.log == [(0.5, End.CLOSE)]


def test_removal_closes_and_a_roll_that_spares_the_connection_does_not() -> None:
    removed, spared = Driven("timeout", timeout=0), Driven("timeout", timeout=500)
    removed.remove()
    assert removed.log == [(0.0, End.CLOSE)]
    spared.release()
    spared.run_to(9)
    assert spared.log == []

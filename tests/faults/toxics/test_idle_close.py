"""idle_close: everything passes, and silence ends the connection."""

from __future__ import annotations

import pytest

from lab.faults.flow import End, LastByte
from tests.faults.toxics.stages import Driven, near


def test_it_closes_after_the_time_without_a_byte() -> None:
    driven = Driven("idle_close", timeout=500)
    driven.run_to(9)
    assert driven.log == [(0.5, End.CLOSE)]


def test_each_chunk_passes_and_begins_the_time_again() -> None:
    driven = Driven("idle_close", timeout=500)
    driven.feed(b"a", at=0.25)
    driven.feed(b"b", at=0.5)
    driven.run_to(9)
    assert driven.log == [(0.25, b"a"), (0.5, b"b"), (1.0, End.CLOSE)]


def test_an_end_passes_and_does_not_stop_the_time() -> None:
    driven = Driven("idle_close", timeout=500)
    driven.feed(End.EOF, at=0.25)
    driven.run_to(9)
    assert driven.log == [(0.25, End.EOF), (0.5, End.CLOSE)]


@pytest.mark.parametrize("timeout", [0, -1])
def test_no_time_never_closes(timeout: int) -> None:
    driven = Driven("idle_close", timeout=timeout)
    driven.feed(b"a")
    driven.run_to(10_000)
    assert driven.log == [(0.0, b"a")]


def test_an_update_begins_the_time_again() -> None:
    driven = Driven("idle_close", timeout=500)
    driven.run_to(0.25)
    driven.update(timeout=1000)
    driven.run_to(9)
    assert driven.log == [(1.25, End.CLOSE)]


def test_a_removal_lets_the_connection_live() -> None:
    driven = Driven("idle_close", timeout=500)
    driven.run_to(0.25)
    driven.remove()
    driven.run_to(9)
    assert driven.log == []


def test_a_byte_of_the_other_direction_begins_the_time_again() -> None:
    """But none from before the toxic was there."""
    heard = LastByte(-0.25)
    driven = Driven("idle_close", timeout=500, heard=heard)
    driven.run_to(0.4)
    heard.at = 0.4
    driven.run_to(0.8)
    assert driven.log == []
    driven.run_to(9)
    assert driven.log == [(near(0.9), End.CLOSE)]

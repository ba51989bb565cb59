"""reset_peer: when the connection breaks."""

from __future__ import annotations

import pytest

from lab.faults.flow import End, Item
from tests.faults.toxics.stages import Driven


@pytest.mark.parametrize("first", [b"a", End.EOF])
@pytest.mark.parametrize(("timeout", "due"), [(0, 2.0), (500, 2.5), (-1, 2.0)])
def test_it_breaks_the_time_after_the_first_thing_that_comes(first: Item, timeout: int, due: float) -> None:
    driven = Driven("reset_peer", timeout=timeout)
    driven.feed(first, at=2.0)
    driven.feed(b"more")
    driven.run_to(9)
    assert driven.log == [(due, End.BREAK)]
    assert driven.stage.held == 0


def test_nothing_breaks_while_nothing_comes() -> None:
    driven = Driven("reset_peer", timeout=1)
    driven.run_to(1000)
    assert driven.log == []


def test_an_update_counts_from_the_first_thing_that_came() -> None:
    driven = Driven("reset_peer", timeout=5000)
    driven.feed(b"a")
    driven.run_to(1)
    driven.update(timeout=2000)
    driven.run_to(9)
    assert driven.log == [(2.0, End.BREAK)]
    late = Driven("reset_peer", timeout=5000)
    late.feed(b"a")
    late.run_to(1)
    late.update(timeout=10)
    assert late.log == [(1.0, End.BREAK)]

"""slow_close: ends come late, bytes do not."""

from __future__ import annotations

import pytest

from lab.faults.flow import End
from tests.faults.toxics.stages import Driven


@pytest.mark.parametrize("end", [End.EOF, End.RESET])
def test_only_the_end_is_late(end: End) -> None:
    driven = Driven("slow_close", delay=500)
    driven.feed(b"a", at=1.0)
    driven.feed(end, at=2.0)
    driven.run_to(9)
    assert driven.log == [(1.0, b"a"), (2.5, end)]


@pytest.mark.parametrize(("delay", "due"), [(100, 0.25), (0, 0.25), (1000, 1.0)])
def test_an_update_counts_from_the_end_that_is_held(delay: int, due: float) -> None:
    driven = Driven("slow_close", delay=500)
    driven.feed(End.EOF)
    driven.run_to(0.25)
    driven.update(delay=delay)
    driven.run_to(9)
    assert driven.log == [(due, End.EOF)]


def test_removal_closes_at_once() -> None:
    driven = Driven("slow_close", delay=500)
    driven.feed(End.EOF)
    driven.run_to(0.1)
    driven.remove()
    assert driven.log == [(0.1, End.EOF)]

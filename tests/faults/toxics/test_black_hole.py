"""black_hole: nothing passes, nothing is lost."""

from __future__ import annotations

from lab.faults.flow import End
from tests.faults.toxics.stages import Driven


def test_it_holds_everything_until_it_is_removed() -> None:
    driven = Driven("black_hole")
    driven.feed(b"a", b"b", End.RESET)
    driven.run_to(100_000)
    assert driven.log == []
    assert driven.stage.held == 2
    driven.remove()
    assert [item for _, item in driven.log] == [b"a", b"b", End.RESET]

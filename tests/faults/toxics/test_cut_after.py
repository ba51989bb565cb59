"""cut_after: a FIN at the exact byte, one way."""

from __future__ import annotations

import pytest

from lab.faults.flow import End, Item
from tests.faults.toxics.stages import Driven


@pytest.mark.parametrize(
    ("count", "chunks", "due"),
    [
        (5, [b"12345678", b"9"], [b"12345", End.EOF]),
        (8, [b"12345678"], [b"12345678", End.EOF]),
        (5, [b"123", b"456"], [b"123", b"45", End.EOF]),
        (9, [b"12345678", End.EOF], [b"12345678", End.EOF]),
        (0, [], [End.EOF]),
        (-1, [b"1"], [End.EOF]),
        (2, [b"123", End.EOF], [b"12", End.EOF]),
        (2, [b"123", End.RESET], [b"12", End.EOF, End.RESET]),
    ],
)
def test_fin_stands_behind_the_byte(count: int, chunks: list[Item], due: list[Item]) -> None:
    driven = Driven("cut_after", bytes=count)
    driven.feed(*chunks)
    assert [item for _, item in driven.log] == due


def test_an_update_below_the_count_cuts_at_once() -> None:
    driven = Driven("cut_after", bytes=10)
    driven.feed(b"12345678")
    driven.update(bytes=12)
    assert driven.ends == []
    driven.update(bytes=8)
    assert driven.ends == [(0.0, End.EOF)]

"""limit_data: the exact count, and then the close."""

from __future__ import annotations

import pytest

from lab.faults.flow import End, Item
from tests.faults.toxics.stages import Driven


@pytest.mark.parametrize(
    ("limit", "chunks", "due"),
    [
        (5, [b"12345678"], [b"12345", End.CLOSE]),
        (8, [b"12345678"], [b"12345678", End.CLOSE]),
        (5, [b"123", b"456"], [b"123", b"45", End.CLOSE]),
        (3, [b"123", b"456"], [b"123", End.CLOSE]),
        (9, [b"12345678", End.EOF], [b"12345678", End.EOF]),
        (0, [b"1"], [End.CLOSE]),
        (-4, [b"1"], [End.CLOSE]),
        (0, [], []),
        (0, [End.EOF], [End.EOF]),
    ],
)
def test_so_many_bytes_pass_and_no_more(limit: int, chunks: list[Item], due: list[Item]) -> None:
    driven = Driven("limit_data", bytes=limit)
    driven.feed(*chunks)
    assert [item for _, item in driven.log] == due


def test_the_count_survives_an_update() -> None:
    driven = Driven("limit_data", bytes=10)
    driven.feed(b"12345678")
    driven.update(bytes=12)
    driven.feed(b"12345678")
    assert driven.bytes == b"123456781234"
    low = Driven("limit_data", bytes=10)
    low.feed(b"12345678")
    low.update(bytes=4)
    assert low.ends == []
    low.feed(b"9")
    assert low.bytes == b"12345678"
    assert [end for _, end in low.ends] == [End.CLOSE]

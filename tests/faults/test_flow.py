"""What held items count for."""

from __future__ import annotations

import pytest

from lab.faults.flow import LEAST_CHARGE, End, Item, Load, charge_of


@pytest.mark.parametrize(
    ("size", "due"), [(0, 0), (1, LEAST_CHARGE), (LEAST_CHARGE, LEAST_CHARGE), (LEAST_CHARGE + 1, LEAST_CHARGE + 1)]
)
def test_a_small_chunk_counts_for_what_it_costs_to_hold_it(size: int, due: int) -> None:
    assert charge_of(size) == due


def test_what_is_put_and_taken_leaves_nothing() -> None:
    load = Load()
    items: list[Item] = [b"x", b"y" * 100, End.EOF]
    for item in items:
        load.put(item)
    assert load == Load(101, LEAST_CHARGE + 100)
    for item in items:
        load.take(item)
    assert load == Load()
    load.put(b"x")
    load.clear()
    assert load == Load()

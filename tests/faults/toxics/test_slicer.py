"""slicer: sizes of slices and the pauses between them."""

from __future__ import annotations

import pytest

from lab.faults.flow import End
from lab.faults.toxics.slicer import SLICES_AT_ONCE
from tests.faults.toxics.stages import Driven, near


def test_slices_have_the_average_size_and_a_pause_after_each() -> None:
    driven = Driven("slicer", average_size=100, delay=10_000)
    driven.feed(bytes(250), End.EOF)
    driven.run_to(9)
    assert driven.sizes == [(0.0, 100), (near(0.01), 100), (near(0.02), 50)]
    assert driven.ends == [(near(0.03), End.EOF)]


def test_a_pause_that_is_over_holds_nobody_up() -> None:
    driven = Driven("slicer", average_size=100, delay=10_000)
    driven.feed(bytes(100))
    driven.feed(bytes(100), at=5.0)
    driven.feed(bytes(100), at=5.001)
    driven.run_to(9)
    assert [when for when, _ in driven.sizes] == pytest.approx([0.0, 5.0, 5.01])


def test_sizes_vary_evenly_within_their_bounds() -> None:
    driven = Driven("slicer", average_size=10, size_variation=4)
    driven.feed(bytes(20_000))
    sizes = [size for _, size in driven.sizes[:-1]]
    assert set(sizes) == set(range(6, 15))
    assert sum(sizes) / len(sizes) == pytest.approx(10, abs=0.3)


def test_a_variation_as_large_as_the_average_gives_slices_of_at_least_one_byte() -> None:
    driven = Driven("slicer", average_size=2, size_variation=2)
    driven.feed(bytes(1000))
    sizes = [size for _, size in driven.sizes]
    assert min(sizes) == 1
    assert max(sizes) == 4


def test_without_a_delay_all_slices_go_at_once() -> None:
    driven = Driven("slicer", average_size=100)
    driven.feed(bytes(300))
    assert driven.sizes == [(0.0, 100)] * 3


def test_a_shorter_pause_holds_at_once_and_a_longer_one_from_the_next_slice_on() -> None:
    driven = Driven("slicer", average_size=100, delay=1_000_000)
    driven.feed(bytes(400))
    driven.run_to(0.5)
    driven.update(delay=100_000)
    driven.run_to(0.65)
    driven.update(delay=2_000_000)
    driven.run_to(9)
    assert [when for when, _ in driven.sizes] == pytest.approx([0.0, 0.6, 0.7, 2.7])


@pytest.mark.parametrize("chunks", [1, 30])
def test_so_many_slices_go_on_at_one_moment(chunks: int) -> None:
    """The rest of them behind it, in order and without a pause that anybody could tell."""
    driven = Driven("slicer", average_size=1)
    data = bytes(range(250)) * 12
    size = len(data) // chunks
    driven.feed(*(data[start : start + size] for start in range(0, len(data), size)))
    assert len(driven.log) == SLICES_AT_ONCE
    driven.run_to(1e-9)
    assert [item for _, item in driven.log] == [bytes([byte]) for byte in data]

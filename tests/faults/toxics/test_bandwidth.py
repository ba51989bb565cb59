"""bandwidth: when the last byte of each slice has passed."""

from __future__ import annotations

import pytest

from lab.faults.flow import End
from lab.faults.toxics.stage import Meter
from tests.faults.toxics.stages import Driven, near


@pytest.mark.parametrize(
    ("rate", "size", "due"),
    [
        (10, 500, [(0.05, 500)]),
        (10, 1000, [(0.1, 1000)]),
        (10, 2500, [(0.1, 1000), (0.2, 1000), (0.25, 500)]),
        (1, 250, [(0.1, 100), (0.2, 100), (0.25, 50)]),
    ],
)
def test_a_chunk_passes_at_the_rate_in_slices_of_100_ms(rate: int, size: int, due: list[tuple[float, int]]) -> None:
    driven = Driven("bandwidth", rate=rate)
    driven.feed(bytes(size))
    driven.run_to(9)
    assert [(near(when), count) for when, count in due] == driven.sizes


def test_chunks_follow_each_other_and_idle_time_is_not_saved() -> None:
    driven = Driven("bandwidth", rate=1)
    driven.feed(bytes(50), bytes(50), at=10.0)
    driven.feed(bytes(50), End.EOF, at=20.0)
    driven.run_to(99)
    times = [when for when, _ in driven.log]
    assert times == pytest.approx([10.05, 10.1, 20.05, 20.05])
    assert driven.log[-1][1] is End.EOF


def test_being_woken_late_costs_no_bandwidth() -> None:
    driven = Driven("bandwidth", rate=1)
    driven.feed(bytes(1000))
    driven.now = 0.55
    driven._note(driven.stage.wake(0.55))
    assert len(driven.bytes) == 500
    driven.run_to(9)
    assert driven.sizes[-1] == (near(1.0), 100)


def test_a_rate_of_0_stalls_until_it_is_raised() -> None:
    driven = Driven("bandwidth")
    driven.feed(bytes(100), End.EOF)
    driven.run_to(1000)
    assert driven.log == []
    driven.update(rate=1)
    driven.run_to(2000)
    assert [when for when, _ in driven.log] == pytest.approx([1000.1, 1000.1])


def test_a_new_rate_holds_for_the_slice_that_is_under_way() -> None:
    driven = Driven("bandwidth", rate=1)
    driven.feed(bytes(100))
    driven.run_to(0.05)
    driven.update(rate=10)
    driven.run_to(9)
    assert driven.sizes == [(near(0.06), 100)]


def test_a_shared_line_is_one_for_all_and_they_take_turns() -> None:
    meter = Meter()
    one, other = (Driven("bandwidth", meter=meter, rate=1, shared=True) for _ in range(2))
    one.feed(bytes(200))
    other.feed(bytes(200))
    for tenth in range(1, 10):
        one.run_to(tenth / 10 + 0.001)
        other.run_to(tenth / 10 + 0.001)
    assert [when for when, _ in one.sizes] == pytest.approx([0.1, 0.3])
    assert [when for when, _ in other.sizes] == pytest.approx([0.2, 0.4])


def test_lines_that_are_not_shared_do_not_meet() -> None:
    meter = Meter()
    one, other = (Driven("bandwidth", meter=meter, rate=1) for _ in range(2))
    for driven in (one, other):
        driven.feed(bytes(100))
        driven.run_to(1)
    assert one.sizes == other.sizes == [(0.1, 100)]

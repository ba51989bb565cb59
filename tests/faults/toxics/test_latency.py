"""latency: when chunks go on."""

from __future__ import annotations

from typing import Any

import pytest

from lab.draws import Draws
from lab.faults.flow import End
from tests.faults.toxics.stages import Driven, near


def test_each_chunk_goes_on_its_latency_after_its_receipt() -> None:
    driven = Driven("latency", latency=250)
    driven.feed(b"a", at=1.0)
    driven.feed(b"b", at=1.125)
    driven.run_to(9)
    assert driven.log == [(1.25, b"a"), (1.375, b"b")]


def test_jitter_is_drawn_evenly_on_both_sides_and_order_is_kept() -> None:
    driven = Driven("latency", latency=100, jitter=50)
    for number in range(1000):
        driven.feed(bytes([number % 251]), at=number * 1.0)
    driven.run_to(2000)
    delays = [when - number for number, (when, _) in enumerate(driven.log)]
    assert 0.05 <= min(delays) < 0.055
    assert 0.145 < max(delays) < 0.15
    assert sum(delays) / len(delays) == pytest.approx(0.1, abs=0.002)


def test_a_chunk_waits_for_those_before_it() -> None:
    driven = Driven("latency", latency=100, jitter=100)
    driven.feed(*(bytes([number]) for number in range(200)))
    driven.run_to(9)
    assert driven.bytes == bytes(range(200))
    times = [when for when, _ in driven.log]
    assert times == sorted(times)
    assert times[-1] < 0.2


def test_an_end_follows_the_bytes_before_it_without_a_delay_of_its_own() -> None:
    driven = Driven("latency", latency=1000)
    driven.feed(b"a")
    driven.feed(End.EOF, at=0.5)
    driven.run_to(9)
    assert driven.log == [(1.0, b"a"), (1.0, End.EOF)]
    alone = Driven("latency", latency=1000)
    alone.feed(End.EOF)
    assert alone.log == [(0.0, End.EOF)]


@pytest.mark.parametrize(("latency", "due"), [(5000, 5.0), (500, 0.5), (100, 0.25), (0, 0.25)])
def test_an_update_holds_for_what_is_inside_from_its_receipt_on(latency: int, due: float) -> None:
    driven = Driven("latency", latency=1000)
    driven.feed(b"a")
    driven.run_to(0.25)
    driven.update(latency=latency)
    driven.run_to(9)
    assert driven.log == [(due, b"a")]


def test_what_was_released_takes_its_draw_with_it() -> None:
    dice = Draws(1, "test", "latency")
    drawn = [dice.fraction() for _ in range(2)]
    driven = Driven("latency", seed=1, latency=100, jitter=100)
    driven.feed(b"a")
    driven.release()
    driven.feed(b"b")
    driven.run_to(9)
    assert driven.log == [(0.0, b"a"), (near(0.2 * drawn[1]), b"b")]


@pytest.mark.parametrize("attributes", [{"latency": -5}, {"jitter": -5}, {}])
def test_less_than_nothing_is_nothing(attributes: dict[str, Any]) -> None:
    driven = Driven("latency", **attributes)
    driven.feed(b"a")
    assert driven.log == [(0.0, b"a")]

"""The toxics of a fault on its link, by the virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from lab.faults.plan import Fault
from lab.faults.specs import ToxicSpec
from lab.faults.weather import Phase
from lab.run.toxic_course import ToxicCourse
from lab.sim.run import run_virtual

SLOW, LOSSY = ToxicSpec("latency", attributes={"latency": 5}), ToxicSpec("packet_loss", stream="upstream")


class NotingLink:
    """Notes what is put on it, and when."""

    def __init__(self) -> None:
        self.log: list[tuple[float, str]] = []
        self.touches = 0

    def add_toxic(self, spec: ToxicSpec, touched: Callable[[], None]) -> None:
        self._note(f"+{spec.name}")
        touched()

    def remove_toxic(self, name: str) -> None:
        self._note(f"-{name}")

    def touch(self) -> None:
        self.touches += 1

    def _note(self, what: str) -> None:
        self.log.append((asyncio.get_running_loop().time(), what))


def life(fault: Fault, seconds: float, *, stops: bool = True) -> list[tuple[float, str]]:
    """What a fault that is ended after so many seconds does to its link."""
    link = NotingLink()

    async def live() -> None:
        course = ToxicCourse(cast(Any, link), fault, link.touch)
        course.start()
        await asyncio.sleep(seconds)
        course.stop() if stops else course.forget()
        await asyncio.sleep(100)

    run_virtual(live, 1)
    assert link.touches == sum(what[0] == "+" for _, what in link.log)
    return link.log


def test_a_set_stands_until_it_is_ended() -> None:
    fault = Fault("bad", "toxic", "gateway", toxics=(SLOW, LOSSY))
    names = ("bad.latency.1", "bad.packet_loss.2")
    assert life(fault, 7) == [(0, f"+{name}") for name in names] + [(7, f"-{name}") for name in names]


def test_phases_follow_each_other_and_begin_again() -> None:
    fault = Fault("rain", "weather", "gateway", weather="rain", phases=(Phase((SLOW,), 1), Phase((), 2)))
    on, off = "+rain.latency.1", "-rain.latency.1"
    assert life(fault, 3.5) == [(0, on), (1, off), (3, on), (3.5, off)]


def test_a_recurring_toxic_is_off_between() -> None:
    fault = Fault("now-and-then", "toxic", "gateway", toxics=(SLOW,), seconds=2, every=10)
    times = [t for t, _ in life(fault, 13)]
    assert times == [0, 2, 10, 12]


def test_a_run_that_is_over_leaves_its_links_alone() -> None:
    fault = Fault("rain", "weather", "gateway", weather="rain", phases=(Phase((SLOW,), 1), Phase((), 2)))
    assert life(fault, 0.5, stops=False) == [(0, "+rain.latency.1")]


def test_a_fault_without_toxics_does_nothing() -> None:
    assert life(Fault("cut", "cut", "gateway"), 5) == []

"""Carrying out faults of programs, one upon another."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from lab.context import RunContext
from lab.errors import EnvironmentFault
from lab.faults.plan import Fault
from lab.journal.events import Defect, FaultEnded, FaultFired, SutChanged
from lab.run.processes import ProcessFaults
from lab.sim.run import run_virtual
from tests.run.made import context

STARTING_SECONDS = 0.5
"""What a program takes to start."""

Timeline = list[tuple[float, str]]


class FakeProgram:
    """Tells what is done to it, and is in no state to take what does not fit its own."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.state = "runs"
        self.error: Exception | None = None
        self._tell = tell

    def _change(self, change: str, before: tuple[str, ...], after: str) -> None:
        assert self.state in before, f"{change} of one that is {self.state}"
        self.state = after
        self._tell(change)

    async def kill(self) -> None:
        self._change("kill", ("runs", "still"), "dead")

    async def restart(self) -> None:
        self._change("restart", ("dead",), "starting")
        await asyncio.sleep(STARTING_SECONDS)
        if self.error is not None:
            raise self.error
        self._change("up", ("starting",), "runs")

    def pause(self) -> None:
        self._change("pause", ("runs",), "still")

    def go_on(self) -> None:
        self._change("go on", ("still",), "runs")


class Bench:
    """Two programs, and all that happened to the first of them with its moment."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.seen: Timeline = []
        self.ctx: RunContext = context(loop.time)
        self.ctx.journal.listen(lambda entry: self._note(entry.event))
        self.program = FakeProgram(self._tell)
        self.other = FakeProgram(lambda _: None)
        self.faults = ProcessFaults(self.ctx, {"la": self.program, "other": self.other})

    def _tell(self, what: str) -> None:
        self.seen.append((round(asyncio.get_running_loop().time(), 3), what))

    def _note(self, event: object) -> None:
        match event:
            case FaultFired():
                self._tell(f"{event.fault} fired")
            case FaultEnded():
                self._tell(f"{event.fault} ended")
            case SutChanged() if event.name == "la":
                self._tell(event.change)
            case Defect():
                self._tell("defect")

    async def strike(self, name: str, seconds: float | None, process: str = "la") -> None:
        await self.faults.strike(Fault(name, name.rstrip("123456789"), seconds=seconds, process=process))


def seen_of(strikes: list[tuple[float, str, float | None]], until: float = 100.0) -> Timeline:
    """What happens when faults strike at their moments, until the run is over."""

    async def main() -> Timeline:
        bench = Bench()
        for moment, name, seconds in strikes:
            await asyncio.sleep(moment - asyncio.get_running_loop().time())
            await bench.strike(name, seconds)
        await asyncio.sleep(until - asyncio.get_running_loop().time())
        await bench.faults.close()
        return bench.seen

    return run_virtual(main, 1)


def at(moment: float, *happened: str) -> Timeline:
    return [(moment, what) for what in happened]


STRUCK = ("crashed", "kill")
STOPPED = ("paused", "pause")
GOES_ON = ("went-on", "go on")
OVERLAPPING: dict[str, tuple[list[tuple[float, str, float | None]], Timeline]] = {
    "one kill": (
        [(1, "kill1", 2)],
        at(1, "kill1 fired", *STRUCK) + at(3, "restart") + at(3.5, "up", "kill1 ended"),
    ),
    "one pause": (
        [(1, "pause1", 2)],
        at(1, "pause1 fired", *STOPPED) + at(3, *GOES_ON, "pause1 ended"),
    ),
    "a kill for good": ([(1, "kill1", None)], at(1, "kill1 fired", *STRUCK)),
    "a kill that outlasts another": (
        [(1, "kill1", 5), (2, "kill2", 1)],
        at(1, "kill1 fired", *STRUCK)
        + at(2, "kill2 fired")
        + at(3, "kill2 ended")
        + at(6, "restart")
        + at(6.5, "up", "kill1 ended"),
    ),
    "a kill that another outlasts": (
        [(1, "kill1", 2), (2, "kill2", 5)],
        at(1, "kill1 fired", *STRUCK)
        + at(2, "kill2 fired")
        + at(3, "kill1 ended")
        + at(7, "restart")
        + at(7.5, "up", "kill2 ended"),
    ),
    "a pause within a pause": (
        [(1, "pause1", 5), (2, "pause2", 1)],
        at(1, "pause1 fired", *STOPPED)
        + at(2, "pause2 fired")
        + at(3, "pause2 ended")
        + at(6, *GOES_ON, "pause1 ended"),
    ),
    "a pause of what is down": (
        [(1, "kill1", 5), (2, "pause1", 1)],
        at(1, "kill1 fired", *STRUCK) + at(6, "restart") + at(6.5, "up", "kill1 ended"),
    ),
    "a kill of what stands still": (
        [(1, "pause1", 5), (2, "kill1", 1)],
        at(1, "pause1 fired", *STOPPED)
        + at(2, "kill1 fired", "crashed", "pause1 ended", "kill")
        + at(3, "restart")
        + at(3.5, "up", "kill1 ended"),
    ),
    "a pause of the next life": (
        [(1, "pause1", 5), (2, "kill1", 1), (4, "pause2", 10)],
        at(1, "pause1 fired", *STOPPED)
        + at(2, "kill1 fired", "crashed", "pause1 ended", "kill")
        + at(3, "restart")
        + at(3.5, "up", "kill1 ended")
        + at(4, "pause2 fired", *STOPPED)
        + at(14, *GOES_ON, "pause2 ended"),
    ),
    "a kill of what is starting": (
        [(1, "kill1", 1), (2.2, "kill2", 1)],
        at(1, "kill1 fired", *STRUCK)
        + at(2, "restart")
        + at(2.5, "up", "kill1 ended", "kill2 fired", *STRUCK)
        + at(3.5, "restart")
        + at(4, "up", "kill2 ended"),
    ),
    "a pause of what is starting": (
        [(1, "kill1", 1), (2.2, "pause1", 1)],
        at(1, "kill1 fired", *STRUCK)
        + at(2, "restart")
        + at(2.5, "up", "kill1 ended", "pause1 fired", *STOPPED)
        + at(3.5, *GOES_ON, "pause1 ended"),
    ),
    "pauses of what was killed and is paused again, in one moment": (
        [(1, "pause1", 3), (1, "kill1", 2.5), (4, "pause2", 1)],
        at(1, "pause1 fired", *STOPPED, "kill1 fired", "crashed", "pause1 ended", "kill")
        + at(3.5, "restart")
        + at(4, "up", "kill1 ended", "pause2 fired", *STOPPED)
        + at(5, *GOES_ON, "pause2 ended"),
    ),
}


@pytest.mark.parametrize(("strikes", "due"), OVERLAPPING.values(), ids=OVERLAPPING)
def test_faults_that_overlap(strikes: list[tuple[float, str, float | None]], due: Timeline) -> None:
    """Each that acts fires, and ends where its time or the program's life ends; the last one lets it go."""
    assert seen_of(strikes) == due


@pytest.mark.parametrize(
    ("strikes", "due"),
    [
        ([(1.0, "kill1", 50.0)], at(1, "kill1 fired", *STRUCK)),
        ([(1.0, "pause1", 50.0)], [*at(1, "pause1 fired", *STOPPED), (10, "go on")]),
        ([(1.0, "pause1", None)], [*at(1, "pause1 fired", *STOPPED), (10, "go on")]),
    ],
    ids=["down", "still", "still for good"],
)
def test_at_the_end_of_the_run_nothing_starts_again_but_what_stands_goes_on(
    strikes: list[tuple[float, str, float | None]], due: Timeline
) -> None:
    """So that it can be ended; the fault lasted as long as the run."""
    assert seen_of(strikes, until=10) == due


def on_a_bench(act: Callable[[Bench], Awaitable[None]]) -> Bench:
    """What is seen after that."""

    async def main() -> Bench:
        bench = Bench()
        await act(bench)
        await bench.faults.close()
        return bench

    return run_virtual(main, 1)


def test_a_run_that_ends_while_a_program_starts_waits_for_it() -> None:
    async def act(bench: Bench) -> None:
        await bench.strike("kill1", 1.0)
        await asyncio.sleep(1.2)

    assert on_a_bench(act).seen[-1] == (1.5, "kill1 ended")


def test_a_program_that_does_not_start_again_ends_the_run() -> None:
    """Its fault is over all the same."""
    error = EnvironmentFault("no port")

    async def act(bench: Bench) -> None:
        bench.program.error = error
        await bench.strike("kill1", 1.0)
        await asyncio.sleep(5)

    bench = on_a_bench(act)
    assert bench.ctx.defects == [error]
    assert bench.seen[-3:] == at(1, "restart") + at(1.5, "defect", "kill1 ended")


def test_one_program_is_struck_and_the_other_is_not() -> None:
    async def act(bench: Bench) -> None:
        await bench.strike("kill1", 5.0, process="other")
        await bench.strike("pause1", 1.0)
        await asyncio.sleep(2)
        assert (bench.program.state, bench.other.state) == ("runs", "dead")

    on_a_bench(act)

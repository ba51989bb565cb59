"""What keeps one target down, whoever it is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from lab.faults.plan import Fault
from lab.journal.events import FaultEnded, FaultFired
from lab.run.holds import Hold
from lab.sim.run import run_virtual
from tests.run.made import context


class Bench:
    """One target that takes a while to stop and to come back."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.ctx = context()
        self.hold = Hold(self.ctx, asyncio.Lock(), self._stop, self._let_go)

    async def _stop(self) -> None:
        await asyncio.sleep(1)
        self.done.append("stopped")

    async def _let_go(self) -> None:
        await asyncio.sleep(1)
        self.done.append("let go")

    async def take(self, name: str, seconds: float | None) -> None:
        async with self.hold.turn:
            await self.hold.take(Fault(name, "crash", seconds=seconds, service="x"))

    def told(self) -> list[object]:
        return [entry.event for entry in self.ctx.journal.entries]


def run(act: Callable[[Bench], Awaitable[None]]) -> Bench:
    async def main() -> Bench:
        bench = Bench()
        await act(bench)
        return bench

    return run_virtual(main, 1)


def fired(name: str) -> FaultFired:
    return FaultFired(name, "crash", "service x")


def test_it_holds_from_the_first_fault_to_the_end_of_the_last() -> None:
    """The time of each counts from when the target was stopped."""
    moments: list[bool] = []

    async def act(bench: Bench) -> None:
        await bench.take("a", 2.0)
        await bench.take("b", 3.0)
        for _ in range(3):
            moments.append(bench.hold.holds)
            await asyncio.sleep(1.6)

    bench = run(act)
    assert moments == [True, True, False]
    assert bench.done == ["stopped", "let go"]
    assert bench.told() == [fired("a"), fired("b"), FaultEnded("a"), FaultEnded("b")]


def test_what_is_dropped_ends_nothing_later() -> None:
    """Nor what was over already, and waited for its turn."""

    async def act(bench: Bench) -> None:
        await bench.take("a", 1.0)
        await bench.take("b", 9.0)
        async with bench.hold.turn:
            await asyncio.sleep(2)
            bench.hold.drop()
        assert not bench.hold.holds
        await bench.take("c", None)
        await asyncio.sleep(20)
        assert bench.hold.holds

    bench = run(act)
    assert bench.done == ["stopped", "stopped"]
    assert bench.told() == [fired("a"), fired("b"), FaultEnded("a"), FaultEnded("b"), fired("c")]


def test_once_closed_it_lets_nothing_go_and_says_whether_it_held() -> None:
    said: list[bool] = []

    async def act(bench: Bench) -> None:
        said.append(await Bench().hold.close())
        await bench.take("a", 1.0)
        async with bench.hold.turn:
            await asyncio.sleep(2)
            closing = asyncio.get_running_loop().create_task(bench.hold.close())
            await asyncio.sleep(0)
        said.append(await closing)
        await asyncio.sleep(5)

    bench = run(act)
    assert said == [False, True]
    assert bench.done == ["stopped"]
    assert bench.told() == [fired("a")]

"""Carrying out faults of services."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from lab.agent2.server import Agent2Server
from lab.errors import EnvironmentFault, MisuseError
from lab.faults.plan import Fault
from lab.journal.events import Defect, FaultEnded, FaultFired
from lab.run.services import ServiceFaults
from lab.sim.run import run_virtual
from tests.run.made import context


class FakeAgent2:
    """Notes what is done to it."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.back = asyncio.Event()
        self.error: Exception | None = None

    async def crash(self) -> None:
        self.done.append("crash")

    async def start(self) -> None:
        self.back.set()
        if self.error is not None:
            raise self.error
        self.done.append("start")


class Bench:
    def __init__(self, agent2: FakeAgent2 | None = None) -> None:
        self.ctx = context()
        self.agent2 = agent2 or FakeAgent2()
        self.faults = ServiceFaults(self.ctx, {"slow": cast(Agent2Server, self.agent2)})

    def events(self) -> list[object]:
        return [entry.event for entry in self.ctx.journal.entries]


def crash(seconds: float | None = None) -> Fault:
    return Fault("f", "crash", seconds=seconds, service="slow")


FIRED = FaultFired("f", "crash", "service slow")


async def test_a_crash_without_a_time_is_for_good() -> None:
    bench = Bench()
    await bench.faults.strike(crash())
    await bench.faults.close()
    assert (bench.agent2.done, bench.events()) == (["crash"], [FIRED])


async def test_what_crashed_comes_back_after_its_time() -> None:
    bench = Bench()
    await bench.faults.strike(crash(0.01))
    assert bench.agent2.done == ["crash"]
    await asyncio.wait_for(bench.agent2.back.wait(), 10)
    await bench.faults.close()
    assert (bench.agent2.done, bench.events()) == (["crash", "start"], [FIRED, FaultEnded("f")])


def test_what_crashed_twice_comes_back_once_both_are_over() -> None:
    """It dies once, and each fault has its end."""

    async def main() -> tuple[Bench, list[str]]:
        bench = Bench()
        await bench.faults.strike(Fault("long", "crash", seconds=5.0, service="slow"))
        await asyncio.sleep(1)
        await bench.faults.strike(Fault("short", "crash", seconds=1.0, service="slow"))
        await asyncio.sleep(2)
        meanwhile = list(bench.agent2.done)
        await asyncio.sleep(5)
        await bench.faults.close()
        return bench, meanwhile

    bench, meanwhile = run_virtual(main, 1)
    assert meanwhile == ["crash"]
    assert bench.agent2.done == ["crash", "start"]
    assert bench.events() == [
        FaultFired("long", "crash", "service slow"),
        FaultFired("short", "crash", "service slow"),
        FaultEnded("short"),
        FaultEnded("long"),
    ]


def test_a_crash_while_it_comes_back_waits_until_it_is_there() -> None:
    """Or it would be struck before it stood, and stay."""

    class Slow(FakeAgent2):
        async def start(self) -> None:
            self.done.append("starting")
            await asyncio.sleep(1)
            await super().start()

    async def main() -> list[str]:
        bench = Bench(Slow())
        await bench.faults.strike(crash(1.0))
        await asyncio.sleep(1.5)
        await bench.faults.strike(Fault("g", "crash", service="slow"))
        await asyncio.sleep(5)
        await bench.faults.close()
        return bench.agent2.done

    assert run_virtual(main, 1) == ["crash", "starting", "start", "crash"]


async def test_nothing_comes_back_once_the_run_is_over() -> None:
    """And the run does not wait for it."""
    bench = Bench()
    await bench.faults.strike(crash(3600.0))
    await asyncio.wait_for(bench.faults.close(), 10)
    assert (bench.agent2.done, bench.events()) == (["crash"], [FIRED])


async def test_a_port_that_was_lost_meanwhile_ends_the_run() -> None:
    bench = Bench()
    bench.agent2.error = EnvironmentFault("the port is taken")
    await bench.faults.strike(crash(0.01))
    await asyncio.wait_for(bench.agent2.back.wait(), 10)
    await bench.faults.close()
    assert bench.ctx.defects == [bench.agent2.error]
    assert bench.events() == [FIRED, Defect("EnvironmentFault"), FaultEnded("f")]


async def test_only_a_service_is_struck() -> None:
    with pytest.raises(MisuseError, match="cut is no fault of a service"):
        await Bench().faults.strike(Fault("f", "cut", "gateway"))

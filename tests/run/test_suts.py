"""A Local Agent in each way in which it can be had, struck and brought back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import pytest

from lab.errors import EnvironmentFault, MisuseError
from lab.journal.events import Defect, SutChanged
from lab.localagent.agent import LocalAgent
from lab.run.suts import AttachedSut, ProgramSut, ReferenceSut
from lab.sim.run import run_virtual
from lab.sut.process import SutProcess
from tests.run.made import context
from tests.run.test_agents import make


class FakeAgent:
    """A life of the reference agent: beats once a second from when it is up, which takes as long as it is told."""

    def __init__(self, life: int, seen: list[tuple[int, float]], starting: float, error: Exception | None) -> None:
        self._life, self._seen, self._starting, self._error = life, seen, starting, error
        self.closed = False

    async def start(self) -> None:
        await asyncio.sleep(self._starting)
        if self._error is not None:
            raise self._error
        self._beating = asyncio.get_running_loop().create_task(self._beat())

    async def _beat(self) -> None:
        while True:
            self._seen.append((self._life, asyncio.get_running_loop().time()))
            await asyncio.sleep(1)

    async def close(self) -> None:
        self._beating.cancel()
        self.closed = True


class Bench:
    """The reference agent with lives of our own; the second takes its time to start."""

    def __init__(self, folder: Path) -> None:
        sut = make(folder)
        assert isinstance(sut, ReferenceSut)
        self.sut = sut
        self.ctx = sut._ctx = context()
        self.beats: list[tuple[int, float]] = []
        self.agents: list[FakeAgent] = []
        self.error: Exception | None = None
        sut._make = self._make
        sut._agent = self._make(1)

    def _make(self, life: int) -> LocalAgent:
        again = life > 1
        self.agents.append(FakeAgent(life, self.beats, 3.0 if again else 0.0, self.error if again else None))
        return cast(LocalAgent, self.agents[-1])

    def events(self) -> list[object]:
        return [entry.event for entry in self.ctx.journal.entries]


def on_virtual_clock(folder: Path, act: Callable[[Bench], Awaitable[None]]) -> Bench:
    async def main() -> Bench:
        bench = Bench(folder)
        await bench.sut.start()
        await act(bench)
        await bench.sut.close()
        return bench

    return run_virtual(main, 1)


def test_a_new_life_is_asked_for_and_not_waited_for(tmp_path: Path) -> None:
    """A fault that is over is over, however long the agent takes to be up."""

    async def act(bench: Bench) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(1.5)
        await bench.sut.kill()
        await asyncio.sleep(2)
        await bench.sut.restart()
        assert loop.time() == 3.5
        await asyncio.sleep(4.2)

    bench = on_virtual_clock(tmp_path, act)
    assert bench.beats == [(1, 0.0), (1, 1.0), (2, 6.5), (2, 7.5)]
    assert bench.events() == [SutChanged("local_agent", "started")]
    assert [agent.closed for agent in bench.agents] == [False, True]


def test_a_new_life_that_cannot_start_ends_the_run(tmp_path: Path) -> None:
    error = EnvironmentFault("the disk is gone")

    async def act(bench: Bench) -> None:
        bench.error = error
        await bench.sut.kill()
        await bench.sut.restart()
        await asyncio.sleep(4)
        await bench.sut.kill()

    bench = on_virtual_clock(tmp_path, act)
    assert bench.ctx.defects == [error]
    assert bench.events() == [SutChanged("local_agent", "started"), Defect("EnvironmentFault")]


def test_a_new_life_that_is_killed_while_it_starts_is_no_defect(tmp_path: Path) -> None:
    async def act(bench: Bench) -> None:
        await bench.sut.kill()
        await bench.sut.restart()
        await asyncio.sleep(1)
        await bench.sut.kill()
        await asyncio.sleep(5)

    bench = on_virtual_clock(tmp_path, act)
    assert bench.ctx.defects == []
    assert [life for life, _ in bench.beats] == [1]


def test_one_that_stands_still_goes_on_where_it_was(tmp_path: Path) -> None:
    async def act(bench: Bench) -> None:
        await asyncio.sleep(1.5)
        bench.sut.pause()
        await asyncio.sleep(10)
        bench.sut.go_on()
        await asyncio.sleep(1.2)

    assert on_virtual_clock(tmp_path, act).beats == [(1, 0.0), (1, 1.0), (1, 11.5), (1, 12.5)]


async def test_on_the_real_clock_the_reference_agent_cannot_be_struck(tmp_path: Path) -> None:
    """It would take the lab with it."""
    sut = Bench(tmp_path).sut
    for strike in (sut.kill, sut.restart):
        with pytest.raises(MisuseError, match="shares the lab's process"):
            await strike()
    for stop in (sut.pause, sut.go_on):
        with pytest.raises(MisuseError, match="shares the lab's process"):
            stop()
    assert sut.death() is None


class FakeProcess:
    """A life of a program."""

    name = "program"

    def __init__(self, life: int, done: list[str]) -> None:
        self.exited = asyncio.Event()
        self._life, self._done = life, done

    def _note(self, what: str) -> None:
        self._done.append(f"{what} {self._life}")

    async def start(self) -> None:
        self._note("start")

    async def stop(self) -> None:
        self._note("stop")

    async def kill(self) -> None:
        self._note("kill")
        self.exited.set()

    def pause(self) -> None:
        self._note("pause")

    def go_on(self) -> None:
        self._note("go on")

    def death_report(self) -> str:
        return f"life {self._life} is over"


async def test_each_life_of_a_program_is_a_process() -> None:
    """One that the lab killed did not die by itself."""
    done: list[str] = []
    lives: list[FakeProcess] = []

    def made(life: int) -> SutProcess:
        lives.append(FakeProcess(life, done))
        return cast(SutProcess, lives[-1])

    sut = ProgramSut(made, 30.0, None, 8)
    await sut.start()
    assert sut.death() is None
    await sut.kill()
    assert sut.death() is None
    await sut.restart()
    assert sut.death() is None
    sut.pause()
    sut.go_on()
    lives[-1].exited.set()
    assert sut.death() == "life 2 is over"
    await sut.close()
    assert done == ["start 1", "kill 1", "start 2", "pause 2", "go on 2", "stop 2"]


async def test_an_attached_agent_is_not_the_labs_to_strike() -> None:
    sut = AttachedSut(context(), "la", "", print)
    for strike in (sut.kill, sut.restart):
        with pytest.raises(MisuseError, match="not the lab's to kill"):
            await strike()
    for stop in (sut.pause, sut.go_on):
        with pytest.raises(MisuseError, match="not the lab's to stop"):
            stop()

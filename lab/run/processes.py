"""Carrying out faults of programs: a local agent is killed and started again, or stands still for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Protocol

from lab.context import RunContext
from lab.faults.plan import Fault
from lab.journal.events import FaultEnded, FaultFired, SutChanged


class Program(Protocol):
    """A local agent that the lab can kill and stop."""

    async def kill(self) -> None:
        """End it at once; it knows nothing of it."""

    async def restart(self) -> None:
        """Start it again, after `kill`."""

    def pause(self) -> None:
        """Stop it where it is."""

    def go_on(self) -> None:
        """Let it go on, after `pause`."""


class ProcessFaults:
    """Strikes local agents by name. Call `close` before they are closed."""

    def __init__(self, ctx: RunContext, programs: Mapping[str, Program]) -> None:
        self._ctx = ctx
        self._programs = programs
        self._over = asyncio.Event()
        self._returns: list[asyncio.Task[None]] = []
        self._killed: dict[str, int] = {}
        self._paused: dict[str, int] = {}
        """How many faults keep each program down, or still."""

    async def strike(self, fault: Fault) -> None:
        """Make a fault happen now; returns once the program is gone, or stands."""
        name = fault.process or ""
        program = self._programs[name]
        self._ctx.journal.record("faults", FaultFired(fault.id, fault.kind, fault.target))
        if fault.kind == "kill":
            self._killed[name] = self._killed.get(name, 0) + 1
            if self._killed[name] == 1:
                # What is dead stands still no longer.
                self._paused[name] = 0
                self._told(name, "crashed")
                await program.kill()
            self._later(fault, lambda: self._restart(name))
        elif not self._killed.get(name):
            self._paused[name] = self._paused.get(name, 0) + 1
            if self._paused[name] == 1:
                self._told(name, "paused")
                program.pause()
            self._later(fault, lambda: self._go_on(name))

    def _later(self, fault: Fault, act: Callable[[], Awaitable[None]]) -> None:
        if fault.seconds is not None:
            task = asyncio.get_running_loop().create_task(self._end(fault, fault.seconds, act), name=f"end {fault.id}")
            self._returns.append(task)

    async def _end(self, fault: Fault, seconds: float, act: Callable[[], Awaitable[None]]) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._over.wait()
        if self._over.is_set():
            return
        try:
            await act()
        except Exception as error:  # noqa: BLE001  a program that does not start again ends the run, with its reason
            self._ctx.fail(error)
        self._ctx.journal.record("faults", FaultEnded(fault.id))

    async def _restart(self, name: str) -> None:
        self._killed[name] -= 1
        if not self._killed[name]:
            await self._programs[name].restart()

    async def _go_on(self, name: str) -> None:
        # A program that was killed meanwhile does not stand still any more.
        if self._paused.get(name):
            self._paused[name] -= 1
            if not self._paused[name]:
                self._told(name, "went-on")
                self._programs[name].go_on()

    def _told(self, name: str, change: str) -> None:
        self._ctx.journal.record("sut", SutChanged(name, change))

    async def close(self) -> None:
        """Nothing is started again any more; what stands still goes on, so that it can be ended."""
        self._over.set()
        await asyncio.gather(*self._returns)
        for name, count in self._paused.items():
            if count:
                self._programs[name].go_on()

"""Carrying out faults of programs: a local agent is killed and started again, or stands still for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Protocol

from lab.context import RunContext
from lab.faults.plan import Fault
from lab.journal.events import SutChanged
from lab.run.holds import Hold


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
        self._struck: dict[str, _Struck] = {}

    async def strike(self, fault: Fault) -> None:
        """Make a fault happen now; returns once the program is gone, or stands.

        A pause of a program that is down has nothing to stop, so it does not fire.
        """
        name = fault.process or ""
        if name not in self._struck:
            self._struck[name] = _Struck(self._ctx, name, self._programs[name])
        struck = self._struck[name]
        async with struck.turn:
            if fault.kind == "kill":
                await struck.down.take(fault)
            elif not struck.down.holds:
                await struck.still.take(fault)

    async def close(self) -> None:
        """Nothing is started again any more; what stands still goes on, so that it can be ended."""
        await asyncio.gather(*(struck.close() for struck in self._struck.values()))


class _Struck:
    """A program, and the faults that keep it down or still."""

    def __init__(self, ctx: RunContext, name: str, program: Program) -> None:
        self._ctx = ctx
        self._name = name
        self._program = program
        self.turn = asyncio.Lock()
        self.down = Hold(ctx, self.turn, self._kill, program.restart)
        self.still = Hold(ctx, self.turn, self._pause, self._go_on)

    async def _kill(self) -> None:
        self._told("crashed")
        # What is dead stands still no longer, and no pause of this life reaches into the next one.
        self.still.drop()
        await self._program.kill()

    async def _pause(self) -> None:
        self._told("paused")
        self._program.pause()

    async def _go_on(self) -> None:
        self._told("went-on")
        self._program.go_on()

    def _told(self, change: str) -> None:
        self._ctx.journal.record("sut", SutChanged(self._name, change))

    async def close(self) -> None:
        _, stands = await asyncio.gather(self.down.close(), self.still.close())
        if stands:
            self._program.go_on()

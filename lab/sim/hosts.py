"""Which simulated machine code belongs to: what may be stopped, go on again, or crash as a whole."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar, copy_context
from enum import Enum
from typing import Any


class HostState(Enum):
    """What a host's code may do."""

    RUNNING = "running"
    PAUSED = "paused"
    CRASHED = "crashed"


class Host:
    """One simulated machine. Tasks and callbacks belong to the host in whose context they were made."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.state = HostState.RUNNING
        self._late: list[Callable[[], None]] = []

    @property
    def runs(self) -> bool:
        """Whether its code may run now."""
        return self.state is HostState.RUNNING

    def spawn(self, coro: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Run `coro` on this host: it, and all tasks, timers and sockets that it makes, belong to it."""
        context = copy_context()
        context.run(HOST.set, self)
        return asyncio.get_running_loop().create_task(coro, name=name, context=context)

    def admits(self, run: Callable[[], None]) -> bool:
        """Whether a callback may run now; one of a paused host runs once it goes on."""
        if self.state is HostState.PAUSED:
            self._late.append(run)
        return self.runs

    def crash(self) -> None:
        """From now on nothing of it runs, not even a `finally`."""
        self.state = HostState.CRASHED
        self._late.clear()

    def pause(self) -> None:
        """Nothing of it runs until `resume`."""
        if self.state is HostState.RUNNING:
            self.state = HostState.PAUSED

    def resume(self) -> list[Callable[[], None]]:
        """It may run again; what is due meanwhile, in order."""
        if self.state is not HostState.PAUSED:
            return []
        self.state = HostState.RUNNING
        late, self._late = self._late, []
        return late


HOST: ContextVar[Host | None] = ContextVar("lab.sim host", default=None)
"""The host of the code that runs; None for the lab's own machine."""

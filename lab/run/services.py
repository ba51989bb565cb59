"""Carrying out faults of services: a double dies, and comes back when the fault's time is over."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Protocol

from lab.context import RunContext
from lab.errors import MisuseError
from lab.faults.plan import Fault
from lab.run.holds import Hold


class Mortal(Protocol):
    """A double that can die and come back."""

    async def crash(self) -> None:
        """Die as a process does."""

    async def start(self) -> None:
        """Come back where it was."""


class ServiceFaults:
    """Strikes doubles by name. Call `close` before they are closed."""

    def __init__(self, ctx: RunContext, services: Mapping[str, Mortal]) -> None:
        self._ctx = ctx
        self._services = services
        self._down: dict[str, Hold] = {}

    async def strike(self, fault: Fault) -> None:
        """Make a fault happen now; returns once the service is gone."""
        if fault.kind != "crash":
            raise MisuseError(f"{fault.kind} is no fault of a service")
        name = fault.service or ""
        if name not in self._down:
            service = self._services[name]
            self._down[name] = Hold(self._ctx, asyncio.Lock(), service.crash, service.start)
        down = self._down[name]
        async with down.turn:
            await down.take(fault)

    async def close(self) -> None:
        """Nothing comes back any more: the run is over."""
        await asyncio.gather(*(down.close() for down in self._down.values()))

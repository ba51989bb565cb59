"""Carrying out faults of services: a double dies, and comes back when the fault's time is over."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from lab.agent2.server import Agent2Server
from lab.context import RunContext
from lab.errors import MisuseError
from lab.faults.plan import Fault
from lab.journal.events import FaultEnded, FaultFired


class ServiceFaults:
    """Strikes the agent2 doubles by name. Call `close` before they are closed."""

    def __init__(self, ctx: RunContext, agent2s: Mapping[str, Agent2Server]) -> None:
        self._ctx = ctx
        self._agent2s = agent2s
        self._over = asyncio.Event()
        self._returns: list[asyncio.Task[None]] = []
        self._down: dict[str, int] = {}
        """How many faults keep each service down."""

    async def strike(self, fault: Fault) -> None:
        """Make a fault happen now; returns once the service is gone."""
        if fault.kind != "crash":
            raise MisuseError(f"{fault.kind} is no fault of a service")
        name = fault.service or ""
        agent2 = self._agent2s[name]
        self._down[name] = self._down.get(name, 0) + 1
        self._ctx.journal.record("faults", FaultFired(fault.id, fault.kind, fault.target))
        await agent2.crash()
        if fault.seconds is not None:
            back = self._come_back(agent2, fault, fault.seconds)
            self._returns.append(asyncio.get_running_loop().create_task(back, name=f"restart {fault.service}"))

    async def _come_back(self, agent2: Agent2Server, fault: Fault, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._over.wait()
        if self._over.is_set():
            return
        name = fault.service or ""
        self._down[name] -= 1
        if not self._down[name]:
            try:
                await agent2.start()
            except Exception as error:  # noqa: BLE001  a port lost to another program ends the run, with its name
                self._ctx.fail(error)
        self._ctx.journal.record("faults", FaultEnded(fault.id))

    async def close(self) -> None:
        """Nothing comes back any more: the run is over."""
        self._over.set()
        await asyncio.gather(*self._returns)

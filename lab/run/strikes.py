"""Carrying out link faults: at once, or behind the frame that their anchor names."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from lab.context import RunContext
from lab.errors import MisuseError
from lab.faults.link import Link
from lab.faults.plan import Fault
from lab.journal.events import FaultEnded, FaultFired


class LinkFaults:
    """Strikes links and heals them when a fault's time is over."""

    def __init__(self, ctx: RunContext, links: Mapping[str, Link]) -> None:
        self._ctx = ctx
        self._links = links
        self._timers: list[asyncio.TimerHandle] = []
        self._healing: list[asyncio.Task[None]] = []

    def strike(self, fault: Fault) -> None:
        """Make a link fault happen now."""
        link = self._links[fault.link or ""]
        self._ctx.journal.record("faults", FaultFired(fault.id, fault.kind, fault.target))
        match fault.kind:
            case "cut":
                link.cut()
            case "reset":
                link.reset()
            case "delay":
                link.set_delay(fault.delay)
            case "heal":
                self._heal(link, None)
            case _:
                raise MisuseError(f"{fault.kind} is no fault of a link")
        if fault.seconds is not None:
            loop = asyncio.get_running_loop()
            self._timers.append(loop.call_later(fault.seconds, self._heal, link, fault))

    def strike_behind(self, fault: Fault, port: int, offset: int | None) -> None:
        """Strike right behind a frame: at `offset` of the stream towards the agent, at once for a frame from it."""
        link = self._links[fault.link or ""]
        ends = [state.upstream_local for state in link.connections()]
        if offset is not None and any(end is not None and end[1] == port for end in ends):
            link.cut_at(port, "down", offset, lambda: self.strike(fault))
        else:
            self.strike(fault)

    def _heal(self, link: Link, fault: Fault | None) -> None:
        async def heal() -> None:
            try:
                await link.heal()
            except Exception as error:  # noqa: BLE001  a port lost to another program ends the run, with its name
                self._ctx.fail(error)
            if fault is not None:
                self._ctx.journal.record("faults", FaultEnded(fault.id))

        task = asyncio.get_running_loop().create_task(heal(), name=f"heal {link.name}")
        self._healing.append(task)
        task.add_done_callback(self._healing.remove)

    def close(self) -> None:
        """No more healing: the run is over."""
        for timer in self._timers:
            timer.cancel()
        for task in self._healing:
            task.cancel()

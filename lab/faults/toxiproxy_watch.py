"""Whether a run's Toxiproxy server is still there, asked again and again, so that its end is told as what it is."""

from __future__ import annotations

import asyncio

from lab.context import RunContext
from lab.faults.toxiproxy_calls import ToxiproxyFault
from lab.faults.toxiproxy_link import ServerCalls

LOOK_SECONDS = 1.0
"""Between two questions: soon enough that a run speaks of the server before it speaks of its agent."""


class ServerWatch:
    """Ends the run where the server does not answer, or does not have a proxy of the run. Call `close` once."""

    def __init__(self, ctx: RunContext, calls: ServerCalls, every: float = LOOK_SECONDS) -> None:
        self._ctx = ctx
        self._calls = calls
        self._every = every
        self._looking = asyncio.get_running_loop().create_task(self._look(), name="watch toxiproxy")

    async def close(self) -> None:
        """Ask no more."""
        self._looking.cancel()
        await asyncio.gather(self._looking, return_exceptions=True)

    async def _look(self) -> None:
        while not self._calls.ending:
            await asyncio.sleep(self._every)
            try:
                missing = await asyncio.shield(self._calls.begin(self._missing)) if self._calls.standing else []
                if missing:
                    raise self._calls.server.gone(missing[0])
            except ToxiproxyFault as fault:
                if not self._calls.ending:
                    self._ctx.fail(fault)
                return

    def _missing(self) -> list[str]:
        # In one call, so that none is created or removed between the two lists.
        due = tuple(self._calls.standing)
        there = self._calls.server.names()
        return [name for name in due if name not in there]

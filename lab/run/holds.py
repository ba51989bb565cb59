"""What faults hold down, or still: the first of them stops it, and the end of the last one lets it go."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from lab.context import RunContext
from lab.faults.plan import Fault
from lab.journal.events import FaultEnded, FaultFired


class Hold:
    """Holds one target for as long as any of its faults lasts; a fault without a time lasts for good.

    `turn` is the target's own. Whoever calls `take` or `drop` has it, and it is had while `let_go` runs, so that
    nothing strikes a target that is just coming back. Call `close` before the target is closed.
    """

    def __init__(
        self,
        ctx: RunContext,
        turn: asyncio.Lock,
        stop: Callable[[], Awaitable[None]],
        let_go: Callable[[], Awaitable[None]],
    ) -> None:
        self.turn = turn
        self._ctx = ctx
        self._stop = stop
        self._let_go = let_go
        self._faults: dict[str, asyncio.TimerHandle | None] = {}
        """The ids of the faults that hold, with the timer of each that has a time."""
        self._ends: list[asyncio.Task[None]] = []
        self._closed = False

    @property
    def holds(self) -> bool:
        """Whether any fault lasts."""
        return bool(self._faults)

    async def take(self, fault: Fault) -> None:
        """`fault` strikes, and holds from now on; returns once the target is stopped."""
        first = not self._faults
        self._faults[fault.id] = None
        self._ctx.journal.record("faults", FaultFired(fault.id, fault.kind, fault.target))
        if first:
            await self._stop()
        if fault.seconds is not None:
            loop = asyncio.get_running_loop()
            self._faults[fault.id] = loop.call_later(fault.seconds, self._is_over, fault.id)

    def drop(self) -> None:
        """What the faults held is gone, and they are over with it: none of them ends anything later."""
        for name in self._forgotten():
            self._ended(name)

    def _is_over(self, name: str) -> None:
        task = asyncio.get_running_loop().create_task(self._end(name), name=f"end {name}")
        self._ends.append(task)
        task.add_done_callback(self._ends.remove)

    async def _end(self, name: str) -> None:
        async with self.turn:
            # It may have been dropped, and the run may have ended, while another had the turn.
            if self._closed or name not in self._faults:
                return
            del self._faults[name]
            if not self._faults:
                try:
                    await self._let_go()
                except Exception as error:  # noqa: BLE001  what does not come back ends the run, with its reason
                    self._ctx.fail(error)
            self._ended(name)

    def _ended(self, name: str) -> None:
        self._ctx.journal.record("faults", FaultEnded(name))

    def _forgotten(self) -> list[str]:
        forgotten, self._faults = self._faults, {}
        for timer in forgotten.values():
            if timer is not None:
                timer.cancel()
        return list(forgotten)

    async def close(self) -> bool:
        """Let nothing go any more: the run is over. Returns whether a fault held it still, which is told no end."""
        self._closed = True
        await asyncio.gather(*self._ends)
        return bool(self._forgotten())

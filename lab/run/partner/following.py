"""A run whose events are followed beside the steps, so that a step may wait for a number of them."""

from __future__ import annotations

import asyncio

from lab.partner.client.driver import PartnerDriver
from lab.partner.client.outcomes import ApiRefusal, Done, GaveUp, TransportError
from lab.partner.client.run_events import RunEvents
from lab.partner.client.run_steps import Followed

End = Done[Followed] | ApiRefusal | TransportError | GaveUp


class Following:
    """Follows from now on, through breaks, to the run's end. Raises `NotThere` for a run that never began."""

    def __init__(self, driver: PartnerDriver, run: str) -> None:
        self.events: RunEvents = driver.run(run).events
        self._changed = asyncio.Event()
        self._stop = driver.ctx.journal.listen(lambda _entry: self._changed.set())
        self._task = asyncio.get_running_loop().create_task(driver.follow(run), name=f"follow {run}")
        self._task.add_done_callback(lambda _task: self._changed.set())
        self._defects = driver.ctx.defects

    async def reach(self, events: int | None) -> None:
        """Return once so many events were applied, and at the end: nothing more comes, or the lab has a defect."""
        while not self._task.done() and not self._defects and not self._has(events):
            self._changed.clear()
            await self._changed.wait()
        if self._defects:
            raise self._defects[0]

    def _has(self, events: int | None) -> bool:
        return events is not None and self.events.applied >= events

    async def end(self) -> End:
        """What following ended with."""
        return await self._task

    async def close(self) -> None:
        """Follow no more."""
        self._stop()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

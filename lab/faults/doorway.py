"""What keeps a new connection from its upstream for a while, or for good."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from lab.faults.toxics.stage import Door


class Doorway:
    """The doors between a connection's accept and its upstream. Their times count from the accept and add up.

    Where one of them drops, its time alone counts: `drop` is called then, and the upstream is never asked.
    `on_touch` is told of each toxic whose door is put before the connection.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, drop: Callable[[], None], on_touch: Callable[[str], None]
    ) -> None:
        self._loop = loop
        self._drop = drop
        self._on_touch = on_touch
        self._since = loop.time()
        self._doors: dict[str, Door] = {}
        self._waiting: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_behind = False

    @property
    def touching(self) -> tuple[str, ...]:
        """The toxics whose doors the connection stands before, or has come through."""
        return tuple(self._doors)

    @property
    def is_waited_at(self) -> bool:
        """Whether the connection stands before it."""
        return self._waiting is not None

    def put(self, toxic: str, door: Door) -> None:
        """Put a toxic's door in, or another in its place; nothing changes behind the doors."""
        if not self._is_behind:
            self._doors[toxic] = door
            if door.seconds or door.drops:
                self._on_touch(toxic)
            self._look()

    def take(self, toxic: str) -> None:
        """Take a toxic's door away, if it is there."""
        if self._doors.pop(toxic, None) is not None:
            self._look()

    async def passed(self) -> None:
        """Returns when the upstream may be asked."""
        if self._doors:
            self._waiting = self._loop.create_future()
            self._look()
            try:
                await self._waiting
            finally:
                self._waiting = None
                self._stop()
        self._is_behind = True

    def _look(self) -> None:
        if self._waiting is None or self._waiting.done():
            return
        self._stop()
        drops = [door.seconds for door in self._doors.values() if door.drops]
        seconds = min(drops) if drops else sum(door.seconds for door in self._doors.values())
        due, then = self._since + seconds, self._drop if drops else self._open
        self._timer = self._loop.call_at(max(due, self._loop.time()), then)

    def _open(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

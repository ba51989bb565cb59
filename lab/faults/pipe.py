"""One direction of a connection through a link: bounded in bytes, delayable, and watched to the exact byte.

    source transport ── feed ──> [held bytes, each with the time it is due] ──> sink transport

Without a delay or a watch nothing is held: bytes go from transport to transport in one call. What is held, here
and in the sink's write buffer together, never exceeds the high-water mark, since the source reads no more than
there is room for.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum


class End(Enum):
    """How a source ended; passed on in order, behind the bytes before it."""

    EOF = "eof"
    RESET = "reset"


@dataclass(frozen=True, slots=True)
class _Held:
    due: float
    what: bytes | End
    delayed: bool


@dataclass(frozen=True, slots=True)
class _Watch:
    offset: int
    then: Callable[[], None]


class Pipe:
    """Forwards what `feed` and `finish` give it, in order. `on_end` is told when an end's turn has come."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        delay: Callable[[], float],
        high_water: int,
        on_end: Callable[[End], None],
    ) -> None:
        self._loop = loop
        self._delay = delay
        self._high_water = high_water
        self._on_end = on_end
        self._source: asyncio.Transport | None = None
        self._sink: asyncio.Transport | None = None
        self._held: deque[_Held] = deque()
        self._held_bytes = 0
        self._watches: list[_Watch] = []
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = False
        self.forwarded = 0
        """Bytes given to the sink's transport since the connection began."""

    @property
    def pending(self) -> int:
        """Bytes that this process holds: not yet due, or due and not yet taken by the sink's socket."""
        return self._held_bytes + (self._sink.get_write_buffer_size() if self._sink is not None else 0)

    @property
    def room(self) -> int:
        """Bytes that may still be read from the source; above 0 while it is being read."""
        return self._high_water - self.pending

    def attach_source(self, source: asyncio.Transport) -> None:
        """Bytes will come from `source`, which is paused while there is no room for them."""
        self._source = source

    def attach_sink(self, sink: asyncio.Transport) -> None:
        """Bytes go to `sink` from now on; those that came before it wait for it."""
        if self._stopped:
            return
        # Resuming at a quarter of the mark leaves the sink something to send while the source is read again.
        sink.set_write_buffer_limits(high=self._high_water // 4, low=self._high_water // 4)
        self._sink = sink
        self._pump(self._loop.time())

    def feed(self, data: bytes) -> None:
        """Bytes from the source, at most `room` of them."""
        if self._stopped:
            return
        if self._sink is not None and not self._held and not self._watches and not self._delay():
            self.forwarded += len(data)
            self._sink.write(data)
            if self.room <= 0 and self._source is not None:
                self._source.pause_reading()
            return
        self._hold(data)

    def finish(self, end: End) -> None:
        """The source gives no more bytes."""
        if self._stopped:
            return
        self._hold(end)

    def stop(self) -> None:
        """Forget what is held, its timer and its watches, and forward nothing more; the source's bytes are dropped."""
        self._stopped = True
        self._held.clear()
        self._held_bytes = 0
        self._watches.clear()
        self._sink = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def drained(self) -> None:
        """The sink's write buffer has shrunk."""
        self._regulate()

    def watch(self, offset: int, then: Callable[[], None]) -> None:
        """Call `then` once `offset` bytes are forwarded and before the next one is; at once where they have been."""
        if offset <= self.forwarded:
            then()
        elif not self._stopped:
            self._watches.append(_Watch(offset, then))
            self._watches.sort(key=lambda watch: watch.offset)

    def _hold(self, what: bytes | End) -> None:
        now, delay = self._loop.time(), self._delay()
        self._held.append(_Held(now + delay, what, delayed=delay > 0))
        self._held_bytes += _size(what)
        self._pump(now)

    def _pump(self, now: float) -> None:
        # Only the first may go, whatever the others are due: order outranks the delay.
        while self._held and self._sink is not None and self._held[0].due <= now:
            held = self._held.popleft()
            self._held_bytes -= _size(held.what)
            if isinstance(held.what, End):
                self._on_end(held.what)
            else:
                self._forward(self._sink, held, held.what, now)
        if self._held and self._sink is not None and self._timer is None:
            due = self._held[0].due
            self._timer = self._loop.call_at(due, self._wake, due)
        self._regulate()

    def _wake(self, due: float) -> None:
        self._timer = None
        # A loop may run a timer early by its clock's resolution.
        self._pump(max(due, self._loop.time()))

    def _forward(self, sink: asyncio.Transport, held: _Held, data: bytes, now: float) -> None:
        allowed = self._watches[0].offset - self.forwarded if self._watches else len(data)
        passing, rest = data[:allowed], data[allowed:]
        self.forwarded += len(passing)
        sink.write(passing)
        while self._watches and self._watches[0].offset <= self.forwarded:
            self._watches.pop(0).then()
        if rest and not self._stopped:
            # The watcher may have set a delay: it holds for what comes after the watched byte, read with it or later.
            due = held.due if held.delayed else now + self._delay()
            self._held.appendleft(_Held(due, rest, delayed=due > now or held.delayed))
            self._held_bytes += len(rest)

    def _regulate(self) -> None:
        if self._source is None:
            return
        if self.room > 0:
            self._source.resume_reading()
        else:
            self._source.pause_reading()


def _size(what: bytes | End) -> int:
    return 0 if isinstance(what, End) else len(what)

"""One direction of a connection through a proxy: bounded, delayable, and watched to the exact byte.

    source transport ── feed ──> [toxics] ──> [held bytes, each with the time it is due] ──> sink transport

Without a toxic, a delay or a watch nothing is held: bytes go from transport to transport in one call. What is held,
here and in the sink's write buffer together, never exceeds the high-water mark, since the source reads no more than
there is room for; a small chunk counts for more than its bytes. Only what a toxic cuts into slices may count for more.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lab.faults.chain import Chain
from lab.faults.flow import End, Item, LastByte, Load
from lab.faults.toxics.attributes import Attributes
from lab.faults.toxics.stage import Stage

ITEMS_A_TURN = 1000
"""What comes out of the toxics is forwarded so many at a time; other connections have their turn between."""


@dataclass(frozen=True, slots=True)
class _Held:
    due: float
    what: Item
    delayed: bool


@dataclass(frozen=True, slots=True)
class _Watch:
    offset: int
    then: Callable[[], None]


class Pipe:
    """Forwards what `feed` and `finish` give it, in order.

    `on_end` is told when an end's turn has come, `on_touch` when a toxic touches something for the first time, before
    anything comes of it.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        delay: Callable[[], float],
        high_water: int,
        on_end: Callable[[End], None],
        on_touch: Callable[[str], None],
        heard: LastByte,
    ) -> None:
        self._loop = loop
        self._heard = heard
        self._delay = delay
        self._high_water = high_water
        self._on_end = on_end
        self._on_touch = on_touch
        self._source: asyncio.Transport | None = None
        self._sink: asyncio.Transport | None = None
        self._chain: Chain | None = None
        """There while a toxic has a place in it."""
        self._chain_timer: asyncio.TimerHandle | None = None
        self._out: deque[Item] = deque()
        """What came out of the chain and has not been taken yet; the first of it may be under way."""
        self._out_load = Load()
        self._next_turn: asyncio.Handle | None = None
        self._changing = False
        """Whether more changes of the chain follow at once."""
        self._held: deque[_Held] = deque()
        self._held_load = Load()
        self._pumping = False
        self._watches: list[_Watch] = []
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = False
        self._ended: End | None = None
        self.received = 0
        """Bytes read from the source since the connection began."""
        self.forwarded = 0
        """Bytes given to the sink's transport since the connection began."""

    @property
    def pending(self) -> int:
        """Bytes that this process holds: not yet due, or due and not yet taken by the sink's socket."""
        in_chain = self._chain.held if self._chain is not None else 0
        return in_chain + self._out_load.size + self._held_load.size + self._in_sink

    @property
    def room(self) -> int:
        """Bytes that may still be read from the source; above 0 while it is being read."""
        in_chain = self._chain.charge if self._chain is not None else 0
        return self._high_water - in_chain - self._out_load.charge - self._held_load.charge - self._in_sink

    @property
    def _in_sink(self) -> int:
        return self._sink.get_write_buffer_size() if self._sink is not None else 0

    @property
    def touching(self) -> tuple[str, ...]:
        """The toxics that act on it, in order."""
        return self._chain.touching if self._chain is not None else ()

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
        now = self._loop.time()
        self.received += len(data)
        self._pass_on(data, now)
        # Behind it, since a silence that is over by the clock is ended before what ends it counts.
        self._heard.at = now

    def finish(self, end: End) -> None:
        """The source gives no more bytes."""
        if not self._stopped:
            self._pass_on(end, self._loop.time())

    def stop(self) -> None:
        """Forget what is held, its timers and its watches, and forward nothing more; the source's bytes are dropped."""
        self._stopped = True
        self._chain = None
        self._out.clear()
        self._out_load.clear()
        self._held.clear()
        self._held_load.clear()
        self._watches.clear()
        self._sink = None
        for timer in (self._timer, self._chain_timer, self._next_turn):
            if timer is not None:
                timer.cancel()
        self._timer = self._chain_timer = self._next_turn = None

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

    # Toxics

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Timer and source are looked at once, behind all changes that are made inside."""
        self._changing = True
        try:
            yield
        finally:
            self._changing = False
            self._settle()

    def add_stage(self, toxic: str, stage: Stage[Any], *, active: bool) -> None:
        """Let a toxic act behind the others, on what comes from now on."""
        if self._stopped:
            return
        self._chain = self._chain or Chain()
        self._take_out(self._chain.add(toxic, stage, self._loop.time(), active=active))

    def update_stage(self, toxic: str, attributes: Attributes, *, active: bool) -> None:
        """Give a toxic other attributes, and the outcome of a new roll of its toxicity."""
        if self._chain is not None:
            self._take_out(self._chain.update(toxic, attributes, self._loop.time(), active=active))

    def remove_stage(self, toxic: str) -> None:
        """Let a toxic act no longer; what it held goes on."""
        chain = self._chain
        if chain is not None:
            passed = chain.remove(toxic, self._loop.time())
            if chain.is_empty:
                self._chain = None
            self._take_out(passed)

    def _pass_on(self, item: Item, now: float) -> None:
        if self._chain is not None:
            self._take_out(self._chain.feed(item, now))
        elif self._out:
            self._take_out([item])
        else:
            self._onward(item)

    def _take_out(self, items: list[Item]) -> None:
        """Forward what came out of the chain. A watch may change the chain meanwhile: what it frees comes behind."""
        is_under_way = bool(self._out)
        self._out += items
        for item in items:
            self._out_load.put(item)
        for toxic in self._chain.touched() if self._chain is not None else ():
            self._on_touch(toxic)
        if not is_under_way:
            self._take_some()
        self._settle()

    def _take_some(self) -> None:
        """Forward the first of what came out, and leave the rest to further turns of the loop."""
        try:
            for _ in range(ITEMS_A_TURN):
                if not self._out:
                    break
                self._take_first()
        finally:
            if self._out:
                self._next_turn = self._loop.call_soon(self._take_more)

    def _take_first(self) -> None:
        self._out_load.take(self._out[0])
        try:
            self._onward(self._out[0])
        finally:
            if self._out:
                self._out.popleft()

    def _take_more(self) -> None:
        self._next_turn = None
        self._take_some()
        self._settle()

    def _settle(self) -> None:
        if not self._changing:
            self._set_chain_timer()
            self._regulate()

    def _set_chain_timer(self) -> None:
        if self._chain_timer is not None:
            self._chain_timer.cancel()
            self._chain_timer = None
        due = self._chain.due if self._chain is not None else None
        if due is not None:
            self._chain_timer = self._loop.call_at(due, self._wake_chain, due)

    def _wake_chain(self, due: float) -> None:
        self._chain_timer = None
        if self._chain is not None:
            # A loop may run a timer early by its clock's resolution.
            self._take_out(self._chain.wake(max(due, self._loop.time())))

    # From there on

    def _onward(self, item: Item) -> None:
        if self._ended is not None and (isinstance(item, bytes) or self._ended is not End.EOF or item is End.EOF):
            # A toxic has ended the direction; behind a FIN only the end of the connection still says something.
            return
        if isinstance(item, End):
            self._ended = item
        elif (
            self._sink is not None and not self._held and not self._pumping and not self._watches and not self._delay()
        ):
            self.forwarded += len(item)
            self._sink.write(item)
            if self.room <= 0 and self._source is not None:
                self._source.pause_reading()
            return
        self._hold(item)

    def _hold(self, what: Item) -> None:
        now, delay = self._loop.time(), self._delay()
        self._held.append(_Held(now + delay, what, delayed=delay > 0))
        self._held_load.put(what)
        self._pump(now)

    def _pump(self, now: float) -> None:
        if self._pumping:
            # From a watch: the rest of what is being forwarded comes first.
            return
        self._pumping = True
        try:
            self._forward_what_is_due(now)
        finally:
            self._pumping = False
        if self._held and self._timer is None and self._may_go(self._held[0].what):
            due = self._held[0].due
            self._timer = self._loop.call_at(due, self._wake, due)
        self._regulate()

    def _forward_what_is_due(self, now: float) -> None:
        # Only the first may go, whatever the others are due: order outranks the delay.
        while self._held and self._held[0].due <= now and self._may_go(self._held[0].what):
            held = self._held.popleft()
            self._held_load.take(held.what)
            if isinstance(held.what, End):
                self._on_end(held.what)
            elif self._sink is not None:
                self._forward(self._sink, held, held.what, now)

    def _may_go(self, what: Item) -> bool:
        """A toxic's end of the whole connection needs no sink."""
        return self._sink is not None or what in (End.CLOSE, End.BREAK)

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
            self._held_load.put(rest)

    def _regulate(self) -> None:
        if self._source is None:
            return
        if self.room > 0:
            self._source.resume_reading()
        else:
            self._source.pause_reading()

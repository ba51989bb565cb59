"""A link that is a proxy on a Toxiproxy server, in place of one of the lab's own engine."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import TypeVar

from lab.context import RunContext
from lab.errors import MisuseError
from lab.faults.specs import STREAMS, ToxicSpec
from lab.faults.toxics import most_held
from lab.faults.toxiproxy import ToxiproxyServer
from lab.faults.toxiproxy_calls import ServerLost, ToxiproxyFault
from lab.journal.events import LinkChanged, LinkOpened

T = TypeVar("T")


class ProxiesLeft(ToxiproxyFault):
    """Proxies of the run could not be removed, for `cause`."""

    def __init__(self, names: tuple[str, ...], cause: ToxiproxyFault) -> None:
        super().__init__(
            f"{cause} What the run has there could not be removed: {', '.join(names)}. "
            "Delete these proxies once the server answers again; a restart ends them too."
        )
        self.names = names


class ServerCalls:
    """The calls of a run to its server: in threads, one after the other, in the order in which they were made.

    A call that has begun is never left alone: whoever waits for it may be cancelled, the next call still waits for it.
    Once the server is lost no further call waits for it; only `remove` tries it once again.
    """

    def __init__(self, ctx: RunContext, server: ToxiproxyServer) -> None:
        self.server = server
        self.prefix = f"lab-{ctx.secret_draws('toxiproxy', 'names').bytes(6).hex()}"
        """What the names of this run's proxies begin with; no other run's do."""
        self.standing: dict[str, None] = {}
        """The proxies of this run that the server has to have."""
        self.ending = False
        """Whether the run has begun to remove them."""
        self._lost: ServerLost | None = None
        self._left: dict[str, ToxiproxyFault] = {}
        self._lock = asyncio.Lock()

    def begin(
        self, call: Callable[[], T], *, although_lost: bool = False, first: Callable[[], None] | None = None
    ) -> asyncio.Task[T]:
        """A call in its turn; `first` is done right before it, behind all that the calls before it have told."""

        async def carry() -> T:
            async with self._lock:
                if self._lost is not None and not although_lost:
                    raise self._lost
                if first is not None:
                    first()
                try:
                    return await asyncio.to_thread(call)
                except ServerLost as lost:
                    self._lost = lost
                    raise

        task = asyncio.get_running_loop().create_task(carry(), name="toxiproxy")
        # Its error is its caller's; one that was cancelled meanwhile does not want it.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return task

    async def remove(self, name: str) -> None:
        """Remove a proxy of this run. What the server does not do is told by `check_removed`."""
        self.ending = True
        self.standing.pop(name, None)
        lost = next((fault for fault in self._left.values() if isinstance(fault, ServerLost)), None)
        if lost is not None:
            # Each further call would take as long to fail, and the run would not end.
            self._left[name] = lost
            return
        try:
            # In its turn, so behind a creation that nobody waited for to its end.
            await asyncio.shield(self.begin(lambda: self.server.delete(name), although_lost=True))
        except ToxiproxyFault as fault:
            self._left[name] = fault

    def check_removed(self) -> None:
        """Raises `ProxiesLeft` with all that `remove` could not."""
        left, self._left = self._left, {}
        if left:
            raise ProxiesLeft(tuple(left), next(iter(left.values())))


class ToxiproxyLink:
    """Fulfils `FaultLink`. What only the lab's own engine can do is not here, and refused before a run begins.

    The journal has an entry for each change, as a link's of the engine; connections are the server's, and unknown.
    A delay is two `latency` toxics, in whole milliseconds.
    """

    def __init__(
        self,
        ctx: RunContext,
        calls: ServerCalls,
        name: str,
        upstream: tuple[str, int],
        *,
        delay: float = 0.0,
        to: str = "",
    ) -> None:
        self.name = name
        self._ctx = ctx
        self._calls = calls
        self._server = calls.server
        self._proxy = f"{calls.prefix}-{name}"
        self._upstream = upstream
        self._to = to
        self._first_delay = delay
        self._delay = 0.0
        self._delaying = False
        """Whether the toxics of the delay stand."""
        self._cut = False
        self._address: tuple[str, int] | None = None
        self._begun = False
        self._changes: dict[asyncio.Task[None], None] = {}

    @property
    def delay(self) -> float:
        """What it adds to each direction now, in seconds."""
        return self._delay

    @property
    def address(self) -> tuple[str, int]:
        """Where clients connect to."""
        if self._address is None:
            raise MisuseError(f"link {self.name} was used before its start; start it first")
        return self._address

    async def start(self) -> None:
        """Create the proxy. Raises `ToxiproxyFault`."""
        self._begun = True
        creating = self._calls.begin(lambda: self._server.create(self._proxy, self._upstream))
        self._address = await asyncio.shield(creating)
        self._calls.standing[self._proxy] = None
        self._record(LinkOpened(self.name, self._to))
        if self._first_delay:
            self.set_delay(self._first_delay)
            await self.settled()

    def cut(self) -> None:
        """Disable the proxy: FIN to both sides of every connection, and connects are refused."""
        if not self._cut:
            self._cut = True
            self._change(lambda: self._server.disable(self._proxy), before=LinkChanged(self.name, "cut"))

    def heal(self) -> None:
        """Enable the proxy, and add no delay."""
        if not self._cut and not self._delay:
            return
        was_cut, was_delayed = self._cut, self._delaying
        self._cut, self._delay, self._delaying = False, 0.0, False

        def mend() -> None:
            if was_delayed:
                self._remove_delay()
            if was_cut:
                self._server.enable(self._proxy)

        self._change(mend, behind=LinkChanged(self.name, "healed"))

    def set_delay(self, seconds: float, touched: Callable[[], None] | None = None) -> None:
        """Hold bytes back for so long, each way, from now on; 0 ends it. `touched` is called once that stands."""
        if not (math.isfinite(seconds) and seconds >= 0):
            raise MisuseError(f"a link's delay is a finite number of seconds from 0 on, not {seconds}")
        if seconds == self._delay:
            if seconds and touched is not None:
                # It stands once the changes before this one do.
                self._change(lambda: None, touched=touched)
            return
        change = LinkChanged(self.name, "delayed", seconds)
        was_delaying, longer = self._delaying, seconds > self._delay
        self._delay, self._delaying = seconds, seconds > 0
        if not self._delaying:
            self._change(self._remove_delay, behind=change)
            return
        put = self._server.update_toxic if was_delaying else self._server.add_toxic

        def hold() -> None:
            for stream in STREAMS:
                put(self._proxy, ToxicSpec("latency", _delay_name(stream), stream, 1.0, _milliseconds(seconds)))

        if longer:
            self._change(hold, before=change, touched=touched)
        else:
            self._change(hold, behind=change, touched=touched)

    def add_toxic(self, spec: ToxicSpec, touched: Callable[[], None] | None = None) -> None:
        """Put a toxic into the proxy. It has a name. `touched` is called once it stands: the server tells no more."""
        held = most_held(spec.type, spec.attributes)
        change = LinkChanged(self.name, "toxic-added", self._delay, spec.name or "", spec.type, held)
        self._change(lambda: self._server.add_toxic(self._proxy, spec), before=change, touched=touched)

    def remove_toxic(self, name: str) -> None:
        """Take a toxic out of the proxy."""
        change = LinkChanged(self.name, "toxic-removed", self._delay, name)
        self._change(lambda: self._server.remove_toxic(self._proxy, name), behind=change)

    async def settled(self) -> None:
        """Returns once every change has been read back; one that failed ends the run."""
        if self._changes:
            await asyncio.wait(tuple(self._changes))

    async def close(self) -> None:
        """Remove the proxy, whatever of it there is. Safe to call again. See `ServerCalls.remove`."""
        if self._begun:
            self._begun = False
            await self._calls.remove(self._proxy)
            await self.settled()

    def _change(
        self,
        call: Callable[[], None],
        before: LinkChanged | None = None,
        behind: LinkChanged | None = None,
        touched: Callable[[], None] | None = None,
    ) -> None:
        """Make a change in its turn. What breaks a link is told before it, what mends it behind it."""
        task = self._calls.begin(call, first=None if before is None else lambda: self._record(before))
        self._changes[task] = None
        task.add_done_callback(lambda made: self._made(made, behind, touched))

    def _made(self, change: asyncio.Task[None], behind: LinkChanged | None, touched: Callable[[], None] | None) -> None:
        del self._changes[change]
        error = None if change.cancelled() else change.exception()
        if error is not None and self._begun:
            self._ctx.fail(error)
        elif error is None:
            if behind is not None:
                self._record(behind)
            if touched is not None:
                touched()

    def _remove_delay(self) -> None:
        for stream in STREAMS:
            self._server.remove_toxic(self._proxy, _delay_name(stream))

    def _record(self, event: LinkOpened | LinkChanged) -> None:
        self._ctx.journal.record(f"link.{self.name}", event)


def _delay_name(stream: str) -> str:
    """No toxic of a fault is called so: those have a dot in their names."""
    return f"delay-{stream}"


def _milliseconds(seconds: float) -> dict[str, object]:
    return {"latency": max(1, round(seconds * 1000))}

"""A link: a fault proxy on loopback between a participant and its peer, which a step can break and mend."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from lab.context import RunContext
from lab.errors import EnvironmentFault, MisuseError, UsageError
from lab.faults.address import to_text
from lab.faults.connection import Connection, Direction, LinkConnectionState
from lab.faults.proxy import Proxy
from lab.faults.refusals import ListenFailed
from lab.faults.specs import ProxyConnection, ProxySpec, Toxic, ToxicSpec
from lab.faults.toxics import most_held
from lab.journal.events import Event, LinkChanged, LinkConnection, LinkOpened
from lab.journal.writer import Entry

__all__ = ["HIGH_WATER", "Direction", "Link", "LinkConnectionState"]

HIGH_WATER = 64 * 1024
"""Bytes that a link holds at most in each direction of a connection."""


class Link:
    """Passes every connection on to `upstream`, until `move` names another.

    `port` 0 lets the system choose; `delay` is in seconds.

    The journal has an entry for each change, recorded by `link.<name>`: for each connection `opened`, when its
    client was accepted, and then one of `closed`, `cut`, `reset` (by the link) and `refused` (by the upstream),
    with the bytes forwarded each way. A call that changes nothing leaves no entry. A connection that a toxic ends
    is `cut` (FIN) or `reset` (RST).

    Toxics act before the delay, and outlast `cut`, `reset`, `move` and `heal`.
    """

    def __init__(
        self,
        ctx: RunContext,
        name: str,
        upstream: tuple[str, int],
        host: str = "127.0.0.1",
        port: int = 0,
        delay: float = 0.0,
        *,
        to: str = "",
        high_water: int = HIGH_WATER,
    ) -> None:
        self._to = to
        self.name = name
        self._ctx = ctx
        self._delay = _checked_delay(delay)
        self._open = False
        self._on_delayed: Callable[[], None] | None = None
        self._on_touched: dict[str, Callable[[], None]] = {}
        """By toxic; each is called once."""
        self._cause: int | None = None
        """The entry of the change that is being made: what ends connections meanwhile."""
        self._proxy = Proxy(
            asyncio.get_running_loop(),
            ctx.draws,
            ProxySpec(name, to_text((host, port)), to_text(upstream)),
            high_water=high_water,
            loopback_only=False,
            delay=self._held_back,
            observer=self,
        )

    async def start(self) -> None:
        """Listen. A port that cannot be had raises `EnvironmentFault`."""
        if self._open:
            raise MisuseError(f"link {self.name} was started twice")
        self._listen()
        self._open = True
        self._record(LinkOpened(self.name, self._to))
        if self._delay:
            self._record(LinkChanged(self.name, "delayed", self._delay))

    @property
    def delay(self) -> float:
        """What it adds to each direction now, in seconds."""
        return self._delay

    @property
    def address(self) -> tuple[str, int]:
        """Where clients connect to, the same for the link's whole life."""
        self._check_open()
        return self._proxy.address

    async def close(self) -> None:
        """Stop listening, abort every connection, give the port back; returns when nothing is left in the loop.

        Bytes still in the link are lost. Safe to call again, and before `start`.
        """
        self._open = False
        self._proxy.end()
        await self._proxy.gone()

    def cut(self) -> None:
        """FIN to both sides of every connection, and connects are refused until `heal`.

        Bytes already written to a side are flushed before its FIN; bytes held by a delay, or waiting for the
        upstream to be connected, are lost. What a peer sends after the cut is dropped. A peer that neither reads
        nor closes is aborted after `PARTING_SECONDS`.
        """
        self._check_open()
        if self._proxy.enabled:
            with self._caused(LinkChanged(self.name, "cut")):
                self._proxy.disable()

    def reset(self) -> None:
        """RST on both sides of every live connection; new ones are accepted as before."""
        self._check_open()
        with self._caused(LinkChanged(self.name, "reset")):
            self._proxy.reset()

    def move(self, upstream: tuple[str, int]) -> None:
        """FIN to both sides of every connection, as by `cut`, and from now on new ones are led to `upstream`.

        A link that is cut stays cut until `heal`, and leads there then.
        """
        self._check_open()
        # A delay goes on: the entry says so, since any change of a link may have ended it.
        with self._caused(LinkChanged(self.name, "moved", self._delay)):
            self._proxy.lead_to(to_text(upstream))

    def set_delay(self, seconds: float, touched: Callable[[], None] | None = None) -> None:
        """Forward bytes and FINs that arrive from now on `seconds` late, each way, in order; 0 ends it.

        What is held already keeps its time, and what comes behind it waits for it. `touched` is called once, before
        the first that is held back.
        """
        self._check_open()
        self._on_delayed = touched
        if _checked_delay(seconds) != self._delay:
            self._delay = seconds
            self._record(LinkChanged(self.name, "delayed", seconds))

    def heal(self) -> None:
        """Listen again on the same port, and add no delay to what arrives from now on.

        A port that was lost to another program meanwhile raises `EnvironmentFault`.
        """
        self._check_open()
        if self._proxy.enabled and not self._delay:
            return
        self._listen()
        self._delay, self._on_delayed = 0.0, None
        self._record(LinkChanged(self.name, "healed"))

    async def settled(self) -> None:
        """Every change has taken effect when its call returns."""

    def connections(self) -> list[LinkConnectionState]:
        """The live connections, oldest first."""
        return [connection.state for connection in self._proxy.live()]

    @property
    def toxics(self) -> tuple[Toxic, ...]:
        """Those of `upstream` first, in the order they were added."""
        return self._proxy.toxics

    def touched(self) -> tuple[ProxyConnection, ...]:
        """The live connections with the toxics that touch each, oldest first."""
        return self._proxy.connections()

    def add_toxic(self, spec: ToxicSpec, touched: Callable[[], None] | None = None) -> Toxic:
        """See `Proxy.add_toxic`. `touched`, for one with a name, is called once, when it first touches something."""
        self._check_open()
        with self._caused():
            if touched is None or spec.name is None:
                return self._proxy.add_toxic(spec)
            # Before it stands, since it may act at once.
            self._on_touched[spec.name] = touched
            try:
                return self._proxy.add_toxic(spec)
            except UsageError:
                del self._on_touched[spec.name]
                raise

    def update_toxic(self, name: str, attributes: Mapping[str, object] | None, toxicity: float | None) -> Toxic:
        """See `Proxy.update_toxic`."""
        self._check_open()
        with self._caused():
            return self._proxy.update_toxic(name, attributes, toxicity)

    def remove_toxic(self, name: str) -> None:
        """See `Proxy.remove_toxic`."""
        self._check_open()
        with self._caused():
            self._on_touched.pop(name, None)
            self._proxy.remove_toxic(name)

    def cut_at(self, upstream_side_port: int, direction: Direction, offset: int, then: Callable[[], None]) -> None:
        """Call `then` when exactly `offset` bytes of one direction of one connection have been forwarded.

        The connection is the one whose upstream side has the local port `upstream_side_port`; offsets count from
        its start. `then` runs before any later byte is forwarded, so that a cut in it lets exactly those bytes
        through, and at once where they have been forwarded already. It is never called for a connection that is
        gone, or that ends before that byte.
        """
        self._check_open()
        for connection in self._proxy.live():
            if connection.upstream.local is not None and connection.upstream.local[1] == upstream_side_port:
                connection.pipe(direction).watch(offset, then)

    # What its proxy tells

    def opened(self, connection: Connection) -> None:
        """See `Observer`."""
        self._record(LinkConnection(self.name, connection.id, "opened"))

    def ended(self, connection: Connection, change: str) -> None:
        """See `Observer`."""
        up, down = connection.up.forwarded, connection.down.forwarded
        self._record(LinkConnection(self.name, connection.id, change, up_bytes=up, down_bytes=down), self._cause)

    def changing(self, change: str, toxic: Toxic) -> None:
        """See `Observer`."""
        held = most_held(toxic.type, toxic.attributes)
        changed = LinkChanged(self.name, f"toxic-{change}", self._delay, toxic.name, toxic.type, held)
        self._cause = self._record(changed).n

    def touches(self, toxic: str) -> None:
        """See `Observer`."""
        told = self._on_touched.pop(toxic, None)
        if told is not None:
            told()

    def _held_back(self) -> float:
        """The delay, asked for what is about to be held back by it."""
        if self._delay and self._on_delayed is not None:
            told, self._on_delayed = self._on_delayed, None
            told()
        return self._delay

    def _listen(self) -> None:
        try:
            self._proxy.enable()
        except ListenFailed as error:
            raise EnvironmentFault(
                f"link {self.name} cannot listen on {error.listen}: {error.reason}. "
                "Stop the program that uses this port, or give the link another one (0 takes any free port)."
            ) from error

    @contextmanager
    def _caused(self, change: LinkChanged | None = None) -> Iterator[None]:
        """A change, or the toxic's that is recorded inside, causes what happens to connections there."""
        before = self._cause
        if change is not None:
            self._cause = self._record(change).n
        try:
            yield
        finally:
            self._cause = before

    def _check_open(self) -> None:
        if not self._open:
            raise MisuseError(f"link {self.name} was used before its start or after its end; start it first")

    def _record(self, event: Event, cause: int | None = None) -> Entry:
        return self._ctx.journal.record(f"link.{self.name}", event, cause)


def _checked_delay(seconds: float) -> float:
    if not (math.isfinite(seconds) and seconds >= 0):
        raise MisuseError(f"a link's delay is a finite number of seconds from 0 on, not {seconds}")
    return seconds

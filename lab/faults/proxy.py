"""A fault proxy: a port, an upstream, and the toxics that stand between the two."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from lab.draws import Draws
from lab.faults.address import Address, BadAddress, from_text, to_listen_on, to_text
from lab.faults.connection import Connection, Hooks
from lab.faults.listener import Listener
from lab.faults.refusals import ListenFailed
from lab.faults.specs import ProxyConnection, ProxySpec, Stream, Toxic, ToxicSpec, Traffic
from lab.faults.toxic_set import DIRECTIONS, ToxicSet


class Observer(Protocol):
    """Who is told of a proxy's connections and toxics."""

    def opened(self, connection: Connection) -> None:
        """A client was accepted."""

    def ended(self, connection: Connection, change: str) -> None:
        """A connection ended: `closed` by its peers or with the proxy, `cut`, `reset`, or `refused` by its upstream."""

    def changing(self, change: str, toxic: Toxic) -> None:
        """A toxic was `added`, `updated` or `removed`, and acts so on connections next."""

    def touches(self, toxic: str) -> None:
        """A toxic touches a byte of a connection, or the connection itself; told once for each connection at least."""


class Unobserved:
    """Tells nobody."""

    def opened(self, connection: Connection) -> None:
        """Nothing."""

    def ended(self, connection: Connection, change: str) -> None:
        """Nothing."""

    def changing(self, change: str, toxic: Toxic) -> None:
        """Nothing."""

    def touches(self, toxic: str) -> None:
        """Nothing."""


class Proxy:
    """Passes each connection to its upstream, through the toxics of each stream in the order they were added.

    It does not listen before `enable`; a `listen` that cannot be raises `ListenFailed` at once where the specification
    is enabled, and at `enable` otherwise. `delay` tells how many seconds each direction is held back beside toxics.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        draws: Callable[[str, str], Draws],
        spec: ProxySpec,
        *,
        high_water: int,
        loopback_only: bool = True,
        delay: Callable[[], float] = lambda: 0.0,
        observer: Observer | None = None,
    ) -> None:
        self.name = spec.name
        self._loop = loop
        self._high_water = high_water
        self._loopback_only = loopback_only
        self._delay = delay
        self._observer = observer or Unobserved()
        self._upstream = spec.upstream
        self._listen = spec.listen
        self._listener = self._listener_for(spec.listen, needed=spec.enabled)
        """None while it is disabled and its `listen` is one that cannot be."""
        self._toxics = ToxicSet(spec.name, draws, self._observer.changing)
        self._count = 0
        self._connections: dict[str, Connection] = {}
        self._past: dict[Stream, Traffic] = {stream: Traffic(0, 0) for stream in DIRECTIONS}
        """Of connections that are gone."""
        self._all_gone = asyncio.Event()
        self._all_gone.set()

    @property
    def listen(self) -> str:
        """Where clients connect to, as `host:port`; the port that was chosen in place of 0 once it has listened.

        What cannot be listened on is shown as it was written.
        """
        return self._listen if self._listener is None else to_text(self._listener.address)

    @property
    def address(self) -> Address:
        """Where clients connect to. Raises `ListenFailed` where that cannot be."""
        return self._address_of(self._listen) if self._listener is None else self._listener.address

    @property
    def upstream(self) -> str:
        """Where connections are led to, as it was written."""
        return self._upstream

    @property
    def enabled(self) -> bool:
        """Whether connects are accepted."""
        return self._listener is not None and self._listener.is_open

    @property
    def toxics(self) -> tuple[Toxic, ...]:
        """Those of `upstream` first, in the order they were added."""
        return self._toxics.listed

    def toxic(self, name: str) -> Toxic:
        """The toxic of that name. Raises `ToxicNotFound`."""
        return self._toxics.get(name)

    def add_toxic(self, spec: ToxicSpec) -> Toxic:
        """Put a toxic behind those of its stream, for live connections too.

        Raises `BadToxic`, `ToxicExists` and `TooManyToxics`; nothing has changed then. Returns at once, whatever the
        traffic.
        """
        return self._toxics.add(spec, self.live())

    def update_toxic(self, name: str, attributes: Mapping[str, object] | None, toxicity: float | None) -> Toxic:
        """Merge `attributes` into a toxic's and set its toxicity; None leaves either. Toxicity is rolled again.

        Raises `ToxicNotFound` and `BadToxic`; nothing has changed then. Returns at once, whatever the traffic.
        """
        return self._toxics.update(name, attributes, toxicity, self.live())

    def remove_toxic(self, name: str) -> None:
        """Take a toxic out; bytes that it holds go on, and connections under a `timeout` are closed.

        Raises `ToxicNotFound`. Returns at once, whatever the traffic.
        """
        self._toxics.remove(name, self.live())

    def remove_toxics(self) -> None:
        """Take every toxic out, as `remove_toxic` does."""
        self._toxics.clear(self.live())

    def connections(self) -> tuple[ProxyConnection, ...]:
        """The live connections, oldest first."""
        return tuple(_shown(connection) for connection in self.live())

    def live(self) -> list[Connection]:
        """The live connections themselves, oldest first."""
        return [connection for connection in self._connections.values() if connection.live]

    def traffic(self, stream: Stream) -> Traffic:
        """Bytes of that stream over the proxy's whole life."""
        received, sent = self._past[stream].received, self._past[stream].sent
        for connection in self._connections.values():
            pipe = connection.pipe(DIRECTIONS[stream])
            received, sent = received + pipe.received, sent + pipe.forwarded
        return Traffic(received, sent)

    # Its life

    def enable(self) -> None:
        """Listen, on the port that it had before if there was one. Raises `ListenFailed`; nothing has changed then."""
        if self._listener is None:
            self._listener = self._new_listener(self._listen)
        if not self._listener.is_open:
            self._open(self._listener)

    def disable(self) -> None:
        """Refuse connects and hold the port; give both sides of live connections FIN, and lose what is held for them.

        Bytes already written to a side are flushed before its FIN. What a peer sends after it is dropped, and one
        that neither reads nor closes is aborted after `PARTING_SECONDS`.
        """
        if self._listener is not None and self._listener.is_open:
            self._listener.shut()
        self.part()

    def part(self) -> None:
        """End every live connection as `disable` does."""
        for connection in self.live():
            connection.part()
            self._observer.ended(connection, "cut")

    def reset(self) -> None:
        """RST on both sides of every live connection."""
        for connection in self.live():
            connection.reset()
            self._observer.ended(connection, "reset")

    def lead_to(self, upstream: str) -> None:
        """Lead connections to another upstream from now on; live ones end as by `disable`."""
        self._upstream = upstream
        self.part()

    def change(self, listen: str | None = None, upstream: str | None = None, enabled: bool | None = None) -> None:
        """Change what is given. Another `listen` or `upstream` ends live connections as `disable` does.

        Raises `ListenFailed`; nothing has changed then.
        """
        wanted = self.enabled if enabled is None else enabled
        if listen is not None and not self._is_at(listen):
            self._move_to(listen, wanted)
        elif wanted:
            self.enable()
        else:
            self.disable()
        if upstream is not None and upstream != self._upstream:
            self.lead_to(upstream)

    def is_led(self, listen: str, upstream: str) -> bool:
        """Whether it stands as such a specification would have it. Port 0 never does: another is chosen each time."""
        return upstream == self._upstream and self._is_at(listen)

    def end(self) -> None:
        """Stop listening, abort every connection, give the port back; bytes in it are lost. Safe to call again."""
        if self._listener is not None:
            self._listener.close()
        for connection in tuple(self._connections.values()):
            was_live = connection.live
            connection.abort()
            if was_live:
                self._observer.ended(connection, "closed")

    async def gone(self) -> None:
        """Returns when no connection is left in the loop."""
        await self._all_gone.wait()

    def _address_of(self, listen: str) -> Address:
        try:
            return to_listen_on(listen, loopback_only=self._loopback_only)
        except BadAddress as error:
            raise ListenFailed(self.name, listen, str(error)) from error

    def _listener_for(self, listen: str, *, needed: bool) -> Listener | None:
        """A listener, not open yet. An address that cannot be raises `ListenFailed` where it is needed."""
        try:
            return self._new_listener(listen)
        except ListenFailed:
            if needed:
                raise
            return None

    def _new_listener(self, listen: str) -> Listener:
        return Listener(self._address_of(listen), self._accept)

    def _open(self, listener: Listener) -> None:
        try:
            listener.open()
        except OSError as error:
            reason = os.strerror(error.errno or errno.EIO)
            raise ListenFailed(self.name, to_text(listener.address), reason) from error

    def _is_at(self, listen: str) -> bool:
        asked = self._listener_for(listen, needed=False)
        if asked is None or self._listener is None:
            return asked is self._listener and listen == self._listen
        return asked.address[1] != 0 and asked.address == self._listener.address

    def _move_to(self, listen: str, wanted: bool) -> None:
        new = self._listener_for(listen, needed=wanted)
        with self.giving_way():
            if new is not None and wanted:
                self._open(new)
        self._listen, self._listener = listen, new
        self.part()

    @contextmanager
    def giving_way(self) -> Iterator[None]:
        """Give the port up for what takes its place inside: two addresses may be one port. Connections live on.

        Where that raises `ListenFailed` the port is had again as it was.
        """
        old = self._listener
        was_open = self.enabled
        if old is not None:
            old.close()
        try:
            yield
        except ListenFailed:
            if old is not None and was_open:
                self._open(old)
            elif old is not None and old.address[1]:
                old.shut()
            raise

    def _accept(self, raw: socket.socket, client: Address) -> None:
        self._count += 1
        hooks = Hooks(self._observer.ended, self._gone, self._observer.touches)
        connection = Connection(self._loop, f"{self.name}-{self._count}", client, self._delay, self._high_water, hooks)
        self._connections[connection.id] = connection
        self._all_gone.clear()
        # Opened first, so that a toxic or an observer that ends it finds something to end.
        connection.open(raw, from_text(self._upstream))
        self._observer.opened(connection)
        if connection.live:
            self._toxics.meet(connection)

    def _gone(self, connection: Connection) -> None:
        if self._connections.pop(connection.id, None) is None:
            return
        for stream, past in self._past.items():
            pipe = connection.pipe(DIRECTIONS[stream])
            self._past[stream] = Traffic(past.received + pipe.received, past.sent + pipe.forwarded)
        if not self._connections:
            self._all_gone.set()


def _shown(connection: Connection) -> ProxyConnection:
    state = connection.state
    return ProxyConnection(
        id=state.id,
        client=state.client,
        upstream_local=state.upstream_local,
        toxics=connection.touching,
        upstream_sent=state.up_bytes,
        downstream_sent=state.down_bytes,
        upstream_held=state.up_held,
        downstream_held=state.down_held,
    )

"""A link: a small TCP proxy on loopback between a participant and its peer, which a step can break and mend."""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import Callable

from lab.context import RunContext
from lab.errors import EnvironmentFault, MisuseError
from lab.faults.connection import Connection, Direction, Hooks, LinkConnectionState
from lab.faults.listener import Listener
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
    with the bytes forwarded each way. A call that changes nothing leaves no entry.
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
        self._upstream = upstream
        self._delay = _checked_delay(delay)
        self._high_water = high_water
        self._listener = Listener((host, port), self._accept)
        self._open = False
        self._count = 0
        self._connections: dict[str, Connection] = {}
        self._all_gone = asyncio.Event()
        self._all_gone.set()
        self._hooks = Hooks(self._ended, self._gone)

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
        return self._listener.address

    async def close(self) -> None:
        """Stop listening, abort every connection, give the port back; returns when nothing is left in the loop.

        Bytes still in the link are lost. Safe to call again, and before `start`.
        """
        self._open = False
        self._listener.close()
        for connection in tuple(self._connections.values()):
            was_live = connection.live
            connection.abort()
            if was_live:
                self._ended(connection, "closed")
        await self._all_gone.wait()

    def cut(self) -> None:
        """FIN to both sides of every connection, and connects are refused until `heal`.

        Bytes already written to a side are flushed before its FIN; bytes held by a delay, or waiting for the
        upstream to be connected, are lost. What a peer sends after the cut is dropped. A peer that neither reads
        nor closes is aborted after `PARTING_SECONDS`.
        """
        self._check_open()
        if not self._listener.is_open:
            return
        cause = self._record(LinkChanged(self.name, "cut"))
        self._listener.shut()
        for connection in self._live():
            connection.part()
            self._ended(connection, "cut", cause.n)

    def reset(self) -> None:
        """RST on both sides of every live connection; new ones are accepted as before."""
        self._check_open()
        cause = self._record(LinkChanged(self.name, "reset"))
        for connection in self._live():
            connection.reset()
            self._ended(connection, "reset", cause.n)

    def move(self, upstream: tuple[str, int]) -> None:
        """FIN to both sides of every connection, as by `cut`, and from now on new ones are led to `upstream`.

        A link that is cut stays cut until `heal`, and leads there then.
        """
        self._check_open()
        self._upstream = upstream
        # A delay goes on: the entry says so, since any change of a link may have ended it.
        cause = self._record(LinkChanged(self.name, "moved", self._delay))
        for connection in self._live():
            connection.part()
            self._ended(connection, "cut", cause.n)

    def set_delay(self, seconds: float) -> None:
        """Forward bytes and FINs that arrive from now on `seconds` late, each way, in order; 0 ends it.

        What is held already keeps its time, and what comes behind it waits for it.
        """
        self._check_open()
        if _checked_delay(seconds) != self._delay:
            self._delay = seconds
            self._record(LinkChanged(self.name, "delayed", seconds))

    async def heal(self) -> None:
        """Listen again on the same port, and add no delay to what arrives from now on.

        A port that was lost to another program meanwhile raises `EnvironmentFault`.
        """
        self._check_open()
        if self._listener.is_open and not self._delay:
            return
        if not self._listener.is_open:
            self._listen()
        self._delay = 0.0
        self._record(LinkChanged(self.name, "healed"))

    def connections(self) -> list[LinkConnectionState]:
        """The live connections, oldest first."""
        return [connection.state for connection in self._live()]

    def cut_at(self, upstream_side_port: int, direction: Direction, offset: int, then: Callable[[], None]) -> None:
        """Call `then` when exactly `offset` bytes of one direction of one connection have been forwarded.

        The connection is the one whose upstream side has the local port `upstream_side_port`; offsets count from
        its start. `then` runs before any later byte is forwarded, so that a cut in it lets exactly those bytes
        through, and at once where they have been forwarded already. It is never called for a connection that is
        gone, or that ends before that byte.
        """
        self._check_open()
        for connection in self._live():
            if connection.upstream.local is not None and connection.upstream.local[1] == upstream_side_port:
                connection.pipe(direction).watch(offset, then)

    def _listen(self) -> None:
        try:
            self._listener.open()
        except OSError as error:
            host, port = self._listener.address
            raise EnvironmentFault(
                f"link {self.name} cannot listen on {host}:{port}: {error.strerror}. "
                "Stop the program that uses this port, or give the link another one (0 takes any free port)."
            ) from error

    def _accept(self, raw: socket.socket, client: tuple[str, int]) -> None:
        self._count += 1
        loop = asyncio.get_running_loop()
        connection = Connection(
            loop, f"{self.name}-{self._count}", client, lambda: self._delay, self._high_water, self._hooks
        )
        self._connections[connection.id] = connection
        self._all_gone.clear()
        # First, so that a listener of the journal that cuts the link at this entry finds something to end.
        connection.open(raw, self._upstream)
        self._record(LinkConnection(self.name, connection.id, "opened"))

    def _ended(self, connection: Connection, change: str, cause: int | None = None) -> None:
        up, down = connection.up.forwarded, connection.down.forwarded
        self._record(LinkConnection(self.name, connection.id, change, up_bytes=up, down_bytes=down), cause)

    def _gone(self, connection: Connection) -> None:
        self._connections.pop(connection.id, None)
        if not self._connections:
            self._all_gone.set()

    def _live(self) -> list[Connection]:
        return [connection for connection in self._connections.values() if connection.live]

    def _check_open(self) -> None:
        if not self._open:
            raise MisuseError(f"link {self.name} was used before its start or after its end; start it first")

    def _record(self, event: Event, cause: int | None = None) -> Entry:
        return self._ctx.journal.record(f"link.{self.name}", event, cause)


def _checked_delay(seconds: float) -> float:
    if not (math.isfinite(seconds) and seconds >= 0):
        raise MisuseError(f"a link's delay is a finite number of seconds from 0 on, not {seconds}")
    return seconds

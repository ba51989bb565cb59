"""A connection through a proxy: a side towards the client, a side towards the upstream, a pipe each way.

It is *live* until it has ended once, by itself, by the proxy or by a toxic, and *gone* when nothing of it is left in
the loop. Half-close and reset of one peer are passed on to the other.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast
from weakref import WeakKeyDictionary

from lab.faults.doorway import Doorway
from lab.faults.flow import End, LastByte
from lab.faults.pipe import Pipe

Direction = Literal["up", "down"]
"""`up` runs from the client to the upstream, `down` back."""

LONGEST_READ = 64 * 1024
"""Bytes that are read at once at most."""

PARTING_SECONDS = 1.0
"""How long a side that was cut may take to flush its last bytes and to send its own FIN, before it is aborted."""


@dataclass(frozen=True)
class LinkConnectionState:
    """A live connection as it is now.

    `upstream_local` is the link's own address on the upstream side, which the upstream sees as its peer; None
    until that side is connected. The byte counts are bytes forwarded; `up_held` and `down_held` are bytes that
    were read and are still in the link.
    """

    id: str
    client: tuple[str, int]
    upstream_local: tuple[str, int] | None
    up_bytes: int
    down_bytes: int
    up_held: int
    down_held: int
    client_ended: bool = False
    """Whether the client has sent its FIN, or is gone."""


@dataclass(frozen=True)
class Hooks:
    """What a connection tells its proxy: it ended by itself, and how; nothing of it is left; a toxic touches it."""

    ended: Callable[[Connection, str], None]
    gone: Callable[[Connection], None]
    touched: Callable[[str], None]


class Connection:
    """One client, the upstream connection made for it, and what flows between them."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        connection_id: str,
        client: tuple[str, int],
        delay: Callable[[], float],
        high_water: int,
        hooks: Hooks,
    ) -> None:
        self._loop = loop
        self._hooks = hooks
        self._client_address = client
        self._accepted: socket.socket | None = None
        self._opening: asyncio.Task[None] | None = None
        self._ends_passed = 0
        self.id = connection_id
        self.live = True
        self.heard = LastByte()
        self.doorway = Doorway(loop, lambda: self._end_by_toxic(End.CLOSE), hooks.touched)
        touched, heard = hooks.touched, self.heard
        self.up = Pipe(loop, delay, high_water, lambda end: self._pass_end(self.upstream, end), touched, heard)
        self.down = Pipe(loop, delay, high_water, lambda end: self._pass_end(self.client, end), touched, heard)
        self.client = Side(loop, self, inbound=self.up, outbound=self.down)
        self.upstream = Side(loop, self, inbound=self.down, outbound=self.up)

    @property
    def state(self) -> LinkConnectionState:
        """A snapshot."""
        return LinkConnectionState(
            id=self.id,
            client=self._client_address,
            upstream_local=self.upstream.local,
            up_bytes=self.up.forwarded,
            down_bytes=self.down.forwarded,
            up_held=self.up.pending,
            down_held=self.down.pending,
            client_ended=self.client.ended,
        )

    def pipe(self, direction: Direction) -> Pipe:
        """The pipe of one direction."""
        return self.up if direction == "up" else self.down

    @property
    def touching(self) -> tuple[str, ...]:
        """The toxics that act on it: those towards the upstream first, those before its connect last."""
        return (*self.up.touching, *self.down.touching, *self.doorway.touching)

    def open(self, accepted: socket.socket, upstream: tuple[str, int] | None) -> None:
        """Take the client's socket and connect to the upstream; what the client sends meanwhile waits.

        None is an upstream that cannot be reached.
        """
        self._accepted = accepted
        self._opening = self._loop.create_task(self._open(accepted, upstream))
        self._opening.add_done_callback(self._opened)

    def part(self) -> None:
        """End it with FIN on both sides: bytes written to a side are flushed first, bytes held by a delay are lost."""
        self._stop()
        self.client.part()
        self.upstream.part()

    def reset(self) -> None:
        """End it with RST on both sides; bytes that are under way may be lost."""
        self._stop()
        if self._accepted is not None:
            _close_with_rst(self._accepted)
        self.client.reset()
        self.upstream.reset()

    def abort(self) -> None:
        """End it now, with nothing flushed; also for one that is still parting."""
        self._stop()
        self.client.abort()
        self.upstream.abort()

    def made(self, side: Side) -> None:
        """A side's transport is there."""
        if side is self.client:
            self._accepted = None
        if not self.live:
            # It was too far on to be cancelled.
            side.abort()

    def lost(self, side: Side, error: Exception | None) -> None:
        """A side's transport is gone."""
        if self.live and error is not None:
            side.outbound.stop()
            side.inbound.finish(End.RESET)
        if self.doorway.is_waited_at and self._opening is not None:
            # Nobody is left for whom the upstream could be asked.
            self._opening.cancel()
        self._settle()

    def _stop(self) -> None:
        self.live = False
        self.up.stop()
        self.down.stop()
        if self._opening is not None:
            self._opening.cancel()

    async def _open(self, accepted: socket.socket, upstream: tuple[str, int] | None) -> None:
        await self._loop.connect_accepted_socket(lambda: self.client, accepted)
        await self.doorway.passed()
        if upstream is None:
            raise ConnectionRefusedError("the upstream is not of the form host:port")
        await self._loop.create_connection(lambda: self.upstream, *upstream)

    def _opened(self, task: asyncio.Task[None]) -> None:
        if self._accepted is not None:
            # It was ended before its first step.
            self._accepted.close()
            self._accepted = None
        if not task.cancelled() and task.exception() is not None and self.live:
            self.part()
            self._hooks.ended(self, "refused")
        self._settle()

    def _end_by_toxic(self, end: End) -> None:
        if end is End.BREAK:
            self.reset()
        else:
            self.part()
        self._hooks.ended(self, "reset" if end is End.BREAK else "cut")

    def _pass_end(self, to: Side, end: End) -> None:
        if end in (End.CLOSE, End.BREAK):
            self._end_by_toxic(end)
            return
        if end is End.RESET:
            to.reset()
            return
        to.write_eof()
        self._ends_passed += 1
        if self._ends_passed == 2:
            self.client.close()
            self.upstream.close()

    def _settle(self) -> None:
        under_way = self._opening is not None and not self._opening.done()
        if under_way or self.client.transport is not None or self.upstream.transport is not None:
            return
        if self.live:
            self._stop()
            self._hooks.ended(self, "closed")
        self._hooks.gone(self)


_read_buffers: WeakKeyDictionary[asyncio.AbstractEventLoop, memoryview] = WeakKeyDictionary()


def _read_buffer(loop: asyncio.AbstractEventLoop) -> memoryview:
    """The buffer of all sides in a loop: what is read into it is taken out before the loop does anything else."""
    if loop not in _read_buffers:
        _read_buffers[loop] = memoryview(bytearray(LONGEST_READ))
    return _read_buffers[loop]


class Side(asyncio.BufferedProtocol):
    """One end of a connection. `inbound` takes what is read here, `outbound` is what writes here."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        connection: Connection,
        inbound: Pipe,
        outbound: Pipe,
    ) -> None:
        self._loop = loop
        self._connection = connection
        self._view = _read_buffer(loop)
        self._heard_eof = False
        self._parting = False
        self._deadline: asyncio.TimerHandle | None = None
        self.inbound = inbound
        self.outbound = outbound
        self.transport: asyncio.Transport | None = None
        self.local: tuple[str, int] | None = None

    @property
    def ended(self) -> bool:
        """Whether its peer has sent FIN, or was there and is gone."""
        return self._heard_eof or (self.local is not None and self.transport is None)

    # What the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        name = transport.get_extra_info("sockname")
        self.local = (name[0], name[1]) if name else None
        self.inbound.attach_source(self.transport)
        self.outbound.attach_sink(self.transport)
        self._connection.made(self)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 (the size is the pipe's to say)
        return self._view if self._parting else self._view[: self.inbound.room]

    def buffer_updated(self, nbytes: int) -> None:
        if not self._parting:
            # Copied at once: the next side that reads overwrites it.
            self.inbound.feed(bytes(self._view[:nbytes]))

    def eof_received(self) -> bool:
        self._heard_eof = True
        if self._parting:
            return False
        self.inbound.finish(End.EOF)
        return True

    def resume_writing(self) -> None:
        self.outbound.drained()

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if self._deadline is not None:
            self._deadline.cancel()
        self._connection.lost(self, exc)

    # What the connection asks for

    def write_eof(self) -> None:
        """FIN, behind what was written."""
        if self.transport is not None:
            try:
                self.transport.write_eof()
            except OSError:
                # The peer has reset the connection and the loop has not noticed yet.
                self.transport.abort()

    def close(self) -> None:
        """Close, behind what was written."""
        if self.transport is not None:
            self.transport.close()

    def part(self) -> None:
        """FIN behind what was written; then drop what still comes until the peer's own FIN, for a bounded time.

        Closing at once would make the kernel answer unread bytes with RST, which is what `reset` is for.
        """
        if self.transport is None:
            return
        self._parting = True
        loop = self._loop
        self._deadline = loop.call_at(loop.time() + PARTING_SECONDS, self.transport.abort)
        if self._heard_eof:
            self.transport.close()
        else:
            self.write_eof()
            self.transport.resume_reading()

    def reset(self) -> None:
        """RST, now."""
        if self.transport is not None:
            _close_with_rst(self.transport.get_extra_info("socket"))
            self.transport.abort()

    def abort(self) -> None:
        """Close now, dropping what was written and not yet sent."""
        if self.transport is not None:
            self.transport.abort()


def _close_with_rst(raw: socket.socket) -> None:
    """Have the kernel answer the close of `raw`, whenever it comes, with RST."""
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

"""Programs on asyncio's own loop with real sockets, and on the simulated one: what they see is the same."""

from __future__ import annotations

import asyncio
import hashlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from lab.sim.kernel import Network
from lab.sim.run import run_virtual
from lab.sim.sockets import LOOPBACK
from tests.sim.endpoints import LINGER_NOW

pytestmark = pytest.mark.usefixtures("collected")

PATIENCE = 20.0
"""Seconds that a program may take, on either clock."""

Seen = list[object]
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

BIG = b"".join(hashlib.sha256(b"%d" % number).digest() for number in range(5 * 1024 * 1024 // 32))
"""5 MiB, no two pieces of which are alike."""


def named(error: BaseException) -> str:
    """The kind of an error, with what all systems say of it."""
    return type(error).__name__


async def attempt(awaitable: Awaitable[Any]) -> object:
    """What it gives, or the kind of its error."""
    try:
        return await awaitable
    except (OSError, EOFError) as error:
        return named(error)


@asynccontextmanager
async def two(limit: int = 1 << 16) -> AsyncIterator[tuple[Streams, Streams]]:
    """A client's streams and a server's."""
    accepted: asyncio.Queue[Streams] = asyncio.Queue()
    server = await asyncio.start_server(lambda *streams: accepted.put_nowait(streams), LOOPBACK, 0, limit=limit)
    try:
        client = await asyncio.open_connection(*server.sockets[0].getsockname()[:2], limit=limit)
        other = await accepted.get()
        yield client, other
        for _, writer in (client, other):
            writer.close()
            await attempt(writer.wait_closed())
    finally:
        server.close()


async def half_close() -> Seen:
    """The client says that it has said all, and hears the answer."""
    async with two() as ((reader, writer), (other_reader, other_writer)):
        writer.write(b"question")
        writer.write_eof()
        seen: Seen = [await other_reader.read(), writer.can_write_eof()]
        other_writer.write(b"answer")
        other_writer.close()
        return [*seen, await reader.read(), reader.at_eof()]


async def lines() -> Seen:
    """Lines keep their order and their borders, however they are written."""
    async with two() as ((_, writer), (other_reader, _)):
        for number in range(100):
            writer.write(b"line %d\n" % number)
        writer.writelines([b"and", b" the", b" last\n", b"tail"])
        writer.close()
        return [line async for line in other_reader]


async def cut_in_mid_message() -> Seen:
    """Whoever needs more is told what there was."""
    async with two() as ((_, writer), (other_reader, _)):
        writer.write(b"half")
        writer.close()
        with pytest.raises(asyncio.IncompleteReadError) as raised:
            await other_reader.readexactly(8)
        return [raised.value.partial, raised.value.expected]


async def line_too_long() -> Seen:
    """A reader's limit holds."""
    async with two(limit=64) as ((_, writer), (other_reader, _)):
        writer.write(b"x" * 1000)
        writer.close()
        with pytest.raises(ValueError, match="limit"):
            await other_reader.readline()
        return ["refused"]


async def big_payload() -> Seen:
    """5 MiB each way at once, with back-pressure."""

    async def say(writer: asyncio.StreamWriter, data: bytes) -> None:
        for start in range(0, len(data), 100_000):
            writer.write(data[start : start + 100_000])
            await writer.drain()
        writer.write_eof()

    async with two() as ((reader, writer), (other_reader, other_writer)):
        there, _, back, _ = await asyncio.gather(
            other_reader.read(), say(writer, BIG), reader.read(), say(other_writer, BIG[::-1])
        )
        return [there == BIG, back == BIG[::-1]]


async def abort() -> Seen:
    """An abort with nothing unread is an end to the other side; writing on then fails."""
    async with two() as ((_, writer), (other_reader, other_writer)):
        writer.transport.abort()
        return [await attempt(other_reader.read()), await attempt(write_on(other_writer))]


async def close_with_bytes_unread() -> Seen:
    """Whoever closes with bytes that it did not read tears the connection."""
    loop = asyncio.get_running_loop()
    accepted: asyncio.Queue[Streams] = asyncio.Queue()
    server = await asyncio.start_server(lambda *streams: accepted.put_nowait(streams), LOOPBACK, 0)
    client = socket.socket()
    client.setblocking(False)
    await loop.sock_connect(client, server.sockets[0].getsockname())
    reader, writer = await accepted.get()
    writer.write(b"unheard")
    came = asyncio.Event()
    loop.add_reader(client, came.set)
    await came.wait()
    loop.remove_reader(client)
    client.close()
    server.close()
    return [await attempt(reader.read()), await attempt(write_on(writer))]


async def reset() -> Seen:
    """SO_LINGER of zero seconds is the reset that a fault makes."""
    async with two() as ((_, writer), (other_reader, other_writer)):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOW)
        writer.transport.abort()
        return [await attempt(other_reader.read()), await attempt(write_on(other_writer))]


async def write_on(writer: asyncio.StreamWriter) -> None:
    """Write until it fails."""
    while not writer.is_closing():
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.001)
    await writer.wait_closed()
    await writer.drain()


async def nobody_listens() -> Seen:
    """A connection is refused."""
    server = await asyncio.start_server(lambda *_: None, LOOPBACK, 0)
    address = server.sockets[0].getsockname()[:2]
    server.close()
    await server.wait_closed()
    return [await attempt(asyncio.open_connection(*address))]


async def server_closes() -> Seen:
    """Connections outlive the listener; new ones are refused."""
    accepted: asyncio.Queue[Streams] = asyncio.Queue()
    server = await asyncio.start_server(lambda *streams: accepted.put_nowait(streams), LOOPBACK, 0)
    address = server.sockets[0].getsockname()[:2]
    reader, writer = await asyncio.open_connection(*address)
    _, other_writer = await accepted.get()
    server.close()
    seen: Seen = [await attempt(asyncio.open_connection(*address))]
    other_writer.write(b"still here")
    other_writer.close()
    seen.append(await reader.read())
    writer.close()
    return seen


async def plain_sockets() -> Seen:
    """The loop's own `sock_…` calls."""
    loop = asyncio.get_running_loop()
    listener, client = socket.socket(), socket.socket()
    for sock in (listener, client):
        sock.setblocking(False)
    listener.bind((LOOPBACK, 0))
    listener.listen(1)
    _, (server, name) = await asyncio.gather(
        loop.sock_connect(client, listener.getsockname()), loop.sock_accept(listener)
    )
    seen: Seen = [name == client.getsockname()]
    buffer = bytearray(5)
    await loop.sock_sendall(client, b"hello")
    filled = 0
    while filled < len(buffer):
        filled += await loop.sock_recv_into(server, memoryview(buffer)[filled:])
    seen.append(bytes(buffer))
    sending = loop.create_task(loop.sock_sendall(server, BIG))
    got = 0
    while got < len(BIG):
        got += len(await loop.sock_recv(client, 1 << 20))
    await sending
    client.close()
    rest = b""
    while said := await loop.sock_recv(server, 1):
        rest += said
    seen += [got, rest]
    server.close()
    listener.close()
    return seen


# Transports and protocols


@dataclass
class Noting(asyncio.Protocol):
    """Notes what its transport tells it."""

    seen: Seen = field(default_factory=list)
    read: int = 0
    transport: asyncio.Transport | None = None
    told: asyncio.Event = field(default_factory=asyncio.Event)

    def _note(self, what: object) -> None:
        self.seen.append(what)
        self.told.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._note("made")

    def data_received(self, data: bytes) -> None:
        self.read += len(data)
        self.told.set()

    def eof_received(self) -> None:
        self._note("end")

    def pause_writing(self) -> None:
        self._note("pause")

    def resume_writing(self) -> None:
        self._note("resume")

    def connection_lost(self, error: Exception | None) -> None:
        self._note("lost" if error is None else named(error))

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for what the transport tells."""
        while not condition():
            self.told.clear()
            await self.told.wait()

    @property
    def to(self) -> asyncio.Transport:
        """Its transport."""
        assert self.transport is not None
        return self.transport


@asynccontextmanager
async def protocols() -> AsyncIterator[tuple[Noting, Noting]]:
    """A client's protocol and a server's."""
    loop = asyncio.get_running_loop()
    one, other = Noting(), Noting()
    server = await loop.create_server(lambda: other, LOOPBACK, 0)
    try:
        await loop.create_connection(lambda: one, *server.sockets[0].getsockname()[:2])
        await other.until(lambda: other.transport is not None)
        yield one, other
    finally:
        server.close()


async def back_pressure() -> Seen:
    """A writer is told to wait while nobody reads, and to go on when somebody does."""
    async with protocols() as (one, other):
        other.to.pause_reading()
        one.to.write(BIG + BIG)
        one.to.write_eof()
        await one.until(lambda: "pause" in one.seen)
        seen: Seen = [other.read, other.to.is_reading()]
        other.to.resume_reading()
        await other.until(lambda: "lost" in other.seen)
        await one.until(lambda: "lost" in one.seen)
        return [*seen, other.read, one.seen, other.seen]


async def pause_and_resume_reading() -> Seen:
    """What comes while reading is paused is there afterwards, and nothing is told meanwhile."""
    async with protocols() as (one, other):
        other.to.pause_reading()
        one.to.write(b"said")
        one.to.close()
        await one.until(lambda: "lost" in one.seen)
        seen: Seen = [other.read, list(other.seen)]
        other.to.resume_reading()
        await other.until(lambda: "lost" in other.seen)
        return [*seen, other.read, one.seen, other.seen]


async def close_sends_what_is_left() -> Seen:
    """A close waits for what is in the buffer; an abort does not."""
    async with protocols() as (one, other):
        one.to.write(BIG)
        one.to.close()
        await other.until(lambda: "lost" in other.seen)
        return [one.seen, other.seen, other.read]


async def torn() -> Seen:
    """Both sides of a reset."""
    async with protocols() as (one, other):
        one.to.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOW)
        one.to.abort()
        await other.until(lambda: len(other.seen) > 1)
        return [one.seen, other.seen]


PROGRAMS = [
    half_close,
    lines,
    cut_in_mid_message,
    line_too_long,
    big_payload,
    abort,
    close_with_bytes_unread,
    reset,
    nobody_listens,
    server_closes,
    plain_sockets,
    back_pressure,
    pause_and_resume_reading,
    close_sends_what_is_left,
    torn,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_program_sees_the_same(program: Callable[[], Awaitable[Seen]]) -> None:
    async def bounded() -> Seen:
        async with asyncio.timeout(PATIENCE):
            return await program()

    real = asyncio.run(bounded())
    assert run_virtual(bounded, 1) == real
    assert run_virtual(bounded, 2, network=Network(fragments=True)) == real

"""An upstream, links to it and both ends of the connections through them, on real loopback sockets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest

from lab.clock import Clock
from lab.context import RunContext
from lab.faults.link import HIGH_WATER, Direction, Link
from lab.journal.events import Event, LinkConnection
from lab.journal.writer import Journal

PATIENCE = 20.0


def context() -> RunContext:
    clock = Clock(asyncio.get_running_loop().time, epoch_ms=0)
    return RunContext(7, clock, Journal(clock.now))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 (a socket's state has no event)
            await asyncio.sleep(0)


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


class End:
    """One end of a TCP connection as the test holds it: a raw socket."""

    def __init__(self, raw: socket.socket) -> None:
        raw.setblocking(False)
        self.raw = raw

    @property
    def port(self) -> int:
        port: int = self.raw.getsockname()[1]
        return port

    @property
    def peer_port(self) -> int:
        port: int = self.raw.getpeername()[1]
        return port

    async def send(self, data: bytes) -> None:
        async with asyncio.timeout(PATIENCE):
            await asyncio.get_running_loop().sock_sendall(self.raw, data)

    async def read(self, size: int) -> bytes:
        """`size` bytes, or fewer at EOF."""
        data = b""
        async with asyncio.timeout(PATIENCE):
            while len(data) < size:
                part = await asyncio.get_running_loop().sock_recv(self.raw, size - len(data))
                if not part:
                    break
                data += part
        return data

    async def read_to_eof(self) -> bytes:
        parts: list[bytes] = []
        async with asyncio.timeout(PATIENCE):
            while part := await asyncio.get_running_loop().sock_recv(self.raw, 1 << 20):
                parts.append(part)
        return b"".join(parts)

    async def read_to_reset(self) -> bytes:
        """What comes before an RST; EOF fails."""
        data = b""
        try:
            while part := await self.read(1):
                data += part
        except ConnectionResetError:
            return data
        raise AssertionError("EOF where RST was due")

    def send_some(self) -> int:
        """Bytes that the kernel takes now, 0 when it is full."""
        try:
            return self.raw.send(bytes(1 << 16))
        except BlockingIOError:
            return 0

    def nothing_to_read(self) -> bool:
        try:
            self.raw.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        return False


class Bench:
    """An upstream listener, links to it, and the ends of connections through them."""

    def __init__(self) -> None:
        self.ctx = context()
        self.links: list[Link] = []
        self.sockets: list[socket.socket] = []
        self.upstream = self.socket()
        self.upstream.bind(("127.0.0.1", 0))
        self.upstream.listen()

    def socket(self) -> socket.socket:
        made = socket.socket()
        made.setblocking(False)
        self.sockets.append(made)
        return made

    async def link(self, *, upstream: tuple[str, int] | None = None, port: int = 0, delay: float = 0.0) -> Link:
        link = Link(self.ctx, "gateway", upstream or self.upstream.getsockname(), port=port, delay=delay)
        self.links.append(link)
        await link.start()
        return link

    async def client(self, link: Link) -> End:
        raw = self.socket()
        async with asyncio.timeout(PATIENCE):
            await asyncio.get_running_loop().sock_connect(raw, link.address)
        return End(raw)

    async def pair(self, link: Link) -> tuple[End, End]:
        """A connection through the link, both of whose sides it has seen."""
        client = await self.client(link)
        async with asyncio.timeout(PATIENCE):
            raw, _ = await asyncio.get_running_loop().sock_accept(self.upstream)
        self.sockets.append(raw)
        server = End(raw)
        await until(lambda: any(state.upstream_local == raw.getpeername() for state in link.connections()))
        return client, server

    def events(self, kind: type[Event]) -> list[Event]:
        return [entry.event for entry in self.ctx.journal.entries if isinstance(entry.event, kind)]

    def changes(self, conn: str) -> list[str]:
        return [e.change for e in self.events(LinkConnection) if isinstance(e, LinkConnection) and e.conn == conn]

    async def end(self) -> None:
        for link in self.links:
            await link.close()
        for raw in self.sockets:
            raw.close()


def no_open_transport() -> bool:
    loop: Any = asyncio.get_running_loop()
    transports: list[asyncio.BaseTransport] = list(loop._transports.values())
    return all(transport.get_extra_info("socket").fileno() < 0 for transport in transports)


class JumpingClock:
    """The running loop's clock, standing still but for what a test adds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loop = asyncio.get_running_loop()
        self._now = loop.time()
        monkeypatch.setattr(loop, "time", lambda: self._now)

    async def jump(self, seconds: float) -> None:
        self._now += seconds
        await turns(3)


async def fill(link: Link, sender: End, held: Callable[[], int]) -> int:
    """Send until the link holds bytes and reads no more of them; returns how many the sender got rid of."""
    sent = 0
    still = 0
    async with asyncio.timeout(PATIENCE):
        while still < 50:
            some = sender.send_some()
            sent += some
            assert held() <= HIGH_WATER
            still = still + 1 if not some and held() > 0 else 0
            await asyncio.sleep(0)
    return sent


def held_bytes(link: Link, direction: Direction) -> int:
    state = link.connections()[0]
    return state.up_held if direction == "up" else state.down_held


def listen(raw: socket.socket, address: tuple[str, int]) -> None:
    raw.bind(address)
    raw.listen()


def ends_of(direction: Direction, client: End, server: End) -> tuple[End, End]:
    return (client, server) if direction == "up" else (server, client)

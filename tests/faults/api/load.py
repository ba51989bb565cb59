"""Connections under load: each sends as fast as it can, some read what comes back, some do not."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import cast

CHUNK = bytes(4096)


class Echo(asyncio.Protocol):
    """Sends everything back, and reads no more while the peer takes none."""

    def __init__(self, open_ones: set[asyncio.Transport]) -> None:
        self._open_ones = open_ones

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._open_ones.add(self._transport)

    def data_received(self, data: bytes) -> None:
        self._transport.write(data)

    def pause_writing(self) -> None:
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._open_ones.discard(self._transport)


class Load:
    """Keeps connections busy through whatever `listens` names, until `end`."""

    def __init__(self, listens: Callable[[], list[str]], readers: int = 3, deaf: int = 2) -> None:
        self._listens = listens
        self._readers, self._deaf = readers, deaf
        self._tasks: list[asyncio.Task[None]] = []
        self._server: asyncio.Server | None = None
        self._echoes: set[asyncio.Transport] = set()
        self.carried = 0
        """Bytes that came back."""

    async def start(self) -> str:
        """Begin; returns the address of an upstream that sends everything back."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Echo(self._echoes), "127.0.0.1", 0)
        for number in range(self._readers + self._deaf):
            self._tasks.append(asyncio.create_task(self._client(number, reads=number < self._readers)))
        host, port = self._server.sockets[0].getsockname()
        return f"{host}:{port}"

    async def end(self) -> None:
        """End every connection; returns when nothing of them is left."""
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for transport in tuple(self._echoes):
            transport.abort()
        async with asyncio.timeout(20):
            while self._echoes:  # noqa: ASYNC110 (transports have no event)
                await asyncio.sleep(0)
        await self._server.wait_closed()

    async def _client(self, turn: int, *, reads: bool) -> None:
        while True:
            turn += 1
            listens = self._listens()
            if listens:
                host, _, port = listens[turn % len(listens)].rpartition(":")
                with socket.socket() as raw, suppress(OSError):
                    raw.setblocking(False)
                    await asyncio.get_running_loop().sock_connect(raw, (host, int(port)))
                    await self._talk(raw, reads=reads)
            await asyncio.sleep(0)

    async def _talk(self, raw: socket.socket, *, reads: bool) -> None:
        sending = asyncio.create_task(_send(raw))
        try:
            while reads and (part := await asyncio.get_running_loop().sock_recv(raw, 1 << 16)):
                self.carried += len(part)
            if not reads:
                await sending
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)


async def _send(raw: socket.socket) -> None:
    while True:
        await asyncio.get_running_loop().sock_sendall(raw, CHUNK)
        # Others have a turn as well.
        await asyncio.sleep(0)

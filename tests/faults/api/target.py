"""A server of the fault API that the tests call, and an upstream that its proxies lead to."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from aiohttp import ClientSession, ClientTimeout
from yarl import URL

from lab.draws import Draws
from lab.faults.api.server import ApiServer
from lab.faults.engine import Engine

PATIENCE = 20.0
"""Seconds that anything may take on a busy machine; a call that takes longer hangs."""


@dataclass(frozen=True)
class Reply:
    """What a call was answered."""

    status: int
    body: bytes
    content_type: str | None
    server: str | None

    @property
    def json(self) -> Any:
        """The body, which is JSON."""
        return json.loads(self.body)

    @property
    def error(self) -> tuple[int, str, str | None]:
        """Status, text and content type of an error, whose body is of the form that is due."""
        told = self.json
        assert self.body.endswith(b"}\n")
        assert list(told) == ["error", "status"]
        assert told["status"] == self.status
        return self.status, told["error"], self.content_type


TEXT = "text/plain; charset=utf-8"


class Client:
    """Calls a server of the fault API."""

    def __init__(self, session: ClientSession, url: str) -> None:
        self._session = session
        self.url = url

    async def call(self, method: str, path: str, body: object = None, **headers: str) -> Reply:
        """One call; a body that is no bytes is sent as JSON. A server that does not answer fails the test."""
        data = None if body is None else io.BytesIO(body if isinstance(body, bytes) else json.dumps(body).encode())
        url = URL(self.url + path, encoded=True)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self._session.request(method, url, data=data, headers=named, allow_redirects=False) as response:
            return Reply(
                response.status,
                await response.read(),
                response.headers.get("Content-Type"),
                response.headers.get("Server"),
            )

    async def get(self, path: str) -> Any:
        """The JSON at a path that is there."""
        reply = await self.call("GET", path)
        assert (reply.status, reply.content_type) == (200, "application/json")
        return reply.json

    async def create(self, name: str, upstream: str, **more: object) -> dict[str, Any]:
        """A proxy that can be created."""
        reply = await self.call(
            "POST", "/proxies", {"name": name, "listen": "127.0.0.1:0", "upstream": upstream, **more}
        )
        assert reply.status == 201, reply
        made: dict[str, Any] = reply.json
        return made

    async def add_toxic(self, proxy: str, kind: str, stream: str = "downstream", /, **attributes: object) -> str:
        """A toxic that can be added; returns its name."""
        body = {"type": kind, "stream": stream, "attributes": attributes}
        reply = await self.call("POST", f"/proxies/{proxy}/toxics", body)
        assert reply.status == 200, reply
        name: str = reply.json["name"]
        return name


@asynccontextmanager
async def calling(url: str) -> AsyncIterator[Client]:
    """A client of the server at `url`."""
    async with ClientSession(timeout=ClientTimeout(total=PATIENCE)) as session:
        yield Client(session, url)


@asynccontextmanager
async def embedded(*, seed: int = 7, metrics: bool = False) -> AsyncIterator[tuple[Engine, str]]:
    """The engine behind its API on a port of its own, and its URL."""
    engine = Engine(asyncio.get_running_loop(), partial(Draws, seed))
    server = ApiServer(engine, metrics=metrics)
    await server.start()
    try:
        yield engine, server.url
    finally:
        await server.close()
        await engine.close()


@asynccontextmanager
async def real(binary: str) -> AsyncIterator[str]:
    """A Toxiproxy server in a child, and its URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    child = await asyncio.create_subprocess_exec(
        binary, "-host", "127.0.0.1", "-port", str(port), stdout=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(PATIENCE):
            while not await _listens(port):
                assert child.returncode is None, f"{binary} ended with {child.returncode}"
        yield f"http://127.0.0.1:{port}"
    finally:
        with suppress(ProcessLookupError):
            child.kill()
        await child.wait()


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


class Upstream:
    """A server whose connections the test holds."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.setblocking(False)
        self._ends: list[End] = []
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"

    async def accept(self) -> End:
        """The next connection."""
        async with asyncio.timeout(PATIENCE):
            raw, _ = await asyncio.get_running_loop().sock_accept(self._listening)
        return self._end(raw)

    async def connect(self, listen: str) -> End:
        """A client's side of a connection to a proxy."""
        host, _, port = listen.rpartition(":")
        raw = socket.socket()
        raw.setblocking(False)
        end = self._end(raw)
        async with asyncio.timeout(PATIENCE):
            await asyncio.get_running_loop().sock_connect(raw, (host, int(port)))
        return end

    async def pair(self, listen: str) -> tuple[End, End]:
        """Both sides of a connection through a proxy."""
        return await self.connect(listen), await self.accept()

    def close(self) -> None:
        """End everything."""
        self._listening.close()
        for end in self._ends:
            end.raw.close()

    def _end(self, raw: socket.socket) -> End:
        end = End(raw)
        self._ends.append(end)
        return end


class End:
    """One end of a connection, a raw socket."""

    def __init__(self, raw: socket.socket) -> None:
        raw.setblocking(False)
        self.raw = raw

    async def send(self, data: bytes) -> None:
        """All of it."""
        async with asyncio.timeout(PATIENCE):
            await asyncio.get_running_loop().sock_sendall(self.raw, data)

    async def read(self, size: int) -> bytes:
        """`size` bytes, fewer where FIN comes before."""
        data = b""
        async with asyncio.timeout(PATIENCE):
            while len(data) < size and (part := await self._some(size - len(data))):
                data += part
        return data

    async def read_to_fin(self) -> bytes:
        """What comes before FIN; RST fails the test."""
        parts = []
        async with asyncio.timeout(PATIENCE):
            while part := await self._some(1 << 16):
                parts.append(part)
        return b"".join(parts)

    async def ending(self) -> str:
        """How it ends: `fin` or `rst`; what comes before is dropped."""
        try:
            await self.read_to_fin()
        except ConnectionResetError:
            return "rst"
        return "fin"

    def send_fin(self) -> None:
        """No more bytes from here."""
        self.raw.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Close with RST."""
        self.raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.raw.close()

    async def _some(self, size: int) -> bytes:
        return await asyncio.get_running_loop().sock_recv(self.raw, size)

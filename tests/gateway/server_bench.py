"""A gateway double on real loopback sockets, and the clients that talk to it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import socket
import struct
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Protocol, TypeVar

import aiohttp
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from lab.clock import Clock
from lab.context import RunContext
from lab.faults.link import Link
from lab.gateway.core import GatewayCore
from lab.gateway.jobs import Order
from lab.gateway.server import GatewayServer
from lab.journal.events import Event
from lab.journal.writer import Journal, entry_to_json
from lab.protocol.contract import default_contract_folder
from lab.run.identity import draw_identity
from lab.run.link_faults import LinkFaults
from lab.run.world import make_gateway
from lab.scenario.model import GatewaySpec
from tests.gateway.by_hand import HandAgent, Members, text

PATIENCE = 20.0
NAMES = ("one", "two")
OneEvent = TypeVar("OneEvent", bound=Event)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 (a socket's state has no event)
            await asyncio.sleep(0)


class Client(Protocol):
    """What a test needs of a WebSocket client, whoever wrote it."""

    async def send(self, message: str | bytes) -> None: ...

    async def receive(self) -> str | int:
        """The next text, or the close code; 1006 when the connection was cut."""

    async def close(self) -> None: ...


class WebsocketsClient:
    def __init__(self, websocket: ClientConnection) -> None:
        self._websocket = websocket

    async def send(self, message: str | bytes) -> None:
        await self._websocket.send(message)

    async def receive(self) -> str | int:
        try:
            return str(await self._websocket.recv())
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd is not None else 1006

    async def close(self, code: int = 1000) -> None:
        await self._websocket.close(code)


class AiohttpClient:
    def __init__(self, session: aiohttp.ClientSession, websocket: aiohttp.ClientWebSocketResponse) -> None:
        self._session = session
        self._websocket = websocket

    async def send(self, message: str | bytes) -> None:
        await (self._websocket.send_str(message) if isinstance(message, str) else self._websocket.send_bytes(message))

    async def receive(self) -> str | int:
        message = await self._websocket.receive()
        if message.type is aiohttp.WSMsgType.TEXT:
            return str(message.data)
        return self._websocket.close_code or 1006

    async def close(self) -> None:
        await self._websocket.close()
        await self._session.close()


class Peer:
    """A hand-written Local Agent on a socket."""

    def __init__(self, hand: HandAgent, client: Client) -> None:
        self.hand = hand
        self.client = client

    async def handshake(self, resume: tuple[str, int] | None = None) -> Members:
        """The ready frame."""
        await self.send(self.hand.register(resume=resume))
        await self.send(self.hand.hello())
        ready = await self.next_frame()
        assert ready["type"] == "ready", ready
        if not ready["payload"]["resumed"]:
            self.hand.seq = 0
        return ready

    async def send(self, frame: Mapping[str, Any]) -> None:
        await self.client.send(text(frame))

    async def next(self) -> Members | str | int:
        """The next frame, the next text that is no frame, or the close code."""
        async with asyncio.timeout(PATIENCE):
            message = await self.client.receive()
        if isinstance(message, int) or not message.startswith("{"):
            return message
        frame: Members = json.loads(message)
        return frame

    async def next_frame(self) -> Members:
        message = await self.next()
        assert isinstance(message, dict), message
        return message

    async def end(self) -> int:
        """The close code, whatever comes before it."""
        while not isinstance(message := await self.next(), int):
            pass
        return message


class RawClient:
    """A WebSocket client made of a socket alone: it can stop reading, and sees every byte."""

    def __init__(self, raw: socket.socket) -> None:
        self._raw = raw
        self._loop = asyncio.get_running_loop()
        self.unread = b""

    @classmethod
    async def open(cls, address: tuple[str, int], token: str, receive_buffer: int | None = None) -> RawClient:
        raw = socket.socket()
        raw.setblocking(False)
        if receive_buffer is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        client = cls(raw)
        await asyncio.get_running_loop().sock_connect(raw, address)
        head = [
            "GET /agent HTTP/1.1",
            f"Host: {address[0]}:{address[1]}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {base64.b64encode(bytes(16)).decode()}",
            "Sec-WebSocket-Version: 13",
            f"Authorization: Bearer {token}",
        ]
        await client.write("\r\n".join([*head, "", ""]).encode())
        while b"\r\n\r\n" not in client.unread:
            await client.read_some()
        status, client.unread = client.unread.split(b"\r\n\r\n", 1)
        assert status.startswith(b"HTTP/1.1 101 "), status
        return client

    async def write(self, data: bytes) -> None:
        async with asyncio.timeout(PATIENCE):
            await self._loop.sock_sendall(self._raw, data)

    async def read_some(self) -> bool:
        async with asyncio.timeout(PATIENCE):
            part = await self._loop.sock_recv(self._raw, 1 << 20)
        self.unread += part
        return bool(part)

    async def send(self, message: str | bytes) -> None:
        data = message.encode() if isinstance(message, str) else message
        await self.send_frame(1 if isinstance(message, str) else 2, data)

    async def send_frame(self, opcode: int, data: bytes) -> None:
        size = len(data)
        if size < 126:
            head = struct.pack("!BB", 0x80 | opcode, 0x80 | size)
        elif size < 1 << 16:
            head = struct.pack("!BBH", 0x80 | opcode, 0x80 | 126, size)
        else:
            head = struct.pack("!BBQ", 0x80 | opcode, 0x80 | 127, size)
        # A mask of zeros leaves the data as it is.
        await self.write(head + bytes(4) + data)

    async def receive(self) -> str | int:
        while (frame := self._take_frame()) is None:
            try:
                if not await self.read_some():
                    return 1006
            except ConnectionError:
                return 1006
        opcode, data = frame
        if opcode != 8:
            return data.decode()
        with contextlib.suppress(ConnectionError):
            await self.send_frame(8, data[:2])
            self._raw.shutdown(socket.SHUT_WR)
        return int.from_bytes(data[:2], "big")

    def _take_frame(self) -> tuple[int, bytes] | None:
        if len(self.unread) < 2:
            return None
        size, start = self.unread[1], 2
        if size == 126:
            size, start = int.from_bytes(self.unread[2:4], "big"), 4
        elif size == 127:
            size, start = int.from_bytes(self.unread[2:10], "big"), 10
        if len(self.unread) < start + size:
            return None
        frame = self.unread[0] & 0x0F, self.unread[start : start + size]
        self.unread = self.unread[start + size :]
        return frame

    async def gone(self) -> None:
        """Until the server has ended the connection, reading nothing but its end."""
        with contextlib.suppress(ConnectionError):
            while await self.read_some():
                pass

    async def close(self) -> None:
        self._raw.close()


class ServerBench:
    """A gateway double, its identity and journal, and a link to it on demand."""

    def __init__(self, port: int = 0, **spec: Any) -> None:
        clock = Clock(asyncio.get_running_loop().time, 1_793_786_400_000)
        self.ctx = RunContext(7, clock, Journal(clock.now))
        self.identity = draw_identity(self.ctx, NAMES, (), ("gateway",))
        gateway = GatewaySpec("gateway", **spec)
        self.server: GatewayServer = make_gateway(
            self.ctx, gateway, NAMES, self.identity, default_contract_folder(), port
        )
        self.links: dict[str, Link] = {}
        self.strikes = LinkFaults(self.ctx, self.links, lambda _name: self.server.address)
        self.server.strike_link = self.strikes.strike_behind
        self._clients: list[Client] = []

    async def link(self) -> Link:
        made = self.links["gateway"] = Link(self.ctx, "gateway", self.server.address)
        await made.start()
        return made

    def agent_id(self, name: str = "one") -> str:
        return self.identity.agents[name].agent_id

    def token(self, name: str = "one") -> str:
        return self.identity.agents[name].gateway_token

    def hand(self, name: str = "one") -> HandAgent:
        return HandAgent(self.identity.tenant_id, self.agent_id(name), self.ctx.wall_ms(), "ab"[NAMES.index(name)])

    async def client(self, kind: str = "websockets", name: str = "one", path: str = "/agent") -> Client:
        host, port = self.links["gateway"].address if self.links else self.server.address
        url, headers = f"ws://{host}:{port}{path}", {"Authorization": f"Bearer {self.token(name)}"}
        client: Client
        if kind == "aiohttp":
            session = aiohttp.ClientSession()
            client = AiohttpClient(session, await session.ws_connect(url, headers=headers))
        elif kind == "raw":
            client = await RawClient.open((host, port), self.token(name))
        else:
            client = WebsocketsClient(
                await connect(url, additional_headers=headers, compression=None, ping_interval=None, proxy=None)
            )
        self._clients.append(client)
        return client

    def keep(self, client: Client) -> None:
        """Close a client with the bench."""
        self._clients.append(client)

    async def peer(self, kind: str = "websockets", name: str = "one") -> Peer:
        """A hand-written agent after its handshake."""
        peer = Peer(self.hand(name), await self.client(kind, name))
        await peer.handshake()
        return peer

    def assign(self, order: Order, name: str = "one") -> None:
        def act(now: float) -> None:
            self.core.assign(self.agent_id(name), order, now)

        self.server.after(act)

    @property
    def core(self) -> GatewayCore:
        return self.server.core

    def events(self, kind: type[OneEvent]) -> list[OneEvent]:
        return [entry.event for entry in self.ctx.journal.entries if isinstance(entry.event, kind)]

    def journal_text(self) -> str:
        return "\n".join(entry_to_json(entry) for entry in self.ctx.journal.entries)

    async def end(self) -> None:
        for client in self._clients:
            await client.close()
        self.strikes.close()
        for link in self.links.values():
            await link.close()
        await self.server.close()


@contextlib.asynccontextmanager
async def serving(**spec: Any) -> AsyncIterator[ServerBench]:
    """A started bench; at its end nothing of it may be left, and no defect may have been met."""
    before = asyncio.all_tasks()
    bench = ServerBench(**spec)
    await bench.server.start()
    try:
        yield bench
    finally:
        await bench.end()
    await until(lambda: asyncio.all_tasks() == before)
    assert bench.ctx.defects == []

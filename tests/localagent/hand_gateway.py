"""A gateway written by hand: a WebSocket server, plain dicts, and signatures made as SG-003 and SG-004 spell them."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from nacl.signing import SigningKey
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from lab.clock import Clock
from lab.context import RunContext
from lab.journal.writer import Journal
from tests.localagent.doubles import AGENT, EPOCH_MS, TENANT, TS, WORKSPACE

KEY = SigningKey(b"h" * 32)
TRUSTED = {"hand-key": bytes(KEY.verify_key)}
TOKEN = "gateway-secret"
PATIENCE = 20.0
SESSION = "5e55105e-0000-4000-8000-000000000001"
LIMITS = {
    "maxFrameBytes": 49152,
    "chunkRawBytes": 32768,
    "maxChunks": 64,
    "ackTimeoutMs": 5000,
    "maxRetransmissions": 3,
    "heartbeatSeconds": 30,
}
Members = dict[str, Any]


class ShiftedClock:
    """The loop's time, which a test can move forward. Timers that run already are not moved."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.ahead = 0.0

    def __call__(self) -> float:
        return self._loop.time() + self.ahead


def running_context(clock: Callable[[], float] | None = None) -> RunContext:
    """A context whose clock is the loop's, or `clock`."""
    made = Clock(clock or asyncio.get_running_loop().time, EPOCH_MS)
    return RunContext(7, made, Journal(made.now))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 (a socket's state has no event)
            await asyncio.sleep(0)


class Line:
    """One connection of the agent, as the gateway holds it."""

    def __init__(self, websocket: ServerConnection, ctx: RunContext) -> None:
        self._websocket = websocket
        self._ctx = ctx
        self.opened_at = asyncio.get_running_loop().time()
        self.over = asyncio.Event()
        self._seq = 0
        self._made = 0

    @property
    def authorization(self) -> str | None:
        assert self._websocket.request is not None
        return self._websocket.request.headers.get("Authorization")

    async def next(self) -> str | int:
        """The next message, or the close code."""
        async with asyncio.timeout(PATIENCE):
            try:
                return str(await self._websocket.recv())
            except ConnectionClosed as closed:
                return closed.rcvd.code if closed.rcvd is not None else 1006

    async def frame(self, type_name: str | None = None) -> Members:
        """The next frame; text pings are passed over. `type_name` is what it must be."""
        while (message := await self.next()) in ("ping", "pong"):
            pass
        assert isinstance(message, str), message
        frame: Members = json.loads(message)
        assert type_name in (None, frame["type"]), frame
        return frame

    async def until(self, type_name: str) -> Members:
        """The next frame of a type, whatever comes before it."""
        while (frame := await self.frame())["type"] != type_name:
            pass
        return frame

    async def end(self) -> int:
        """The close code, whatever comes before it."""
        while not isinstance(message := await self.next(), int):
            pass
        return message

    def make(self, type_name: str, payload: Mapping[str, Any], seq: int, signed: bool, **more: Any) -> Members:
        """A frame with a fresh msgId."""
        self._made += 1
        number = f"{id(self) % (1 << 24):06x}{self._made:06x}"
        frame: Members = {
            "schemaVersion": 2,
            "type": type_name,
            "msgId": f"99999999-0000-4000-8000-{number}",
            "seq": seq,
            "tenantId": TENANT,
            "agentId": AGENT,
            "workspaceId": WORKSPACE,
            "ts": TS,
            "payload": dict(payload),
            **more,
        }
        return self._sign(frame, f"nonce-{number}-0123456789") if signed else frame

    def _sign(self, frame: Members, nonce: str) -> Members:
        raw = json.dumps(frame["payload"], separators=(",", ":"), ensure_ascii=False)
        timestamp = self._ctx.wall_ms()
        digest = hashlib.sha256(raw.encode()).hexdigest()
        lines = ["VH-AGENT-SIG-V1", "WS", frame["type"], TENANT, frame["workspaceId"], str(timestamp), nonce, digest]
        signature = base64.urlsafe_b64encode(KEY.sign("\n".join(lines).encode()).signature).rstrip(b"=").decode()
        sig = {
            "alg": "Ed25519",
            "keyId": "hand-key",
            "tenantId": TENANT,
            "workspaceId": frame["workspaceId"],
            "timestamp": timestamp,
            "nonce": nonce,
            "signature": signature,
        }
        return {**frame, "paramsRaw": raw, "sig": sig}

    async def send(self, frame: Mapping[str, Any] | str) -> None:
        text = frame if isinstance(frame, str) else json.dumps(frame)
        with contextlib.suppress(ConnectionClosed):
            await self._websocket.send(text)

    async def handshake(self, resumed: bool = False, peer_last_seq: int = 0, **limits: Any) -> tuple[Members, Members]:
        """Take register and hello and answer ready; gives the two payloads."""
        register, hello = await self.frame("register"), await self.frame("hello")
        await self.ready(resumed, peer_last_seq, **limits)
        return register["payload"], hello["payload"]

    async def ready(self, resumed: bool = False, peer_last_seq: int = 0, **limits: Any) -> None:
        payload = {
            "sessionId": SESSION,
            "resumed": resumed,
            "peerLastSeq": peer_last_seq,
            "limits": {**LIMITS, **limits},
            "capabilities": ["job.assign", "job.chat"],
        }
        await self.send(self.make("ready", payload, 0, signed=True))

    async def say(self, type_name: str, payload: Mapping[str, Any], seq: int | None = None, **more: Any) -> Members:
        """Send the next signed data frame."""
        self._seq = self._seq + 1 if seq is None else seq
        frame = self.make(type_name, payload, self._seq, signed=True, **more)
        await self.send(frame)
        return frame

    async def ask(self, kind: str, ref: str, number: int = 1, **payload: Any) -> str:
        """Send a content.request, and take its ack."""
        request_id = f"4e4e4e4e-0000-4000-8000-{number:012x}"
        await self.say("content.request", {"kind": kind, "ref": ref, **payload}, requestId=request_id)
        ack = await self.until("ack")
        assert ack["payload"]["status"] == "accepted", ack
        return request_id

    async def ack(self, frame: Mapping[str, Any], code: str | None = None) -> None:
        payload = {"status": "accepted", "ackSeq": frame["seq"], "ackMsgId": frame["msgId"]}
        if code is not None:
            payload = {**payload, "status": "rejected", "errorCode": code}
        await self.send(self.make("ack", payload, 0, signed=False))

    async def refuse(self, code: str) -> None:
        await self.send(self.make("error", {"code": code, "retryable": False}, 0, signed=False))

    async def close(self) -> None:
        await self._websocket.close()

    def cut(self) -> None:
        self._websocket.transport.abort()

    def stop_reading(self) -> None:
        """Read no more, and have the system hold little of what comes."""
        self._websocket.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._websocket.transport.pause_reading()


class HandGateway:
    """Hands each connection of the agent to the test, which answers it."""

    def __init__(self, ctx: RunContext) -> None:
        self._ctx = ctx
        self._server: Server | None = None
        self._lines: asyncio.Queue[Line] = asyncio.Queue()
        self._all: list[Line] = []

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"ws://127.0.0.1:{next(iter(self._server.sockets)).getsockname()[1]}/agent"

    @property
    def opened(self) -> int:
        """How often the agent connected."""
        return len(self._all)

    async def start(self) -> None:
        self._server = await serve(self._take, "127.0.0.1", 0, compression=None, ping_interval=None, close_timeout=1)

    async def line(self) -> Line:
        """The agent's next connection."""
        async with asyncio.timeout(PATIENCE):
            return await self._lines.get()

    async def _take(self, websocket: ServerConnection) -> None:
        line = Line(websocket, self._ctx)
        self._all.append(line)
        self._lines.put_nowait(line)
        await line.over.wait()

    async def close(self) -> None:
        for line in self._all:
            line.over.set()
            line.cut()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()


@contextlib.asynccontextmanager
async def hand_gateway(ctx: RunContext) -> AsyncIterator[HandGateway]:
    """A started gateway; at its end no task may be left."""
    before = asyncio.all_tasks()
    gateway = HandGateway(ctx)
    await gateway.start()
    try:
        yield gateway
    finally:
        await gateway.close()
    await until(lambda: asyncio.all_tasks() == before)

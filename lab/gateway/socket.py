"""One WebSocket of the gateway: a queue in, bytes out, and how many bytes that were."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from lab.protocol.events import Close, Transmit

MAX_QUEUED = 4096
"""Messages that wait for a peer that does not read; beyond it the socket is aborted."""

PARTING_SECONDS = 5.0
"""How long a peer has to read what was written before a close, and to answer the close; then the socket is aborted."""

PEER_CLOSES_SECONDS = 1.0
"""How long a peer that named a fatal error has to close by itself."""


@dataclass(frozen=True)
class RawMessage:
    """A message that the gateway's protocol core knows nothing of: text as str, binary as bytes."""

    data: str | bytes


Message = Transmit | RawMessage

Behind = Callable[[int], None]
"""What happens right behind a message, given the offset of its end in the stream."""


class CountingConnection(ServerConnection):
    """A server connection that knows how many bytes it has sent: what a link cuts at."""

    sent_bytes = 0
    behind: Behind | None = None
    """Called once, right behind the next write."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count from the first byte of the upgrade's answer on."""
        super().connection_made(_Counted(self, transport))  # type: ignore[arg-type]


class _Counted:
    """A transport whose writes are counted; everything else is the transport's own."""

    def __init__(self, connection: CountingConnection, transport: asyncio.BaseTransport) -> None:
        self._connection = connection
        self._transport = transport

    def write(self, data: bytes) -> None:
        connection = self._connection
        connection.sent_bytes += len(data)
        self._transport.write(data)  # type: ignore[attr-defined]
        # Here and not when `send` returns: it may wait for the peer, and a pong may be written meanwhile.
        behind, connection.behind = connection.behind, None
        if behind is not None:
            behind(connection.sent_bytes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class GatewaySocket:
    """Writes what it is given, in order. A defect while writing goes to `fail` and ends the socket."""

    def __init__(
        self, conn: str, agent_id: str, websocket: CountingConnection, fail: Callable[[BaseException], None]
    ) -> None:
        self.conn = conn
        self.agent_id = agent_id
        self._websocket = websocket
        self._fail = fail
        self._queue: deque[tuple[Message | Close | None, Behind | None]] = deque()
        self._wake = asyncio.Event()
        self._parting: asyncio.TimerHandle | None = None
        address = websocket.remote_address
        self.peer_port = int(address[1]) if address else 0
        """The port of the peer's end: the link's upstream side, where there is a link."""
        self._writer = asyncio.get_running_loop().create_task(self._write(), name=f"gateway socket {conn}")

    def put(self, output: Message | Close | None, behind: Behind | None = None) -> None:
        """Queue a message or the close; None is nothing but its place in the stream."""
        if len(self._queue) >= MAX_QUEUED:
            self._websocket.transport.abort()
            return
        self._queue.append((output, behind))
        self._wake.set()
        if isinstance(output, Close) and self._parting is None:
            # A peer that does not read never answers the close either.
            abort = self._websocket.transport.abort
            self._parting = asyncio.get_running_loop().call_later(PARTING_SECONDS, abort)

    async def _write(self) -> None:
        try:
            while True:
                while self._queue:
                    output, behind = self._queue.popleft()
                    if isinstance(output, Close):
                        if output.awaits_peer:
                            await self._peers_close()
                        await self._websocket.close(output.code)
                        return
                    await self._write_message(output, behind)
                self._wake.clear()
                await self._wake.wait()
        except ConnectionClosed:
            return
        except Exception as defect:  # noqa: BLE001  a writer that ended unseen would leave its peer waiting
            self._fail(defect)
            self._websocket.transport.abort()

    async def _peers_close(self) -> None:
        """Give a peer that named a fatal error the time to close with its number; a close of our own would cross it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PEER_CLOSES_SECONDS):
                await self._websocket.wait_closed()

    async def _write_message(self, output: Message | None, behind: Behind | None) -> None:
        if output is None:
            if behind is not None:
                behind(self._websocket.sent_bytes)
            return
        self._websocket.behind = behind
        try:
            await self._websocket.send(output.data if isinstance(output, RawMessage) else output.text)
        finally:
            self._websocket.behind = None

    async def end(self) -> None:
        """The socket is gone: no more writing."""
        if self._parting is not None:
            self._parting.cancel()
        self._writer.cancel()
        await asyncio.gather(self._writer, return_exceptions=True)

    def closing(self) -> tuple[int | None, str]:
        """The close code and who sent it first: local, remote, or none when the connection was cut."""
        protocol = self._websocket.protocol
        if protocol.close_rcvd is not None and protocol.close_rcvd_then_sent is not False:
            return protocol.close_rcvd.code, "remote"
        if protocol.close_sent is not None and protocol.close_rcvd is not None:
            return protocol.close_sent.code, "local"
        return (protocol.close_sent.code if protocol.close_sent is not None else None), "none"

"""One WebSocket of a live trace, from either end: texts out, texts or the end in."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from typing import Protocol
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.connection import Connection
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.protocol import State

from lab.contract.trace_grades import Closing

MAX_MESSAGE_BYTES = 1 << 20

quiet = logging.getLogger("lab.contract.websockets")
"""Takes what the WebSocket library would say: frames and credentials, at its most talkative."""
quiet.disabled = True

_NO_WEBSOCKET = (InvalidHandshake, EOFError, ConnectionClosed)


class Unreachable(Exception):
    """No connection with the peer came about; the text says why."""


class Place(Protocol):
    """Where connections with the peer come from."""

    async def open(self) -> Line:
        """The next connection. Raises `Unreachable`."""


class Line:
    """A connection with the peer. `patience` bounds every wait for it, in seconds."""

    def __init__(self, websocket: Connection, patience: float) -> None:
        self._websocket = websocket
        self._patience = patience

    @property
    def is_open(self) -> bool:
        """Whether neither side has begun to close."""
        return self._websocket.state is State.OPEN

    async def send(self, text: str) -> None:
        """Write a message; one that the peer no longer takes is lost, as `receive` will tell."""
        try:
            async with asyncio.timeout(self._patience):
                await self._websocket.send(text)
        except (ConnectionClosed, TimeoutError):
            return

    async def receive(self, seconds: float) -> str | bytes | Closing | None:
        """The next message, or how the connection ended; None when nothing comes in `seconds`.

        Bytes are what is not UTF-8.
        """
        try:
            async with asyncio.timeout(seconds):
                message = await self._websocket.recv(decode=False)
        except TimeoutError:
            return None
        except ConnectionClosed:
            return await self._closing()
        try:
            return message.decode()
        except UnicodeDecodeError:
            return message

    async def close(self) -> Closing | None:
        """Close plainly and tell how that went; None when the peer does not answer the close."""
        try:
            async with asyncio.timeout(self._patience):
                await self._websocket.close()
        except TimeoutError:
            self.cut()
            return None
        closing = await self._closing()
        return None if closing.by == "nobody" else closing

    def cut(self) -> None:
        """Drop the connection without a word."""
        self._websocket.transport.abort()

    async def _closing(self) -> Closing:
        await self._websocket.wait_closed()
        protocol = self._websocket.protocol
        got, sent = protocol.close_rcvd, protocol.close_sent
        if got is None:
            return Closing(None, "nobody", clean=False)
        by_peer = sent is None or protocol.close_rcvd_then_sent is True
        first = got if by_peer or sent is None else sent
        # 1005 is the library's word for a close frame without a code (RFC 6455, 7.4.1).
        code = None if first.code == 1005 else int(first.code)
        return Closing(code, "peer" if by_peer else "lab", clean=sent is not None)


class Gateway:
    """Connections to somebody's gateway, made as its Local Agent."""

    def __init__(self, url: str, token: str, patience: float) -> None:
        self._url = url
        self._token = token
        self._patience = patience

    async def open(self) -> Line:
        """Connect. Raises `Unreachable`, with the HTTP status where there was one."""
        try:
            websocket: ClientConnection = await connect(
                self._url,
                additional_headers={"Authorization": f"Bearer {self._token}"},
                compression=None,
                ping_interval=None,
                open_timeout=self._patience,
                close_timeout=self._patience,
                max_size=MAX_MESSAGE_BYTES,
                user_agent_header=None,
                proxy=None,
                logger=quiet,
            )
        except InvalidStatus as refused:
            raise Unreachable(f"the upgrade was refused with HTTP {refused.response.status_code}") from None
        except TimeoutError:
            raise Unreachable(f"no connection: no answer within {self._patience:g} s") from None
        except OSError as failure:
            raise Unreachable(f"no connection: {self._why(failure)}") from None
        except _NO_WEBSOCKET:
            raise Unreachable(f"no connection: what listens at {self._address()} does not speak WebSocket") from None
        return Line(websocket, self._patience)

    def _why(self, failure: OSError) -> str:
        match failure:
            case ConnectionRefusedError():
                return f"nobody listens at {self._address()}"
            case socket.gaierror():
                return f"the host of {self._address()} is not known"
            case ssl.SSLError():
                return f"no TLS with {self._address()}: {failure.reason}"
            case ConnectionError():
                return f"what listens at {self._address()} does not speak WebSocket"
            case _:
                return f"{self._address()} cannot be reached"

    def _address(self) -> str:
        parts = urlsplit(self._url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        return f"{host}:{parts.port or (443 if parts.scheme == 'wss' else 80)}"

"""HTTP/1.1 over a blocking socket, read no more than shows where an answer ends: the client is never what is slow."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

STEP = 1 << 18
PATIENCE = 60.0
"""Seconds without a byte that a server may let pass."""

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
_LAST_CHUNK = b"0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as it came. A chunked body has its chunks' frames still: `content` is without."""

    head: bytes
    body: bytes
    chunked: bool

    @property
    def status(self) -> int:
        """The HTTP status."""
        return int(self.head[9:12])

    @property
    def content(self) -> bytes:
        """What was sent in the body."""
        return without_chunks(self.body) if self.chunked else self.body

    def header(self, name: str) -> str | None:
        """The value of a header."""
        for line in self.head.decode("latin-1").split("\r\n")[1:]:
            given, _, value = line.partition(":")
            if given.lower() == name.lower():
                return value.strip()
        return None


class Connection:
    """One connection that is kept; close it at the end."""

    def __init__(self, url: str) -> None:
        self._see: Callable[[bytes], None] | None = None
        self._socket = socket.create_connection(address_of(url), timeout=PATIENCE)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request: bytes, see: Callable[[bytes], None] | None = None) -> Answer:
        """The whole answer to a request; `see` is given each part as it comes.

        An answer that ends early raises `RuntimeError`.
        """
        self._see = see
        self._socket.sendall(request)
        got = b""
        while (end := got.find(b"\r\n\r\n")) < 0:
            got += self._more()
        head, rest = got[:end], [got[end + 4 :]]
        if _CHUNKED.search(head):
            # No event has a carriage return, so the last chunk looks like nothing else.
            while not ends(rest):
                rest.append(self._more())
            return Answer(head, b"".join(rest), True)
        length = _LENGTH.search(head)
        left = (int(length[1]) if length else 0) - len(rest[0])
        while left > 0:
            rest.append(self._more())
            left -= len(rest[-1])
        return Answer(head, b"".join(rest), False)

    def close(self) -> None:
        """Let go of it."""
        self._socket.close()

    def _more(self) -> bytes:
        part = self._socket.recv(STEP)
        if not part:
            raise RuntimeError("the answer ended early")
        if self._see is not None:
            self._see(part)
        return part


def address_of(url: str) -> tuple[str, int]:
    """Host and port."""
    parts = urlsplit(url)
    return str(parts.hostname), int(parts.port or 0)


def ends(parts: list[bytes]) -> bool:
    """Whether the last chunk is there, of which a piece may have come by itself."""
    size = len(_LAST_CHUNK)
    tail = parts[-1] if len(parts[-1]) >= size else b"".join(parts[-size:])
    return tail.endswith(_LAST_CHUNK)


def request_of(method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> bytes:
    """The bytes of a request."""
    length = {} if body is None else {"Content-Length": str(len(body))}
    fields = {"Host": "localhost", **headers, **length}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")


def without_chunks(body: bytes) -> bytes:
    """The content of a chunked body."""
    parts, place = [], 0
    while place < len(body):
        line = body.index(b"\r\n", place)
        size = int(body[place:line], 16)
        parts.append(body[line + 2 : line + 2 + size])
        place = line + 2 + size + 2
    return b"".join(parts)

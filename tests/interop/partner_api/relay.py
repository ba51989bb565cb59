"""A relay in front of an event stream that can cut a connection in the middle of an event, and counts comments."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

_DATA = re.compile(rb"\ndata: ")
_COMMENT = re.compile(rb"(?m)^: ")
_INTO_EVENT = 12
"""Bytes of the event in whose middle a connection is cut."""


@dataclass
class Relay:
    """`cut_after` is how many whole events the next connection gets before it is cut; None: all."""

    upstream: str
    url: str = ""
    cut_after: int | None = None
    connections: int = 0
    comments: int = 0
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    async def until_comments(self, count: int) -> None:
        """Wait until so many comments have gone through."""
        while self.comments < count:
            self._news.clear()
            await self._news.wait()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection to its end."""
        self.connections += 1
        cut_after, self.cut_after = self.cut_after, None
        there = urlsplit(self.upstream)
        up_reader, up_writer = await asyncio.open_connection(there.hostname, there.port)
        asking = asyncio.ensure_future(_carry(reader, up_writer))
        try:
            await self._answer(up_reader, writer, cut_after)
        except ConnectionError:
            pass  # a side went away
        finally:
            asking.cancel()
            for end in (writer, up_writer):
                end.close()
            with suppress(asyncio.CancelledError, ConnectionError):
                await asking

    async def _answer(self, up: asyncio.StreamReader, down: asyncio.StreamWriter, cut_after: int | None) -> None:
        passed = b""
        while chunk := await up.read(65536):
            began = len(passed)
            passed += chunk
            events = list(_DATA.finditer(passed))
            cut = cut_after is not None and len(events) > cut_after
            end = events[cut_after or 0].end() + _INTO_EVENT if cut else len(passed)
            down.write(passed[began:end])
            await down.drain()
            if cut:
                return
            self.comments += len(_COMMENT.findall(passed)) - len(_COMMENT.findall(passed[:began]))
            self._news.set()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(65536):
        writer.write(chunk)
        await writer.drain()


@asynccontextmanager
async def relaying(upstream: str) -> AsyncIterator[Relay]:
    """A relay on a free port of this machine, to this base URL."""
    relay = Relay(upstream)
    server = await asyncio.start_server(relay.serve, "127.0.0.1", 0)
    relay.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield relay

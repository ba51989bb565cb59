"""Many readers of one run's stream in one process, each on a connection of its own."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from benchmarks.partner_load import events_request, head_of, message_request, stamps_of
from benchmarks.raw_http import Connection, address_of, ends, without_chunks

CONNECT_AT_ONCE = 50

Json = Mapping[str, Any]


class _Follower(asyncio.Protocol):
    """Keeps what comes until the stream has ended."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._parts: list[bytes] = []
        loop = asyncio.get_running_loop()
        self.began: asyncio.Future[None] = loop.create_future()
        self.ended: asyncio.Future[float] = loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.WriteTransport):
            transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._parts.append(data)
        if not self.began.done():
            self.began.set_result(None)
        if ends(self._parts) and not self.ended.done():
            self.ended.set_result(time.perf_counter())

    def connection_lost(self, exc: Exception | None) -> None:
        for future in (self.began, self.ended):
            if not future.done():
                future.set_exception(RuntimeError(f"a stream that ended early: {exc}"))

    def content(self) -> bytes:
        """The stream without what HTTP adds."""
        head, _, body = b"".join(self._parts).partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200 "):
            raise RuntimeError("no stream")
        return without_chunks(body)


async def followers(order: Json) -> Json:
    """`count` followers of one run; a line once all follow, and how late each was at the end, by `stamps`."""
    (routes,) = order["conversations"]
    with closing(Connection(order["url"])) as connection:
        accepted = connection.ask(message_request(order, routes))
    request, address = events_request(routes, accepted, head_of(order)), address_of(order["url"])
    room = asyncio.Semaphore(CONNECT_AT_ONCE)

    async def join() -> _Follower:
        async with room:
            _, follower = await asyncio.get_running_loop().create_connection(lambda: _Follower(request), *address)
            await follower.began
        return follower

    began = time.perf_counter()
    joined = await asyncio.gather(*(join() for _ in range(order["count"])))
    print(json.dumps({"follow": len(joined), "connecting": time.perf_counter() - began}), flush=True)
    ended = sorted(await asyncio.gather(*(follower.ended for follower in joined)))
    stamps = stamps_of(order)
    end = stamps[-1]
    contents = [follower.content() for follower in joined]
    late = [at - end for at in ended]
    return {
        "different": len({hashlib.sha256(content).hexdigest() for content in contents}),
        "events": contents[0].count(b"\n\n"),
        "bytes": len(contents[0]),
        "answer": end - stamps[1],
        "median": late[len(late) // 2],
        "last": late[-1],
    }

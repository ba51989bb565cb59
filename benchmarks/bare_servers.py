"""Bare aiohttp servers that send what the lab's store and partner API sent, and do nothing else for it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

Order = Mapping[str, Any]
Said = Mapping[str, Any]


@asynccontextmanager
async def answers(order: Order) -> AsyncIterator[Said]:
    """Sends answer n of `answers` at path /n, once the body is read."""
    given = order["answers"]

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        one = given[int(request.match_info["n"])]
        return web.Response(status=one["status"], body=one["body"].encode(), headers=one["headers"])

    app = web.Application()
    app.router.add_route("*", "/{n}", answer)
    async with _served(app) as url:
        yield {"url": url}


@asynccontextmanager
async def turns(order: Order) -> AsyncIterator[Said]:
    """Accepts a message with the bytes `accepted`; its stream fetches `exchanges` from `store`, and sends `events`.

    Each fetch has a connection of its own, and the last one comes when the stream has ended, both as in the model.
    """
    events = [event.encode() for event in order["events"]]
    *before, last = enumerate(order["exchanges"])
    behind: set[asyncio.Task[None]] = set()

    async def fetch(number: int, exchange: Mapping[str, Any]) -> None:
        body, url = exchange["body"].encode(), f"{order['store']}/{number}"
        async with http.request(exchange["method"], url, data=body, headers=exchange["headers"]) as response:
            await response.read()

    async def stream(request: web.Request) -> web.StreamResponse:
        for one in before:
            await fetch(*one)
        response = await _begun(request)
        for event in events:
            await response.write(event)
        await response.write_eof()
        task = asyncio.create_task(fetch(*last))
        behind.add(task)
        task.add_done_callback(behind.discard)
        return response

    app = _accepting(order, stream)
    connector = aiohttp.TCPConnector(force_close=True, limit=0)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as http:
        async with _served(app) as url:
            yield {"url": url}
        await asyncio.gather(*behind)


@asynccontextmanager
async def paced(order: Order) -> AsyncIterator[Said]:
    """As `turns`, but no store: the first event at once, the others `every` seconds, and their moments to `stamps`."""
    events = [event.encode() for event in order["events"]]

    async def stream(request: web.Request) -> web.StreamResponse:
        stamps: list[float] = []
        response = await _begun(request)
        for event in events:
            await asyncio.sleep(order["every"] if stamps else 0.0)
            stamps.append(time.perf_counter())
            await response.write(event)
        leave_stamps(Path(order["stamps"]), stamps)
        await response.write_eof()
        return response

    app = _accepting(order, stream)
    async with _served(app) as url:
        yield {"url": url}


def leave_stamps(path: Path, stamps: Sequence[float]) -> None:
    """Write them where whoever measures finds them."""
    path.write_text(json.dumps(stamps), encoding="utf-8")


def _accepting(order: Order, stream: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> web.Application:
    accepted = order["accepted"].encode()

    async def message(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(status=202, body=accepted, content_type="application/json")

    app = web.Application()
    app.router.add_post("/messages", message)
    app.router.add_get("/events", stream)
    return app


async def _begun(request: web.Request) -> web.StreamResponse:
    headers = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-store"}
    response = web.StreamResponse(headers=headers)
    response.enable_chunked_encoding()
    await response.prepare(request)
    return response


@asynccontextmanager
async def _served(app: web.Application) -> AsyncIterator[str]:
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


KINDS: Mapping[str, Callable[[Order], AbstractAsyncContextManager[Said]]] = {
    "bare answers": answers,
    "bare turns": turns,
    "bare paced": paced,
}

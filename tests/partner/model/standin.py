"""A tiny MCP server of the tests' own: it does what the wire asks for, until a test gives it something else to do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from lab.http_shell import let_go_of_handlers

Answer = Callable[[web.Request, Any], Awaitable[web.StreamResponse]]
PRODUCT = {"content": [{"type": "text", "text": "STORE-RESULT-MARKER"}], "resultType": "complete"}
FAILURE = {"content": [{"type": "text", "text": "STORE-ERROR-MARKER"}], "isError": True, "resultType": "complete"}


@dataclass(frozen=True)
class Seen:
    """A request as it came."""

    http: str
    method: str | None
    headers: Mapping[str, str]
    params: Any


@dataclass
class StandIn:
    """`tools` are what it lists. `instead` has, by method (GET for a resume), what is done once instead."""

    tools: tuple[str, ...] = ("catalog_get", "store_status")
    results: dict[str, Any] = field(default_factory=dict)
    instead: dict[str, list[Answer]] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    sessions: set[str] = field(default_factory=set)
    url: str = ""
    made: int = 0

    def of(self, method: str) -> list[Seen]:
        return [seen for seen in self.seen if seen.method == method]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        message = json.loads(raw) if raw else {}
        method = message.get("method") if request.method == "POST" else request.method
        self.seen.append(Seen(request.method, method, request.headers.copy(), message.get("params", {})))
        if self.instead.get(str(method)):
            return await self.instead[str(method)].pop(0)(request, message)
        return self.rule(request, message, str(method))

    def rule(self, request: web.Request, message: Any, method: str) -> web.StreamResponse:
        if method == "initialize":
            self.made += 1
            session = f"session-{self.made}"
            self.sessions.add(session)
            result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
            return answer(message, result, {"Mcp-Session-Id": session})
        if method == "server/discover":
            return answer(message, {"supportedVersions": ["2026-07-28"], "capabilities": {}})
        if "Mcp-Method" not in request.headers and request.headers.get("Mcp-Session-Id") not in self.sessions:
            return web.Response(status=404, text="SESSION-MARKER")
        if method in ("notifications/initialized", "DELETE"):
            return web.Response(status=202)
        if method == "tools/list":
            return answer(message, {"tools": [{"name": name, "inputSchema": {}} for name in self.tools]})
        if method == "tools/call":
            return answer(message, self.results.get(message["params"]["name"], PRODUCT))
        return web.Response(status=405)


def answer(message: Any, result: object, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": result}, headers=headers)


def status(code: int, headers: Mapping[str, str] | None = None) -> Answer:
    async def handle(request: web.Request, message: Any) -> web.StreamResponse:
        return web.Response(status=code, text="STATUS-MARKER", headers=headers)

    return handle


def body(raw: bytes, content_type: str = "application/json") -> Answer:
    async def handle(request: web.Request, message: Any) -> web.StreamResponse:
        return web.Response(body=raw, content_type=content_type)

    return handle


def stream(*chunks: bytes, cut: bool = False) -> Answer:
    """An SSE answer; `{id}` in a chunk is the id of the request that is answered, `cut` tears the connection."""

    async def handle(request: web.Request, message: Any) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk.replace(b"{id}", str(message.get("id")).encode()))
        if cut and request.transport is not None:
            request.transport.close()
        else:
            await response.write_eof()
        return response

    return handle


async def never(request: web.Request, message: Any) -> web.StreamResponse:
    """Take the request and say nothing."""
    await asyncio.get_running_loop().create_future()
    raise AssertionError


@asynccontextmanager
async def standing_in(**changes: Any) -> AsyncIterator[StandIn]:
    """A stand-in that listens on loopback."""
    stand_in = StandIn(**changes)
    app = web.Application()
    app.router.add_route("*", "/mcp", stand_in.handle)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    stand_in.url = f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
    try:
        yield stand_in
    finally:
        await runner.cleanup()
        let_go_of_handlers()

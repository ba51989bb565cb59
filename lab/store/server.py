"""The socket shell of the store: one MCP endpoint, and beside it what shares its port."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from aiohttp import web

from lab.context import RunContext
from lab.errors import MisuseError
from lab.http_shell import let_go_of_handlers, listen, read_within
from lab.store.core import MAX_BODY_BYTES, StoreCore
from lab.store.exchange import Delivery, Ending, HttpRequest
from lab.store.misbehaviour import Misbehaviour

# MCP-010: one endpoint
PATH = "/mcp"
KEEP_ALIVE_SECONDS = 15.0

_KEEP_ALIVE = b": keep-alive\n\n"
_LINGER_NOW = struct.pack("ii", 1, 0)

Mount = Callable[[web.Application], None]


class StoreServer:
    """One store double on a port of its own.

    `name` is who it is in the journal; port 0 takes any free one. `mounts` add the routes of others that share the
    port, such as `IssuerServer.mount`; with `tls` it is reached by HTTPS (MCP-007). Call `start` once, then `close`,
    which may be repeated.
    """

    def __init__(
        self,
        ctx: RunContext,
        name: str,
        core: StoreCore,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        mounts: Sequence[Mount] = (),
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._ctx = ctx
        self._name = name
        self._core = core
        self._host = host
        self._port = port
        self._mounts = tuple(mounts)
        self._tls = tls
        self._runner: web.AppRunner | None = None
        self._changed = asyncio.Event()

    @property
    def base(self) -> str:
        """Scheme, host and port. Valid after `start`."""
        if self._runner is None or not self._runner.addresses:
            raise MisuseError("the store has no address before start() and after close()")
        scheme = "http" if self._tls is None else "https"
        return f"{scheme}://{self._host}:{self._runner.addresses[0][1]}"

    @property
    def url(self) -> str:
        """The MCP endpoint. Valid after `start`."""
        return self.base + PATH

    async def start(self) -> None:
        """Listen. A port that cannot be had raises `EnvironmentFault`."""
        app = web.Application()
        app.router.add_route("*", PATH, self._serve)
        for mount in self._mounts:
            mount(app)
        self._runner = await listen(app, self._host, self._port, self._name, self._tls)
        # A second start, after a close, is where callers know it to be.
        self._port = self._runner.addresses[0][1]

    async def close(self) -> None:
        """Stop listening and tear what is open. Safe to call again."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()
            let_go_of_handlers()

    def misbehave(self, rules: Iterable[Misbehaviour], *, also: bool = False) -> None:
        """From now on these rules hold, in place of those before, or beside them with `also`. None: behave."""
        self._core.misbehave(rules, also=also)

    def lose_sessions(self) -> int:
        """Forget all sessions and end their own streams (MCP-026); how many there were."""
        count = self._core.lose_sessions()
        self._tell_listeners()
        return count

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = await read_within(request, MAX_BODY_BYTES)
        asked = HttpRequest(request.method, tuple(request.headers.items()), body)
        handled = self._core.handle_untrusted(asked, self._ctx.wall_ms())
        self._ctx.journal.record(self._name, handled.event)
        self._tell_listeners()
        try:
            return await self._deliver(request, handled.delivery)
        finally:
            if handled.delivery.listening is not None:
                handled.delivery.listening.listened = False

    async def _deliver(self, request: web.Request, delivery: Delivery) -> web.StreamResponse:
        if delivery.wait:
            await asyncio.sleep(delivery.wait)
        if delivery.whole_body is not None:
            # Head and body leave in one send instead of two.
            return web.Response(status=delivery.status, headers=list(delivery.headers), body=delivery.whole_body)
        response = web.StreamResponse(status=delivery.status or 200, headers=list(delivery.headers))
        if delivery.streamed:
            response.enable_chunked_encoding()
        else:
            response.content_length = delivery.length
        try:
            if delivery.status:
                await response.prepare(request)
                for chunk in delivery.chunks:
                    await response.write(chunk)
            await self._end(request, response, delivery)
        except ConnectionError:
            pass  # the client went away
        return response

    async def _end(self, request: web.Request, response: web.StreamResponse, delivery: Delivery) -> None:
        if delivery.listening is not None:
            await self._listen(response, delivery)
        if delivery.ending is Ending.WHOLE:
            await response.write_eof()
        elif delivery.ending is Ending.NEVER:
            await asyncio.get_running_loop().create_future()
        elif request.transport is not None:
            if delivery.ending is Ending.RESET:
                kept: socket.socket | None = request.transport.get_extra_info("socket")
                if kept is not None:
                    kept.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOW)
                request.transport.abort()
            else:
                # What was written still arrives, and the end is no clean one.
                request.transport.close()

    async def _listen(self, response: web.StreamResponse, delivery: Delivery) -> None:
        """Keep a session's own stream open until the session ends."""
        session = delivery.listening
        if session is None:
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + KEEP_ALIVE_SECONDS
        while not session.over:
            changed = self._changed
            # Any request wakes a listener, and puts off no sign of life.
            with suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await changed.wait()
            if loop.time() >= due:
                await response.write(_KEEP_ALIVE)
                due = loop.time() + KEEP_ALIVE_SECONDS

    def _tell_listeners(self) -> None:
        """Let those that keep a stream open look whether its session has ended."""
        self._changed.set()
        self._changed = asyncio.Event()

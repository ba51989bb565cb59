"""The socket shell of the fault API: HTTP on one port, in place of a Toxiproxy server."""

from __future__ import annotations

import asyncio
import logging

from aiohttp import web

import lab
from lab.errors import EnvironmentFault, MisuseError
from lab.faults.api.answers import Answer, ApiError, bad_body, error_answer
from lab.faults.api.routes import Api
from lab.faults.engine import Engine
from lab.faults.go_json import GoJsonError
from lab.faults.go_scan import MAX_BYTES

READ_SECONDS = 15.0
"""How long a body may take to come."""
IDLE_SECONDS = 60.0
"""How long a connection may stay between two requests."""
LINGER_SECONDS = 1.0
"""How long the rest of a body that was refused is still taken, so that the client reads why before it is cut off."""
SHUTDOWN_SECONDS = 0.1
"""What a handler has to end in when the server closes; not 0, which would mean no limit."""
_SILENT = logging.getLogger("lab.faults.api.http")
"""aiohttp's words about what is no HTTP: they hold what a client sent, and nobody has to act on them."""
_SILENT.setLevel(logging.CRITICAL + 1)
MARK = f"lab/{lab.__version__}"
"""Stands in the header Server; the Go server sends none."""


class ApiServer:
    """Serves the proxies of an engine, which stays its owner's to close. Call `start` once, then `close`."""

    def __init__(self, engine: Engine, host: str = "127.0.0.1", port: int = 0, *, metrics: bool = False) -> None:
        self._api = Api(engine, metrics=metrics)
        self._host, self._port = host, port
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listen. A port that cannot be had raises `EnvironmentFault`."""
        app = web.Application(client_max_size=MAX_BYTES)
        app.router.add_route("*", "/{path:.*}", self._serve)
        # A client that goes away leaves no change half made: its handler is not cancelled.
        runner = web.AppRunner(
            app,
            access_log=None,
            logger=_SILENT,
            lingering_time=LINGER_SECONDS,
            auto_decompress=False,
            keepalive_timeout=IDLE_SECONDS,
            shutdown_timeout=SHUTDOWN_SECONDS,
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, self._host, self._port).start()
        except OSError as error:
            await runner.cleanup()
            raise EnvironmentFault(
                f"the fault API cannot listen on {self._host}:{self._port}: {error.strerror}. End the program that "
                "holds this port, or give another address; port 0 takes any that is free."
            ) from error
        self._runner = runner

    @property
    def url(self) -> str:
        """The base URL. Valid after `start`."""
        if self._runner is None or not self._runner.addresses:
            raise MisuseError("the fault API has no address before start() and after close()")
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._runner.addresses[0][1]}"

    async def close(self) -> None:
        """Stop. Safe to call again."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        try:
            answer = await self._answer(request)
        except Exception as defect:  # noqa: BLE001  a defect of the lab: the loop's owner is told, the client too
            words = {"message": "the fault API failed", "exception": defect}
            asyncio.get_running_loop().call_exception_handler(words)
            answer = error_answer(ApiError(500, f"a defect of the lab: {type(defect).__name__}"))
        response = web.Response(status=answer.status, body=answer.body or None, headers={"Server": MARK})
        if answer.content_type:
            response.headers["Content-Type"] = answer.content_type
        if answer.status >= 400 and answer.content_type.startswith("text/plain"):
            response.headers["X-Content-Type-Options"] = "nosniff"
        return response

    async def _answer(self, request: web.Request) -> Answer:
        try:
            async with asyncio.timeout(READ_SECONDS):
                body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return error_answer(ApiError(413, f"bad request body: a body has at most {MAX_BYTES} bytes"))
        except TimeoutError:
            return error_answer(bad_body(GoJsonError(f"it did not come within {READ_SECONDS:g} s")))
        except (OSError, web.RequestPayloadError):
            # The client went away in mid-body, or its chunks are none.
            return error_answer(bad_body(GoJsonError("unexpected EOF")))
        return await self._api.answer(request.method, request.path, request.headers.get("User-Agent", ""), body)

"""The socket shell of the issuer.

POST /grants                 the complete URL that a fixture file names (GR-009)
POST /conversations          the driver registers the create call's answer
POST /__lab/grants           wrong and expired grants
POST /__lab/revocations
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from lab.context import RunContext
from lab.errors import MisuseError
from lab.grants.issuer import IssuerCore, Route
from lab.http_shell import let_go_of_handlers, listen, read_within

MAX_BODY_BYTES = 16_384
PATHS = {
    Route.GRANTS: "/grants",
    Route.CONVERSATIONS: "/conversations",
    Route.LAB_GRANTS: "/__lab/grants",
    Route.LAB_REVOCATIONS: "/__lab/revocations",
}


class IssuerServer:
    """One issuer, on a port of its own or on another double's.

    `name` is who it is in the journal. Either call `start` and later `close`, or hand `mount` to the server that
    shares its port and its address (GR-018).
    """

    def __init__(self, ctx: RunContext, name: str, core: IssuerCore, host: str = "127.0.0.1", port: int = 0) -> None:
        self._ctx = ctx
        self._name = name
        self._core = core
        self._host = host
        self._port = port
        self._runner: web.AppRunner | None = None

    def mount(self, app: web.Application) -> None:
        """Serve the issuer's routes on `app`."""
        for route, path in PATHS.items():
            app.router.add_post(path, self._serving(route))

    @property
    def base(self) -> str:
        """Scheme, host and port of an issuer that has a port of its own. Valid after `start`."""
        if self._runner is None or not self._runner.addresses:
            raise MisuseError("the issuer has no address of its own before start() and after close()")
        return f"http://{self._host}:{self._runner.addresses[0][1]}"

    async def start(self) -> None:
        """Listen on a port of its own. A port that cannot be had raises `EnvironmentFault`."""
        app = web.Application()
        self.mount(app)
        self._runner = await listen(app, self._host, self._port, self._name)
        self._port = self._runner.addresses[0][1]

    async def close(self) -> None:
        """Stop listening. Safe to call again."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()
            let_go_of_handlers()

    def _serving(self, route: Route) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def serve(request: web.Request) -> web.Response:
            # What is too long or broken is no JSON object either.
            body = await read_within(request, MAX_BODY_BYTES) or b""
            answer = self._core.answer_untrusted(route, request.headers.getall("Authorization", []), body)
            self._ctx.journal.record(self._name, answer.event)
            return web.json_response(answer.body, status=answer.status, headers={"Cache-Control": "no-store"})

        return serve

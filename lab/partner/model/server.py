"""The HTTP shell of the partner API model: the ten routes, the lab controls beside them, `/openapi.json`.

Every answer of the ten routes is journalled as one `PartnerRequest`, with digests and fingerprints only.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from lab.bearer import bears, token_of
from lab.context import RunContext
from lab.errors import MisuseError, StateFault
from lab.http_shell import let_go_of_handlers, listen
from lab.journal.partner_events import PartnerRequest, fingerprint
from lab.partner.api_schema import api_schema
from lab.partner.model.answers import Answer, ApiRequest, refused
from lab.partner.model.bodies import body_digest, read_json_body, read_upload
from lab.partner.model.control_routes import control_untrusted
from lab.partner.model.controls import Controls
from lab.partner.model.core import OPERATIONS, STREAM_PATH, STREAM_ROUTE, Operation, PartnerCore
from lab.partner.model.event_stream import EventStreams
from lab.partner.model.fixture_output import fixture_facts, remove_fixture, write_fixture
from lab.partner.model.keyring import Keyring
from lab.partner.model.refusals import Refusal, credential_rejected, unavailable
from lab.partner.model.settings import PartnerSettings
from lab.partner.model.turns import TurnRunner, shelf_of
from lab.partner.model.words import IDEMPOTENCY_KEY, LAB_BASE

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_JSON_HEADERS: Final = {"Content-Type": "application/json; charset=utf-8", "Cache-Control": "no-store"}


class PartnerServer:
    """One partner API model on a port of its own; `name` is who it is in the journal, port 0 takes any free one.
    `write_line` takes the lines of the turn log (TM-052).

    Call `start`, then `close` or `crash`, each of which may be repeated; a later `start` is a restart on the same port.
    With a state path it keeps keys, instanceId and all that was stored, without one it begins anew (FX-026).
    """

    def __init__(
        self,
        ctx: RunContext,
        name: str,
        settings: PartnerSettings,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        write_line: Callable[[str], None] | None = None,
    ) -> None:
        self._ctx = ctx
        self._name = name
        self._settings = settings
        self._host = host
        self._port = port
        self._write_line = write_line
        self._starts = 0
        self._runner: web.AppRunner | None = None
        self._core: PartnerCore | None = None
        self._turns: TurnRunner | None = None
        self._controls: Controls | None = None
        self._streams: EventStreams | None = None
        self._expires_ms = 0
        self._end: asyncio.Task[None] | None = None
        self.closed = asyncio.Event()
        """Set when nothing is served any more, by `close` or because a fixture's time was over (FX-011)."""

    @property
    def url(self) -> str:
        """The apiOrigin: scheme, host and port (FX-042). Valid between `start` and `close`."""
        if self._runner is None or not self._runner.addresses:
            raise MisuseError("the partner API model has no address before start() and after close()")
        return f"http://{self._host}:{self._runner.addresses[0][1]}"

    @property
    def settings(self) -> PartnerSettings:
        """What it was set up with."""
        return self._settings

    @property
    def core(self) -> PartnerCore:
        """The rules and what they remember; one per life."""
        if self._core is None:
            raise MisuseError("the partner API model has no state before start() and after close()")
        return self._core

    @property
    def keys(self) -> Keyring:
        """The secrets of this instance: for the driver and the lab controls alone."""
        return self.core.keyring.keyring

    @property
    def instance_id(self) -> str:
        """Which instance this is (FX-026)."""
        return self.core.parts.instance_id

    @property
    def controls(self) -> Controls:
        """What the lab can do to this instance; the same over HTTP below `/__lab`."""
        if self._controls is None:
            raise MisuseError("the partner API model has no controls before start() and after close()")
        return self._controls

    async def start(self) -> None:
        """Open the state and listen.

        A port or a state that cannot be had raises `EnvironmentFault`, a script that cannot be read `ScenarioError`.
        """
        shelf = shelf_of(self._settings)
        self._starts += 1
        self._core = core = PartnerCore(self._ctx, self._name, self._settings, self._starts)
        try:
            self._streams = EventStreams(core.parts)
            self._turns = TurnRunner(core.parts, shelf, write_line=self._write_line)
            self._controls = Controls(core, self._turns, self._write_fixture)
            await self._turns.start()
            self._runner = await listen(self._app(), self._host, self._port, self._name)
            # A restart is where callers know it to be.
            self._port = self._runner.addresses[0][1]
            self._begin_fixture()
        except BaseException:
            await self._stop()
            raise
        self.closed.clear()

    async def crash(self) -> None:
        """Die as a process does: connections are torn, runs stay as they stand, the private file is left behind."""
        await self._stop()

    async def close(self) -> None:
        """Stop listening, tear what is open, delete the private file (FX-046)."""
        instance_id = None if self._core is None else self.instance_id
        await self._stop()
        if self._settings.fixture is not None and instance_id is not None:
            remove_fixture(self._settings.fixture, instance_id)

    def _begin_fixture(self) -> None:
        fixture = self._settings.fixture
        if fixture is None:
            return
        # FX-011: time of the environment, which the clock control does not move
        self._expires_ms = self._ctx.wall_ms() + int(fixture.seconds * 1000)
        self._write_fixture()
        if fixture.self_ending:
            self._end = asyncio.create_task(self._end_after(fixture.seconds))

    async def _end_after(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self._end = None
        await self.close()

    def _write_fixture(self) -> None:
        """Also after a rotation, so that the file holds the key that counts."""
        fixture = self._settings.fixture
        if fixture is not None:
            facts = fixture_facts(self._settings, fixture, self.keys, self.url, self.instance_id, self._expires_ms)
            write_fixture(fixture, facts)

    async def _stop(self) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None
        runner, turns, core = self._runner, self._turns, self._core
        if runner is not None:
            # Nobody comes in any more, nothing goes out, and then no turn writes any more.
            for site in tuple(runner.sites):
                await site.stop()
            for connection in () if runner.server is None else runner.server.connections:
                if connection.transport is not None:
                    connection.transport.abort()
        if turns is not None:
            await turns.stop()
        if runner is not None:
            await runner.cleanup()
            let_go_of_handlers()
        self._runner = self._turns = self._core = self._controls = self._streams = None
        if core is not None:
            core.close()
        self.closed.set()

    def _app(self) -> web.Application:
        app = web.Application(middlewares=[self._without_state, self._unknown_routes])
        for operation in OPERATIONS:
            app.router.add_route(operation.method, operation.path, self._handler_of(operation))
        app.router.add_get(STREAM_PATH, self._events, allow_head=False)
        app.router.add_get("/openapi.json", _document, allow_head=False)
        app.router.add_route("*", f"{LAB_BASE}/{{name:.*}}", self._control)
        return app

    # The ten routes

    def _handler_of(self, operation: Operation) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            asked = await _api_request(request, operation.upload)
            return self._respond(request, operation.route, asked, self.core.answer(operation, asked))

        return handle

    async def _events(self, request: web.Request) -> web.StreamResponse:
        asked = await _api_request(request, upload=False)
        opening = self.core.open_stream(asked)
        if isinstance(opening, Answer):
            return self._respond(request, STREAM_ROUTE, asked, opening)
        if self._streams is None:
            raise MisuseError("a request came to a partner API model that does not run")
        facts = {"after": opening.after}
        told = Answer(200, b"", conversation_id=opening.run.conversation_id, run_id=opening.run.run_id, facts=facts)
        self._ctx.journal.record(self._name, self._witnessed(request.method, STREAM_ROUTE, asked, told))
        return await self._streams.serve(request, opening)

    @web.middleware
    async def _without_state(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Without a state there is no answer that holds, so the connection is torn; whoever runs the server ends it."""
        try:
            return await handler(request)
        except StateFault as fault:
            self._ctx.fail(fault)
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=503)

    @web.middleware
    async def _unknown_routes(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """PA-056: an unknown path or method is told in the envelope, and only to a caller with a key."""
        try:
            return await handler(request)
        except (web.HTTPNotFound, web.HTTPMethodNotAllowed) as error:
            asked = await _api_request(request, upload=False)
            answer = self._answer_unknown(asked, error.status)
            response = self._respond(request, "unknown", asked, answer)
            if answer.status == 405:
                response.headers["Allow"] = error.headers.get("Allow", "")
            return response
        except (web.HTTPException, StateFault):
            raise
        except Exception as defect:
            # Nothing that a caller sends may lead here.
            self._ctx.fail(defect)
            raise

    def _answer_unknown(self, asked: ApiRequest, status: int) -> Answer:
        try:
            self.core.admit(asked.header("Authorization"), asked.path.get("orgId"))
        except Refusal as refusal:
            return refused(refusal)
        return refused(unavailable("unknown route", status))

    async def _control(self, request: web.Request) -> web.StreamResponse:
        """PA-055: the lab's own controls, which no key of the contract opens."""
        asked = await _api_request(request, upload=False)
        if not bears(asked.header("Authorization"), self.keys.control):
            return _response(refused(credential_rejected("control key")))
        return _response(control_untrusted(self.controls, request.method, request.match_info["name"], asked))

    def _respond(self, request: web.Request, route: str, asked: ApiRequest, answer: Answer) -> web.Response:
        self._ctx.journal.record(self._name, self._witnessed(request.method, route, asked, answer))
        return _response(answer)

    def _witnessed(self, method: str, route: str, asked: ApiRequest, answer: Answer) -> PartnerRequest:
        token = token_of(asked.header("Authorization"))
        keys = asked.header(IDEMPOTENCY_KEY)
        return PartnerRequest(
            method,
            route,
            answer.status,
            code=answer.code,
            key=None if token is None else fingerprint(token),
            key_role=None if token is None else self.core.role_of(token),
            idempotency_key=fingerprint(keys[0]) if keys else None,
            request=body_digest(asked.body),
            conversation_id=answer.conversation_id or _id(asked.path.get("conversationId")),
            run_id=answer.run_id or _id(asked.path.get("runId")),
            replay=answer.replay,
            facts=answer.facts,
        )


async def _document(_: web.Request) -> web.StreamResponse:
    """The contract itself, as JSON."""
    text = json.dumps(api_schema().document, ensure_ascii=False, default=str)
    return web.Response(body=text.encode(), headers=_JSON_HEADERS)


async def _api_request(request: web.Request, upload: bool) -> ApiRequest:
    """The request as the core takes it; its body is read before anything is judged (PA-050)."""
    body = await read_upload(request) if upload else await read_json_body(request)
    headers: dict[str, tuple[str, ...]] = {}
    for name, value in request.headers.items():
        headers[name.lower()] = (*headers.get(name.lower(), ()), value)
    query: dict[str, tuple[str, ...]] = {}
    for name, value in request.query.items():
        query[name] = (*query.get(name, ()), value)
    return ApiRequest({name: _writable(value) for name, value in request.match_info.items()}, query, headers, body)


def _response(answer: Answer) -> web.Response:
    if isinstance(answer.body, bytes):
        return web.Response(status=answer.status, body=answer.body, headers=answer.headers)
    text = json.dumps(answer.body, ensure_ascii=False, separators=(",", ":"))
    return web.Response(status=answer.status, body=text.encode(), headers={**_JSON_HEADERS, **answer.headers})


def _writable(text: str) -> str:
    """Half a surrogate pair is in no id, and no database takes it."""
    return text.encode("utf-8", "replace").decode()


def _id(value: str | None) -> str | None:
    """Of what a caller sends only what looks like an id enters the journal (SEC-012)."""
    return value if value is not None and _ID.fullmatch(value) else None

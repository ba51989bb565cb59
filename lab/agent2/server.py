"""The socket shell of the agent2 double: `/local/v1` over HTTP, its two streams as SSE.

GET  /health, /local/v1/health          without a token
POST /local/v1/jobs
GET  /local/v1/jobs/{id}
POST /local/v1/jobs/{id}/cancel
POST /local/v1/approvals/{id}
GET  /local/v1/jobs/{id}/events         metadata frames, SSE events named `frame`
GET  /local/v1/jobs/{id}/stream         content lines, SSE events without a name
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Generic, TypeVar

from aiohttp import HttpVersion11, web

from lab.agent2.beats import StreamName
from lab.agent2.engine import ID, Answer, Engine, refusal
from lab.agent2.feed import Reader
from lab.agent2.job import MetadataFrame
from lab.bearer import bears
from lab.context import RunContext
from lab.errors import MisuseError
from lab.http_shell import let_go_of_handlers, listen
from lab.journal.events import Agent2Request, Agent2Stream, Event, JsonObject, digest

# A2-001: everything lies below this path
PREFIX = "/local/v1"
MAX_BODY_BYTES = 1 << 20
KEEP_ALIVE_SECONDS = 15.0
BACKLOG = 64
"""When so many events wait for a reader they go out in groups of so many; otherwise each has a write of its own."""

_HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
_KEEP_ALIVE = b": keep-alive\n\n"
_WORD = re.compile(r"[a-z][a-z0-9_]{0,31}")

T = TypeVar("T")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Agent2Server:
    """One agent2 double on a port of its own.

    `name` is who it is in the journal, `token` what callers must bear; port 0 takes any free one. A health call is
    answered after `health_delay` seconds. Call `start` once, then `close`, which may be repeated.
    """

    def __init__(
        self,
        ctx: RunContext,
        name: str,
        engine: Engine,
        token: str,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        health_delay: float = 0.0,
    ) -> None:
        self._ctx = ctx
        self._name = name
        self._engine = engine
        self._token = token
        self._host = host
        self._port = port
        self._health_delay = health_delay
        self._runner: web.AppRunner | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._readers: dict[int, tuple[asyncio.Event, web.Request]] = {}
        self._reader_count = 0

    @property
    def url(self) -> str:
        """The base URL that a Local Agent is given, without `/local/v1`. Valid after `start`."""
        if self._runner is None or not self._runner.addresses:
            raise MisuseError("the agent2 double has no address before start() and after close()")
        return f"http://{self._host}:{self._runner.addresses[0][1]}"

    async def start(self) -> None:
        """Listen. A port that cannot be had raises `EnvironmentFault`."""
        app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[self._witness])
        app.add_routes(
            [
                web.get("/health", self._health, allow_head=False),
                web.get(f"{PREFIX}/health", self._health, allow_head=False),
                web.post(f"{PREFIX}/jobs", self._start_job),
                web.get(f"{PREFIX}/jobs/{{id}}", self._job_state, allow_head=False),
                web.post(f"{PREFIX}/jobs/{{id}}/cancel", self._cancel),
                web.post(f"{PREFIX}/approvals/{{id}}", self._decide),
                web.get(f"{PREFIX}/jobs/{{id}}/events", self._events, allow_head=False),
                web.get(f"{PREFIX}/jobs/{{id}}/stream", self._stream, allow_head=False),
            ]
        )
        runner = await listen(app, self._host, self._port, self._name)
        self._runner = runner
        # A second start, after a crash, is where callers know it to be.
        self._port = runner.addresses[0][1]

    async def crash(self) -> None:
        """Die as a process does: connections are torn, nobody listens, the jobs are gone. `start` brings it back.

        It comes back with its port and its token: a Local Agent that attached to it has no way to learn another one
        (A2-017 changes the token of a supervised process only).
        """
        await self.close()
        self._engine.forget()

    async def close(self) -> None:
        """Stop listening and tear every open stream. Safe to call again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for _, request in tuple(self._readers.values()):
            if request.transport is not None:
                request.transport.abort()
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()
            let_go_of_handlers()

    # Requests

    @web.middleware
    async def _witness(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Check the token, answer refusals as JSON, and journal what a handler has not journalled itself."""
        route = _route(request)
        if not route.endswith("/health") and not self._authorized(request):
            # A2-017: all but health need the token
            return self._answer(request, route, refusal(401, "unauthorized"))
        try:
            return await handler(request)
        except web.HTTPRequestEntityTooLarge:
            return self._answer(request, route, refusal(413, "too_large"))
        except web.HTTPException as error:
            return self._answer(request, route, refusal(error.status, error.reason.lower().replace(" ", "_")))

    def _authorized(self, request: web.Request) -> bool:
        return bears(request.headers.getall("Authorization", []), self._token)

    async def _health(self, request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(self._health_delay)
        # A2-006: below /local/v1 and beside it. A2-002: whether a token came along is told in the journal.
        answer = self._engine.health()
        facts = {"authorization": "Authorization" in request.headers, "kinds": answer.body.get("kinds")}
        return self._answer(request, _route(request), answer, facts=facts)

    async def _start_job(self, request: web.Request) -> web.StreamResponse:
        body = await _json(request)
        answer = self._engine.start_untrusted(body, self._ctx.now())
        given = body if isinstance(body, dict) else {}
        facts: dict[str, object] = {"kind": _word(given.get("kind"))} if "kind" in given else {}
        root = given.get("workspaceRoot")
        if isinstance(root, str):
            # A2-008: a path is never written down
            facts["root"] = digest("workspaceRoot", root)["sha256"]
        return self._answer(request, _route(request), answer, _id(given.get("jobId")), facts)

    async def _job_state(self, request: web.Request) -> web.StreamResponse:
        job_id = request.match_info["id"]
        return self._answer(request, _route(request), self._engine.state(job_id), _id(job_id))

    async def _cancel(self, request: web.Request) -> web.StreamResponse:
        job_id = request.match_info["id"]
        body = await _json(request) if request.can_read_body else None
        answer = self._engine.cancel_untrusted(job_id, body, self._ctx.now())
        reason = body.get("reason") if isinstance(body, dict) else None
        # A2-010: whether the caller said why; what is no plain word is not written down
        facts = {"reason": None if reason is None else _word(reason) or "other"}
        return self._answer(request, _route(request), answer, _id(job_id), facts)

    async def _decide(self, request: web.Request) -> web.StreamResponse:
        body = await _json(request)
        approval_id = request.match_info["id"]
        answer = self._engine.decide_untrusted(approval_id, body, self._ctx.now())
        given = body if isinstance(body, dict) else {}
        facts = {"approvalId": _id(approval_id), "decision": _word(given.get("decision"))}
        return self._answer(request, _route(request), answer, _id(given.get("jobId")), facts)

    def _answer(
        self,
        request: web.Request,
        route: str,
        answer: Answer,
        job_id: str | None = None,
        facts: JsonObject | None = None,
    ) -> web.Response:
        entry = self._ctx.journal.record(
            self._name, Agent2Request(request.method, route, answer.status, job_id, facts or {})
        )
        self._record(answer.events, entry.n)
        return web.json_response(answer.body, status=answer.status)

    # Streams

    async def _events(self, request: web.Request) -> web.StreamResponse:
        def encode(frame: MetadataFrame) -> bytes:
            text = json.dumps(frame.to_json(self._ctx.clock.epoch_ms), ensure_ascii=False, separators=(",", ":"))
            # A2-014: the event's name is frame
            return f"event: frame\ndata: {text}\n\n".encode()

        job_id = request.match_info["id"]
        return await self._serve(request, StreamName.EVENTS, self._engine.read_frames(job_id), encode)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        def encode(line: str) -> bytes:
            return f"data: {line}\n\n".encode()

        job_id = request.match_info["id"]
        return await self._serve(request, StreamName.STREAM, self._engine.read_lines(job_id), encode)

    async def _serve(
        self, request: web.Request, stream: StreamName, reader: Reader[T] | None, encode: Callable[[T], bytes]
    ) -> web.StreamResponse:
        job_id, route = request.match_info["id"], _route(request)
        if reader is None:
            return self._answer(request, route, refusal(404, "not_found"), _id(job_id))
        if request.version < HttpVersion11:
            # Chunked transfer is what tells a cut from an end; HTTP/1.0 has none.
            return self._answer(request, route, refusal(505, "http_1_1_needed"), _id(job_id))
        # A2-021: how a reader asks is told in the journal
        facts = {"accepts_sse": "text/event-stream" in request.headers.get("Accept", "")}
        self._ctx.journal.record(self._name, Agent2Request(request.method, route, 200, _id(job_id), facts))
        self._reader_count += 1
        number, delivery = self._reader_count, _Delivery(reader, encode)

        def tell(change: str) -> None:
            event = Agent2Stream(job_id, stream, change, number, delivery.sent)
            self._ctx.journal.record(self._name, event)

        self._readers[number] = (delivery.more, request)
        tell("opened")
        change = "broken"
        response = web.StreamResponse(headers=_HEADERS)
        response.enable_chunked_encoding()
        try:
            await response.prepare(request)
            await delivery.run(response)
            if reader.ended:
                # A2-050: the stream ends properly when the job is over
                await response.write_eof()
                change = "ended"
            elif request.transport is not None:
                # Closing without the last chunk: what was written still arrives, and the end is no clean one.
                request.transport.close()
        except ConnectionError:
            pass  # the reader went away
        finally:
            del self._readers[number]
            tell(change)
        return response

    # Time

    def _record(self, events: Iterable[Event], cause: int | None = None) -> None:
        """Journal what the engine did, wake the readers, and set the timer anew."""
        for event in events:
            self._ctx.journal.record(self._name, event, cause)
        for more, _ in self._readers.values():
            more.set()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self._engine.next_timeout()
        if due is not None and self._runner is not None:
            self._timer = asyncio.get_running_loop().call_at(self._ctx.clock.loop_time(due), self._tick, due)

    def _tick(self, due: float) -> None:
        # A loop may fire a timer a clock tick early.
        self._timer = None
        self._record(self._engine.handle_timeout(max(due, self._ctx.now())))


class _Delivery(Generic[T]):
    """Writes to one connection what its reader is due; `more` wakes it, `sent` counts the items written."""

    def __init__(self, reader: Reader[T], encode: Callable[[T], bytes]) -> None:
        self._reader = reader
        self._encode = encode
        self.more = asyncio.Event()
        self.sent = 0

    async def run(self, response: web.StreamResponse) -> None:
        """Write until the reader has ended or is to break. Each write waits for room."""
        while True:
            self.more.clear()
            items = self._reader.take()
            size = BACKLOG if len(items) >= BACKLOG else 1
            for start in range(0, len(items), size):
                group = items[start : start + size]
                await response.write(b"".join(map(self._encode, group)))
                self.sent += len(group)
            if self._reader.ended or self._reader.broken:
                return
            try:
                async with asyncio.timeout(KEEP_ALIVE_SECONDS):
                    await self.more.wait()
            except TimeoutError:
                await response.write(_KEEP_ALIVE)


async def _json(request: web.Request) -> object:
    """The request's body as JSON; anything else is answered 400."""
    try:
        value: object = json.loads((await request.read()).decode("utf-8"))
    except (ValueError, RecursionError, web.RequestPayloadError) as error:
        raise web.HTTPBadRequest from error
    return value


def _route(request: web.Request) -> str:
    resource = request.match_info.route.resource
    return resource.canonical if resource is not None else "unknown"


# Of what a caller sends only ids and plain words enter the journal (SEC-012).


def _id(value: object) -> str | None:
    return value if isinstance(value, str) and ID.fullmatch(value) else None


def _word(value: object) -> str | None:
    return value if isinstance(value, str) and _WORD.fullmatch(value) else None

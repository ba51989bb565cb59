"""The control API of a gateway double that runs on its own: what the control plane's callers would ask of it (CP-022).

Plain HTTP and JSON on loopback, with a Bearer token of its own. Content goes to the caller that asked for it and is
kept nowhere.

    GET  /control/sessions               the agents, and whether each has a READY session
    POST /control/jobs                   {kind, inputs, agent?, options?, llm?, incident?} → 202 {jobId}
    GET  /control/jobs/{id}              {jobId, kind, state, answer, code, result}
    POST /control/jobs/{id}/cancel       {reason?}
    GET  /control/jobs/{id}/stream?ref=  one page of job.stream as the agent gave it; without ref the first
    GET  /control/jobs/{id}/session      the chat.session body of the job
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web

from lab.bearer import bears
from lab.errors import EnvironmentFault
from lab.gateway.core import GatewayCore
from lab.gateway.jobs import CallRefused, Job, Order, job_state
from lab.gateway.relay import Answer
from lab.gateway.server import GatewayServer
from lab.http_shell import listen, read_within
from lab.protocol.frames import IdSource

MAX_BODY_BYTES = 1 << 20
KINDS = ("fix", "implement", "quality", "chat")
REASONS = ("user", "timeout", "policy")

STATUS_OF_CODE = {
    "AGENT_UNSUPPORTED": 503,
    "AGENT_OFFLINE": 503,
    "agent_offline": 503,
    "frame_too_large": 413,
    "payload_too_large": 413,
    "rate_limited": 429,
    "timeout": 504,
    "schema_violation": 400,
}
"""HTTP status of an API or wire code (CP-002, CP-005, CP-029); any other failure of the agent is 502."""

STATUS_OF_ANSWER = {"not_found": 404, "forbidden": 403}
"""HTTP status of a content.response that is no success (CH-012)."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class _Refused(Exception):
    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": code, "message": message}


class ControlApi:
    """Serves the control API of one gateway. `agents` maps the ids of its agents to their names."""

    def __init__(
        self,
        gateway: GatewayServer,
        agents: Mapping[str, str],
        token: str,
        ids: IdSource,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self._gateway = gateway
        self._agents = dict(agents)
        self._token = token
        self._ids = ids
        self._host, self._port = host, port
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listen. A port that is taken raises `EnvironmentFault`."""
        app = web.Application(middlewares=[self._guard])
        app.add_routes(
            [
                web.get("/control/sessions", self._sessions),
                web.post("/control/jobs", self._assign),
                web.get("/control/jobs/{id}", self._job),
                web.post("/control/jobs/{id}/cancel", self._cancel),
                web.get("/control/jobs/{id}/stream", self._stream),
                web.get("/control/jobs/{id}/session", self._session),
            ]
        )
        self._runner = await listen(app, self._host, self._port, "the control API (--control-port)")

    @property
    def url(self) -> str:
        """The base URL. Valid after `start`."""
        if self._runner is None:
            raise EnvironmentFault("the control API is not started")
        return f"http://{self._host}:{self._runner.addresses[0][1]}/control"

    async def close(self) -> None:
        """Stop. Safe to call again."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if not bears(request.headers.getall("Authorization", []), self._token):
            return web.json_response({"error": "unauthorized", "message": "the control token is due"}, status=401)
        try:
            return await handler(request)
        except _Refused as refused:
            return web.json_response(refused.body, status=refused.status)
        except CallRefused as refused:
            status = STATUS_OF_CODE.get(refused.code, 502)
            return web.json_response({"error": refused.code, "message": str(refused)}, status=status)

    # Routes

    async def _sessions(self, _request: web.Request) -> web.StreamResponse:
        core = self._gateway.core
        rows = [
            {"agent": name, "agentId": agent_id, "ready": core.is_ready(agent_id)}
            for agent_id, name in self._agents.items()
        ]
        return web.json_response({"sessions": rows})

    async def _assign(self, request: web.Request) -> web.StreamResponse:
        body = await _body(request)
        agent_id = self._agent(body)
        order = _order(self._ids(), body)
        self._call(lambda core, now: core.assign(agent_id, order, now))
        return web.json_response({"jobId": order.job_id}, status=202)

    async def _job(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(_job_json(self._known_job(request)))

    async def _cancel(self, request: web.Request) -> web.StreamResponse:
        job = self._known_job(request)
        body = await _body(request) if request.can_read_body else {}
        reason = body.get("reason", "user")
        if reason not in REASONS:
            raise _Refused(400, "bad_request", f"reason is one of {', '.join(REASONS)}")
        self._call(lambda core, now: core.cancel(job.job_id, reason, now))
        return web.json_response(_job_json(job), status=202)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        job = self._known_job(request)
        answer = await self._gateway.content(job.agent_id, "job.stream", request.query.get("ref") or job.job_id)
        return _content(answer)

    async def _session(self, request: web.Request) -> web.StreamResponse:
        job = self._known_job(request)
        return _content(await self._gateway.content(job.agent_id, "chat.session", job.conversation_id))

    # What routes share

    def _agent(self, body: Mapping[str, Any]) -> str:
        names = {name: agent_id for agent_id, name in self._agents.items()}
        name = body.get("agent", next(iter(names)))
        if not isinstance(name, str) or name not in names:
            raise _Refused(404, "not_found", f"agent is one of {', '.join(names)}")
        return names[name]

    def _known_job(self, request: web.Request) -> Job:
        job = self._gateway.core.jobs.get(request.match_info["id"])
        if job is None:
            raise _Refused(404, "not_found", "no job of that id was assigned here")
        return job

    def _call(self, action: Callable[[GatewayCore, float], object]) -> None:
        self._gateway.after(lambda now: _ignore(action(self._gateway.core, now)))


def _ignore(_result: object) -> None:
    """An action on the core is called for what follows from it."""


async def _body(request: web.Request) -> dict[str, Any]:
    text = await read_within(request, MAX_BODY_BYTES)
    if text is None:
        raise _Refused(400, "bad_request", f"the body has at most {MAX_BODY_BYTES} bytes, whole and as its headers say")
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise _Refused(400, "bad_request", "the body is a JSON object")
    return body


def _order(job_id: str, body: Mapping[str, Any]) -> Order:
    kind, inputs = body.get("kind"), body.get("inputs", [])
    if kind not in KINDS:
        raise _Refused(400, "bad_request", f"kind is one of {', '.join(KINDS)}")
    if not isinstance(inputs, list) or not all(isinstance(text, str) for text in inputs):
        raise _Refused(400, "bad_request", "inputs is a list of texts")
    options, llm, incident = body.get("options", {}), body.get("llm", "default"), body.get("incident")
    if not isinstance(options, dict):
        raise _Refused(400, "bad_request", "options is an object")
    for name, value in (("llm", llm), ("incident", incident)):
        if value is not None and not isinstance(value, str):
            raise _Refused(400, "bad_request", f"{name} is a text")
    return Order(job_id, kind, tuple(inputs), options, llm, incident)


def _job_json(job: Job) -> dict[str, Any]:
    return {
        "jobId": job.job_id,
        "kind": job.kind,
        "state": job_state(job),
        "answer": job.answer,
        "code": job.code,
        "result": job.result,
    }


def _content(answer: Answer) -> web.StreamResponse:
    # CP-014: passed through, never parsed.
    if answer.status == "ok":
        return web.Response(body=answer.body, content_type="application/json")
    code = answer.code or "internal"
    status = STATUS_OF_ANSWER.get(answer.status, STATUS_OF_CODE.get(code, 502))
    return web.json_response({"error": answer.status if answer.status != "error" else code}, status=status)

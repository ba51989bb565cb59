"""What the tests of the reference agent share: a run's context, a recording uplink, a scripted agent2."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from lab.clock import Clock
from lab.context import RunContext
from lab.journal.writer import Journal
from lab.localagent.config import AgentConfig, Workspace

TENANT = "11111111-1111-1111-1111-111111111111"
AGENT = "22222222-2222-2222-2222-222222222222"
JOB = "33333333-3333-3333-3333-333333333333"
JOB_B = "44444444-4444-4444-4444-444444444444"
CONVERSATION = "55555555-5555-5555-5555-555555555555"
WORKSPACE = "ws-1"
TS = "2026-01-02T03:04:05.000Z"
EPOCH_MS = 1_767_323_045_000


def context(seed: int = 7) -> RunContext:
    """A context whose clock stands still at a known time."""
    clock = Clock(lambda: 0.0, EPOCH_MS)
    return RunContext(seed, clock, Journal(clock.now))


def config(state_dir: Path, agent2_url: str = "http://127.0.0.1:9", **changes: Any) -> AgentConfig:
    """Settings with waits too short to notice."""
    settings: dict[str, Any] = {
        "tenant_id": TENANT,
        "agent_id": AGENT,
        "gateway_ws_url": "ws://127.0.0.1:1",
        "gateway_token": "gateway-secret",
        "agent2_url": agent2_url,
        "agent2_token": "agent2-secret",
        "workspaces": (Workspace(WORKSPACE, str(state_dir)),),
        "trusted_keys": {},
        "state_dir": state_dir,
        "chat": True,
        "stream_hold": 0.05,
        "stream_drain": 0.2,
        "stream_retry": 0.001,
        "cancel_wait": 0.1,
    }
    return AgentConfig(**(settings | changes))


def assign(kind: str = "fix", job_id: str = JOB, *inline: str, **members: Any) -> dict[str, Any]:
    """A job.assign payload."""
    inputs = [{"inline": text, "transient": True} for text in inline]
    return {"jobId": job_id, "kind": kind, "inputs": inputs, "llm": {"alias": "main"}, **members}


class RecordingUplink:
    """Keeps what is sent, and lets a test wait for it."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, dict[str, Any], str]] = []
        self.settled_at: list[int] = []
        self._changed: list[asyncio.Future[None]] = []

    def send(self, type_name: str, payload: Mapping[str, object], workspace_id: str) -> None:
        self.sent.append((type_name, dict(payload), workspace_id))
        for future in self._changed:
            if not future.done():
                future.set_result(None)
        self._changed.clear()

    async def settled(self) -> None:
        self.settled_at.append(len(self.sent))

    def of(self, type_name: str) -> list[dict[str, Any]]:
        """Payloads of one type in order."""
        return [payload for name, payload, _ in self.sent if name == type_name]

    def codes(self) -> list[str]:
        """Codes of the audit frames."""
        return [str(payload["code"]) for payload in self.of("audit.event")]

    async def until(self, type_name: str, count: int = 1) -> list[dict[str, Any]]:
        """Payloads of a type, when there are `count`."""
        while len(self.of(type_name)) < count:
            future = asyncio.get_running_loop().create_future()
            self._changed.append(future)
            await future
        return self.of(type_name)


class ScriptedAgent2:
    """An agent2 that does what a test tells it, and keeps every request."""

    def __init__(self) -> None:
        self.health: Any = {"status": "up", "kinds": ["fix", "implement", "chat"]}
        self.post_status = 202
        self.approval_status = 200
        self.events_status = 200
        self.stream_status = 200
        self.frames: list[str] = []
        self.lines: list[str] = []
        self.closed = False
        self.stream_stays_open = False
        self.event_breaks: list[int] = []
        self.line_breaks: list[int] = []
        self.on_post: Callable[[], None] = lambda: None
        self.on_health: Callable[[], None] = lambda: None
        self.on_cancel: Callable[[], None] = lambda: None
        self.requests: list[tuple[str, str, Any]] = []
        self.tokens: list[str | None] = []
        self.opened = {"events": 0, "stream": 0}
        self._stopped = False
        self._waiters: list[asyncio.Future[None]] = []
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self._handle)
        self._server = TestServer(app)

    async def __aenter__(self) -> ScriptedAgent2:
        await self._server.start_server()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stopped = True
        self.wake()
        await self._server.close()

    async def die(self) -> None:
        """Refuse connections and tear those that are open, as the death of a process does."""
        runner = self._server.runner
        assert isinstance(runner, web.BaseRunner)
        assert runner.server is not None
        for site in runner.sites:
            await site.stop()
        for connection in runner.server.connections:
            assert connection.transport is not None
            connection.transport.abort()

    @property
    def url(self) -> str:
        return str(self._server.make_url("")).rstrip("/")

    def frame(self, kind: str, payload: Mapping[str, Any], seq: int | None = None, **members: Any) -> None:
        """Produce a metadata frame."""
        value = {"type": kind, "seq": seq or len(self.frames) + 1, "tenantId": TENANT, "jobId": JOB, "payload": payload}
        self.raw_frame(json.dumps(value | members))

    def raw_frame(self, text: str) -> None:
        self.frames.append(f"event: frame\ndata: {text}\n\n")
        self.wake()

    def line(self, text: str) -> None:
        """Produce a content line."""
        self.lines.append(f"data: {text}\n\n")
        self.wake()

    def finish(self, outcome: str | None = None, **members: Any) -> None:
        """End the job: its result, then the end of its streams."""
        if outcome is not None:
            self.frame("job.result", {"outcome": outcome, **members})
        self.closed = True
        self.wake()

    def wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    def called(self, method: str, path: str = "") -> list[Any]:
        """Bodies of the requests of a method whose path ends in `path`."""
        return [body for seen, where, body in self.requests if seen == method and where.endswith(path)]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Return when `condition` holds; it is looked at after each request and change."""
        while not condition():
            await self._change()

    async def _change(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.can_read_body else None
        self.requests.append((request.method, request.raw_path, body))
        self.tokens.append(request.headers.get("authorization"))
        self.wake()
        if request.raw_path.endswith("/health"):
            self.on_health()
            return web.json_response(self.health)
        if request.raw_path.endswith("/jobs"):
            self.on_post()
            return web.json_response({"error": "canary-of-agent2"}, status=self.post_status)
        if request.raw_path.endswith("/cancel"):
            self.on_cancel()
            return web.json_response({})
        if "/approvals/" in request.raw_path:
            return web.json_response({}, status=self.approval_status)
        if request.raw_path.endswith("/events"):
            return await self._stream(request, "events", self.events_status, self.frames, self.event_breaks)
        if request.raw_path.endswith("/stream"):
            return await self._stream(request, "stream", self.stream_status, self.lines, self.line_breaks)
        return web.json_response({})

    async def _stream(
        self, request: web.Request, name: str, status: int, items: list[str], breaks: list[int]
    ) -> web.StreamResponse:
        if status != 200:
            return web.Response(status=status)
        self.opened[name] += 1
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        limit = breaks.pop(0) if breaks else None
        sent = 0
        while not self._stopped:
            while sent < len(items) and (limit is None or sent < limit):
                await response.write(items[sent].encode())
                sent += 1
            if limit is not None and sent >= limit:
                assert request.transport is not None
                request.transport.close()
                return response
            if self.closed and sent == len(items) and not (name == "stream" and self.stream_stays_open):
                break
            await self._change()
        return response

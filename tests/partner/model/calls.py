"""A running model with a caller of its own, as the tests of this folder use it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import Any

import aiohttp

from lab.clock import Clock, timestamp
from lab.context import RunContext
from lab.journal.partner_events import PartnerRequest, PartnerTurn
from lab.journal.writer import Journal
from lab.partner.model.server import PartnerServer
from lab.partner.model.settings import AgentSettings, McpCandidate, PartnerSettings
from tests.partner.model.document import misses

EPOCH_MS = 1_767_225_600_000
ORG = "org-1"
TEAM = "team-ext"
DESTINATION = "https://93.184.216.34/mcp"
STORE = McpCandidate("srv-1", DESTINATION)
AGENTS = (
    AgentSettings("agent-mcp", TEAM, mcp=(STORE,)),
    AgentSettings("agent-plain", TEAM),
    AgentSettings("agent-none", TEAM, mcp=()),
    AgentSettings("agent-two", TEAM, mcp=(STORE, McpCandidate("srv-2", DESTINATION))),
    AgentSettings("agent-broken", TEAM, mcp=(STORE,), profile=False),
    AgentSettings("agent-helper", TEAM, mcp=(STORE,), admin=False),
    AgentSettings("agent-other-team", "team-2", mcp=(STORE,)),
)
SETTINGS = PartnerSettings(ORG, (TEAM, "team-2"), AGENTS)
USER = "employee-1"

Json = Any


@dataclass(frozen=True)
class Reply:
    """An answer as it came."""

    status: int
    body: Json
    headers: Mapping[str, str]

    @property
    def data(self) -> Json:
        assert self.body["success"] is True, self.body
        return self.body["data"]

    @property
    def refusal(self) -> tuple[int, str]:
        assert self.body["success"] is False, self.body
        return self.status, self.body["error"]["code"]


@dataclass
class Api:
    """A running model and a client session."""

    ctx: RunContext
    server: PartnerServer
    http: aiohttp.ClientSession
    key: str = ""
    numbers: dict[str, int] = field(default_factory=dict)

    @property
    def base(self) -> str:
        return f"{self.server.url}/v1/orgs/{ORG}/chat"

    def next(self, name: str) -> int:
        self.numbers[name] = self.numbers.get(name, 0) + 1
        return self.numbers[name]

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        key: str | None = None,
        idempotency_key: str | None = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        data: bytes | BytesIO | aiohttp.FormData | None = None,
    ) -> Reply:
        sent = {"Authorization": f"Bearer {self.server.keys.chat if key is None else key}", **(headers or {})}
        if idempotency_key is not None:
            sent["Idempotency-Key"] = idempotency_key
        url = path if path.startswith("http") else self.base + path
        json_body = body if data is None else None
        async with self.http.request(
            method, url, json=json_body, data=data, params=query, headers=sent, allow_redirects=False
        ) as response:
            answer = await response.json() if response.content_type == "application/json" else await response.read()
            if url.startswith(self.base):
                below = url.removeprefix(self.base)
                assert misses(method, below, response.status, response.headers, answer) == []
            return Reply(response.status, answer, response.headers)

    async def control(self, path: str, body: object = None, *, method: str = "POST", key: str | None = None) -> Reply:
        url = f"{self.server.url}/__lab{path}"
        return await self.call(method, url, body, key=self.server.keys.control if key is None else key)

    def now_ms(self) -> int:
        return self.server.core.parts.now_ms()

    async def member(
        self,
        user: str = USER,
        team: str = TEAM,
        *,
        revision: int | None = None,
        role: str = "member",
        active: bool = True,
        seconds: float | None = 240,
        key: str | None = None,
    ) -> Reply:
        body = {
            "externalUserId": user,
            "externalTeamId": team,
            "sourceRevision": self.next(f"{user} {team}") if revision is None else revision,
            "role": role,
            "active": active,
            "validUntil": None if seconds is None else timestamp(self.now_ms() + int(seconds * 1000)),
        }
        return await self.call("PUT", "/memberships", body, key=key)

    async def conversation(
        self,
        agent: str = "agent-mcp",
        user: str = USER,
        team: str = TEAM,
        *,
        once: str | None = None,
        key: str | None = None,
    ) -> Reply:
        body = {"externalUserId": user, "externalTeamId": team, "agentId": agent}
        once = f"create-{self.next('creates')}" if once is None else once
        return await self.call("POST", "/conversations", body, idempotency_key=once, key=key)

    async def opened(self, agent: str = "agent-mcp", user: str = USER) -> str:
        """A fresh conversation of an employee who is confirmed first."""
        assert (await self.member(user)).status == 200
        reply = await self.conversation(agent, user)
        assert reply.status == 201, reply.body
        conversation_id: str = reply.data["conversationId"]
        return conversation_id

    async def bind(self, conversation_id: str, version: int = 0, **changes: Any) -> Reply:
        body = {**bind_body(self.now_ms(), version), **changes}
        return await self.call("PUT", f"/conversations/{conversation_id}/context", body)

    async def context(self, conversation_id: str, user: str = USER, team: str = TEAM) -> Reply:
        return await self.call("GET", f"/conversations/{conversation_id}/context", query=actor(user, team))

    async def message(
        self, conversation_id: str, text: str = "hello", *, once: str | None = None, user: str = USER
    ) -> Reply:
        once = f"message-{self.next('messages')}" if once is None else once
        path = f"/conversations/{conversation_id}/messages"
        return await self.call("POST", path, {**actor(user), "message": text}, idempotency_key=once)

    async def run(self, conversation_id: str, run_id: str, user: str = USER) -> Reply:
        return await self.call("GET", f"/conversations/{conversation_id}/runs/{run_id}", query=actor(user))

    async def history(self, conversation_id: str, user: str = USER) -> Reply:
        return await self.call("GET", f"/conversations/{conversation_id}/messages", query=actor(user))

    async def events(self, conversation_id: str, run_id: str, user: str = USER) -> Reply:
        """The whole stream of a run, as bytes."""
        return await self.call("GET", f"/conversations/{conversation_id}/runs/{run_id}/events", query=actor(user))

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until `condition` holds, looking again after each entry of the journal."""
        changed = asyncio.Event()
        end = self.ctx.journal.listen(lambda entry: changed.set())
        try:
            while not condition():
                changed.clear()
                await changed.wait()
        finally:
            end()

    def turns(self, change: str) -> list[PartnerTurn]:
        """What the turns did of this kind."""
        told = [entry.event for entry in self.ctx.journal.entries if isinstance(entry.event, PartnerTurn)]
        return [event for event in told if event.change == change]

    def journalled(self) -> list[PartnerRequest]:
        return [entry.event for entry in self.ctx.journal.entries if isinstance(entry.event, PartnerRequest)]


def actor(user: str = USER, team: str = TEAM) -> dict[str, str]:
    return {"externalUserId": user, "externalTeamId": team}


def bind_body(now_ms: int, version: int = 0) -> dict[str, object]:
    return {
        "externalUserId": USER,
        "externalTeamId": TEAM,
        "serverId": STORE.server_id,
        "destination": STORE.destination,
        "grant": "tg1.s3cret-grant",
        "expiresAt": timestamp(now_ms + 300_000),
        "expectedVersion": version,
    }


def context_of(seed: int = 7) -> RunContext:
    clock = Clock(asyncio.get_running_loop().time, EPOCH_MS)
    return RunContext(seed, clock, Journal(clock.now))


@asynccontextmanager
async def running(settings: PartnerSettings = SETTINGS, **changes: Any) -> AsyncIterator[Api]:
    """A model that listens, with `changes` to its settings."""
    ctx = context_of()
    server = PartnerServer(ctx, "partner", replace(settings, **changes))
    await server.start()
    try:
        async with aiohttp.ClientSession() as http:
            yield Api(ctx, server, http)
    finally:
        await server.close()

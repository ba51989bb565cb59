"""A store with its issuer on one port, and a caller that sends what it likes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp
from aiohttp import ThreadedResolver

from lab.context import RunContext
from lab.grants.issuer import IssuerCore
from lab.grants.seal import NONCE_BYTES, Seal
from lab.grants.server import IssuerServer
from lab.journal.partner_events import StoreRequest
from lab.sim.run import run_virtual
from lab.store.catalogue import make_catalogue
from lab.store.core import StoreCore
from lab.store.server import StoreServer
from lab.store.settings import StoreSettings
from lab.store.tools import Tool, ToolSet, store_tools
from tests.grants.made import CONTROL_KEY, CONVERSATION, ISSUER_KEY, REGISTER_KEY, SEAL_KEY, WANTED
from tests.run.made import context

STATIC = "static-credential-of-the-test"
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
VERSION_2025 = "2025-11-25"
VERSION_2026 = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION_2026,
    "io.modelcontextprotocol/clientCapabilities": {},
}
PRODUCT = {"name": "catalog_get", "arguments": {"productId": 9001}}
MARKER = "Ridgeline"
"""Stands in product 9001 and nowhere else."""


@dataclass
class Answer:
    """What came back, read to its end."""

    status: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def message(self) -> Any:
        """The answer, of JSON or of the last event of a stream."""
        if "text/event-stream" in self.headers.get("Content-Type", ""):
            return self.events[-1]["data"]
        return self.json

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events of a stream."""
        found = []
        for block in self.raw.decode().split("\n\n"):
            lines = [line.partition(":") for line in block.split("\n") if line and not line.startswith(":")]
            if lines:
                event: dict[str, Any] = {name: value.strip() for name, _, value in lines}
                found.append(event | {"data": json.loads(event["data"]) if event.get("data") else None})
        return found


@dataclass
class Bench:
    """The store, and a caller's side of it."""

    server: StoreServer
    http: aiohttp.ClientSession
    ctx: RunContext
    numbers: list[int] = field(default_factory=lambda: [0])

    def __post_init__(self) -> None:
        self.credential: dict[str, str] = {"Authorization": f"Bearer {STATIC}"}

    @property
    def seen(self) -> list[StoreRequest]:
        return [entry.event for entry in self.ctx.journal.entries if isinstance(entry.event, StoreRequest)]

    @property
    def last(self) -> StoreRequest:
        return self.seen[-1]

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

    async def send(self, body: object, headers: Mapping[str, str | None] | None = None, method: str = "POST") -> Answer:
        """A request as it stands; a header of None is left out."""
        every: dict[str, str | None] = {**self.credential, **JSON, **(headers or {})}
        given = {name: value for name, value in every.items() if value is not None}
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        skip = [name for name, value in every.items() if value is None]
        async with self.http.request(
            method, self.server.url, data=data, headers=given, allow_redirects=False, skip_auto_headers=skip
        ) as response:
            return Answer(response.status, response.headers, await response.read())

    def call(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """A request of JSON-RPC with a fresh id."""
        self.numbers[0] += 1
        return {"jsonrpc": "2.0", "id": self.numbers[0], "method": method, "params": dict(params or {})}

    async def initialize(self, version: str = VERSION_2025) -> Answer:
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        return await self.send(self.call("initialize", params))

    async def session(self, version: str = VERSION_2025) -> dict[str, str]:
        """The headers of a session that has begun."""
        begun = await self.initialize(version)
        headers = {"Mcp-Session-Id": begun.headers["Mcp-Session-Id"], "MCP-Protocol-Version": version}
        notice = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await self.send(notice, headers)).status == 202
        return headers

    async def stateless(
        self, method: str, params: Mapping[str, Any] | None = None, headers: Mapping[str, str | None] | None = None
    ) -> Answer:
        """A request on the wire of 2026."""
        given = dict(params or {})
        own = {"MCP-Protocol-Version": VERSION_2026, "Mcp-Method": method}
        if "name" in given:
            own["Mcp-Name"] = given["name"]
        return await self.send(self.call(method, {**given, "_meta": META}), {**own, **(headers or {})})

    async def grant(self, **other: str) -> str:
        """A grant for conversation c-1."""
        answer = await self.issuer("/grants", {**WANTED, **other}, ISSUER_KEY)
        return str(answer["grant"])

    async def wrong_grant(self, **body: object) -> str:
        """A grant with other claims, or another life."""
        answer = await self.issuer("/__lab/grants", {"conversationId": "c-1", **body}, CONTROL_KEY)
        return str(answer["grant"])

    async def issuer(self, path: str, body: object, key: str) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {key}"}
        async with self.http.post(self.server.base + path, json=body, headers=headers) as response:
            assert response.status == 200, await response.text()
            answer: dict[str, Any] = await response.json()
            return answer

    async def granted(self, call_id: str = "call-1", turn_id: str = "turn-1", **other: str) -> dict[str, str]:
        """The headers of a call that is served."""
        return {
            "X-Store-Context-Grant": await self.grant(),
            "X-Agent-Turn-Id": turn_id,
            "X-Agent-Call-Id": call_id,
            **other,
        }


@asynccontextmanager
async def running(
    settings: StoreSettings | None = None,
    *,
    static: str | None = STATIC,
    more_tools: tuple[Tool, ...] = (),
    seal_key: bytes = SEAL_KEY,
    drawn: int = 5,
) -> AsyncIterator[Bench]:
    """A store that runs, of one organization and environment, with conversation c-1 registered at its issuer."""
    ctx = context(asyncio.get_running_loop().time)
    ids, nonces, sessions = (ctx.secret_draws("test", name) for name in ("ids", "nonces", "sessions"))
    issuer = IssuerCore(
        Seal(SEAL_KEY),
        ISSUER_KEY,
        REGISTER_KEY,
        CONTROL_KEY,
        "org-1",
        "test",
        ids=ids.uuid,
        nonce=lambda: nonces.bytes(NONCE_BYTES),
        now_ms=ctx.wall_ms,
    )
    own = replace(settings or StoreSettings(), organization_id="org-1", environment="test")
    core = StoreCore(
        own,
        ToolSet((*store_tools(make_catalogue(7, drawn)), *more_tools)),
        static_credential=static,
        seal=Seal(seal_key),
        is_revoked=issuer.is_revoked,
        session_ids=sessions.token,
    )
    server = StoreServer(ctx, "store", core, mounts=(IssuerServer(ctx, "issuer", issuer).mount,))
    await server.start()
    try:
        # The simulated machine resolves addresses, and no names.
        connector = aiohttp.TCPConnector(resolver=ThreadedResolver())
        async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout()) as http:
            bench = Bench(server, http, ctx)
            await bench.issuer("/conversations", CONVERSATION, REGISTER_KEY)
            yield bench
    finally:
        await server.close()


def virtually(main: Callable[[], Coroutine[Any, Any, object]]) -> object:
    """What `main` gives on the virtual clock, which is the same twice."""
    first = run_virtual(main, 1)
    assert run_virtual(main, 1) == first
    return first

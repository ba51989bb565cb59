"""Whole turns for the tests of this folder: a model with a script, a store stand-in, and what came of a message."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import aiohttp

from lab.journal.events import Event
from lab.journal.partner_events import PartnerTurn
from lab.partner.model.settings import PartnerSettings
from lab.sim.run import run_virtual
from tests.partner.model.calls import AGENTS, DESTINATION, SETTINGS, Api, Json, Reply, actor, running
from tests.partner.model.standin import StandIn, standing_in

FIXTURES = Path(__file__).parents[3] / "fixtures" / "partner"
T = TypeVar("T")
E = TypeVar("E", bound=Event)

HEAD = "script: t\nabout: a test's own\niterations:\n"
TOOL = '- model: m\n  steps: [ { tool: { name: catalog_get, input: { secret: "ARGUMENT-MARKER" } } } ]\n'
USAGE = "  usage: { input: 10, output: 5 }\n"


def iterations(*told: str, more: str = "") -> str:
    """A script of these iterations, each of the lines of one."""
    return HEAD + "".join(f"  {line}\n" for one in told for line in one.splitlines()) + more


SAYS = '- model: m\n  steps: [ { text: "Hello." } ]\n' + USAGE
LOOKS = iterations(TOOL + USAGE, SAYS)
SLOW = iterations('- model: m\n  steps: [ { text: "a" }, { wait: 60s }, { text: "b" } ]\n' + USAGE)


@dataclass(frozen=True)
class Told:
    """An event of a stream as it came."""

    id: str
    name: str
    data: Json
    raw: bytes


def parsed(raw: bytes) -> list[Told]:
    """The events in the bytes of a stream; comments are left out."""
    found = []
    for block in raw.split(b"\n\n"):
        if not block or block.startswith(b":"):
            continue
        id_line, name, data = block.split(b"\n")
        told = json.loads(data.removeprefix(b"data: "))
        found.append(
            Told(id_line.removeprefix(b"id: ").decode(), name.removeprefix(b"event: ").decode(), told, block + b"\n\n")
        )
    return found


@dataclass
class Play:
    """A conversation of the agent under test."""

    api: Api
    store: StandIn
    conversation: str

    @property
    def path(self) -> str:
        return f"/conversations/{self.conversation}"

    async def say(self, text: str | None = "hello", *, once: str | None = None, **more: object) -> Reply:
        body = {**actor(), **({} if text is None else {"message": text}), **more}
        key = f"say-{self.api.next('says')}" if once is None else once
        return await self.api.call("POST", f"{self.path}/messages", body, idempotency_key=key)

    async def accepted(self, text: str = "hello") -> str:
        reply = await self.say(text)
        assert reply.status == 202, reply.body
        run_id: str = reply.data["runId"]
        return run_id

    async def run(self, run_id: str) -> Json:
        return (await self.api.call("GET", f"{self.path}/runs/{run_id}", query=actor())).data

    def stream(self, run_id: str, last: str | None = None, key: str | None = None) -> Any:
        """The response of the run's stream, to be entered."""
        headers = {"Authorization": f"Bearer {self.api.server.keys.chat if key is None else key}"}
        if last is not None:
            headers["Last-Event-ID"] = last
        url = f"{self.api.base}{self.path}/runs/{run_id}/events"
        return self.api.http.get(url, params=actor(), headers=headers, timeout=aiohttp.ClientTimeout(total=None))

    async def raw(self, run_id: str, last: str | None = None) -> bytes:
        """The stream to its end."""
        async with self.stream(run_id, last) as response:
            assert response.status == 200, await response.text()
            raw: bytes = await response.read()
            return raw

    async def events(self, run_id: str, last: str | None = None) -> list[Told]:
        return parsed(await self.raw(run_id, last))

    async def played(self, text: str = "hello") -> tuple[Json, list[Told]]:
        """The run once it has ended, and its events."""
        run_id = await self.accepted(text)
        events = await self.events(run_id)
        return await self.run(run_id), events

    async def history(self, **query: str) -> Json:
        return (await self.api.call("GET", f"{self.path}/messages", query={**actor(), **query})).data

    def seen(self, kind: type[E]) -> list[E]:
        return [entry.event for entry in self.api.ctx.journal.entries if isinstance(entry.event, kind)]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until `condition` holds, looking again after each entry of the journal."""
        changed = asyncio.Event()
        end = self.api.ctx.journal.listen(lambda entry: changed.set())
        try:
            while not condition():
                changed.clear()
                await changed.wait()
        finally:
            end()

    def changes(self, run_id: str) -> list[str]:
        return [turn.change for turn in self.seen(PartnerTurn) if turn.run_id == run_id]

    def everything(self) -> str:
        """The whole journal as text, to look for what must not stand in it."""
        return "\n".join(repr(entry.event) for entry in self.api.ctx.journal.entries)


def settings_of(folder: Path, script: str | Path, url: str, **changes: Any) -> PartnerSettings:
    """Settings in which every agent has this script and the canonical destination leads to `url`."""
    path = script if isinstance(script, Path) else folder / "script.yaml"
    if isinstance(script, str):
        path.write_text(script, encoding="utf-8")
    agents = tuple(replace(agent, script=path) for agent in AGENTS)
    given: Mapping[str, Any] = {
        "agents": agents,
        "destinations": {DESTINATION: url},
        "static_credential": "static-credential",
        **changes,
    }
    return replace(SETTINGS, **given)


@asynccontextmanager
async def playing(
    folder: Path, script: str | Path = LOOKS, *, agent: str = "agent-mcp", bind: bool = True, **changes: Any
) -> AsyncIterator[Play]:
    """A conversation with a running model that thinks as `script` says."""
    async with standing_in() as store, running(settings_of(folder, script, store.url, **changes)) as api:
        conversation = await api.opened(agent)
        if bind and agent == "agent-mcp":
            assert (await api.bind(conversation)).status == 200
        yield Play(api, store, conversation)


def virtually(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The result of `main` on the virtual clock."""
    return run_virtual(main, 1)

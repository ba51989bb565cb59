"""The servers that the benchmarks of the partner leg measure: the lab's store and its partner API model."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from benchmarks.bare_servers import leave_stamps
from lab.clock import Clock
from lab.context import RunContext
from lab.grants.issuer import IssuerCore, Route
from lab.grants.seal import Seal
from lab.grants.server import PATHS, IssuerServer
from lab.journal.partner_events import PartnerTurn
from lab.journal.writer import Entry, Journal
from lab.partner.api_schema import api_schema
from lab.partner.client.driver import PartnerDriver
from lab.partner.client.issuer import IssuerTarget
from lab.partner.client.outcomes import Done
from lab.partner.client.settings import Target
from lab.partner.model.server import PartnerServer
from lab.run.partner.doubles import make_issuer, make_store
from lab.run.partner.identity import PartnerIdentity, draw_partner_identity
from lab.run.partner.reference import reference_settings
from lab.scenario.partner_model import PartnerAgentSpec, PartnerApiSpec
from lab.scenario.partner_names import ISSUER, PARTNER_API, STORE
from lab.store.server import StoreServer
from lab.store.settings import CANONICAL_DESTINATION
from lab.tap.partner import PartnerTap

SEED = 7
"""The same in store and partner API, which so know each other's keys without a word."""
AGENT, TEAM, USER = "store", "shop", "anna"
CONVERSATION = "conversation-1"
GRANT_SECONDS = 1800.0

Order = Mapping[str, Any]
Said = Mapping[str, Any]


@dataclass(frozen=True)
class _Part:
    """What store and partner API begin with."""

    ctx: RunContext
    identity: PartnerIdentity
    seal: Seal


@asynccontextmanager
async def _part(order: Order) -> AsyncIterator[_Part]:
    clock = Clock(asyncio.get_running_loop().time, time.time_ns() // 1_000_000)
    journal = Journal(clock.now, Path(order["journal"]), keep=False)
    ctx = RunContext(SEED, clock, journal)
    identity = draw_partner_identity(ctx, (AGENT,))
    try:
        yield _Part(ctx, identity, Seal(identity.seal_key))
    finally:
        journal.close()
        if ctx.defects:
            raise ctx.defects[0]


@asynccontextmanager
async def store(order: Order) -> AsyncIterator[Said]:
    """The store double as a run makes it, its issuer on the same port, its journal a file; and a grant to call it."""
    async with _part(order) as part:
        issuer = make_issuer(part.ctx, part.identity, part.seal, GRANT_SECONDS)
        core = make_store(part.ctx, part.identity, part.seal, issuer)
        server = StoreServer(part.ctx, STORE, core, mounts=(IssuerServer(part.ctx, ISSUER, issuer).mount,))
        await server.start()
        try:
            said = {"url": server.url, "base": server.base, "conversation": CONVERSATION}
            yield {**said, "credential": part.identity.static_credential, "grant": _minted(part, issuer)}
        finally:
            await server.close()


def _minted(part: _Part, issuer: IssuerCore) -> str:
    named = {"conversationId": CONVERSATION, "agentId": "agent-1", "destination": CANONICAL_DESTINATION}
    keys = part.identity.register_key, part.identity.issuer_key
    registered = {**named, "actorId": "actor-1", "teamId": "team-1"}
    issuer.answer_untrusted(Route.CONVERSATIONS, [f"Bearer {keys[0]}"], json.dumps(registered).encode())
    minted = issuer.answer_untrusted(Route.GRANTS, [f"Bearer {keys[1]}"], json.dumps(named).encode())
    return str(minted.body["grant"])


@asynccontextmanager
async def partner(order: Order) -> AsyncIterator[Said]:
    """The partner API model with `conversations`, each bound to the store at `store`, and a `script` in `folder`.

    With `stamps` it leaves there, at each run's end, the moments of `time.perf_counter` at which events were committed:
    of the first event, of each further one, and of the end.
    """
    script = Path(order["folder"]) / "script.yaml"
    script.write_text(order["script"], encoding="utf-8")
    async with _part(order) as part:
        spec = PartnerApiSpec(agents={AGENT: PartnerAgentSpec(AGENT, TEAM, script=script)})
        settings = reference_settings(spec, part.identity, part.seal, order["store"]["url"], Path(order["folder"]))
        server = PartnerServer(part.ctx, PARTNER_API, settings)
        await server.start()
        try:
            async with _driver(part, server.url, order["store"]["base"]) as driver:
                said = await _opened(driver, part.identity.agents[AGENT], order["conversations"])
                if "stamps" in order:
                    _Stamps(Path(order["stamps"])).follow(server, part.ctx.journal)
                yield {"url": server.url, "key": part.identity.chat_key, **said}
        finally:
            await server.close()


@asynccontextmanager
async def _driver(part: _Part, url: str, store_base: str) -> AsyncIterator[PartnerDriver]:
    identity = part.identity
    target = Target(url, identity.organization_id, identity.chat_key, TEAM)
    urls = [store_base + path for path in (PATHS[Route.GRANTS], PATHS[Route.CONVERSATIONS])]
    issuer = IssuerTarget(urls[0], identity.issuer_key, urls[1], identity.register_key)
    driver = PartnerDriver(part.ctx, "driver", target, issuer, PartnerTap(api_schema(), {}))
    await driver.start()
    try:
        yield driver
    finally:
        await driver.close()


async def _opened(driver: PartnerDriver, agent_id: str, count: int) -> Said:
    """One employee's conversations, bound; where their routes lie. The driver renews the lease as long as it lives."""
    outcomes: list[object] = [await driver.membership(USER)]
    labels = [f"c{number}" for number in range(count)]
    for label in labels:
        outcomes += [await driver.conversation(label, USER, agent=agent_id), await driver.grant(label)]
        outcomes += [await driver.bind(label)]
    for outcome in outcomes:
        if not isinstance(outcome, Done):
            raise RuntimeError(f"no conversation to measure with: {outcome}")
    actor = driver.member(USER).actor
    root = driver.site.base.removeprefix(driver.target.url)
    paths = [f"{root}/conversations/{driver.conversations[label].told.conversation_id}" for label in labels]
    routes = [
        {"messages": f"{path}/messages", "events": f"{path}/runs/{{runId}}/events?{urlencode(actor)}"} for path in paths
    ]
    return {"actor": actor, "conversations": routes}


class _Stamps:
    """When a run's events were committed. Nothing tells of it, so the bell does, which rings right behind."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rung: list[float] = []

    def follow(self, server: PartnerServer, journal: Journal) -> None:
        """Note each commit from now on."""
        bell = server.core.parts.bell
        ring = bell.ring

        def noted() -> None:
            self._rung.append(time.perf_counter())
            ring()

        # A listener of its own would hear it only after the turn runner.
        vars(bell)["ring"] = noted
        journal.listen(self._hear)

    def _hear(self, entry: Entry) -> None:
        event = entry.event
        if not isinstance(event, PartnerTurn):
            return
        if event.change == "claimed":
            self._rung.clear()
        elif event.change == "ended":
            leave_stamps(self._path, [*self._rung, time.perf_counter()])


KINDS: Mapping[str, Callable[[Order], AbstractAsyncContextManager[Said]]] = {"store": store, "partner": partner}

"""The driver against the lab's own API, store and issuer, over HTTP: what each puts on the wire, the other reads."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from lab.clock import Clock
from lab.context import RunContext
from lab.grants.issuer import IssuerCore
from lab.grants.seal import Seal
from lab.grants.server import IssuerServer
from lab.journal.partner_events import PartnerCall, PartnerEvent, PartnerStream, StoreRequest
from lab.journal.writer import Journal
from lab.partner.api_schema import api_schema
from lab.partner.client.driver import PartnerDriver
from lab.partner.client.issuer import IssuerTarget
from lab.partner.client.outcomes import ApiRefusal, Done, GaveUp, TransportError
from lab.partner.client.reconcile import faults_of
from lab.partner.client.settings import Target
from lab.partner.model.server import PartnerServer
from lab.partner.model.settings import AgentSettings, GivenKeys, McpCandidate, PartnerSettings
from lab.sim.run import run_virtual
from lab.store.catalogue import make_catalogue
from lab.store.core import StoreCore
from lab.store.server import StoreServer
from lab.store.settings import StoreSettings
from lab.store.tools import ToolSet, store_tools
from lab.tap.partner import PartnerTap
from tests.partner.samples import DESTINATION

T = TypeVar("T")
SCRIPT = Path(__file__).parents[2] / "fixtures" / "partner" / "product-9001.yaml"
PROMPT = "canary-in-a-prompt"
SECRETS = {"chat-key": "chat-key-0001", "static-credential": "static-0001", "issuer-key": "issuer-key-0001"}


def value_of(outcome: Done[T] | ApiRefusal | TransportError | GaveUp | object) -> Any:
    assert isinstance(outcome, Done), outcome
    return outcome.value


@asynccontextmanager
async def world() -> AsyncIterator[tuple[RunContext, PartnerDriver]]:
    """Everything of the leg, and a driver that has begun."""
    clock = Clock(asyncio.get_running_loop().time, 1_767_225_600_000)
    ctx, seal, numbers = RunContext(7, clock, Journal(clock.now)), Seal(b"k" * 32), itertools.count(1)
    nonces = ctx.draws("issuer", "nonces")
    core = IssuerCore(
        *(seal, SECRETS["issuer-key"], "register-key-0001", "control-key-0001", "org", "test"),
        ids=lambda: f"g-{next(numbers)}",
        nonce=lambda: nonces.bytes(24),
        now_ms=ctx.wall_ms,
    )
    issuer = IssuerServer(ctx, "issuer", core)
    store = StoreServer(
        ctx,
        "store",
        StoreCore(
            StoreSettings(),
            ToolSet(store_tools(make_catalogue(1, 0))),
            static_credential=SECRETS["static-credential"],
            seal=seal,
            is_revoked=core.is_revoked,
            session_ids=lambda: f"s-{next(numbers)}",
        ),
    )
    await issuer.start()
    await store.start()
    agents = (
        AgentSettings("agent-1", "team-1", mcp=(McpCandidate("store-1", DESTINATION),), script=SCRIPT),
        AgentSettings("agent-2", "team-1"),
    )
    settings = PartnerSettings(
        "org",
        ("team-1",),
        agents,
        destinations={DESTINATION: store.url},
        static_credential=SECRETS["static-credential"],
        keys=GivenKeys(SECRETS["chat-key"], "provisioning-key-0001", "control-key-0002"),
    )
    api = PartnerServer(ctx, "partner", settings)
    await api.start()
    driver = PartnerDriver(
        ctx,
        "driver",
        Target(api.url, "org", SECRETS["chat-key"], "team-1", "agent-1"),
        IssuerTarget(
            f"{issuer.base}/grants", SECRETS["issuer-key"], f"{issuer.base}/conversations", "register-key-0001"
        ),
        PartnerTap(api_schema(), SECRETS, {"canary.prompt": PROMPT}),
    )
    await driver.start()
    try:
        yield ctx, driver
    finally:
        for part in (driver, api, store, issuer):
            await part.close()
        assert ctx.defects == []


def virtually(steps: Callable[[RunContext, PartnerDriver], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with world() as (ctx, driver):
            await steps(ctx, driver)
            kinds = (PartnerCall, PartnerEvent, PartnerStream)
            seen = [entry.event for entry in ctx.journal.entries if isinstance(entry.event, kinds)]
            assert [one for one in seen if one.misses or getattr(one, "leaks", ())] == []

    run_virtual(main, 1)


@pytest.mark.req("PA-032", "PA-007", "CX-006", "MSG-016", "US-001", "TM-042", "HIS-031")
def test_a_whole_turn_keeps_the_contract_on_both_sides() -> None:
    async def steps(ctx: RunContext, driver: PartnerDriver) -> None:
        value_of(await driver.membership("anna"))
        value_of(await driver.conversation("c", "anna"))
        assert value_of(await driver.context("c")).version == 0
        assert value_of(await driver.bind("c")) == 1
        assert value_of(await driver.context("c")).active
        value_of(await driver.attach("c", "f", b"some text"))
        assert value_of(await driver.content("f")).content == b"some text"
        question = f"What is 9001? {PROMPT}"
        value_of(await driver.message("c", "r", question, files=("f",), timezone="Europe/Berlin"))
        followed = value_of(await driver.follow("r"))
        assert (followed.status, followed.source) == ("completed", "run_status")
        run = value_of(await driver.get_run("r"))
        assert (run.usage, run.timings) == (followed.events.end.usage, followed.events.end.timings)
        assert faults_of(run) == ()
        walk = value_of(await driver.history("c", limit=1))
        assert (walk.end, walk.pages, [item.role for item in walk.items]) == ("end", 2, ["assistant", "user"])
        assert walk.items[0].blocks() == followed.events.segments
        for start in ("first", "zero"):
            assert value_of(await driver.follow("r", start=start)).events.text == followed.events.text
        again = value_of(await driver.message("c", "r", question, files=("f",), timezone="Europe/Berlin"))
        assert (again.run_id, again.status) == (run.run_id, "completed")
        calls = [entry.event for entry in ctx.journal.entries if isinstance(entry.event, StoreRequest)]
        assert len([call for call in calls if call.executed]) == 1

    virtually(steps)


@pytest.mark.req("PA-017", "CX-020", "SSE-031", "AT-031")
def test_refusals_keep_the_contract_on_both_sides() -> None:
    async def steps(_: RunContext, driver: PartnerDriver) -> None:
        async def refused(step: Coroutine[Any, Any, object]) -> str:
            outcome = await step
            assert isinstance(outcome, ApiRefusal), outcome
            return outcome.code

        assert await refused(driver.conversation("c", "anna")) == "EXECUTION_DENIED"
        await driver.membership("anna")
        assert await refused(driver.conversation("x", "anna", agent=PROMPT)) == "CHAT_UNAVAILABLE"
        await driver.conversation("d", "anna", agent="agent-2")
        assert await refused(driver.bind("d")) == "MCP_CONTEXT_DENIED"
        await driver.conversation("c", "anna")
        assert await refused(driver.message("c", "r", "hello")) == "MCP_CONTEXT_DENIED"
        assert await refused(driver.bind("c", expected_version=4)) == "MCP_CONTEXT_CONFLICT"
        assert await refused(driver.page("c", limit=201)) == "CHAT_INVALID"
        assert await refused(driver.message("d", "r", " ")) == "VALIDATION_ERROR"
        wrong_type = driver.attach("d", "f", b"x", mime_type="application/pdf")
        assert await refused(wrong_type) == "CHAT_ATTACHMENT_TYPE_NOT_SUPPORTED"
        assert await refused(driver.attach("d", "f", b"x" * 3_145_729)) == "CHAT_ATTACHMENT_TOO_LARGE"
        value_of(await driver.message("d", "r", "hello"))
        assert await refused(driver.message("d", "r", "other")) == "CHAT_CONFLICT"
        value_of(await driver.poll("r"))
        for header in ("abc", "x:1", f"{driver.run('r').told.run_id}:99"):
            assert await refused(driver.follow("r", last_event_id=header)) == "CHAT_INVALID"

    virtually(steps)


@pytest.mark.req("MB-036")
def test_seven_minutes_of_renewals() -> None:
    async def steps(ctx: RunContext, driver: PartnerDriver) -> None:
        await driver.membership("anna")
        await asyncio.sleep(7 * 60)
        value_of(await driver.conversation("d", "anna", agent="agent-2"))
        made = [(one.t, one.event) for one in ctx.journal.entries if isinstance(one.event, PartnerCall)]
        assert [round(t) for t, call in made if call.route == "PUT /memberships"] == [0, 120, 240, 360]

    virtually(steps)

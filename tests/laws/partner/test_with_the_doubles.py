"""The laws over what driver, model, store and issuer really tell: each keeps its promises, and is judged."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from pathlib import Path

import pytest

import lab
from lab.context import RunContext
from lab.grants.issuer import IssuerCore, Route
from lab.grants.seal import NONCE_BYTES, Seal
from lab.grants.server import PATHS, IssuerServer
from lab.journal.events import ParticipantDeclared, RunEnded, RunStarted
from lab.journal.writer import Entry
from lab.laws import judge_all
from lab.laws.partner.registry import PARTNER_LAWS
from lab.partner.api_schema import api_schema
from lab.partner.client.asking import Departure
from lab.partner.client.driver import PartnerDriver
from lab.partner.client.issuer import IssuerTarget
from lab.partner.client.settings import Target
from lab.partner.model.server import PartnerServer
from lab.partner.model.settings import AgentSettings, McpCandidate, PartnerSettings
from lab.sim.run import run_virtual
from lab.store.catalogue import make_catalogue
from lab.store.core import StoreCore
from lab.store.server import StoreServer
from lab.store.settings import StoreSettings
from lab.store.tools import ToolSet, store_tools
from lab.tap.partner import PartnerTap
from tests.laws.partner.journals import EPOCH_MS, NAMES, STORE_URL
from tests.run.made import context

SCRIPTS = Path(lab.__file__).parent.parent / "fixtures" / "partner"
SEAL_KEY = bytes(range(32))

Play = Callable[[PartnerDriver, PartnerServer], Awaitable[None]]


def _store(ctx: RunContext) -> StoreServer:
    ids, nonces, sessions = (ctx.secret_draws("store", name) for name in ("ids", "nonces", "sessions"))
    seal = Seal(SEAL_KEY)
    issuer = IssuerCore(
        seal,
        "issuer-key",
        "register-key",
        "control-key",
        "org",
        "test",
        ids=ids.uuid,
        nonce=lambda: nonces.bytes(NONCE_BYTES),
        now_ms=ctx.wall_ms,
    )
    core = StoreCore(
        StoreSettings(organization_id="org", environment="test"),
        ToolSet(store_tools(make_catalogue(7, 5))),
        static_credential="static",
        seal=seal,
        is_revoked=issuer.is_revoked,
        session_ids=sessions.token,
    )
    return StoreServer(ctx, "store", core, mounts=(IssuerServer(ctx, "issuer", issuer).mount,))


def _settings(script: str, store: StoreServer) -> PartnerSettings:
    path = SCRIPTS / f"{script}.yaml"
    agents = (
        AgentSettings("agent", "team", mcp=(McpCandidate("srv", STORE_URL),), script=path),
        AgentSettings("plain", "team", script=SCRIPTS / "hello.yaml"),
    )
    return PartnerSettings("org", ("team",), agents, destinations={STORE_URL: store.url}, static_credential="static")


def journal_of(script: str, play: Play) -> Sequence[Entry]:
    """What the witnesses tell of a play on the virtual clock."""

    async def main() -> Sequence[Entry]:
        ctx = context(asyncio.get_running_loop().time)
        ctx.journal.record("runner", RunStarted(1, "s", "", 1, "virtual", EPOCH_MS, "0", "1"))
        for role, name in NAMES.items():
            ctx.journal.record("runner", ParticipantDeclared(name, role, "double"))
        store = _store(ctx)
        await store.start()
        api = PartnerServer(ctx, "api", _settings(script, store))
        await api.start()
        issuer = IssuerTarget(
            store.base + PATHS[Route.GRANTS],
            "issuer-key",
            store.base + PATHS[Route.CONVERSATIONS],
            "register-key",
        )
        target = Target(api.url, "org", api.keys.chat, "team", "agent")
        driver = PartnerDriver(ctx, "driver", target, issuer, PartnerTap(api_schema(), {}))
        await driver.start()
        try:
            await play(driver, api)
        finally:
            await driver.close()
            await api.close()
            await store.close()
        ctx.journal.record("runner", RunEnded("completed"))
        return ctx.journal.entries

    return run_virtual(main, 1)


async def turns(driver: PartnerDriver, _: PartnerServer) -> None:
    """Two turns, replayed and read anew, then history by pages."""
    await driver.membership("e")
    await driver.conversation("c", "e")
    await driver.bind("c")
    await driver.message("c", "r", "hello")
    await driver.message("c", "r", "hello")
    await driver.message("c", "r", "other words", departure=Departure())
    await driver.message("c", "other", "too early")
    await driver.follow("r")
    await driver.poll("r")
    await driver.follow("r", start="first")
    await driver.message("c", "r2", "again")
    await driver.poll("r2")
    await driver.history("c", limit=1)
    await driver.context("c")


async def refused(driver: PartnerDriver, _: PartnerServer) -> None:
    """What is conflicting, stale or another's, and a conversation without a store."""
    await driver.membership("e")
    await driver.membership("e", role="admin")
    await driver.membership("e", revision=1)
    await driver.conversation("c", "e", agent="plain")
    await driver.attach("c", "f", b"1,2", name="x.csv", mime_type="text/csv")
    await driver.bind("c")
    await driver.message("c", "r", "look", files=("f",))
    await driver.follow("r")
    await driver.content("f")
    await driver.history("c")
    await driver.conversation("d", "e")
    await driver.bind("d", expected_version=5)
    await driver.recover_context("d")


async def denied(driver: PartnerDriver, api: PartnerServer) -> None:
    """A lapsed lease, a revoked binding, a cancelled run, a revoked employee; the clock is moved on the way."""
    await driver.membership("e", renew=False)
    await driver.conversation("c", "e")
    await driver.bind("c")
    await asyncio.sleep(310)
    await driver.context("c")
    await driver.membership("e")
    await driver.recover_context("c")
    await driver.message("c", "r", "hello")
    api.controls.cancel_run(driver.runs["r"].told.run_id)
    await driver.follow("r")
    await driver.message("c", "r2", "hello")
    api.controls.revoke_binding(driver.conversations["c"].told.conversation_id)
    await driver.follow("r2")
    await driver.bind("c")
    await driver.context("c")
    await driver.membership("e", active=False)
    await driver.membership("e", active=False)
    await driver.get_run("r")
    api.controls.move_clock(1000)


PLAYS: dict[str, tuple[str, Play]] = {
    "turns": ("product-9001", turns),
    "two models": ("two-models", turns),
    "a failing tool": ("failing-tool", turns),
    "an exception": ("exception", turns),
    "refused": ("product-9001", refused),
    "denied": ("slow-stages", denied),
}

UNSEEN = frozenset({"tries-bounded", "reconnects-bounded", "interrupted-never-rerun", "refusal-before-execution"}) | {
    *("conversations-are-ones-own", "crashed-run-is-interrupted", "keys-open-their-routes", "malformed-is-refused"),
    *("messages-by-step", "owners-guarded", "removed-is-gone", "rotated-key-is-dead", "spent-budget-refuses"),
}
"""What needs a link that breaks, a crash, a control, a second employee, a wrong key or a wrong grant."""


@cache
def played(name: str) -> Sequence[Entry]:
    return journal_of(*PLAYS[name])


@pytest.mark.parametrize("name", PLAYS)
def test_the_doubles_keep_every_law(name: str) -> None:
    broken = [
        (one.law.id, violation.seen, violation.due)
        for one in judge_all(played(name), PARTNER_LAWS)
        for violation in one.judgement.violations
    ]
    assert broken == []


def test_every_law_gets_what_it_needs() -> None:
    judged = {one.law.id for name in PLAYS for one in judge_all(played(name), PARTNER_LAWS) if one.judgement.judged}
    silent = {law.id for law in PARTNER_LAWS} - judged
    assert silent <= UNSEEN

"""Turns against the lab's own store: over HTTP, with grants that open there, and with each of its misbehaviours."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from lab.grants.binding import GrantBinding
from lab.grants.seal import NONCE_BYTES, Seal
from lab.journal.partner_events import StoreRequest
from lab.store.catalogue import make_catalogue
from lab.store.core import StoreCore
from lab.store.headers import Era
from lab.store.misbehaviour import ONLY_2025, Misbehaviour, Wrong
from lab.store.server import StoreServer
from lab.store.settings import Form, StoreSettings
from lab.store.tools import ToolSet, store_tools
from tests.partner.model.calls import DESTINATION, ORG, USER, context_of, running
from tests.partner.model.played import FIXTURES, Play, settings_of, virtually
from tests.partner.model.standin import StandIn

MARKER = "STORE-ERROR-MARKER"
SERVED = {Wrong.SLOW, Wrong.LOST_SESSION, Wrong.SSE_CUT_WITH_ID}
"""What the model gets over: it waits, begins a session anew, takes a stream up again."""


@dataclass
class Shop:
    """A store that listens, and who may use it."""

    server: StoreServer
    seal: Seal
    seen: list[StoreRequest]

    def grant(self, play: Play, opened: Any, **changes: Any) -> str:
        """A grant for the conversation, or one with another claim."""
        now = play.api.now_ms()
        binding = GrantBinding(
            *("g-1", ORG, "test", opened["teamId"], opened["actorId"], opened["agentId"], play.conversation),
            *(DESTINATION, now, now + 300_000),
        )
        return self.seal.seal(replace(binding, **changes), b"n" * NONCE_BYTES)

    def calls(self) -> list[StoreRequest]:
        return [seen for seen in self.seen if seen.method == "tools/call"]


@asynccontextmanager
async def shopping(
    folder: Path, era: Era, script: str = "product-9001", answers: Form = Form.JSON, **claims: Any
) -> AsyncIterator[tuple[Play, Shop]]:
    """A bound conversation of a model whose store is the lab's."""
    ctx, seal, numbers = context_of(), Seal(b"k" * 32), itertools.count(1)
    tools = ToolSet(store_tools(make_catalogue(1, 0)))
    core = StoreCore(
        StoreSettings(answers=answers),
        tools,
        static_credential="static-credential",
        seal=seal,
        is_revoked=lambda grant_id: False,
        session_ids=lambda: f"session-{next(numbers)}",
    )
    server = StoreServer(ctx, "store", core)
    await server.start()
    seen: list[StoreRequest] = []
    ctx.journal.listen(lambda entry: seen.append(entry.event) if isinstance(entry.event, StoreRequest) else None)
    shop = Shop(server, seal, seen)
    settings = settings_of(folder, FIXTURES / f"{script}.yaml", server.url, mcp_era=str(era))
    try:
        async with running(settings) as api:
            assert (await api.member(USER)).status == 200
            opened = (await api.conversation()).data
            play = Play(api, StandIn(), opened["conversationId"])
            grant = shop.grant(play, opened, **claims)
            assert (await api.bind(play.conversation, grant=grant)).status == 200
            yield play, shop
    finally:
        await server.close()


@pytest.mark.req("PA-032", "MCP-002", "MCP-004", "MCP-025")
@pytest.mark.parametrize("answers", list(Form))
@pytest.mark.parametrize("era", list(Era))
def test_product_9001_is_looked_up_with_a_grant(tmp_path: Path, era: Era, answers: Form) -> None:
    async def main() -> None:
        async with shopping(tmp_path, era, answers=answers) as (play, shop):
            run, events = await play.played()
            assert run["status"] == "completed"
            (call,) = shop.calls()
            assert (call.executed, call.tool, call.era) == (True, "catalog_get", era)
            public = [event.data["id"] for event in events if event.name == "tool_call"]
            assert [call.call_id] == public
            assert (call.turn_id, call.conversation_header) == (run["turnId"], play.conversation)

    virtually(main)


@pytest.mark.req("MCP-023", "MCP-002")
@pytest.mark.parametrize(
    "claims", [{"destination": "https://other.example/mcp"}, {"conversation_id": "another"}, {"expires_at_ms": 1}]
)
def test_a_grant_for_something_else_is_refused_by_the_store(tmp_path: Path, claims: dict[str, Any]) -> None:
    async def main() -> None:
        async with shopping(tmp_path, Era.SESSIONS, "stop-on-refusal", **claims) as (play, shop):
            run, _ = await play.played()
            assert (run["status"], run["reason"]) == ("failed", "TOOL_REFUSED")
            assert [call.executed for call in shop.calls()] == [False]

    virtually(main)


@pytest.mark.req("MCP-009", "MCP-026")
@pytest.mark.parametrize(
    ("wrong", "era"), [(wrong, era) for wrong in Wrong for era in Era if era is Era.SESSIONS or wrong not in ONLY_2025]
)
def test_whatever_the_store_does_the_turn_comes_to_its_end(tmp_path: Path, wrong: Wrong, era: Era) -> None:
    async def main() -> None:
        form = Form.SSE if wrong in (Wrong.SSE_CUT, Wrong.SSE_CUT_WITH_ID) else Form.JSON
        async with shopping(tmp_path, era, answers=form) as (play, shop):
            shop.server.misbehave([Misbehaviour(wrong, method="tools/call", nth=1, text=MARKER, size=2 << 20)])
            run, events = await play.played()
            results = [event.data for event in events if event.name == "tool_result"]
            assert [result["ok"] for result in results] == [wrong in SERVED]
            assert run["status"] == "completed"
            told = json.dumps([run, [event.data for event in events], await play.history()]) + play.everything()
            assert MARKER not in told
            assert not play.api.ctx.defects
            assert sum(call.executed for call in shop.calls()) <= 1
            if wrong is Wrong.LOST_SESSION:
                assert [seen.method for seen in shop.seen].count("initialize") == 2

    virtually(main)


@pytest.mark.req("TM-037", "TM-018")
def test_a_session_that_is_negotiated_anew_is_tool_time(tmp_path: Path) -> None:
    async def took(lost: bool) -> tuple[float, float]:
        async with shopping(tmp_path, Era.SESSIONS) as (play, shop):
            rules = [Misbehaviour(Wrong.SLOW, method="initialize", nth=2, seconds=2.0)]
            if lost:
                rules.append(Misbehaviour(Wrong.LOST_SESSION, method="tools/call", nth=1))
            shop.server.misbehave(rules)
            # The discovery's own handshake is the first one that the rule counts.
            run, _ = await play.played()
            return run["timings"]["toolMs"], run["timings"]["toolSetupMs"]

    kept, lost = virtually(lambda: took(False)), virtually(lambda: took(True))
    assert lost[0] > kept[0] + 2000
    assert lost[1] == pytest.approx(kept[1], abs=5)

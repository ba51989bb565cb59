from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.partner.model.context import Bind, Binding, judge, usable_grant
from lab.partner.model.refusals import Refusal
from lab.partner.model.settings import GrantClaims
from lab.partner.model.words import Code
from tests.partner.model.calls import DESTINATION, ORG, STORE, TEAM, USER, actor, running

TARGET = ("srv-1", DESTINATION)


def bind(version: int = 0, server: str = "srv-1", destination: str = DESTINATION) -> Bind:
    return Bind(USER, TEAM, server, destination, "grant", 1, version)


@pytest.mark.req("PA-050", "CX-007", "CX-013", "CX-015", "CX-022", "CX-034")
@pytest.mark.parametrize(
    ("target", "binding", "asked", "code"),
    [
        (None, Binding(revoked=True), bind(9, "x"), Code.MCP_CONTEXT_DENIED),
        (TARGET, Binding(2, 5, revoked=True), bind(2), Code.MCP_CONTEXT_DENIED),
        (TARGET, Binding(2, 5), bind(1, "srv-2"), Code.MCP_CONTEXT_DENIED),
        (TARGET, Binding(2, 5), bind(2, destination=DESTINATION + "/"), Code.MCP_CONTEXT_DENIED),
        (TARGET, Binding(2, 5), bind(2, destination=DESTINATION.upper()), Code.MCP_CONTEXT_DENIED),
        (TARGET, Binding(2, 5), bind(1), Code.MCP_CONTEXT_CONFLICT),
        (TARGET, Binding(2, 5), bind(3), Code.MCP_CONTEXT_CONFLICT),
        (TARGET, Binding(), bind(1), Code.MCP_CONTEXT_CONFLICT),
        (TARGET, Binding(), bind(), None),
        (TARGET, Binding(2, 5), bind(2), None),
    ],
)
def test_a_bind_is_judged_in_order(
    target: tuple[str, str] | None, binding: Binding, asked: Bind, code: Code | None
) -> None:
    refusal = judge(target, binding, asked)
    assert (None if refusal is None else refusal.code) == code


@pytest.mark.req("CX-013")
@given(st.lists(st.integers(0, 6), max_size=20))
def test_any_sequence_of_binds_counts_those_that_named_the_present_version(versions: list[int]) -> None:
    held, won = Binding(), 0
    for version in versions:
        refusal = judge(TARGET, held, bind(version))
        assert (refusal is None) is (version == won)
        if refusal is None:
            won += 1
            held = Binding(held.version + 1, 5)
    assert held.version == won


@pytest.mark.req("CX-003", "CX-004", "CX-013", "CX-019", "PA-014")
async def test_binds_count_up_and_another_version_changes_nothing() -> None:
    async with running() as api:
        conversation = await api.opened()
        assert (await api.bind(conversation, 1)).refusal == (409, "MCP_CONTEXT_CONFLICT")
        assert [(await api.bind(conversation, version)).data for version in range(3)] == [
            {"version": 1},
            {"version": 2},
            {"version": 3},
        ]
        before = await api.context(conversation)
        assert (await api.bind(conversation, 2)).refusal == (409, "MCP_CONTEXT_CONFLICT")
        assert (await api.context(conversation)).data == before.data


@pytest.mark.req("CX-032")
async def test_of_two_binds_at_once_one_wins() -> None:
    async with running() as api:
        conversation = await api.opened()
        replies = await asyncio.gather(api.bind(conversation), api.bind(conversation))
        assert sorted(reply.status for reply in replies) == [200, 409]


@pytest.mark.req("CX-001", "CX-002", "CX-005", "CX-006", "CX-024")
async def test_the_context_tells_version_expiry_and_whether_it_is_active() -> None:
    async with running() as api:
        conversation = await api.opened()
        assert (await api.context(conversation)).data == {"version": 0, "expiresAt": None, "active": False}
        expires = "2026-01-01T00:02:00+00:00"
        await api.bind(conversation, grant="tg1.never-shown", expiresAt=expires)
        bound = await api.context(conversation)
        assert bound.data == {"version": 1, "expiresAt": "2026-01-01T00:02:00.000Z", "active": True}
        assert "never-shown" not in str(bound.body)
        api.server.controls.move_clock(121_000)
        assert (await api.context(conversation)).data == {**bound.data, "active": False}


@pytest.mark.req("CX-014", "CX-015", "CX-020")
async def test_a_conversation_without_a_store_takes_no_grant() -> None:
    async with running() as api:
        conversation = await api.opened("agent-plain")
        assert (await api.bind(conversation)).refusal == (403, "MCP_CONTEXT_DENIED")
        assert (await api.context(conversation)).data == {"version": 0, "expiresAt": None, "active": False}


@pytest.mark.req("CX-007", "CX-021")
async def test_a_revoked_binding_stays_denied() -> None:
    async with running() as api:
        conversation = await api.opened()
        await api.bind(conversation)
        api.server.controls.revoke_binding(conversation)
        assert (await api.bind(conversation, 1)).refusal == (403, "MCP_CONTEXT_DENIED")
        after = (await api.context(conversation)).data
        assert (after["version"], after["active"]) == (1, False)


@pytest.mark.req("CX-022", "CX-034")
@pytest.mark.parametrize("change", [{"serverId": "srv-2"}, {"destination": DESTINATION + "/"}])
async def test_another_target_is_denied_and_stores_nothing(change: dict[str, Any]) -> None:
    async with running() as api:
        conversation = await api.opened()
        assert (await api.bind(conversation, **change)).refusal == (403, "MCP_CONTEXT_DENIED")
        assert (await api.context(conversation)).data["version"] == 0


@pytest.mark.req("CX-003", "CX-023", "CX-028")
@pytest.mark.parametrize(
    "change",
    [
        {"grant": ""},
        {"grant": "x" * 8193},
        {"grant": None},
        {"expectedVersion": -1},
        {"expectedVersion": "0"},
        {"expectedVersion": 0.0},
        {"expiresAt": "2025-12-31T23:59:59.000Z"},
        {"expiresAt": None},
        {"serverId": 3},
        {"destination": ""},
        {"stray": 1},
    ],
)
async def test_a_malformed_bind_is_refused(change: dict[str, Any]) -> None:
    async with running() as api:
        conversation = await api.opened()
        assert (await api.bind(conversation, **change)).refusal == (400, "CHAT_INVALID")
        assert (await api.bind(conversation, grant="\U0001f600" * 8192)).status == 200


@pytest.mark.req("CX-033", "CV-013")
async def test_the_context_belongs_to_its_employee_alone() -> None:
    async with running() as api:
        conversation = await api.opened()
        await api.member("second")
        assert (await api.context(conversation, "second")).refusal == (404, "CHAT_UNAVAILABLE")
        assert (await api.bind(conversation, externalUserId="second")).refusal == (404, "CHAT_UNAVAILABLE")


@pytest.mark.req("PA-044", "PA-045")
async def test_the_context_needs_both_members_of_the_actor_query() -> None:
    async with running() as api:
        conversation = await api.opened()
        for name in actor():
            query = {key: value for key, value in actor().items() if key != name}
            reply = await api.call("GET", f"/conversations/{conversation}/context", query=query)
            assert reply.refusal == (400, "CHAT_INVALID")


@pytest.mark.req("CX-016", "CX-035", "PRIV-002")
async def test_no_grant_lies_in_the_state_and_the_newest_one_is_used() -> None:
    async with running() as api:
        conversation_id = await api.opened()
        await api.bind(conversation_id, grant="tg1.first-grant")
        await api.bind(conversation_id, 1, grant="tg1.second-grant")
        parts = api.server.core.parts
        dump = parts.state.dump().lower()
        for grant in ("tg1.first-grant", "tg1.second-grant"):
            assert grant not in dump
            assert grant.encode().hex() not in dump
        conversation = parts.authority.find_conversation(conversation_id)
        assert conversation is not None
        usable = usable_grant(parts, conversation)
        assert not isinstance(usable, Refusal)
        assert (usable.grant, usable.destination, usable.version) == ("tg1.second-grant", DESTINATION, 2)
        assert "second-grant" not in repr(usable)
        api.server.controls.move_clock(301_000)
        assert isinstance(usable_grant(parts, conversation), Refusal)


@pytest.mark.req("CX-027")
async def test_claims_are_compared_at_bind_only_when_there_is_a_reader() -> None:
    conversation_id, said = "", {"actor": "", "team": ""}

    def read(grant: str) -> GrantClaims | None:
        if grant == "closed":
            return None
        named = conversation_id if grant == "mine" else grant
        return GrantClaims(ORG, "test", said["team"], said["actor"], "agent-mcp", named, STORE.destination)

    async with running(claim_reader=read) as api:
        member = (await api.member()).data
        said.update(actor=member["actorId"], team=member["teamId"])
        conversation_id = await api.opened()
        assert (await api.bind(conversation_id, grant="closed")).refusal == (403, "MCP_CONTEXT_DENIED")
        assert (await api.bind(conversation_id, grant="another")).refusal == (403, "MCP_CONTEXT_DENIED")
        # A mismatch is told before a version (PA-050).
        assert (await api.bind(conversation_id, 7, grant="another")).refusal == (403, "MCP_CONTEXT_DENIED")
        assert (await api.bind(conversation_id, grant="mine")).data == {"version": 1}
    async with running() as api:
        assert (await api.bind(await api.opened(), grant="another")).data == {"version": 1}

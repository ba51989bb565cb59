from __future__ import annotations

import asyncio

import pytest

from lab.partner.model.conversations import candidates_of, only_candidate, stored_candidates
from lab.partner.model.refusals import Refusal
from lab.partner.model.settings import McpCandidate
from lab.partner.model.words import Code
from tests.partner.model.calls import DESTINATION, STORE, TEAM, USER, Api, Reply, running


@pytest.mark.req("CV-004", "CV-005", "CV-006", "CV-007", "CV-017")
def test_exactly_one_candidate_or_no_profile_at_all() -> None:
    assert only_candidate(None) is None
    assert only_candidate((STORE,)) == STORE
    for candidates in ((), (STORE, STORE)):
        with pytest.raises(Refusal) as caught:
            only_candidate(candidates)
        assert caught.value.code is Code.CHAT_CONFIGURATION


@pytest.mark.parametrize("candidates", [None, (), (STORE,), (STORE, McpCandidate("b", "https://b/"))])
def test_candidates_come_back_from_the_state_as_they_went(candidates: tuple[McpCandidate, ...] | None) -> None:
    assert candidates_of(stored_candidates(candidates)) == candidates


def stored(api: Api) -> int:
    return api.server.controls.counts()["conversations"]


@pytest.mark.req("CV-002", "CV-004", "CV-014", "CV-015", "CV-027")
async def test_a_conversation_names_the_one_store_of_its_agent() -> None:
    async with running() as api:
        member = (await api.member()).data
        opened = await api.conversation()
        assert opened.status == 201
        conversation_id = opened.data["conversationId"]
        assert opened.data == {
            "conversationId": conversation_id,
            "actorId": member["actorId"],
            "teamId": member["teamId"],
            "agentId": "agent-mcp",
            "mcp": {"serverId": "srv-1", "destination": DESTINATION},
        }


@pytest.mark.req("CV-007", "CV-017")
async def test_an_agent_without_any_store_profile_gives_null() -> None:
    async with running() as api:
        await api.member()
        assert (await api.conversation("agent-plain")).data["mcp"] is None


@pytest.mark.req("CV-005", "CV-006", "CV-016", "CV-017", "PA-016", "PA-042")
@pytest.mark.parametrize("agent", ["agent-none", "agent-two", "agent-broken"])
async def test_a_setup_that_does_not_fit_fails_closed_and_leaves_the_key_free(agent: str) -> None:
    async with running() as api:
        await api.member()
        assert (await api.conversation(agent, once="k")).refusal == (503, "CHAT_CONFIGURATION")
        assert stored(api) == 0
        api.server.controls.configure_agent(agent, (STORE,), profile=True)
        assert (await api.conversation(agent, once="k")).status == 201


@pytest.mark.req("CV-018", "PA-039")
async def test_an_agent_out_of_reach_is_told_like_one_that_is_not_there() -> None:
    async with running() as api:
        await api.member()
        replies = [await api.conversation(agent) for agent in ("nobody", "agent-other-team", "agent-helper")]
        assert [reply.refusal for reply in replies] == [(404, "CHAT_UNAVAILABLE")] * 3
        assert replies[0].body == replies[1].body == replies[2].body


@pytest.mark.req("CV-010", "CV-015", "CV-021", "CV-022")
async def test_a_retry_gets_the_first_answer_whatever_has_changed() -> None:
    async with running() as api:
        await api.member()
        first = await api.conversation(once="k")
        api.server.controls.configure_agent("agent-mcp", (), profile=True)
        again = await api.conversation(once="k")
        assert (again.status, again.body) == (201, first.body)
        assert stored(api) == 1
        assert [event.replay for event in api.journalled()][-2:] == [False, True]
        api.server.controls.configure_agent("agent-mcp", (STORE,), profile=True)
        assert (await api.conversation(once="k2")).data["conversationId"] != first.data["conversationId"]


@pytest.mark.req("CV-011", "CV-020", "PA-013")
async def test_another_input_under_a_used_key_conflicts_unless_it_is_out_of_reach() -> None:
    async with running() as api:
        await api.member()
        await api.member("second")
        await api.conversation(once="k")
        assert (await api.conversation("agent-plain", once="k")).refusal == (409, "CHAT_CONFLICT")
        assert (await api.conversation(user="second", once="k")).refusal == (409, "CHAT_CONFLICT")
        assert (await api.conversation("nobody", once="k")).refusal == (404, "CHAT_UNAVAILABLE")
        assert stored(api) == 1


@pytest.mark.req("CV-023")
async def test_two_creates_at_once_are_one_conversation() -> None:
    async with running() as api:
        await api.member()
        replies = await asyncio.gather(*(api.conversation(once="k") for _ in range(4)))
        assert len({reply.data["conversationId"] for reply in replies}) == 1
        assert stored(api) == 1


@pytest.mark.req("CV-012", "MB-018", "PA-054")
async def test_receipts_and_mappings_outlive_a_rotation() -> None:
    async with running() as api:
        member = await api.member()
        first, old = await api.conversation(once="k"), api.server.keys.chat
        assert api.server.controls.rotate_key("chat") == api.server.keys.chat != old
        assert (await api.conversation(once="k", key=old)).refusal == (401, "CREDENTIAL_REJECTED")
        assert (await api.conversation(once="k")).body == first.body
        assert (await api.member()).data["actorId"] == member.data["actorId"]


@pytest.mark.req("CV-026", "MB-006", "MB-029", "MB-015")
async def test_who_may_not_open_one() -> None:
    async with running() as api:

        async def refused(user: str) -> tuple[int, str]:
            return (await api.conversation(user=user)).refusal

        assert await refused("never confirmed") == (403, "EXECUTION_DENIED")
        assert api.server.controls.counts()["identities"] == 0
        await api.member("revoked")
        await api.member("revoked", active=False, seconds=None)
        assert await refused("revoked") == (403, "EXECUTION_DENIED")
        await api.member("deleted")
        api.server.controls.delete_identity("deleted")
        assert await refused("deleted") == (404, "CHAT_UNAVAILABLE")
        assert (await api.member("deleted")).refusal == (404, "CHAT_UNAVAILABLE")
        await api.member("lapsed", seconds=10)
        api.server.controls.move_clock(10_000)
        assert await refused("lapsed") == (403, "EXECUTION_DENIED")
        assert stored(api) == 0


@pytest.mark.req("CV-025", "PA-027")
async def test_a_key_whose_conversation_was_removed_opens_nothing() -> None:
    async with running() as api:
        await api.member()
        opened = await api.conversation(once="k")
        api.server.controls.remove("thread", opened.data["conversationId"])
        before = stored(api)
        assert (await api.conversation(once="k")).refusal == (404, "CHAT_UNAVAILABLE")
        assert stored(api) == before


async def create(api: Api, body: dict[str, object], once: str | None = "k") -> Reply:
    return await api.call("POST", "/conversations", body, idempotency_key=once)


@pytest.mark.req("CV-001", "CV-019", "PA-041")
async def test_a_malformed_create_is_refused() -> None:
    body: dict[str, object] = {"externalUserId": USER, "externalTeamId": TEAM, "agentId": "agent-mcp"}
    async with running() as api:
        await api.member()
        for once in (None, "", "a b", "x" * 256):
            assert (await create(api, body, once)).refusal == (400, "CHAT_INVALID")
        for name in body:
            partial = {member: value for member, value in body.items() if member != name}
            assert (await create(api, partial)).refusal == (400, "CHAT_INVALID")
            assert (await create(api, {**body, name: 1})).refusal == (400, "CHAT_INVALID")
        assert (await create(api, {**body, "stray": 1})).refusal == (400, "CHAT_INVALID")
        assert stored(api) == 0

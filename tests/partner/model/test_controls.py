from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from lab.clock import timestamp
from lab.errors import UsageError
from lab.journal.partner_events import PartnerRequest
from lab.partner.model.settings import McpCandidate
from lab.partner.model.words import LAB_BASE
from tests.partner.model.calls import DESTINATION, TEAM, USER, Api, running
from tests.partner.model.test_bodies import ACTOR, FILE, upload


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with running() as held:
        yield held


async def test_the_clock_moves_both_ways_and_keeps_its_place_in_a_state(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    async with running(state_path=tmp_path_factory.mktemp("state") / "state.db") as api:
        before = api.now_ms()
        assert api.server.controls.move_clock(60_000) - before >= 60_000
        await api.server.crash()
        await api.server.start()
        assert api.now_ms() - before >= 60_000
        assert api.server.controls.move_clock(-120_000) < before


@pytest.mark.req("PA-019", "PA-051", "PA-050")
async def test_a_spent_budget_refuses_before_any_run_and_leaves_the_key_free(api: Api) -> None:
    conversation = await api.opened("agent-plain")
    api.server.controls.spend_budget(True)
    refused = await api.message(conversation, once="m")
    assert refused.refusal == (429, "QUOTA_EXCEEDED")
    assert refused.body["error"]["reason"] == "org_spend"
    assert "Retry-After" not in refused.headers
    assert api.server.controls.counts()["runs"] == 0
    api.server.controls.spend_budget(False)
    assert (await api.message(conversation, once="m")).status == 202


@pytest.mark.req("MSG-037", "MSG-038")
async def test_an_accepted_run_is_cancelled(api: Api) -> None:
    api.server.controls.hold_queue(True)
    conversation = await api.opened("agent-plain")
    run_id = (await api.message(conversation)).data["runId"]
    api.server.controls.cancel_run(run_id)
    await api.until(lambda: bool(api.turns("ended")))
    run = (await api.run(conversation, run_id)).data
    assert (run["status"], run["reason"], run["usage"]) == ("cancelled", None, None)
    with pytest.raises(UsageError):
        api.server.controls.cancel_run(run_id)
    assert (await api.message(conversation)).status == 202


@pytest.mark.req("AT-023", "AT-025", "PA-058")
async def test_a_guest_takes_no_files_and_a_closed_one_keeps_its_own(api: Api) -> None:
    conversation = await api.opened()
    assert (await upload(api, conversation, *ACTOR, FILE)).status == 201
    api.server.controls.set_guest(conversation, guest=True, closed=False)
    assert (await upload(api, conversation, *ACTOR, FILE)).refusal == (403, "CHAT_ATTACHMENT_NOT_ALLOWED")
    api.server.controls.set_guest(conversation, guest=True, closed=True)
    counts = api.server.controls.counts()
    assert (counts["attachments"], counts["conversations"]) == (1, 1)
    assert (await api.history(conversation)).status == 200


async def test_a_revoked_identity_is_revoked_in_all_teams(api: Api) -> None:
    await api.member()
    await api.member(team="team-2")
    api.server.controls.revoke_identity(USER)
    for team in (TEAM, "team-2"):
        assert (await api.member(team=team)).refusal == (409, "CHAT_CONFLICT")
        revoked = await api.member(team=team, active=False, seconds=None)
        assert (revoked.data["active"], revoked.data["membershipVersion"]) == (False, 2)


@pytest.mark.req("PA-021", "MB-032")
async def test_whoever_reads_the_journal_learns_of_each_right_that_was_taken(api: Api) -> None:
    controls = api.server.controls
    conversation = await api.opened()

    def told() -> list[tuple[str, str | None, Mapping[str, Any]]]:
        found: list[tuple[str, str | None, Mapping[str, Any]]] = []
        for entry in api.ctx.journal.entries:
            if isinstance(entry.event, PartnerRequest) and entry.event.route.startswith(f"{LAB_BASE}/"):
                route = entry.event.route.removeprefix(f"{LAB_BASE}/")
                found.append((route, entry.event.conversation_id, dict(entry.event.facts)))
        return found

    controls.hold_queue(True)
    controls.configure_agent("agent-mcp", [McpCandidate("s", DESTINATION)], profile=False)
    controls.configure_agent("agent-mcp", None, profile=True)
    controls.set_guest(conversation, guest=True, closed=False)
    assert controls.reset_identity(USER) == 2
    controls.revoke_identity(USER)
    controls.delete_identity(USER)
    controls.revoke_key("chat")
    actor_id = told()[4][2]["actorId"]
    assert told() == [
        ("queue", None, {"held": True}),
        ("agents", None, {"agentId": "agent-mcp", "servers": ["s"], "profile": False}),
        ("agents", None, {"agentId": "agent-mcp", "servers": None, "profile": True}),
        ("guest", conversation, {"guest": True, "closed": False}),
        ("identities", None, {"change": "reset", "actorId": actor_id, "subjectVersion": 2}),
        ("identities", None, {"change": "revoke", "actorId": actor_id, "subjectVersion": 2}),
        ("identities", None, {"change": "delete", "actorId": actor_id, "subjectVersion": 3}),
        ("keys/revoke", None, {"role": "chat"}),
    ]
    assert actor_id


async def test_what_names_a_thing_that_is_not_there_says_so(api: Api) -> None:
    controls = api.server.controls
    for call in (
        lambda: controls.rotate_key("nobody"),
        lambda: controls.revoke_key("nobody"),
        lambda: controls.revoke_binding("nothing"),
        lambda: controls.revoke_identity("nobody"),
        lambda: controls.delete_identity("nobody"),
        lambda: controls.reset_identity("nobody"),
        lambda: controls.remove("thread", "nothing"),
        lambda: controls.remove("agent", "nothing"),
        lambda: controls.remove("team", "nothing"),
        lambda: controls.remove("planet", "nothing"),
        lambda: controls.configure_agent("nobody", None, profile=True),
        lambda: controls.set_guest("nothing", guest=True, closed=False),
        lambda: controls.seed_history("nothing", 1),
        lambda: controls.cancel_run("nothing"),
        lambda: controls.seed_key("chat", []),
    ):
        with pytest.raises(UsageError):
            call()


@pytest.mark.req("TM-052", "TM-038")
async def test_the_lines_of_the_turn_log_are_listed(api: Api) -> None:
    conversation = await api.opened("agent-plain")
    turn_id = (await api.message(conversation)).data["turnId"]
    await api.until(lambda: bool(api.turns("ended")))
    lines = api.server.controls.timing_lines()
    assert len(lines) == 1
    assert turn_id in str(lines[0])


async def test_a_model_whose_clock_was_moved_tells_that_time(api: Api) -> None:
    api.server.controls.move_clock(86_400_000)
    conversation = await api.opened("agent-plain")
    run = (await api.message(conversation)).data
    assert run["createdAt"] >= timestamp(api.ctx.clock.epoch_ms + 86_400_000)

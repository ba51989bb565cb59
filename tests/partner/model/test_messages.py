from __future__ import annotations

from pathlib import Path

import pytest

from tests.partner.model.calls import actor
from tests.partner.model.played import FIXTURES, LOOKS, SLOW, iterations, playing, virtually

HELLO = FIXTURES / "hello.yaml"


@pytest.mark.req("MSG-002", "MSG-004", "MSG-017", "MSG-023", "MSG-024", "TM-002", "US-015", "US-039")
def test_a_message_is_accepted_before_anything_of_it_is_done(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, SLOW) as play:
            reply = await play.say()
            assert reply.status == 202
            run = reply.data
            assert (run["status"], run["reason"], run["toolErrors"], run["usage"]) == ("accepted", None, [], None)
            assert run["timings"]["complete"] is False
            assert run["conversationId"] == play.conversation
            assert ":" not in run["runId"]
            polled = await play.run(run["runId"])
            same = ("runId", "conversationId", "turnId", "createdAt")
            assert {name: polled[name] for name in same} == {name: run[name] for name in same}
            assert polled["status"] == "running"
            await play.events(run["runId"])
            assert (await play.run(run["runId"]))["status"] == "completed"

    virtually(main)


@pytest.mark.req("MSG-005", "MSG-026", "MSG-027", "MSG-006", "MSG-008", "MSG-025", "MSG-038")
def test_a_key_opens_one_run_and_a_conversation_has_one_at_a_time(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, SLOW) as play:
            first = await play.say("hi", once="k1")
            run_id = first.data["runId"]
            again = await play.say("hi", once="k1")
            assert (again.status, again.data["runId"]) == (202, run_id)
            assert (await play.say("other", once="k2")).refusal == (409, "CHAT_CONFLICT")
            await play.events(run_id)
            after = await play.say("hi", once="k1")
            assert (after.data["runId"], after.data["status"]) == (run_id, "completed")
            for changed in ({"text": "ho"}, {"timezone": "Europe/Berlin"}, {"attachmentIds": ["f"]}):
                body = {"text": "hi", **changed}
                text = str(body.pop("text"))
                assert (await play.say(text, once="k1", **body)).refusal == (409, "CHAT_CONFLICT")
            assert (await play.say("other", once="k2")).status == 202

    virtually(main)


@pytest.mark.req("MSG-007")
def test_a_receipt_outlives_the_rotation_of_the_key(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, HELLO, agent="agent-plain") as play:
            first = await play.say("hi", once="k1")
            play.api.server.controls.rotate_key("chat")
            assert (await play.say("hi", once="k1")).data["runId"] == first.data["runId"]

    virtually(main)


@pytest.mark.req("MSG-028", "MSG-045")
def test_conversations_run_beside_each_other_and_share_no_keys(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, SLOW, agent="agent-plain") as play:
            first = await play.say("hi", once="k1")
            play.conversation = (await play.api.conversation("agent-plain")).data["conversationId"]
            second = await play.say("hi", once="k1")
            assert (first.status, second.status) == (202, 202)
            assert first.data["runId"] != second.data["runId"]

    virtually(main)


@pytest.mark.req("MSG-029")
def test_absent_null_and_empty_are_one_input(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, HELLO, agent="agent-plain") as play:
            runs = set()
            same: tuple[dict[str, object], ...] = (
                {},
                {"attachmentIds": None},
                {"attachmentIds": []},
                {"timezone": None},
            )
            for more in same:
                runs.add((await play.say("hi", once="k", **more)).data["runId"])
            assert len(runs) == 1

    virtually(main)


@pytest.mark.req("MSG-030", "MSG-031", "AT-030", "AT-036", "PA-046", "PA-045")
def test_malformed_messages(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, HELLO, agent="agent-plain") as play:
            nothing = (400, "VALIDATION_ERROR")
            invalid = (400, "CHAT_INVALID")
            for body, due in (
                ({}, nothing),
                ({"message": ""}, nothing),
                ({"message": " \n\t "}, nothing),
                ({"message": None, "attachmentIds": []}, nothing),
                ({"message": "x" * 32_001}, invalid),
                ({"message": 5}, invalid),
                ({"message": "x", "timezone": "Mars/Base"}, invalid),
                ({"message": "x", "timezone": "../etc/passwd"}, invalid),
                ({"message": "x", "timezone": "localtime"}, invalid),
                ({"message": "x", "timezone": ""}, invalid),
                ({"message": "x", "stray": 1}, invalid),
                ({"message": "x", "attachmentIds": "a"}, invalid),
                ({"attachmentIds": ["a", "a"]}, invalid),
                ({"message": "x", "externalTeamId": None}, invalid),
            ):
                key = f"m{play.api.next('m')}"
                sent = {**actor(), **body}
                reply = await play.api.call("POST", f"{play.path}/messages", sent, idempotency_key=key)
                assert reply.refusal == due, body
            assert (
                await play.api.call("POST", f"{play.path}/messages", {**actor(), "message": "x"})
            ).refusal == invalid
            run_id = (await play.say("😀" * 32_000, timezone="Europe/Berlin")).data["runId"]
            await play.events(run_id)
            assert (await play.history())["items"][1]["text"] == "😀" * 32_000

    virtually(main)


@pytest.mark.req("CX-025", "PA-050")
def test_a_message_needs_an_active_binding_before_all_else_of_the_state(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, LOOKS, bind=False) as play:
            denied = (403, "MCP_CONTEXT_DENIED")
            assert (await play.say()).refusal == denied
            play.api.server.controls.spend_budget(True)
            assert (await play.say()).refusal == denied
            # Attachments come before the context.
            assert (await play.say(attachmentIds=["none"])).refusal == (404, "CHAT_ATTACHMENT_NOT_FOUND")
            await play.api.bind(play.conversation)
            assert (await play.say()).refusal == (429, "QUOTA_EXCEEDED")
            play.api.server.controls.move_clock(301_000)
            await play.api.member()
            assert (await play.say()).refusal == denied

    virtually(main)


@pytest.mark.req("PA-019", "PA-051")
def test_a_spent_budget_leaves_the_key_unused(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, HELLO, agent="agent-plain") as play:
            play.api.server.controls.spend_budget(True)
            reply = await play.say("hi", once="k1")
            assert reply.status == 429
            assert (reply.body["error"]["code"], reply.body["error"]["reason"]) == ("QUOTA_EXCEEDED", "org_spend")
            assert "Retry-After" not in reply.headers
            play.api.server.controls.spend_budget(False)
            assert (await play.say("hi", once="k1")).status == 202

    virtually(main)


@pytest.mark.req("CX-018", "MCP-003")
def test_headers_of_the_partner_do_not_reach_the_store(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, LOOKS) as play:
            forged = dict.fromkeys(("X-Agent-Turn-Id", "X-Agent-Call-Id", "X-Store-Context-Grant"), "forged")
            body = {**actor(), "message": "hi"}
            reply = await play.api.call("POST", f"{play.path}/messages", body, idempotency_key="k", headers=forged)
            await play.events(reply.data["runId"])
            assert play.store.of("tools/call")
            for seen in play.store.seen:
                assert "forged" not in seen.headers.values()

    virtually(main)


@pytest.mark.req("MSG-040", "US-031")
def test_a_run_is_read_in_its_own_conversation_by_its_own_actor(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, HELLO, agent="agent-plain") as play:
            run_id = await play.accepted()
            other = (await play.api.conversation("agent-plain")).data["conversationId"]
            await play.api.member("employee-2")
            for path, query in (
                (f"/conversations/{other}/runs/{run_id}", actor()),
                (f"{play.path}/runs/{run_id}", actor("employee-2")),
                (f"{play.path}/runs/unknown", actor()),
            ):
                for tail in ("", "/events"):
                    assert (await play.api.call("GET", path + tail, query=query)).refusal == (404, "CHAT_UNAVAILABLE")

    virtually(main)


@pytest.mark.req("PA-027")
def test_an_old_key_starts_no_run_after_a_removal(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, iterations('- model: m\n  steps: [ { text: "SECRET-ANSWER" } ]\n')) as play:
            reply = await play.say("SECRET-QUESTION", once="k1")
            await play.events(reply.data["runId"])
            state = play.api.server.core.parts.state
            assert "SECRET-QUESTION" in state.dump()
            play.api.server.controls.remove("thread", play.conversation)
            assert (await play.say("SECRET-QUESTION", once="k1")).refusal == (404, "CHAT_UNAVAILABLE")
            assert "SECRET" not in state.dump()

    virtually(main)


@pytest.mark.req("PA-040")
def test_each_conflict_has_one_code_and_changes_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, SLOW) as play:
            api = play.api
            await api.member("boss", role="owner", revision=5)
            await api.member("gone", revision=5)
            await api.member("gone", revision=6, active=False, seconds=None)
            await api.conversation("agent-plain", once="create-once")
            api.server.controls.hold_queue(True)
            assert (await play.say("hi", once="k1")).status == 202
            before = api.server.core.parts.state.dump()
            conflicts = {
                "a changed message under its key": await play.say("ho", once="k1"),
                "a changed conversation under its key": await api.conversation("agent-mcp", once="create-once"),
                "a second message in a run": await play.say("more", once="k2"),
                "an outdated revision": await api.member("boss", role="owner", revision=4),
                "a contradiction of a revision": await api.member("boss", role="admin", revision=5),
                "a revoked membership made active": await api.member("gone", revision=7),
                "the last owner demoted": await api.member("boss", role="member", revision=6),
            }
            for what, reply in conflicts.items():
                assert reply.refusal == (409, "CHAT_CONFLICT"), what
            assert api.server.core.parts.state.dump() == before

    virtually(main)

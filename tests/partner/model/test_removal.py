from __future__ import annotations

from pathlib import Path

import pytest

from tests.partner.model.calls import USER, Api, running
from tests.partner.model.test_bodies import ACTOR, upload


async def filled(api: Api) -> tuple[str, str]:
    """A conversation with a finished turn, a file and a grant, all of which hold a marker."""
    conversation = await api.opened()
    await api.bind(conversation, grant="tg1.m4rker-grant")
    await upload(api, conversation, *ACTOR, ("file", b"m4rker-file", "text/plain", "m4rker.txt"))
    run_id: str = (await api.message(conversation, "m4rker-text", once="m")).data["runId"]
    await api.until(lambda: bool(api.turns("ended")))
    return conversation, run_id


def holding(folder: Path, marker: bytes) -> list[str]:
    """The files in which the marker stands."""
    return [entry.name for entry in folder.iterdir() if marker in entry.read_bytes()]


@pytest.mark.req("PA-026", "PA-027", "PRIV-012", "AT-024", "SSE-057")
@pytest.mark.parametrize("kind", ["thread", "agent", "team"])
async def test_a_removal_erases_content_and_leaves_ownership(tmp_path: Path, kind: str) -> None:
    async with running(state_path=tmp_path / "state.db") as api:
        conversation, run_id = await filled(api)
        member = (await api.member()).data
        state = api.server.core.parts.state
        assert "m4rker" in state.dump()
        assert holding(tmp_path, b"m4rker")
        api.server.controls.remove(kind, {"thread": conversation, "agent": "agent-mcp"}.get(kind, member["teamId"]))
        # The files of the state too, after each page was written.
        assert "m4rker" not in state.dump()
        assert not holding(tmp_path, b"m4rker")
        counts = api.server.controls.counts()
        assert [counts[name] for name in ("runs", "events", "items", "attachments")] == [0, 0, 0, 0]
        assert state.count("SELECT COUNT(*) FROM bindings") == 0
        graves = {(row["kind"], row["id"]) for row in state.rows("SELECT * FROM tombstones")}
        assert ("thread", conversation) in graves
        assert len(graves) == (1 if kind == "thread" else 2)
        for reply in (
            await api.history(conversation),
            await api.run(conversation, run_id),
            await api.events(conversation, run_id),
            await api.context(conversation),
            await api.message(conversation, "m4rker-text", once="m"),
            await api.message(conversation, "more"),
        ):
            assert reply.refusal == (404, "CHAT_UNAVAILABLE")
        assert api.server.controls.counts()["runs"] == 0


@pytest.mark.req("PA-027")
async def test_identities_stay_reserved_after_a_removal() -> None:
    async with running() as api:
        before = (await api.member()).data
        api.server.controls.remove("team", before["teamId"])
        assert (await api.member()).refusal == (404, "CHAT_UNAVAILABLE")
        assert (await api.member(team="team-2")).data["actorId"] == before["actorId"]


@pytest.mark.req("PA-026")
async def test_a_removal_stops_a_run_that_goes_on() -> None:
    async with running() as api:
        api.server.controls.hold_queue(True)
        conversation = await api.opened("agent-plain")
        await api.message(conversation)
        api.server.controls.remove("thread", conversation)
        api.server.controls.hold_queue(False)
        other = (await api.conversation("agent-plain")).data["conversationId"]
        run_id = (await api.message(other)).data["runId"]
        await api.until(lambda: bool(api.turns("ended")))
        assert {event.run_id for event in api.turns("ended")} == {run_id}
        assert {event.run_id for event in api.turns("model")} == {run_id}


@pytest.mark.req("PA-026")
async def test_other_conversations_keep_what_they_have() -> None:
    async with running() as api:
        kept, _ = await filled(api)
        gone = await api.opened("agent-plain", user=USER)
        api.server.controls.remove("thread", gone)
        api.server.controls.remove("agent", "agent-plain")
        assert [item["role"] for item in (await api.history(kept)).data["items"]][-1:] == ["user"]
        assert (await api.context(kept)).data["version"] == 1
        assert (await api.conversation("agent-plain")).refusal == (404, "CHAT_UNAVAILABLE")

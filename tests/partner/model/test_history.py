from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from lab.partner.model import cursors, history, refusals, words
from lab.partner.model.history import turn_view
from tests.partner.model.calls import Json, actor
from tests.partner.model.played import FIXTURES, LOOKS, SAYS, SLOW, USAGE, Play, iterations, playing, virtually
from tests.partner.model.standin import never

HELLO = FIXTURES / "hello.yaml"


async def walked(play: Play, limit: int) -> list[list[Json]]:
    """Every page of the history, newest first."""
    pages, cursor = [], None
    while True:
        page = await play.history(limit=str(limit), **({} if cursor is None else {"cursor": cursor}))
        pages.append(page["items"])
        cursor = page["nextCursor"]
        if cursor is None:
            return pages


@pytest.mark.req("HIS-003", "HIS-004", "HIS-007", "HIS-008", "HIS-017", "HIS-023", "HIS-025", "HIS-030", "HIS-031")
def test_a_turn_in_the_history(tmp_path: Path) -> None:
    script = iterations(
        '- model: m\n  steps: [ { text: "  look" }, { text: "ing\\n\\n" }, { tool: { name: catalog_get } } ]\n' + USAGE,
        '- model: m\n  steps: [ { text: "There. " } ]\n' + USAGE,
    )

    async def main() -> None:
        async with playing(tmp_path, script) as play:
            run, events = await play.played("any?")
            page = await play.history()
            answer, question = page["items"]
            assert page["nextCursor"] is None
            assert set(question) == {"id", "turnId", "role", "text", "createdAt", "attachments"}
            assert set(answer) == {*question, "parts"}
            assert (answer["role"], question["role"], answer["attachments"]) == ("assistant", "user", [])
            assert answer["text"] == "  looking\n\nThere. "
            assert answer["text"] == "".join(event.data["text"] for event in events if event.name == "text")
            assert [part.get("text") for part in answer["parts"]] == ["  looking\n\n", None, "There. "]
            assert answer["parts"][1] == {
                "type": "tool_call",
                "toolCallId": events[3].data["id"],
                "name": "catalog_get",
                "status": "succeeded",
            }
            assert run["turnId"] == answer["turnId"]

    virtually(main)


@pytest.mark.req("HIS-022", "HIS-032")
def test_the_answer_appears_with_its_first_text_and_its_parts_once_no_tool_is_open(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, LOOKS) as play:
            play.store.instead["tools/call"] = [never]
            play.api.server.controls.hold_queue(True)
            run_id = await play.accepted()
            assert [item["role"] for item in (await play.history())["items"]] == ["user"]
            play.api.server.controls.hold_queue(False)
            await play.until(lambda: "tool" in play.changes(run_id))
            items = (await play.history())["items"]
            assert [item["role"] for item in items] == ["assistant", "user"]
            assert "parts" not in items[0]
            # The call is given up after its time; then its end is in the journal of the turn.
            await play.events(run_id)
            assert [part["type"] for part in (await play.history())["items"][0]["parts"]] == ["tool_call", "text"]

    virtually(main)


@pytest.mark.req("HIS-032", "HIS-034")
def test_a_turn_that_said_nothing_has_no_answer(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, iterations('- model: m\n  steps: []\n  fails: "raw"\n')) as play:
            await play.played()
            assert [item["role"] for item in (await play.history())["items"]] == ["user"]

    virtually(main)


def test_text_is_seen_while_the_turn_goes_on(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, SLOW) as play:
            run_id = await play.accepted()
            async with play.stream(run_id) as response:
                await response.content.readuntil(b'"text":"a"}\n\n')
                answer = (await play.history())["items"][0]
                assert (answer["text"], answer["parts"]) == ("a", [{"type": "text", "text": "a"}])
                await response.read()
            assert (await play.history())["items"][0]["text"] == "ab"

    virtually(main)


@pytest.mark.req("HIS-002", "HIS-026", "HIS-029", "HIS-001")
def test_pages(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, HELLO, agent="agent-plain") as play:
            play.api.server.controls.seed_history(play.conversation, 25)
            assert [len(page) for page in await walked(play, 50)] == [50]
            await play.played()
            whole = await play.history()
            assert len(whole["items"]) == 50
            assert len((await play.history(cursor=whole["nextCursor"]))["items"]) == 2
            first = await play.history(limit="20")
            await play.played("in between")
            older = await play.history(limit="200", cursor=first["nextCursor"])
            ids = [item["id"] for item in (*first["items"], *older["items"])]
            assert len(ids) == len(set(ids)) == 52
            pages = await walked(play, 7)
            flat = [item for page in pages for item in page]
            assert [item["id"] for item in flat][2:] == ids
            times = [item["createdAt"] for item in flat]
            assert times == sorted(times, reverse=True)

    virtually(main)


@pytest.mark.req("HIS-024")
def test_pages_and_texts_are_the_same_without_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An API that does not know parts yet would have answered just so."""

    async def main() -> list[list[Json]]:
        async with playing(tmp_path, LOOKS) as play:
            for text in ("one", "two", "three"):
                await play.played(text)
            return await walked(play, 2)

    with_parts = virtually(main)
    monkeypatch.setattr(history, "turn_view", lambda state, run_id: replace(turn_view(state, run_id), parts=None))
    without = virtually(main)
    assert [len(page) for page in without] == [2, 2, 2]
    assert [item["parts"] for page in with_parts for item in page if item["role"] == "assistant"] != []
    for page in with_parts:
        for item in page:
            item.pop("parts", None)
    assert with_parts == without


@pytest.mark.req("HIS-028", "HIS-037")
def test_what_is_no_limit_and_no_cursor(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, HELLO, agent="agent-plain") as play:
            play.api.server.controls.seed_history(play.conversation, 3)
            cursor = (await play.history(limit="2"))["nextCursor"]
            other = await play.api.opened("agent-plain")
            bad = [{"limit": limit} for limit in ("0", "201", "-1", "1.5", "x", "", "01", "+1")]
            bad += [{"cursor": text} for text in ("", "abc", cursor + "A", cursor[:-1], "x" * 600)]
            for query in bad:
                reply = await play.api.call("GET", f"{play.path}/messages", query={**actor(), **query})
                assert reply.refusal == (400, "CHAT_INVALID"), query
            foreign = {**actor(), "cursor": cursor}
            reply = await play.api.call("GET", f"/conversations/{other}/messages", query=foreign)
            assert reply.refusal == (400, "CHAT_INVALID")

    virtually(main)


@pytest.mark.req("HIS-035")
def test_the_history_of_another_actor_is_unavailable(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, HELLO, agent="agent-plain") as play:
            await play.api.member("employee-2")
            reply = await play.api.call("GET", f"{play.path}/messages", query=actor("employee-2"))
            assert reply.refusal == (404, "CHAT_UNAVAILABLE")

    virtually(main)


@pytest.mark.req("HIS-021", "HIS-038", "TM-005", "TM-043", "US-016")
def test_turns_from_before_journals_have_neither_parts_nor_figures(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, HELLO, agent="agent-plain") as play:
            (run_id,) = play.api.server.controls.seed_history(play.conversation, 1)
            run = await play.run(run_id)
            assert (run["status"], run["timings"], run["usage"]) == ("completed", None, None)
            assert all("parts" not in item for item in (await play.history())["items"])
            last = (await play.events(run_id))[-1].data
            assert (last["timings"], last["usage"]) == (None, None)

    virtually(main)


@pytest.mark.req("HIS-004", "HIS-030")
def test_an_answer_is_not_older_than_its_question_when_the_clock_is_set_back(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, iterations(SAYS), agent="agent-plain") as play:
            play.api.server.controls.hold_queue(True)
            run_id = await play.accepted()
            play.api.server.controls.move_clock(-30_000)
            play.api.server.controls.hold_queue(False)
            await play.events(run_id)
            answer, question = (await play.history())["items"]
            assert (answer["role"], question["role"]) == ("assistant", "user")
            assert answer["createdAt"] >= question["createdAt"]
            assert (await play.run(run_id))["timings"]["queuedMs"] == 0

    virtually(main)


@pytest.mark.req("PA-059")
def test_what_was_chosen_for_cursors_and_quotas_is_corrected_in_one_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The names of the table are given a value there alone, and all that is done follows it."""
    table = ("HISTORY_LIMIT_DEFAULT", "HISTORY_LIMIT_MOST", "CURSOR_CHARACTERS", "ORG_SPEND")
    given = re.compile(rf"^({'|'.join(table)})\b.*=", re.MULTILINE)
    files = sorted(Path(words.__file__).parent.glob("*.py"))
    assert {file.name: given.findall(file.read_text("utf-8")) for file in files if given.search(file.read_text())} == {
        "words.py": ["ORG_SPEND", "HISTORY_LIMIT_DEFAULT", "HISTORY_LIMIT_MOST", "CURSOR_CHARACTERS"]
    }
    monkeypatch.setattr(history, "HISTORY_LIMIT_DEFAULT", 3)
    monkeypatch.setattr(history, "HISTORY_LIMIT_MOST", 4)
    monkeypatch.setattr(cursors, "CURSOR_CHARACTERS", 3)
    monkeypatch.setattr(refusals, "ORG_SPEND", "another_word")
    assert "another_word" in str(refusals.quota_exceeded("spent").body())

    async def main() -> None:
        async with playing(tmp_path, HELLO, agent="agent-plain") as play:
            play.api.server.controls.seed_history(play.conversation, 3)
            page = await play.history()
            assert len(page["items"]) == 3
            for query in ({"limit": "5"}, {"cursor": page["nextCursor"]}):
                reply = await play.api.call("GET", f"{play.path}/messages", query={**actor(), **query})
                assert reply.refusal == (400, "CHAT_INVALID")

    virtually(main)

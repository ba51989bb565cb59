"""Newest first, each item once, and the same words and tools as the stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from lab.journal.events import digest
from lab.laws import Status
from tests.laws.partner.journals import ANSWER, PartnerTale, running

ORDER = "history-order"
EQUAL = "history-equals-stream"

PARTS: list[Mapping[str, Any]] = [
    {"type": "tool_call", "toolCallId": "call_1", "name": "catalog_get", "status": "succeeded"},
    {"type": "text", "text": digest("text", "an answer")},
]


def told() -> PartnerTale:
    """A turn that was followed to its end."""
    t = running()
    t.tell(ANSWER)
    t.text()
    return t


def item(n: int, role: str = "user", turn: str = "") -> dict[str, Any]:
    """Item `n`; a higher one is newer."""
    created = f"2023-11-14T22:13:{n:02d}.000Z"
    return PartnerTale().item(role, "x", id=f"i{n}", turnId=turn or f"t{n}", createdAt=created)


@pytest.mark.req("HIS-004")
def test_an_older_item_before_a_newer_one() -> None:
    t = PartnerTale()
    first = t.history(item(3), following="c")
    second = t.history(item(4), cursor="c")
    found = t.violation(ORDER)
    assert (found.due, found.entries) == ("newest first", (first, second))


@pytest.mark.req("HIS-029")
def test_an_item_twice_in_a_walk() -> None:
    t = PartnerTale()
    first = t.history(item(4), item(3), following="c")
    second = t.history(item(3), item(2), cursor="c")
    found = t.violation(ORDER)
    assert (found.due, found.entries) == ("each item once", (first, second))


@pytest.mark.req("HIS-030")
def test_a_question_before_its_answer() -> None:
    t = PartnerTale()
    t.history(item(3, "user", "t"), {**item(3, "assistant", "t"), "id": "a"})
    assert t.violation(ORDER).due == "the answer before its question"


@pytest.mark.req("HIS-002")
@pytest.mark.parametrize(("limit", "count"), [(1, 2), (None, 51)])
def test_a_page_that_is_too_long(limit: int | None, count: int) -> None:
    t = PartnerTale()
    items = [{**item(3), "id": f"i{n}", "turnId": f"t{n}"} for n in range(count)]
    sent = {} if limit is None else {"limit": limit}
    t.call("history", 200, sent, {"items": items, "nextCursor": None})
    assert t.violation(ORDER).seen == f"a page of {count} items"


@pytest.mark.req("HIS-026")
def test_an_empty_page_behind_a_cursor() -> None:
    t = PartnerTale()
    t.history(item(3), following="c")
    t.history(cursor="c")
    assert t.violation(ORDER).due == "null on the last page"


def test_a_walk_and_another_from_its_start() -> None:
    t = PartnerTale()
    for _ in range(2):
        t.history(item(4), item(3), following="c")
        t.history(item(2), item(1), cursor="c")
    assert t.status(ORDER) is Status.HELD


@pytest.mark.req("HIS-031")
@pytest.mark.parametrize("role", ["assistant", "user"])
def test_other_words_than_the_stream_s_or_the_message_s(role: str) -> None:
    t = told()
    n = t.history(t.item(role, "other words"), following="more")
    found = t.violation(EQUAL)
    assert found.entries[1] == n
    assert found.due == ("the text of the stream" if role == "assistant" else "the message as sent")


@pytest.mark.req("HIS-009", "HIS-011", "HIS-012", "SSE-042")
@pytest.mark.parametrize(
    "parts",
    [
        PARTS[1:],
        [{**PARTS[0], "status": "failed"}, PARTS[1]],
        [{**PARTS[0], "toolCallId": "call_2"}, PARTS[1]],
        [{**PARTS[0], "name": "other"}, PARTS[1]],
        [PARTS[0], PARTS[0], PARTS[1]],
        PARTS[:1],
        [*PARTS, PARTS[1]],
        [PARTS[0], {"type": "text", "text": digest("text", "other")}],
    ],
)
def test_parts_that_are_not_the_stream_s(parts: list[Mapping[str, Any]]) -> None:
    t = told()
    n = t.history(t.item("assistant", "an answer", parts=parts), following="more")
    assert t.violation(EQUAL).entries[-1] == n


@pytest.mark.req("HIS-033")
def test_parts_of_a_turn_with_an_open_tool() -> None:
    t = running()
    t.tell([*ANSWER[:2], ("run_status", {"status": "cancelled"})])
    t.history(t.item("assistant", "", parts=PARTS))
    assert t.violation(EQUAL).seen == "parts of a turn with an open tool call"


@pytest.mark.req("HIS-007", "HIS-023")
@pytest.mark.parametrize(
    ("role", "text", "more", "due"),
    [
        ("assistant", "an answer", {"attachments": ["f"]}, "an empty list"),
        ("user", "hello", {"parts": PARTS}, "no parts"),
    ],
)
def test_what_one_side_of_a_turn_never_has(role: str, text: str, more: Mapping[str, Any], due: str) -> None:
    t = told()
    t.history(t.item(role, text, **more), following="more")
    assert t.violation(EQUAL).due == due


@pytest.mark.req("AT-046")
def test_attachments_in_another_order() -> None:
    t = running()
    t.made.run, t.made.turn = "run-2", "turn-2"
    t.message(sent={"attachmentIds": ("b", "a")})
    t.poll()
    t.history(t.item("user", "hello", attachments=["a", "b"]))
    assert t.violation(EQUAL).due == "those of attachmentIds in order"


def test_a_turn_that_history_does_not_tell() -> None:
    t = told()
    n = t.history(t.item("user", "hello"))
    found = t.violation(EQUAL)
    assert (found.seen, found.entries[-1]) == ("a turn that history does not tell", n)


def test_a_turn_that_history_tells() -> None:
    t = told()
    t.history(t.item("assistant", "an answer", parts=PARTS), t.item("user", "hello"))
    assert t.status(EQUAL) is Status.HELD


def test_history_from_before_the_end_tells_nothing() -> None:
    t = running()
    t.history(t.item("assistant", "an"), t.item("user", "hello"))
    t.tell(ANSWER)
    t.text()
    assert t.status(EQUAL) is Status.NOTHING


def test_a_text_of_which_a_part_was_not_seen_tells_nothing() -> None:
    t = running()
    t.tell(ANSWER)
    t.text(text="an", events=5)
    t.history(t.item("assistant", "an answer", parts=PARTS), t.item("user", "hello"))
    assert t.status(EQUAL) is Status.HELD

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.partner.model.runs import StoredEvent
from lab.partner.model.turn_view import view_of


def events(*told: dict[str, object]) -> list[StoredEvent]:
    return [StoredEvent(n, str(data["type"]), json.dumps(data)) for n, data in enumerate(told, 1)]


def text(words: str) -> dict[str, object]:
    return {"type": "text", "text": words}


def call(name: str, call_id: str) -> dict[str, object]:
    return {"type": "tool_call", "name": name, "id": call_id}


def result(name: str, ok: bool) -> dict[str, object]:
    return {"type": "tool_result", "name": name, "ok": ok}


def part(name: str, call_id: str, status: str) -> dict[str, str]:
    return {"type": "tool_call", "toolCallId": call_id, "name": name, "status": status}


@pytest.mark.req("HIS-011", "HIS-012", "HIS-013")
def test_deltas_join_until_a_tool_comes_and_keep_their_white_space() -> None:
    view = view_of(
        events(
            {"type": "turn", "turnId": "t"},
            text("  I "),
            text("look.\n\n"),
            call("catalog_get", "call-1"),
            result("catalog_get", True),
            text("Done"),
            text(". "),
            {"type": "done", "stopReason": "completed"},
        )
    )
    assert view.parts == [
        {"type": "text", "text": "  I look.\n\n"},
        part("catalog_get", "call-1", "succeeded"),
        {"type": "text", "text": "Done. "},
    ]
    assert view.text == "  I look.\n\nDone. "


@pytest.mark.req("HIS-022", "HIS-033")
def test_a_tool_without_its_end_leaves_the_parts_out() -> None:
    view = view_of(events(text("a"), call("x", "1"), call("y", "2"), result("y", True)))
    assert (view.text, view.parts) == ("a", None)


@pytest.mark.req("HIS-034")
def test_nothing_said_is_no_empty_list() -> None:
    assert view_of(events({"type": "turn", "turnId": "t"})).parts is None


@pytest.mark.req("SSE-041")
def test_a_result_belongs_to_the_oldest_open_call_of_its_name() -> None:
    view = view_of(events(call("x", "1"), call("x", "2"), result("x", False), result("x", True)))
    assert view.parts == [part("x", "1", "failed"), part("x", "2", "succeeded")]


@pytest.mark.req("HIS-031")
@given(st.lists(st.text(min_size=1) | st.none(), max_size=20))
def test_the_text_is_what_its_parts_and_its_deltas_say(told: list[str | None]) -> None:
    made: list[dict[str, object]] = []
    for number, words in enumerate(told):
        made += [text(words)] if words is not None else [call("x", str(number)), result("x", True)]
    view = view_of(events(*made))
    assert view.text == "".join(words for words in told if words is not None)
    assert view.text == "".join(one["text"] for one in view.parts or [] if one["type"] == "text")

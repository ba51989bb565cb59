import json
from typing import Any

import pytest

from lab.partner.client.run_events import RunEvents, ToolCall, sequence_untrusted
from lab.partner.client.sse_reader import WireEvent
from tests.partner.samples import NOW, RUN


def event(number: int | str, name: str, /, **members: object) -> WireEvent:
    return WireEvent(f"r:{number}", name, json.dumps({"type": name, **members}))


def taken(*events: WireEvent) -> RunEvents:
    told = RunEvents("r")
    for one in events:
        told.take(one)
    return told


STATUS: dict[str, Any] = {name: RUN[name] for name in ("status", "reason", "toolErrors", "usage")}


@pytest.mark.req("SSE-012", "SSE-013", "SSE-014")
def test_texts_join_and_tools_divide_them() -> None:
    told = taken(
        event(1, "turn", turnId="t", ts=NOW),
        event(2, "text", text="Look"),
        event(3, "text", text="ing. "),
        event(4, "tool_call", name="catalog_get", id="call_1"),
        event(5, "tool_result", name="catalog_get", ok=True),
        event(6, "text", text="Blue."),
        event(7, "done", stopReason="completed"),
        event(8, "run_status", **STATUS),
    )
    assert (told.text, told.segments) == ("Looking. Blue.", ("Looking. ", "Blue."))
    assert told.tools == [ToolCall("call_1", "catalog_get", True)]
    assert (told.stop_reason, told.last, told.applied, told.over) == ("completed", 8, 8, True)
    assert told.end is not None
    assert (told.end.status, told.end.tool_errors[0].tool_call_id) == ("completed", "call_1")
    assert told.end.usage is not None
    assert "Blue" not in repr(told)


@pytest.mark.req("SSE-041")
def test_results_belong_to_the_oldest_open_call_of_their_name() -> None:
    told = taken(
        event(1, "tool_call", name="a", id="1"),
        event(2, "tool_call", name="b", id="2"),
        event(3, "tool_call", name="a", id="3"),
        event(4, "tool_result", name="a", ok=False, error="TOOL_FAILED"),
        event(5, "tool_result", name="a", ok=True),
        event(6, "tool_result", name="zzz", ok=True),
        event(7, "run_status", status="cancelled"),
    )
    assert told.tools == [ToolCall("1", "a", False), ToolCall("2", "b", None), ToolCall("3", "a", True)]


@pytest.mark.req("SSE-046")
def test_what_was_applied_is_dropped() -> None:
    told = RunEvents("r")
    assert [told.take(event(number, "text", text="x")) for number in (1, 2, 2, 1, 3)] == [
        True,
        True,
        False,
        False,
        True,
    ]
    assert told.text == "xxx"


@pytest.mark.req("SSE-030")
def test_gaps_are_no_matter() -> None:
    assert taken(event(5, "text", text="a"), event(9, "text", text="b")).text == "ab"


@pytest.mark.req("SSE-028")
def test_a_run_status_needs_only_type_and_status() -> None:
    told = taken(event(1, "run_status", status="failed"))
    assert told.end is not None
    assert (told.end.status, told.end.reason, told.end.tool_errors, told.end.usage) == ("failed", None, (), None)


@pytest.mark.req("MSG-015")
def test_figures_of_another_form_do_not_hide_the_status() -> None:
    told = taken(event(1, "done", stopReason="completed"), event(2, "run_status", status="failed", usage=5))
    assert told.end is not None
    assert told.end.status == "failed"


@pytest.mark.req("SSE-029")
def test_an_early_status_is_passed_over() -> None:
    told = taken(event(1, "run_status", status="running"), event(2, "run_status", status="paused"))
    assert told.end is None
    assert not told.over


@pytest.mark.req("SSE-051")
def test_unknown_events_are_recorded_and_passed_over() -> None:
    told = taken(event(1, "weather", text="x"), event(2, "text", text="y"))
    assert (told.unknown, told.text) == (["weather"], "y")


@pytest.mark.req("SSE-017", "SSE-027")
def test_codes_and_stop_reasons_are_any_text() -> None:
    told = taken(event(1, "done", stopReason="because"), event(2, "error", code="CHAT_EXECUTION_FAILED"))
    assert (told.stop_reason, told.error_code, told.over) == ("because", "CHAT_EXECUTION_FAILED", True)


@pytest.mark.parametrize("data", [None, "", "[]", "{", "5"])
def test_an_event_without_an_object_counts_its_sequence_alone(data: str | None) -> None:
    told = RunEvents("r")
    assert told.take(WireEvent("r:1", "text", data))
    assert (told.last, told.applied, told.text) == (1, 0, "")


@pytest.mark.req("SSE-003", "PA-047")
@pytest.mark.parametrize(
    ("run_id", "event_id", "sequence"),
    [
        ("r", "r:0", 0),
        ("r", "r:12", 12),
        ("a b", "a b:1", 1),
        ("r", "x:1", None),
        ("r", "r:", None),
        ("r", "r:-1", None),
        ("r", "r:1.5", None),
        ("r", "r:x:1", None),
        ("r", "r:٣", None),
        ("r", "r:" + "1" * 17, None),
        ("r", "1", None),
        ("r", None, None),
    ],
)
def test_the_number_of_an_id(run_id: str, event_id: str | None, sequence: int | None) -> None:
    assert sequence_untrusted(run_id, event_id) == sequence

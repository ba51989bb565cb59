"""One status that stays, told alike by stream and poll, and no effect behind it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from lab.laws import Status
from tests.laws.partner.journals import ANSWER, PENDING, TIMINGS, PartnerTale, answered, running

FINAL = "terminal-is-final"
IDS = "run-keeps-its-ids"
EQUAL = "stream-equals-run"
TABLE = "stop-reason-table"
ERRORS = "tool-errors"
RERUN = "interrupted-never-rerun"
EFFECT = "no-effect-after-end"

OTHERWISE: Mapping[str, Any] = {
    "status": "failed",
    "reason": "TOOL_REFUSED",
    "timings": {**TIMINGS, "queuedMs": 3},
    "usage": None,
    "toolErrors": [{"toolCallId": "c", "name": "a", "errorCode": "TOOL_FAILED"}],
}


@pytest.mark.req("MSG-022", "US-026", "US-028")
@pytest.mark.parametrize("name", OTHERWISE)
def test_a_terminal_run_that_changes(name: str) -> None:
    t = running()
    first, again = t.poll(), t.poll(**{name: OTHERWISE[name]})
    found = t.violation(FINAL)
    assert (found.seen, found.entries) == (f"{name} of the completed run changed", (first, again))


@pytest.mark.req("MSG-022", "SSE-055")
def test_a_run_that_lives_after_its_end() -> None:
    t = answered()
    n = t.poll("running")
    found = t.violation(FINAL)
    assert (found.seen, found.entries[1]) == ("running after completed", n)


def test_a_poll_that_was_asked_before_the_end() -> None:
    t = running()
    began = len(t.entries)
    t.tell(ANSWER)
    t.poll("running", began=began)
    assert t.status(FINAL) is Status.HELD


@pytest.mark.req("MSG-022")
def test_a_run_that_goes_back() -> None:
    t = running()
    t.poll("running")
    t.poll("accepted")
    t.poll()
    assert t.violation(FINAL).seen == "accepted after running"


def test_a_replayed_answer_may_tell_older_figures() -> None:
    t = answered()
    t.message(idempotency_key="k", answer={"status": "completed", "timings": PENDING, "usage": None})
    assert t.status(FINAL) is Status.HELD


@pytest.mark.req("MSG-004", "MSG-039")
@pytest.mark.parametrize("name", ["turnId", "conversationId", "createdAt"])
def test_a_run_with_another_id(name: str) -> None:
    t = running()
    other: dict[str, Any] = {name: "other"}
    t.poll("running", **other)
    assert t.violation(IDS).seen == f"another {name} of one run"


@pytest.mark.req("MSG-016", "SSE-024", "SSE-025", "TM-042", "US-001")
@pytest.mark.parametrize("name", OTHERWISE)
def test_a_poll_that_differs_from_the_stream(name: str) -> None:
    t = running()
    last = t.tell(ANSWER)[-1]
    n = t.poll(**{name: OTHERWISE[name]})
    found = t.violation(EQUAL)
    assert (found.seen, found.entries) == (f"{name} of the polled run differs", (last, n))


def test_without_a_poll_there_is_nothing_to_compare() -> None:
    t = running()
    t.tell(ANSWER)
    assert t.status(EQUAL) is Status.NOTHING


def _ended(done: str | None, status: str, reason: str | None, error: str | None = None) -> PartnerTale:
    t = running()
    events: list[tuple[str, Mapping[str, Any]]] = [("turn", {"turnId": "turn"})]
    if done is not None:
        events.append(("done", {"stopReason": done}))
    last = {"status": status, "reason": reason}
    t.tell([*events, ("run_status", last) if error is None else ("error", {"code": error})])
    t.poll(status, reason=reason)
    return t


@pytest.mark.req("MSG-012", "MSG-013", "MSG-014")
@pytest.mark.parametrize(
    ("done", "status", "reason", "error"),
    [
        ("completed", "failed", "TOOL_REFUSED", None),
        ("completed", "completed", "TOOL_REFUSED", None),
        ("tool_error", "completed", None, None),
        ("tool_error", "failed", "CHAT_EXECUTION_FAILED", None),
        ("max_iterations", "completed", None, None),
        (None, "completed", None, None),
        (None, "limited", None, None),
        (None, "failed", "TOOL_REFUSED", None),
        (None, "completed", None, "CHAT_EXECUTION_FAILED"),
        (None, "failed", "EXECUTION_DENIED", "QUOTA_EXCEEDED"),
    ],
)
def test_an_end_that_does_not_fit(done: str | None, status: str, reason: str | None, error: str | None) -> None:
    assert _ended(done, status, reason, error).status(TABLE) is Status.BROKEN


@pytest.mark.parametrize(
    ("done", "status", "reason", "error"),
    [
        ("completed", "completed", None, None),
        ("tool_error", "failed", "TOOL_REFUSED", None),
        ("max_iterations", "limited", None, None),
        (None, "interrupted", None, None),
        (None, "cancelled", None, None),
        (None, "failed", "CHAT_EXECUTION_FAILED", "CHAT_EXECUTION_FAILED"),
    ],
)
def test_an_end_that_fits(done: str | None, status: str, reason: str | None, error: str | None) -> None:
    assert _ended(done, status, reason, error).status(TABLE) is Status.HELD


def test_a_stop_reason_that_nobody_knows_tells_nothing() -> None:
    assert _ended("bored", "completed", None).status(TABLE) is Status.UNKNOWN


# Tools

CALLS = (
    ("turn", {"turnId": "turn"}),
    ("tool_call", {"name": "a", "toolCallId": "c1"}),
    ("tool_call", {"name": "a", "toolCallId": "c2"}),
    ("tool_call", {"name": "b", "toolCallId": "c3"}),
    ("tool_result", {"name": "b", "ok": False, "error": "TOOL_FAILED"}),
    ("tool_result", {"name": "a", "ok": True}),
    ("tool_result", {"name": "a", "ok": False, "error": "TOOL_FAILED"}),
    ("done", {"stopReason": "completed"}),
    ("run_status", {"status": "completed"}),
)


def _errors(*ids: tuple[str, str]) -> list[dict[str, str]]:
    return [{"toolCallId": one, "name": name, "errorCode": "TOOL_FAILED"} for one, name in ids]


@pytest.mark.req("MSG-016", "MSG-018", "MSG-041")
@pytest.mark.parametrize(
    "told",
    [
        [],
        _errors(("c3", "b")),
        _errors(("c2", "a"), ("c3", "b")),
        _errors(("c3", "b"), ("c1", "a")),
        _errors(("c3", "b"), ("c2", "a"), ("c2", "a")),
        [*_errors(("c3", "b")), {"toolCallId": "c2", "name": "a", "errorCode": "boom"}],
    ],
)
def test_tool_errors_that_are_not_the_failed_calls(told: list[dict[str, str]]) -> None:
    t = running()
    t.tell(CALLS)
    n = t.poll(toolErrors=told)
    assert t.violation(ERRORS).entries == (n,)


def test_tool_errors_in_the_order_of_their_results() -> None:
    t = running()
    t.tell(CALLS)
    t.poll(toolErrors=_errors(("c3", "b"), ("c2", "a")))
    assert t.status(ERRORS) is Status.HELD


@pytest.mark.req("MSG-017")
def test_no_list_of_tool_errors() -> None:
    t = running()
    t.tell(ANSWER)
    t.poll(toolErrors=None)
    assert t.violation(ERRORS).seen == "no list of toolErrors"


@pytest.mark.req("SSE-022", "SSE-044")
@pytest.mark.parametrize(
    "facts", [{"ok": False}, {"ok": False, "error": "no such product"}, {"ok": True, "error": "TOOL_FAILED"}]
)
def test_a_result_with_another_error(facts: Mapping[str, Any]) -> None:
    t = running()
    t.tell(ANSWER[:2])
    n = t.event(3, "tool_result", None, name="catalog_get", **facts)
    assert t.violation(ERRORS).entries == (n,)


# Effects behind the end


@pytest.mark.req("MSG-010", "MSG-011")
@pytest.mark.parametrize("effect", ["claimed", "model", "tool", "store"])
@pytest.mark.parametrize(("status", "law"), [("interrupted", RERUN), ("cancelled", EFFECT), ("completed", EFFECT)])
def test_an_effect_behind_the_end(effect: str, status: str, law: str) -> None:
    t = running()
    end = t.poll(status)
    t.wait(1.0)
    n = t.tool() if effect == "store" else t.turn(effect, status="running")
    assert t.violation(law).entries == (end, n)


def test_what_was_on_its_way_may_still_arrive() -> None:
    t = running()
    t.poll("interrupted")
    t.wait(0.1).tool()
    judged = t.judged(RERUN)
    assert (judged.status, judged.judgement.unsure) == (Status.HELD, 1)


def test_a_run_that_completed_is_no_interrupted_one() -> None:
    t = answered()
    assert (t.status(RERUN), t.status(EFFECT)) == (Status.NOTHING, Status.HELD)
    assert t.judged(EQUAL).judgement.judged == 1

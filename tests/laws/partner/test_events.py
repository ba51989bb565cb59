"""Numbers without gaps, the same bytes at each replay, and an order that tells a turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from lab.journal.partner_events import PartnerStream
from lab.laws import Status
from tests.laws.partner.journals import ANSWER, PartnerTale, answered, running

IDS = "event-ids"
RESUME = "resume-continues"
REPLAY = "replay-identical"
GRAMMAR = "event-grammar"


@pytest.mark.req("SSE-003", "SSE-030")
def test_a_sequence_that_skips_one() -> None:
    t = running()
    first, second = t.event(1, "turn"), t.event(3, "text")
    found = t.violation(IDS)
    assert (found.seen, found.due, found.entries) == ("event 3", "event 2", (first, second))


def test_a_sequence_that_falls() -> None:
    t = running()
    t.tell(ANSWER[:2])
    t.event(1, "turn")
    assert t.violation(IDS).seen == "event 1"


@pytest.mark.req("SSE-003")
@pytest.mark.parametrize("event_id", ["other:1", "run:01", "1", ""])
def test_an_id_that_is_not_the_run_s(event_id: str) -> None:
    t = running()
    n = t.event(1, "turn", {"event_id": event_id})
    assert t.violation(IDS).entries == (n,)


def test_an_id_from_nought() -> None:
    t = running()
    t.event(0, "turn")
    assert t.violation(IDS).due == "sequences from 1"


@pytest.mark.req("SSE-005", "SSE-006", "SSE-007")
@pytest.mark.parametrize(("after", "first"), [(None, 2), (0, 2), (2, 2), (2, 4)])
def test_a_stream_that_begins_elsewhere(after: int | None, first: int) -> None:
    t = running()
    opened = t.open(after)
    n = t.event(first, "text")
    found = t.violation(RESUME)
    assert (found.due, found.entries) == (f"event {(after or 0) + 1}", (opened, n))


@pytest.mark.parametrize(("after", "first"), [(None, 1), (0, 1), (2, 3)])
def test_a_stream_that_goes_on(after: int | None, first: int) -> None:
    t = running()
    t.open(after)
    t.event(first, "text")
    assert t.status(RESUME) is Status.HELD


@pytest.mark.req("SSE-031")
def test_a_stream_for_no_id_of_the_run() -> None:
    t = running()
    n = t.open(sentLastEventId="x:1")
    assert t.violation(RESUME).entries == (n,)


@pytest.mark.req("SSE-005")
def test_a_stream_that_ends_before_what_was_told_before() -> None:
    t = running()
    _, later = t.tell(ANSWER[:2])
    t.open(1)
    over = t.close()
    found = t.violation(RESUME)
    assert (found.seen, found.entries) == ("no event after 1", (later, over))


def test_nothing_comes_behind_the_last_event() -> None:
    t = answered()
    t.open(6)
    t.close()
    assert t.status(RESUME) is Status.HELD


@pytest.mark.parametrize(
    ("control", "excused"),
    [
        *((control, True) for control in ("clock", "identities", "keys/rotate", "keys/revoke", "removals")),
        *((control, False) for control in ("queue", "budget", "agents", "guest", "bindings/revoke")),
    ],
)
def test_a_stream_may_end_without_a_word_where_a_control_took_a_right(control: str, excused: bool) -> None:
    t = running()
    t.tell(ANSWER[:2])
    t.request("clock", route=f"/__lab/{control}")
    t.open(1)
    t.close()
    judged = t.judged(RESUME)
    assert (judged.status is Status.BROKEN, judged.judgement.unsure) == (not excused, int(excused))


def test_a_stream_may_end_without_a_word_where_authority_was_lost() -> None:
    t = running()
    t.tell(ANSWER[:2])
    t.membership(2, active=False)
    t.open(1)
    t.close()
    judged = t.judged(RESUME)
    assert (judged.status, judged.judgement.unsure) == (Status.HELD, 1)


@pytest.mark.req("SSE-005")
@pytest.mark.parametrize(("named", "word"), [(0, Status.BROKEN), (2, Status.BROKEN), (9, Status.HELD)])
def test_a_refusal_of_an_event_that_was_delivered(named: int, word: Status) -> None:
    t = running()
    t.tell(ANSWER[:2])
    t.add(PartnerStream(9, "run", "refused", "conv", 400, "CHAT_INVALID", named))
    assert t.status(RESUME) is word


@pytest.mark.req("SSE-045")
@pytest.mark.parametrize("change", ["sha256", "name"])
def test_a_replay_with_other_bytes(change: str) -> None:
    t = running()
    first = t.event(1, "turn")
    t.open()
    again = t.event(1, "turn", {change: "other"})
    assert t.violation(REPLAY).entries == (first, again)


def test_a_replay_with_the_same_bytes() -> None:
    t = running()
    t.event(1, "turn")
    assert t.status(REPLAY) is Status.NOTHING
    t.open()
    t.event(1, "turn")
    assert t.status(REPLAY) is Status.HELD


# The order of a turn

Told = Sequence[tuple[str, Mapping[str, Any]]]
CALL: tuple[str, Mapping[str, Any]] = ("tool_call", {"name": "a", "toolCallId": "c"})
RESULT: tuple[str, Mapping[str, Any]] = ("tool_result", {"name": "a", "ok": True})
TURN: tuple[str, Mapping[str, Any]] = ("turn", {"turnId": "turn"})
TEXT: tuple[str, Mapping[str, Any]] = ("text", {})
DONE: tuple[str, Mapping[str, Any]] = ("done", {"stopReason": "completed"})
LAST: tuple[str, Mapping[str, Any]] = ("run_status", {"status": "completed"})
ERROR: tuple[str, Mapping[str, Any]] = ("error", {"code": "CHAT_EXECUTION_FAILED"})


@pytest.mark.req("SSE-019", "SSE-029", "SSE-036", "SSE-040")
@pytest.mark.parametrize(
    ("events", "seen"),
    [
        ([TEXT], "text as the first event"),
        ([TURN, TURN], "turn as a later event"),
        ([TURN, RESULT], "tool_result of a without an open tool_call"),
        ([TURN, CALL, RESULT, RESULT], "tool_result of a without an open tool_call"),
        ([TURN, CALL, DONE], "done with an open tool_call"),
        ([TURN, DONE, TEXT], "text after done"),
        ([TURN, DONE, ERROR], "error after done"),
        ([TURN, LAST, TEXT], "text after run_status"),
        ([TURN, LAST, LAST], "run_status after run_status"),
        ([TURN, ERROR, LAST], "run_status after error"),
        ([TURN, ("run_status", {"status": "running"})], "run_status running"),
        ([TURN, ("turn.started", {})], "an event of type turn.started"),
        ([("turn", {"turnId": "other"})], "a turn event with another turnId"),
    ],
)
def test_an_order_that_tells_no_turn(events: Told, seen: str) -> None:
    t = running()
    t.tell(events)
    assert t.violation(GRAMMAR).seen == seen


@pytest.mark.parametrize(
    "events",
    [
        [TURN, TEXT, CALL, CALL, RESULT, TEXT, RESULT, DONE, LAST],
        [TURN, CALL, ERROR],
        [TURN, CALL, ("run_status", {"status": "cancelled"})],
        [ERROR],
        [TURN],
    ],
)
def test_an_order_that_tells_one(events: Told) -> None:
    t = running()
    t.tell(events)
    assert t.status(GRAMMAR) is Status.HELD


@pytest.mark.req("SSE-004")
def test_a_name_that_is_not_the_type() -> None:
    t = running()
    n = t.event(1, "turn", {"name": "text"})
    assert t.violation(GRAMMAR).entries == (n,)


def test_events_whose_beginning_was_not_seen() -> None:
    t = PartnerTale()
    t.open(4)
    t.event(5, "text")
    assert t.status(GRAMMAR) is Status.UNKNOWN


def test_what_lies_behind_a_gap_is_not_judged() -> None:
    t = running()
    t.event(1, "turn")
    t.event(4, "tool_result", name="a")
    assert t.status(GRAMMAR) is Status.HELD

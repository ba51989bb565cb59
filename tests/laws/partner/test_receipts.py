"""One run for one key, one at a time, and the door open again after it."""

from __future__ import annotations

import pytest

from lab.laws import Status
from tests.laws.partner.journals import Made, PartnerTale, answered, ready, running

ONE_RUN = "one-run-per-key"
ONE_TURN = "one-turn-per-message"
CHANGED = "changed-input-conflicts"
ACTIVE = "one-active-run"
FREE = "free-after-end"


@pytest.mark.req("MSG-005", "MSG-026")
def test_a_retry_that_made_a_second_run() -> None:
    t = ready()
    first = t.message(idempotency_key="k")
    again = t.message("other", idempotency_key="k")
    found = t.violation(ONE_RUN)
    assert (found.seen, found.due) == ("another runId for one key", "the first runId")
    assert found.entries == (first, again)


@pytest.mark.req("CV-010")
def test_a_retry_that_made_a_second_conversation() -> None:
    t = PartnerTale()
    first = t.create(idempotency_key="k")
    t.made = Made("conv-2")
    again = t.create(idempotency_key="k")
    assert t.violation(ONE_RUN).entries == (first, again)


def test_a_replay_gives_the_first_run() -> None:
    t = ready()
    t.message(idempotency_key="k")
    assert t.status(ONE_RUN) is Status.NOTHING
    t.message(idempotency_key="k")
    assert t.status(ONE_RUN) is Status.HELD


@pytest.mark.req("MSG-026")
def test_a_replay_that_is_refused() -> None:
    t = ready()
    first = t.message(idempotency_key="k", request="r")
    again = t.refused("message", 409, "CHAT_CONFLICT", idempotency_key="k", request="r")
    found = t.violation(ONE_RUN)
    assert (found.seen, found.entries) == ("CHAT_CONFLICT for a repeat", (first, again))


def test_the_same_key_in_another_conversation_is_another_key() -> None:
    t = ready()
    t.message(idempotency_key="k")
    t.made = Made("conv-2", "run-2", "turn-2")
    t.message(idempotency_key="k")
    assert t.status(ONE_RUN) is Status.NOTHING


@pytest.mark.req("MSG-005")
def test_two_turns_at_the_store_for_one_message() -> None:
    t = running()
    first = t.tool()
    second = t.tool("call_9", turn_id="turn-9")
    found = t.violation(ONE_TURN)
    assert found.seen == "2 turns at the store for 1 messages"
    assert found.entries == (first, second)


def test_a_turn_under_another_s_grant_is_still_of_its_conversation() -> None:
    t = running()
    t.tool()
    t.made = Made("conv-2", "run-2", "turn-2")
    t.message()
    t.tool("call_2", claims={"conversationId": "conv"})
    assert t.status(ONE_TURN) is Status.HELD


@pytest.mark.req("MSG-005")
def test_two_user_turns_in_history_for_one_message() -> None:
    t = ready()
    t.message()
    items = [t.item("user", "hello", id=name, turnId=name) for name in ("a", "b")]
    n = t.history(*items)
    found = t.violation(ONE_TURN)
    assert (found.seen, found.entries) == ("2 user turns in history for 1 messages", (n,))


def test_a_conversation_that_was_there_before_may_hold_more() -> None:
    t = PartnerTale()
    t.message()
    t.history(*(t.item("user", "hello", id=name, turnId=name) for name in ("a", "b")))
    judged = t.judged(ONE_TURN)
    assert (judged.status, judged.judgement.unsure) == (Status.HELD, 1)


@pytest.mark.req("MSG-006")
def test_other_input_under_a_used_key() -> None:
    t = ready()
    first = t.message(idempotency_key="k")
    again = t.message(text="other", idempotency_key="k")
    found = t.violation(CHANGED)
    assert (found.due, found.entries) == ("409 CHAT_CONFLICT", (first, again))


@pytest.mark.parametrize(
    ("status", "code", "word"),
    [(409, "CHAT_CONFLICT", Status.HELD), (403, "EXECUTION_DENIED", Status.UNKNOWN), (404, "X", Status.UNKNOWN)],
)
def test_other_input_is_refused(status: int, code: str, word: Status) -> None:
    t = ready()
    t.message(idempotency_key="k")
    t.refused("message", status, code, idempotency_key="k", request="other")
    assert t.status(CHANGED) is word


def test_other_input_that_was_sent_at_the_same_time_tells_nothing() -> None:
    t = ready()
    began = len(t.entries)
    t.message(idempotency_key="k")
    t.message(text="other", idempotency_key="k", began=began)
    assert t.status(CHANGED) is Status.NOTHING


@pytest.mark.req("MSG-008")
@pytest.mark.parametrize("sign", ["poll", "store", "turn"])
def test_a_second_message_while_a_run_is_active(sign: str) -> None:
    t = running()
    first = next(
        entry.n for entry in t.entries if entry.event.kind == "partner.call" and "messages" in str(entry.event)
    )
    was = t.made
    t.made = Made(run="run-2", turn="turn-2")
    second = t.message(text="second")
    t.made = was
    if sign == "poll":
        t.poll("running")
    elif sign == "store":
        t.tool()
    else:
        t.turn("model", status="running")
    found = t.violation(ACTIVE)
    assert (found.due, found.entries) == ("409 CHAT_CONFLICT", (first, second))


def test_without_a_sign_that_the_first_is_active_nobody_can_tell() -> None:
    t = running()
    t.made = Made(run="run-2", turn="turn-2")
    t.message(text="second")
    assert t.status(ACTIVE) is Status.UNKNOWN


def test_a_second_message_that_is_refused_or_comes_after_the_end() -> None:
    t = running()
    t.refused("message", 409, "CHAT_CONFLICT")
    assert t.status(ACTIVE) is Status.HELD
    t = running()
    t.poll()
    t.message(text="second", run="run-2")
    assert t.status(ACTIVE) is Status.NOTHING


@pytest.mark.req("MSG-038")
def test_a_message_that_is_refused_after_the_end() -> None:
    t = answered()
    n = t.refused("message", 409, "CHAT_CONFLICT")
    found = t.violation(FREE)
    assert (found.due, found.entries[-1]) == ("202", n)


def test_a_message_after_the_end_is_taken() -> None:
    t = answered()
    t.made = Made(run="run-2", turn="turn-2")
    t.message(text="second")
    assert t.status(FREE) is Status.HELD


@pytest.mark.parametrize("unknown", ["lost", "used"])
def test_a_run_that_nobody_knows_may_be_active(unknown: str) -> None:
    t = answered()
    if unknown == "lost":
        t.lost("message")
    else:
        t.refused("message", 409, "CHAT_CONFLICT", idempotency_key="k", began=0)
    t.refused("message", 409, "CHAT_CONFLICT", idempotency_key="k")
    assert t.status(FREE) is Status.NOTHING

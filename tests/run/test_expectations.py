"""Expectations against what the driver has."""

from __future__ import annotations

from typing import Any

import pytest

from lab.run.expectations import ConversationView, Held, JobView, StreamView, Views, judge_expectation
from lab.run.sockets import SocketView
from lab.scenario.model import Expectation

JOB = JobView("failed", "infra", 3, 1, ("accepted", "duplicate"), ended=True)
TURNS = [{"role": "user", "text": "Why 9001?"}, {"role": "assistant", "text": "Because of the price."}]
VIEWS = Views(
    {"q1": JOB, "open": JobView(runs=0), "bare": JobView("no_change", ended=True)},
    {"q1": StreamView(12, True, 2, 1), "torn": StreamView(11, False, 2)},
    {"q1": ConversationView(TURNS, False)},
    {"retransmissions": 2, "resume_seconds": 3.1},
    {"one": SocketView(2, ["4420", "1000"], ["timeout"], ["clock_skew"], 1)},
)


def judge(path: str, due: Any) -> Held:
    return judge_expectation(Expectation(path, due, 1), VIEWS)


@pytest.mark.parametrize(
    ("path", "due", "verdict", "seen"),
    [
        ("job.q1.outcome", "failed", True, "failed"),
        ("job.q1.outcome", "no_change", False, "failed"),
        ("job.q1.errorCode", "infra", True, "infra"),
        ("job.bare.errorCode", None, True, "none"),
        ("job.bare.errorCode", "infra", False, "none"),
        ("job.q1.filesChangedCount", 3, True, "3"),
        ("job.q1.filesChangedCount", {"min": 3, "max": 3}, True, "3"),
        ("job.q1.filesChangedCount", {"min": 4}, False, "3"),
        ("job.bare.filesChangedCount", 0, False, "absent"),
        ("job.q1.runs", 1, True, "1"),
        ("job.open.runs", {"max": 0}, True, "0"),
        ("job.q1.acks", 2, True, "2 (accepted, duplicate)"),
        ("job.q1.acks", {"count": 2, "contains": "duplicate"}, True, "2 (accepted, duplicate)"),
        ("job.q1.acks", {"contains": "rejected"}, False, "2 (accepted, duplicate)"),
        ("job.open.acks", {"count": 1}, False, "0 (none)"),
        ("job.open.outcome", "failed", None, "no job.result came"),
        ("job.none.outcome", "failed", None, "the job was not assigned"),
        ("stream.q1.events", 12, True, "12 events, contiguous"),
        ("stream.q1.events", {"contiguous": True, "count": 12}, True, "12 events, contiguous"),
        ("stream.q1.events", {"contiguous": False}, False, "12 events, contiguous"),
        ("stream.q1.events", {"min": 13}, False, "12 events, contiguous"),
        ("stream.torn.events", {"contiguous": True}, False, "11 events, not contiguous"),
        ("stream.torn.events", {"contiguous": False, "max": 11}, True, "11 events, not contiguous"),
        ("stream.q1.pages", {"min": 2}, True, "2"),
        ("stream.q1.emptyPages", 1, True, "1"),
        ("stream.q1.emptyPages", {"max": 0}, False, "1"),
        ("stream.none.pages", 1, None, "the stream was not followed"),
        ("socket.one.opened", 2, True, "2"),
        ("socket.one.opened", {"max": 1}, False, "2"),
        ("socket.one.closes", {"count": 2, "contains": "4420"}, True, "2 (4420, 1000)"),
        ("socket.one.closes", {"contains": "4400"}, False, "2 (4420, 1000)"),
        ("socket.one.errors", {"contains": "timeout"}, True, "1 (timeout)"),
        ("socket.one.errors", 0, False, "1 (timeout)"),
        ("socket.one.refusals", {"contains": "clock_skew"}, True, "1 (clock_skew)"),
        ("socket.one.fallbacks", 1, True, "1"),
        ("socket.one.fallbacks", 0, False, "1"),
        ("socket.two.opened", 0, None, "the local agent never connected"),
        ("session.q1.truncated", False, True, "false"),
        ("session.q1.truncated", True, False, "false"),
        ("session.q1.turns", {"count": 2}, True, "2 turns (user, assistant)"),
        ("session.q1.turns", {"min": 3}, False, "2 turns (user, assistant)"),
        ("session.q1.turns", [{"role": "user"}, {"contains": "price"}], True, "2 turns (user, assistant)"),
        ("session.q1.turns", [{"role": "user"}], False, "2 turns (user, assistant)"),
        ("session.q1.turns", [{"role": "assistant"}, {}], False, "turn 1: role user"),
        ("session.q1.turns", [{}, {"contains": "9001"}], False, "turn 2: a text of 21 characters without it"),
        ("session.q1.turns", [{"chars": 9}, {"chars": 21}], True, "2 turns (user, assistant)"),
        ("session.q1.turns", [{"chars": 9}, {"chars": 20}], False, "turn 2: a text of 21 characters"),
        ("session.none.turns", {"count": 2}, None, "the conversation was not opened"),
        ("figures.retransmissions", 2, True, "2"),
        ("figures.resume_seconds", {"max": 3}, False, "3.1"),
        ("figures.unheard", 1, False, "absent"),
    ],
)
def test_a_line_of_expect(path: str, due: Any, verdict: bool | None, seen: str) -> None:
    """Every root, every matcher, held and not held, and what is not there at all."""
    judged = judge(path, due)
    assert (judged.held, judged.seen) == (verdict, seen)


@pytest.mark.parametrize(
    ("due", "words"),
    [
        ({"contiguous": True, "count": 12}, "contiguous true, count 12"),
        (13, "13"),
    ],
)
def test_what_was_due_is_told_in_words(due: Any, words: str) -> None:
    """As the scenario says it."""
    assert judge("stream.q1.events", due).due == words


@pytest.mark.req("SEC-012")
@pytest.mark.parametrize("due", [[{"role": "user"}, {"contains": "price"}], [{}, {"contains": "pricey"}]])
def test_no_piece_of_a_conversation_is_told(due: Any) -> None:
    """Held or not, the text that was looked for stays out of the record."""
    judged = judge("session.q1.turns", due)
    assert "price" not in judged.due + judged.seen
    assert "characters" in judged.due


@pytest.mark.req("SEC-012")
def test_a_role_that_is_none_is_not_told() -> None:
    """An agent may put anything there."""
    views = Views({}, {}, {"q1": ConversationView([{"role": "the prompt itself", "text": 5}], False)}, {})
    for due in ([{"role": "user"}], {"count": 9}):
        assert "prompt" not in judge_expectation(Expectation("session.q1.turns", due, 1), views).seen


def test_turns_are_not_in_a_repr() -> None:
    """What is printed by accident holds no content."""
    assert "9001" not in repr(VIEWS.sessions["q1"])

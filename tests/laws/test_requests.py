"""Content requests: their time limits on both sides, and what an answer may hold."""

from __future__ import annotations

from typing import Any

import pytest

from lab.journal.events import CallFailed, LinkChanged, StepEnded
from lab.laws import Status
from tests.laws.journals import JOB, SESSION, Tale, uuid

AGENT = "content-in-time"
GATEWAY = "gateway-content-limits"
LIMITS = "answer-limits"


def asked() -> Tale:
    t = Tale()
    t.connect()
    t.wait(1).ask(1, "r", JOB)
    return t


def failed(t: Tale, code: str = "timeout") -> int:
    return t.add(CallFailed("content", code, request_id=uuid("r")))


def test_an_answer_in_time() -> None:
    t = asked()
    t.wait(9).answer(1, "r", 0, 2, 3, 6)
    t.wait(20).answer(2, "r", 1, 2, 3, 6)
    assert t.status(AGENT) is Status.HELD


@pytest.mark.req("WS-055", "CHAT-037")
def test_a_first_chunk_that_comes_late_or_never() -> None:
    t = asked()
    t.wait(10.5).answer(1, "r")
    assert t.violation(AGENT).seen == "the first chunk of job.stream after 10.5 s"
    t = asked()
    t.wait(11).end()
    assert t.violation(AGENT).seen == "no first chunk of job.stream in 10 s"


@pytest.mark.req("WS-055")
def test_a_last_chunk_that_comes_late_or_never() -> None:
    t = asked()
    t.wait(9).answer(1, "r", 0, 2, 3, 6)
    t.wait(22).answer(2, "r", 1, 2, 3, 6)
    assert t.violation(AGENT).seen == "the last chunk of job.stream after 31.0 s"
    t.entries.pop()
    t.end()
    assert t.violation(AGENT).due == "the last chunk within 30 s"


@pytest.mark.parametrize("why", ["cut", "lost", "resumed"])
def test_what_kept_an_answer_back_is_not_the_agent(why: str) -> None:
    t = asked()
    if why == "cut":
        t.add(LinkChanged("gateway", "cut"), "link")
    elif why == "lost":
        t.answer(1, "r", fate="dropped")
    else:
        t.close()
        t.wait(9).connect("c2", resume=(SESSION, 1), resumed=True)
    t.wait(11).answer(1, "r")
    assert t.status(AGENT) in (Status.UNKNOWN, Status.HELD)


@pytest.mark.req("CH-035")
def test_a_rejected_request_gets_no_answer() -> None:
    t = asked()
    t.ack_by_la(len(t.entries) - 1, "rejected")
    t.wait(20).end()
    assert t.status(AGENT) is Status.HELD


def test_an_early_stop() -> None:
    t = asked()
    t.wait(3).end("interrupted")
    assert t.status(AGENT) is Status.NOTHING
    assert t.status(GATEWAY) is Status.NOTHING


# The gateway


@pytest.mark.req("CH-037", "WS-055")
@pytest.mark.parametrize(("seconds", "status"), [(10.0, Status.HELD), (8.0, Status.BROKEN), (12.0, Status.BROKEN)])
def test_the_limit_of_the_first_chunk(seconds: float, status: Status) -> None:
    t = asked()
    t.wait(seconds)
    failed(t)
    assert t.status(GATEWAY) is status


@pytest.mark.req("CH-037", "WS-055")
@pytest.mark.parametrize(("seconds", "status"), [(25.0, Status.HELD), (5.0, Status.BROKEN), (28.0, Status.BROKEN)])
def test_the_limit_of_the_whole(seconds: float, status: Status) -> None:
    t = asked()
    t.wait(5).answer(1, "r", 0, 2, 3, 6)
    t.wait(seconds)
    failed(t)
    assert t.status(GATEWAY) is status


def test_a_request_that_was_seen_only_after_its_end() -> None:
    """It was written to a connection that was gone, and to the next one when its caller had given up."""
    t = asked()
    question = t.entries.pop()
    failed(t)
    t.wait(2)
    t.add(question.event, question.by)
    t.wait(40).end()
    assert t.status(GATEWAY) is Status.UNKNOWN


@pytest.mark.req("CH-037")
def test_no_timeout_at_all() -> None:
    t = asked()
    t.wait(12).end()
    assert t.violation(GATEWAY).seen == "no timeout after 10 s"


@pytest.mark.req("CH-037")
@pytest.mark.parametrize(("chunks", "due"), [(1, "timeout after 10 s"), (2, "timeout after 30 s")])
def test_an_answer_that_is_taken_after_its_time(chunks: int, due: str) -> None:
    t = asked()
    if chunks == 2:
        t.wait(1).answer(1, "r", 0, 2, 3, 6)
    t.wait(31).answer(chunks, "r", chunks - 1, chunks, 3, 3 * chunks)
    n = t.page(JOB, [], "x1", name="r")
    t.end()
    assert (t.violation(GATEWAY).due, t.violation(GATEWAY).entries[-1]) == (due, n)


def test_an_answer_after_the_last_step_cannot_be_told() -> None:
    t = asked()
    t.add(StepEnded(0, "done"), "driver")
    t.wait(12).answer(1, "r")
    t.page(JOB, [], "x1", name="r")
    t.end()
    assert t.status(GATEWAY) is Status.NOTHING


@pytest.mark.parametrize("how", ["answered", "offline"])
def test_a_request_that_is_over_before(how: str) -> None:
    t = asked()
    t.wait(2)
    if how == "offline":
        failed(t, "agent_offline")
    else:
        t.answer(1, "r")
        t.page(JOB, [], "x1", name="r")
    assert t.status(GATEWAY) is Status.HELD


def test_a_chunk_that_was_held_back_cannot_be_told() -> None:
    t = asked()
    t.answer(1, "r", fate="delayed")
    t.wait(12)
    failed(t)
    assert t.status(GATEWAY) is Status.UNKNOWN


# What an answer holds


def page(events: int = 0, chars: int = 3, **facts: Any) -> Tale:
    t = asked()
    t.answer(1, "r")
    listed = tuple({"i": i, "sha256": "", "chars": chars} for i in range(events))
    t.body("r", "job.stream", JOB, **{"schema": "ok", "total": "ok", "events": listed, **facts})
    return t


def test_a_page_within_its_bounds() -> None:
    assert page(512, 16384, size=2 * 1024 * 1024).status(LIMITS) is Status.HELD


@pytest.mark.parametrize(
    ("facts", "seen"),
    [
        pytest.param({"size": 2 * 1024 * 1024 + 1}, "a body of 2097153 bytes", marks=pytest.mark.req("CH-038")),
        pytest.param({"total": "differs"}, "totalBytes that is not", marks=pytest.mark.req("CH-007")),
        pytest.param({"events": 513}, "a page of 513 events", marks=pytest.mark.req("CHAT-033")),
        pytest.param({"events": 1, "chars": 16385}, "event 0 of 16385", marks=pytest.mark.req("CHAT-033")),
        pytest.param({"events": 1, "chars": 0}, "event 0 of 0", marks=pytest.mark.req("CHAT-033")),
        pytest.param(
            {"schema": {"keyword": "required", "path": ""}}, "breaks its schema", marks=pytest.mark.req("CHAT-034")
        ),
    ],
)
def test_a_page_out_of_bounds(facts: dict[str, Any], seen: str) -> None:
    assert seen in page(**facts).violation(LIMITS).seen


@pytest.mark.req("CHAT-049")
def test_what_was_asked_at_most() -> None:
    t = Tale()
    t.connect()
    t.cp("content.request", 1, request_id=uuid("r"), payload={"kind": "job.stream", "maxBytes": 100})
    t.answer(1, "r")
    t.body("r", "job.stream", JOB, schema="ok", size=101)
    assert t.violation(LIMITS).due == "at most 100"


def test_a_failure_holds_nothing() -> None:
    t = asked()
    t.body("r", "job.stream", JOB, "not_found")
    assert t.status(LIMITS) is Status.NOTHING


@pytest.mark.req("CHAT-049")
@pytest.mark.parametrize(
    ("kind", "most", "status"),
    [
        ("job.stream", None, Status.BROKEN),
        ("job.stream", 128 * 1024, Status.BROKEN),
        ("job.stream", 1000, Status.NOTHING),
        ("file.list", None, Status.NOTHING),
    ],
)
def test_a_page_always_fits(kind: str, most: int | None, status: Status) -> None:
    t = Tale()
    t.connect()
    payload = {"kind": kind} if most is None else {"kind": kind, "maxBytes": most}
    t.cp("content.request", 1, request_id=uuid("r"), payload=payload)
    t.answer(1, "r")
    t.body("r", kind, JOB, "error", errorCode="payload_too_large")
    assert t.status(LIMITS) is status

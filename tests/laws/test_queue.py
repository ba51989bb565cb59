"""One job at a time, and a cancel that counts."""

from __future__ import annotations

import pytest

from lab.journal.events import Agent2Request, LinkChanged, SutChanged
from lab.laws import Status
from tests.laws.journals import JOB, Tale, uuid

ONE = "one-job-at-a-time"
CANCEL = "cancel-honoured"
OTHER = uuid("other")


def result(t: Tale, outcome: str, seq: int = 1, job: str = JOB, code: str | None = None) -> int:
    payload = {"jobId": job, "outcome": outcome} | ({"errorCode": code} if code else {})
    return t.la("job.result", seq, payload=payload)


def two() -> Tale:
    t = Tale()
    t.connect()
    t.assign(1)
    t.assign(2, job=OTHER)
    return t


@pytest.mark.parametrize("how", ["ended", "result", "refused"])
def test_the_second_begins_when_the_first_is_over(how: str) -> None:
    t = two()
    t.post(409 if how == "refused" else 202)
    if how == "ended":
        t.ended()
    elif how == "result":
        result(t, "failed", code="timeout")
    t.post(job=OTHER)
    assert t.status(ONE) is Status.HELD


@pytest.mark.req("LA-013", "A2-044")
def test_two_at_a_time() -> None:
    t = two()
    first = t.post()
    second = t.post(409, job=OTHER)
    found = t.violation(ONE)
    assert (found.seen, found.entries) == ("POST /jobs while a job runs", (first, second))


def test_a_result_on_its_way() -> None:
    t = two()
    t.post()
    t.post(409, job=OTHER)
    t.wait(0.2)
    result(t, "failed", code="timeout")
    assert t.status(ONE) is Status.HELD


@pytest.mark.req("LA-014")
def test_another_order_than_assigned() -> None:
    t = two()
    t.post(job=OTHER)
    t.ended(job=OTHER)
    t.post()
    assert t.violation(ONE).due == "the order of assignment"


@pytest.mark.parametrize("why", ["cut", "restart"])
def test_what_the_witness_cannot_follow(why: str) -> None:
    t = two()
    t.post()
    t.wait(1).add(LinkChanged("gateway", "cut") if why == "cut" else SutChanged("la", "killed"), "x")
    t.wait(1).post(job=OTHER)
    assert t.status(ONE) is Status.HELD
    assert t.judged(ONE).judgement.judged == 1


def test_nothing_without_a_post() -> None:
    assert two().status(ONE) is Status.NOTHING


# Cancel


def cancel(t: Tale, seq: int = 2) -> int:
    entry = t.cp("job.cancel", seq, payload={"jobId": JOB, "reason": "user"})
    t.ack_by_la(entry)
    return entry


def call(t: Tale, status: int = 202) -> int:
    return t.add(Agent2Request("POST", "/local/v1/jobs/{id}/cancel", status, JOB, {"reason": "user"}), "agent2")


def running() -> Tale:
    t = Tale()
    t.connect()
    t.assign()
    t.post()
    t.wait(1)
    return t


def test_a_running_job_is_cancelled_once() -> None:
    t = running()
    cancel(t)
    call(t)
    t.wait(1).ended("cancelled", outcome="cancelled")
    result(t, "cancelled")
    assert t.status(CANCEL) is Status.HELD


@pytest.mark.req("LA-020")
def test_no_cancel_at_agent2() -> None:
    t = running()
    entry = cancel(t)
    t.wait(6).end()
    found = t.violation(CANCEL)
    assert (found.seen, found.entries) == ("no POST cancel", (entry,))


@pytest.mark.req("LA-020")
def test_a_second_cancel_at_agent2() -> None:
    t = running()
    entry = cancel(t)
    first, second = call(t), call(t)
    assert t.violation(CANCEL).entries == (entry, first, second)


@pytest.mark.req("LA-021")
def test_no_result_after_the_wait() -> None:
    t = running()
    cancel(t)
    call(t)
    t.wait(16).end()
    assert t.violation(CANCEL).due == "outcome cancelled within 10 s"


@pytest.mark.req("LA-021")
@pytest.mark.parametrize(("outcome", "status"), [("cancelled", Status.HELD), ("failed", Status.BROKEN)])
def test_an_agent2_that_ignores_it(outcome: str, status: Status) -> None:
    t = running()
    cancel(t)
    call(t)
    t.wait(10)
    result(t, outcome, code="infra" if outcome == "failed" else None)
    assert t.status(CANCEL) is status


def test_agent2_may_have_ended_it_first() -> None:
    t = running()
    cancel(t)
    t.ended("done", outcome="no_change")
    result(t, "no_change")
    assert t.status(CANCEL) is Status.HELD


@pytest.mark.req("LA-017")
def test_a_waiting_job_never_starts() -> None:
    t = Tale()
    t.health()
    t.connect()
    t.assign()
    cancel(t)
    result(t, "cancelled")
    assert t.status(CANCEL) is Status.HELD
    t.entries.pop()
    t.wait(2).post()
    assert t.violation(CANCEL).seen == "POST /jobs after the cancel"


@pytest.mark.req("LA-017")
@pytest.mark.parametrize(("kind", "status"), [("fix", Status.BROKEN), ("chat", Status.UNKNOWN)])
def test_the_outcome_of_a_job_that_never_ran(kind: str, status: Status) -> None:
    t = Tale()
    t.connect()
    t.assign(kind=kind)
    cancel(t)
    result(t, "failed", code="infra")
    t.stream("opened")
    assert t.status(CANCEL) is status


@pytest.mark.req("CHAT-024", "LA-017")
@pytest.mark.parametrize(
    ("when", "code", "status"),
    [("after", 200, Status.BROKEN), ("after", 503, Status.UNKNOWN), ("before", 200, Status.UNKNOWN)],
)
def test_a_chat_cancelled_while_agent2_is_found_up(when: str, code: int, status: Status) -> None:
    t = Tale()
    t.connect()
    t.assign()
    if when == "before":
        t.health(code)
    cancel(t)
    if when == "after":
        t.health(code)
    result(t, "failed", code="infra")
    assert t.status(CANCEL) is status


def test_a_call_on_its_way_cannot_be_told() -> None:
    t = Tale()
    t.connect()
    t.assign()
    cancel(t)
    t.wait(0.1).post()
    assert t.status(CANCEL) is Status.UNKNOWN


@pytest.mark.parametrize("why", ["cut", "killed", "rejected"])
def test_a_cancel_that_cannot_be_followed(why: str) -> None:
    t = running()
    if why == "rejected":
        t.ack_by_la(t.cp("job.cancel", 2, payload={"jobId": JOB}), "rejected")
    else:
        cancel(t)
        t.wait(1).add(LinkChanged("agent2", "cut") if why == "cut" else SutChanged("la", "killed"), "x")
    t.wait(20).end()
    assert t.status(CANCEL) is Status.UNKNOWN


def test_a_cancel_of_a_job_that_an_older_process_was_given_cannot_be_told() -> None:
    t = running()
    t.add(SutChanged("la", "crashed"), "sut")
    t.wait(1).add(SutChanged("la", "started"), "sut")
    t.wait(1)
    cancel(t)
    t.wait(20).end()
    assert t.status(CANCEL) is Status.UNKNOWN


def test_a_cancel_after_the_result() -> None:
    t = running()
    result(t, "no_change")
    cancel(t)
    t.wait(20).end()
    assert t.status(CANCEL) is Status.NOTHING


@pytest.mark.parametrize(("status", "due"), [("rejected", Status.NOTHING), ("accepted", Status.BROKEN)])
def test_a_cancel_of_a_job_that_was_rejected(status: str, due: Status) -> None:
    """Such a job has no result to come."""
    t = Tale()
    t.health()
    t.connect()
    t.ack_by_la(t.assign(), status)
    cancel(t)
    t.wait(30).end()
    assert t.status(CANCEL) is due


def test_a_cancel_that_is_held_back_asks_for_nothing() -> None:
    t = running()
    t.held(cancel(t))
    t.wait(30).end()
    assert t.status(CANCEL) is Status.NOTHING


def test_an_early_stop() -> None:
    t = running()
    cancel(t)
    t.wait(1).end("interrupted")
    assert t.status(CANCEL) is Status.NOTHING

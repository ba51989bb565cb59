"""Cancels as agent2 hears of them."""

from __future__ import annotations

import pytest

from lab.journal.events import Agent2Request, LinkChanged, StepStarted, SutChanged
from lab.laws import Status
from tests.laws.journals import JOB, Tale

LAW = "cancel-at-agent2"


def running(how: str = "reference") -> Tale:
    t = Tale(how)
    t.connect()
    t.assign(kind="fix")
    t.post()
    t.stream("opened", stream="events")
    return t.wait(1)


def cancel(t: Tale) -> int:
    return t.cp("job.cancel", 2, payload={"jobId": JOB, "reason": "user"})


def call(t: Tale, reason: str | None = "user", status: int = 202) -> int:
    return t.add(Agent2Request("POST", "/local/v1/jobs/{id}/cancel", status, JOB, {"reason": reason}), "agent2")


def result(t: Tale, outcome: str = "cancelled", code: str | None = None) -> int:
    payload = {"jobId": JOB, "outcome": outcome} | ({"errorCode": code} if code else {})
    return t.la("job.result", 1, payload=payload)


def test_a_cancel_as_it_is_due() -> None:
    t = running()
    cancel(t)
    call(t)
    t.ended("cancelled")
    result(t)
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("A2-010")
def test_agent2_learns_why() -> None:
    t = running()
    cancel(t)
    entry = call(t, None)
    found = t.violation(LAW)
    assert (found.seen, found.entries) == ("POST cancel without a reason", (entry,))


@pytest.mark.req("LA-020", "TY-012")
def test_a_job_that_nobody_cancelled() -> None:
    t = running()
    entry = call(t)
    found = t.violation(LAW)
    assert (found.due, found.entries) == ("no cancel", (entry,))


@pytest.mark.req("LA-022")
@pytest.mark.parametrize("why", ["reason", "result", "stopped", "attach", "the end"])
def test_an_end_of_the_agents_own(why: str) -> None:
    t = running("attach" if why == "attach" else "reference")
    if why == "stopped":
        t.add(SutChanged("la", "stopping"), "sut")
    elif why == "the end":
        t.add(StepStarted(0, "idle", "idle", 1), "runner")
    call(t, "timeout" if why == "reason" else "user")
    if why == "result":
        result(t, "failed", "timeout")
    assert t.judged(LAW).judgement.unsure == 1


@pytest.mark.req("A2-050", "LA-020")
def test_agent2_is_given_no_time() -> None:
    t = running()
    cancel(t)
    posted = call(t)
    entry = result(t)
    found = t.violation(LAW)
    assert (found.seen, found.entries) == (
        "cancelled 0.0 s after POST cancel, though agent2 had not ended",
        (posted, entry),
    )


@pytest.mark.req("LA-020")
def test_an_agent_that_waited() -> None:
    t = running()
    cancel(t)
    call(t)
    t.wait(1)
    result(t)
    assert t.judged(LAW).judgement.judged == 2


@pytest.mark.parametrize("why", ["deaf", "cut"])
def test_what_it_cannot_hear_it_does_not_wait_for(why: str) -> None:
    t = running()
    cancel(t)
    if why == "deaf":
        t.stream("broken", 1, stream="events")
    else:
        t.add(LinkChanged("agent2", "cut"), "link")
    call(t)
    result(t)
    assert (t.status(LAW), t.judged(LAW).judgement.unsure) == (Status.HELD, 1)


@pytest.mark.parametrize("why", ["refused", "other outcome"])
def test_no_wait_to_judge(why: str) -> None:
    t = running()
    cancel(t)
    call(t, status=404 if why == "refused" else 202)
    result(t, "cancelled" if why == "refused" else "no_change")
    assert t.judged(LAW).judgement.judged == 1


def test_a_cancel_that_was_lost_asked_for_nothing() -> None:
    t = running()
    t.cp("job.cancel", 2, payload={"jobId": JOB}, fate="dropped", fault="f1")
    call(t)
    assert t.violation(LAW).due == "no cancel"


def test_an_end_behind_the_result_is_not_waited_for() -> None:
    t = running()
    cancel(t)
    call(t)
    result(t)
    t.ended("cancelled")
    assert t.status(LAW) is Status.BROKEN


def test_whoever_reads_the_content_alone_hears_of_no_end() -> None:
    t = Tale()
    t.connect()
    t.assign(kind="fix")
    t.post()
    t.stream("opened")
    cancel(t)
    call(t)
    result(t)
    assert t.judged(LAW).judgement.unsure == 1

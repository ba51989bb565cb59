"""How an agent asks agent2."""

from __future__ import annotations

from typing import Any

import pytest

from lab.journal.events import Agent2Request, FaultFired, LinkChanged, StepStarted, SutChanged
from lab.laws import Status
from tests.laws.journals import JOB, Tale

LAW = "agent2-client"


def running() -> Tale:
    t = Tale()
    t.connect()
    t.assign()
    t.post()
    return t


def broken(t: Tale, sent: int, wait: float, stream: str = "events") -> int:
    t.stream("opened", stream=stream)
    entry = t.stream("broken", sent, stream=stream)
    t.wait(wait)
    return entry


def test_good_manners() -> None:
    t = running()
    t.health()
    broken(t, 2, 0.25)
    broken(t, 2, 0.5)
    broken(t, 4, 0.25)
    t.stream("opened", stream="events")
    t.stream("ended", 5, stream="events")
    assert t.status(LAW) is Status.HELD


@pytest.mark.parametrize(
    ("request_", "seen"),
    [
        pytest.param(
            Agent2Request("GET", "/local/v1/health", 200, None, {"authorization": True}),
            "with a token",
            marks=pytest.mark.req("A2-002"),
        ),
        pytest.param(
            Agent2Request("POST", "/local/v1/jobs", 401), "without the right token", marks=pytest.mark.req("A2-017")
        ),
        pytest.param(
            Agent2Request("GET", "/local/v1/jobs/{id}/events", 200, JOB, {"accepts_sse": False}),
            "without Accept",
            marks=pytest.mark.req("A2-021"),
        ),
    ],
)
def test_a_request_without_manners(request_: Any, seen: str) -> None:
    t = running()
    entry = t.add(request_, "agent2")
    found = t.violation(LAW)
    assert seen in found.seen
    assert found.entries == (entry,)


def test_a_401_that_the_script_ordered() -> None:
    t = Tale()
    t.connect()
    t.assign()
    t.post(401)
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("A2-042")
@pytest.mark.parametrize("stream", ["events", "stream"])
@pytest.mark.parametrize(("waits", "seen"), [((0.0,), "attempt 1"), ((0.25, 0.25), "attempt 2")])
def test_an_attempt_that_comes_too_soon(stream: str, waits: tuple[float, ...], seen: str) -> None:
    t = running()
    for wait in waits:
        broken(t, 1, wait, stream)
    t.stream("opened", stream=stream)
    found = t.violation(LAW)
    assert found.seen.startswith(f"{seen} at the {stream} stream after {waits[-1]:.2f} s")


@pytest.mark.req("A2-043")
def test_a_sixth_attempt() -> None:
    t = running()
    for attempt in range(1, 7):
        broken(t, 1, 0.25 * attempt)
    t.stream("opened", stream="events")
    assert t.violation(LAW).seen == "attempt 6 in a row at the events stream"


@pytest.mark.req("A2-042")
def test_a_stream_that_is_not_opened_again() -> None:
    t = running()
    entry = broken(t, 1, 5)
    t.end()
    assert t.violation(LAW).entries == (entry,)


@pytest.mark.parametrize("why", ["ended", "result", "cancelled", "content", "cut"])
def test_a_stream_that_nobody_needs(why: str) -> None:
    t = running()
    if why == "cut":
        t.add(LinkChanged("agent2", "cut"), "link")
    broken(t, 1, 0.1, "stream" if why == "content" else "events")
    if why == "ended":
        t.ended()
    elif why == "result":
        t.la("job.result", 1, payload={"jobId": JOB, "outcome": "failed"})
    elif why == "cancelled":
        t.cp("job.cancel", 2, payload={"jobId": JOB})
    t.wait(5).end()
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("A2-042")
def test_a_job_given_up_at_the_first_break() -> None:
    t = running()
    t.stream("opened", reader=2)
    entry = broken(t, 1, 0.1)
    result = t.la("job.result", 1, payload={"jobId": JOB, "outcome": "failed", "errorCode": "infra"})
    found = t.violation(LAW)
    assert (found.seen, found.entries) == ("a job given up at the first break of its events stream", (entry, result))


@pytest.mark.parametrize("why", ["tried", "refused", "ended", "cancelled", "cut", "crash"])
def test_a_job_that_fails_for_another_reason(why: str) -> None:
    t = running()
    broken(t, 1, 0.25)
    if why == "tried":
        broken(t, 1, 0.1)
    elif why == "refused":
        t.add(Agent2Request("GET", "/local/v1/jobs/{id}/events", 404, JOB), "agent2")
    elif why == "ended":
        t.ended("failed")
    elif why == "cancelled":
        t.cp("job.cancel", 2, payload={"jobId": JOB})
    elif why == "cut":
        t.add(LinkChanged("agent2", "cut"), "link")
    else:
        t.add(FaultFired("f1", "crash", "service agent2"), "faults")
    t.la("job.result", 1, payload={"jobId": JOB, "outcome": "failed", "errorCode": "infra"})
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("A2-044", "A2-045")
def test_a_refused_job_is_not_tried_again() -> None:
    t = Tale()
    t.connect()
    t.assign()
    first, second = t.post(409), t.post(409)
    assert t.violation(LAW).entries == (first, second)


@pytest.mark.parametrize("why", ["cut", "restart"])
def test_an_agent_that_may_not_know_of_the_refusal(why: str) -> None:
    t = Tale()
    t.connect()
    t.assign()
    t.post(409)
    t.add(LinkChanged("agent2", "cut") if why == "cut" else SutChanged("la", "killed"), "x")
    t.post(409)
    assert (t.status(LAW), t.judged(LAW).judgement.unsure) == (Status.HELD, 1)


def over(t: Tale, stream: str = "events") -> int:
    opened = t.stream("opened", stream=stream)
    t.ended()
    t.la("job.result", 1, payload={"jobId": JOB, "outcome": "no_change"})
    return opened


@pytest.mark.req("A2-061", "LA-028")
@pytest.mark.parametrize("stream", ["events", "stream"])
def test_a_stream_that_outlives_its_job(stream: str) -> None:
    t = running()
    opened = over(t, stream)
    t.wait(3.1).end()
    found = t.violation(LAW)
    assert (found.due, found.entries[0]) == ("closed with the job", opened)


@pytest.mark.req("A2-061")
def test_a_stream_that_closes_too_late() -> None:
    t = running()
    over(t)
    t.wait(3.1).stream("broken", 1, stream="events")
    t.wait(1).end()
    assert t.violation(LAW).seen == "the events stream of a job open 3 s after its result"


@pytest.mark.parametrize(
    ("why", "unsure"), [("closed", 0), ("early", 0), ("cut", 1), ("killed", 1), ("the steps are over", 0)]
)
def test_a_stream_that_is_let_go(why: str, unsure: int) -> None:
    t = running()
    over(t)
    if why == "closed":
        t.stream("broken", 1, stream="events")
    elif why == "cut":
        t.add(LinkChanged("agent2", "cut"), "link")
    elif why == "killed":
        t.add(SutChanged("la", "killed"), "sut")
    elif why == "the steps are over":
        t.add(StepStarted(0, "idle", "idle", 1), "runner")
    t.wait(2.9 if why == "early" else 3.1).end()
    assert (t.status(LAW), t.judged(LAW).judgement.unsure) == (Status.HELD, unsure)

"""Which jobs an agent takes, and whether each has its turn."""

from __future__ import annotations

import pytest

from lab.journal.events import Agent2Job, FaultFired, LinkChanged, StepStarted, digest
from lab.laws import Status
from tests.laws.journals import JOB, Tale, uuid

TAKEN = "jobs-admitted"
TURN = "every-job-its-turn"
OTHER = uuid("other")


def connected(how: str = "reference") -> Tale:
    t = Tale(how)
    t.connect()
    return t


def take(t: Tale, seq: int, job: str = JOB, kind: str = "fix", status: str = "accepted") -> int:
    return t.ack_by_la(t.assign(seq, kind, job), status)


def result(t: Tale, job: str = JOB, outcome: str = "failed", code: str | None = "infra") -> int:
    payload = {"jobId": job, "outcome": outcome} | ({"errorCode": code} if code else {})
    return t.la("job.result", len(t.entries), payload=payload)


# What is taken


@pytest.mark.req("LA-009", "LA-010")
@pytest.mark.parametrize(("status", "verdict"), [("rejected", Status.HELD), ("accepted", Status.BROKEN)])
def test_a_kind_that_nobody_serves(status: str, verdict: Status) -> None:
    t = connected()
    take(t, 1, kind="quality", status=status)
    assert t.status(TAKEN) is verdict


def waiting(count: int, running: bool = True) -> Tale:
    """A job, and `count` behind it."""
    t = connected()
    take(t, 1)
    if running:
        t.post()
    for n in range(count):
        take(t, n + 2, uuid(f"job {n}"))
    return t


@pytest.mark.req("LA-014")
def test_sixteen_may_wait() -> None:
    assert waiting(16).status(TAKEN) is Status.HELD
    assert waiting(17).violation(TAKEN).seen == "a job accepted as number 17 of those that wait"


def test_one_may_be_under_way() -> None:
    t = waiting(16, running=False)
    assert (t.status(TAKEN), t.judged(TAKEN).judgement.unsure) == (Status.HELD, 1)


@pytest.mark.req("LA-014")
def test_one_may_be_under_way_and_not_two() -> None:
    assert waiting(17, running=False).violation(TAKEN).seen == "a job accepted as number 18 of those that wait"


@pytest.mark.parametrize("how", ["begun", "ended", "cancelled"])
def test_one_that_waits_no_more(how: str) -> None:
    t = waiting(16)
    if how == "begun":
        t.ended()
        t.post(job=uuid("job 0"))
    elif how == "ended":
        result(t, uuid("job 0"))
    else:
        t.cp("job.cancel", 40, payload={"jobId": uuid("job 0")})
    take(t, 50, OTHER)
    assert t.status(TAKEN) is Status.HELD


# Its turn


@pytest.mark.req("LA-014")
def test_a_job_that_fails_because_another_runs() -> None:
    t = connected()
    take(t, 1)
    t.post()
    ack = take(t, 2, OTHER)
    entry = result(t, OTHER)
    found = t.violation(TURN)
    assert (found.seen, found.entries) == ("outcome failed (infra) while another job ran", (ack, entry))


@pytest.mark.parametrize("why", ["free", "cut", "crash", "attach"])
def test_a_failure_with_another_reason(why: str) -> None:
    t = connected("attach" if why == "attach" else "reference")
    take(t, 1)
    t.post()
    if why == "free":
        t.ended()
    take(t, 2, OTHER)
    if why == "cut":
        t.add(LinkChanged("agent2", "cut"), "link")
    elif why == "crash":
        t.add(FaultFired("f1", "crash", "service agent2"), "faults")
    result(t, OTHER)
    assert t.judged(TURN).judgement.unsure == 1


@pytest.mark.req("CHAT-012")
@pytest.mark.parametrize(("size", "status"), [(16384, Status.BROKEN), (16385, Status.UNKNOWN), (0, Status.UNKNOWN)])
def test_a_prompt_that_is_not_too_large(size: int, status: Status) -> None:
    t = connected()
    t.add(Agent2Job(OTHER, "running"), "agent2")
    t.assigned("x" * size, prompt=digest("prompt", "x" * size))
    take(t, 1, kind="chat")
    result(t, code="unknown")
    assert t.status(TURN) is status


@pytest.mark.req("LA-028")
def test_a_job_behind_one_that_failed() -> None:
    t = connected()
    take(t, 1)
    t.post(503)
    before = result(t)
    ack = take(t, 2, OTHER)
    t.wait(10.1).end()
    found = t.violation(TURN)
    assert (found.due, found.entries) == ("POST /jobs", (ack, before))


@pytest.mark.parametrize("why", ["health", "cut", "attach", "crash"])
def test_a_job_that_may_be_under_way(why: str) -> None:
    t = connected("attach" if why == "attach" else "reference")
    t.add(Agent2Job(uuid("third"), "running"), "agent2")
    take(t, 1)
    t.wait(1)
    if why == "health":
        t.health()
    elif why == "cut":
        t.add(LinkChanged("agent2", "cut"), "link")
    elif why == "crash":
        t.add(FaultFired("f1", "crash", "service agent2"), "faults")
    t.wait(10).end()
    assert t.status(TURN) is Status.UNKNOWN


@pytest.mark.parametrize("why", ["early", "behind", "cancelled", "the steps are over", "refused"])
def test_no_turn_is_due(why: str) -> None:
    t = connected()
    t.add(Agent2Job(uuid("third"), "running"), "agent2")
    if why == "behind":
        take(t, 1, OTHER)
        t.post(job=OTHER)
    if why == "the steps are over":
        t.add(StepStarted(0, "idle", "idle", 1), "runner")
    take(t, 2, status="rejected" if why == "refused" else "accepted")
    if why == "cancelled":
        t.cp("job.cancel", 3, payload={"jobId": JOB})
    t.wait(9.9 if why == "early" else 11).end()
    assert t.status(TURN) is (Status.HELD if why == "behind" else Status.NOTHING)


def test_without_agent2_nothing_is_judged() -> None:
    t = connected()
    take(t, 1)
    t.wait(11).end()
    assert t.status(TURN) is Status.NOTHING


def test_a_rejected_job_holds_nobody_up() -> None:
    t = connected()
    t.add(Agent2Job(uuid("third"), "running"), "agent2")
    take(t, 1, OTHER, status="rejected")
    ack = take(t, 2)
    t.wait(10.1).end()
    assert t.violation(TURN).entries == (ack,)

"""Audits of agent2 on their way to the gateway."""

from __future__ import annotations

import pytest

from lab.journal.events import FaultFired, LinkChanged
from lab.laws import Status
from tests.laws.journals import JOB, SESSION, SESSION_2, Tale

LAW = "audit-forwarded"


class Audited(Tale):
    """A job of which agent2 told one audit."""

    def __init__(self) -> None:
        super().__init__()
        self.connect()
        self.assign(kind="fix")
        self.post()
        self.entry = self.told(1, "audit.event", code="policy_checked", approvalId="ap-1", decision="allow")
        self.seq = 0

    def forward(self, code: str = "policy_checked", approval: str = "ap-1", job: str = JOB) -> int:
        self.seq += 1
        return self.la("audit.event", self.seq, payload={"code": code, "approvalId": approval, "jobId": job})

    def over(self, outcome: str = "no_change", **more: object) -> int:
        self.seq += 1
        return self.la("job.result", self.seq, payload={"jobId": JOB, "outcome": outcome, **more})


def test_each_once_before_the_result() -> None:
    t = Audited()
    t.forward()
    t.over()
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("TY-028")
@pytest.mark.parametrize("how", ["none", "another code", "another id"])
def test_one_that_does_not_come(how: str) -> None:
    t = Audited()
    if how == "another code":
        t.forward(code="policy_denied")
    elif how == "another id":
        t.forward(approval="ap-2")
    result = t.over()
    found = t.violation(LAW)
    assert (found.seen, found.entries) == (
        "agent2's audit.event 1 not forwarded with its code and ids",
        (t.entry, result),
    )


@pytest.mark.req("LA-026")
def test_one_behind_the_result() -> None:
    t = Audited()
    result = t.over()
    late = t.forward()
    found = t.violation(LAW)
    assert (found.due, found.entries) == ("before it", (result, late))


@pytest.mark.req("A2-039")
def test_one_that_comes_twice() -> None:
    t = Audited()
    t.forward()
    again = t.forward()
    t.over()
    assert t.violation(LAW).entries == (t.entry, again)


def test_a_copy_is_the_same_frame() -> None:
    t = Audited()
    t.forward()
    t.seq = 0
    t.forward()
    t.over()
    assert t.judged(LAW).judgement.judged == 1


def test_a_note_of_the_agents_own() -> None:
    t = Audited()
    t.forward()
    t.forward(code="chat_unexpected_pr", job="c0000000")
    t.forward(code="chat_unexpected_pr")
    t.over()
    assert t.judged(LAW).judgement.judged == 1


@pytest.mark.req("TY-028")
@pytest.mark.parametrize("why", ["cut", "fault", "infra", "cancel", "session"])
def test_it_may_have_been_given_up(why: str) -> None:
    t = Audited()
    if why == "cut":
        t.add(LinkChanged("agent2", "cut"), "link")
    elif why == "fault":
        t.add(FaultFired("f1", "drop", "ack"), "faults")
    elif why == "cancel":
        t.cp("job.cancel", 2, payload={"jobId": JOB})
    elif why == "session":
        t.forward("another")
        t.close()
        t.connect("c2", SESSION_2, resume=(SESSION, 1))
    t.over(**({"outcome": "failed", "errorCode": "infra"} if why == "infra" else {}))
    assert t.status(LAW) is Status.UNKNOWN


def test_an_audit_after_the_agent_let_go() -> None:
    t = Tale()
    t.connect()
    t.assign(kind="fix")
    t.la("job.result", 1, payload={"jobId": JOB, "outcome": "failed", "errorCode": "timeout"})
    t.told(1, "audit.event", code="late")
    assert t.status(LAW) is Status.NOTHING


@pytest.mark.parametrize("when", ["no result yet", "late", "twice"])
def test_after_a_fault_it_cannot_be_told(when: str) -> None:
    t = Audited()
    t.add(FaultFired("f1", "drop", "ack"), "faults")
    if when == "no result yet":
        assert t.status(LAW) is Status.NOTHING
        return
    if when == "twice":
        t.forward()
        t.forward()
    t.over()
    if when == "late":
        t.forward()
    assert t.judged(LAW).judgement.unsure == 1
    assert t.status(LAW) is (Status.UNKNOWN if when == "late" else Status.HELD)

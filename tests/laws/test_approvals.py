"""Decisions that reach agent2, and those that must not."""

from __future__ import annotations

from typing import Any

import pytest

from lab.journal.events import Agent2Job, Agent2Request, LinkChanged
from lab.laws import Status
from tests.laws.journals import JOB, Tale

LAW = "approvals"

GOOD: dict[str, Any] = {"form": "ok", "verified": True, "equal": True, "leftMs": 300_000}


def waiting(how: str = "reference") -> Tale:
    t = Tale(how)
    t.connect()
    t.assign(kind="fix")
    t.post()
    t.add(Agent2Job(JOB, "waiting_approval"), "agent2")
    return t


def decide(t: Tale, seq: int = 2, **token: Any) -> int:
    payload = {"approvalId": "ap-1", "jobId": JOB, "decision": "approve"}
    return t.cp("approval.decision", seq, payload=payload, facts={"token": {**GOOD, **token}})


def tell(t: Tale, status: int = 200, decision: str = "approve") -> int:
    facts = {"approvalId": "ap-1", "decision": decision}
    return t.add(Agent2Request("POST", "/local/v1/approvals/{id}", status, JOB, facts), "agent2")


@pytest.mark.req("LA-031")
def test_a_good_decision_is_told() -> None:
    t = waiting()
    decide(t)
    tell(t)
    assert t.status(LAW) is Status.HELD


@pytest.mark.parametrize(
    ("token", "seen"),
    [
        pytest.param({"verified": False}, "no trusted key signed", marks=pytest.mark.req("LA-031", "TY-019")),
        pytest.param({"equal": False}, "is for another decision", marks=pytest.mark.req("LA-031")),
        pytest.param({"leftMs": -60_000}, "was over", marks=pytest.mark.req("LA-032")),
        pytest.param({"form": "not readable"}, "is none", marks=pytest.mark.req("TY-019")),
    ],
)
def test_a_bad_token(token: dict[str, Any], seen: str) -> None:
    t = waiting()
    decision = decide(t, **token)
    told = tell(t)
    found = t.violation(LAW)
    assert found.seen.endswith(seen)
    assert found.entries == (decision, told)


def test_a_bad_token_that_nobody_hears_of() -> None:
    t = waiting()
    decide(t, verified=False)
    t.wait(10).end()
    assert t.status(LAW) is Status.NOTHING


def test_around_its_end_either_is_right() -> None:
    t = waiting()
    decide(t, leftMs=-1_500)
    tell(t)
    assert t.status(LAW) is Status.UNKNOWN


@pytest.mark.parametrize(("skew", "status"), [(0, Status.BROKEN), (90_000, Status.HELD)])
def test_an_agent_goes_by_its_own_clock(skew: int, status: Status) -> None:
    t = Tale()
    t.la("register", payload={"protocol": 2}, facts={"skewMs": skew})
    t.hello()
    t.ready()
    t.assign(kind="fix")
    t.add(Agent2Job(JOB, "waiting_approval"), "agent2")
    decide(t, leftMs=-60_000)
    tell(t)
    assert t.status(LAW) is status


def test_a_decision_of_nobody() -> None:
    t = waiting()
    decide(t)
    entry = tell(t, decision="deny")
    found = t.violation(LAW)
    assert (found.seen, found.entries) == ("a decision at agent2 that the gateway never told", (entry,))


@pytest.mark.req("SQ-025")
def test_one_decision_is_told_once() -> None:
    t = waiting()
    decide(t)
    decide(t)
    tell(t)
    tell(t)
    assert t.violation(LAW).due == "once"


def test_a_call_that_failed_may_be_tried_again() -> None:
    t = waiting()
    decide(t)
    tell(t, 503)
    tell(t)
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("LA-031")
def test_a_good_decision_that_agent2_never_hears_of() -> None:
    t = waiting()
    entry = decide(t)
    t.wait(5.1).end()
    found = t.violation(LAW)
    assert (found.due, found.entries) == ("POST approvals", (entry,))


@pytest.mark.parametrize("why", ["cut", "attach"])
def test_what_may_have_kept_it(why: str) -> None:
    t = waiting("attach" if why == "attach" else "reference")
    decide(t)
    if why == "cut":
        t.add(LinkChanged("agent2", "cut"), "link")
    t.wait(6).end()
    assert t.status(LAW) is Status.UNKNOWN


@pytest.mark.parametrize("why", ["early", "over", "nobody waits"])
def test_nothing_to_tell(why: str) -> None:
    t = waiting()
    if why == "over":
        t.ended("failed")
    elif why == "nobody waits":
        t.add(Agent2Job(JOB, "running"), "agent2")
    decide(t)
    t.wait(4 if why == "early" else 6).end()
    assert t.status(LAW) is Status.NOTHING


@pytest.mark.req("LA-031")
def test_a_good_decision_that_agent2_hears_of_too_late() -> None:
    t = waiting()
    decide(t)
    t.wait(6)
    tell(t)
    t.end()
    assert t.violation(LAW).due == "POST approvals"


def test_a_decision_that_was_lost_is_nobodys() -> None:
    t = waiting()
    payload = {"approvalId": "ap-1", "jobId": JOB, "decision": "approve"}
    t.cp("approval.decision", 2, payload=payload, facts={"token": GOOD}, fate="dropped", fault="f1")
    t.wait(6).end()
    assert t.status(LAW) is Status.NOTHING
    tell(t)
    assert t.violation(LAW).seen == "a decision at agent2 that the gateway never told"

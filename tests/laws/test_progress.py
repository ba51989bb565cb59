"""job.event mirrors what agent2 told."""

from __future__ import annotations

from typing import Any

import pytest

from lab.journal.events import LinkChanged
from lab.laws import Status
from tests.laws.journals import JOB, SESSION, SESSION_2, Tale, uuid

LAW = "progress"


def event(n: int, **more: Any) -> dict[str, Any]:
    return {"state": "running", "phase": "edit", "iteration": n, "filesChanged": n, **more}


class Running(Tale):
    """A job of which the agent told that it began, and agent2 three events."""

    def __init__(self, told: int = 3, *, own: bool = True) -> None:
        super().__init__()
        self.connect()
        self.assign()
        self.post()
        if own:
            self.la("job.event", 99, payload={"jobId": JOB, "state": "running", "phase": "context"})
        for n in range(told):
            self.told(n + 1, "job.event", **event(n))
        self.seq = 0

    def pass_on(self, *numbers: int, **more: Any) -> None:
        for n in numbers:
            self.seq += 1
            self.la("job.event", self.seq, payload={"jobId": JOB, **event(n, **more)})

    def over(self, outcome: str = "no_change", **more: Any) -> None:
        self.ended("done", outcome="no_change")
        self.seq += 1
        self.la("job.result", self.seq, payload={"jobId": JOB, "outcome": outcome, **more})


def test_each_in_order() -> None:
    t = Running()
    t.pass_on(0, 1, 2)
    t.over()
    assert t.status(LAW) is Status.HELD


def test_a_copy_is_the_same_frame() -> None:
    t = Running()
    t.pass_on(0)
    t.seq = 0
    t.pass_on(0, 1, 2)
    assert t.status(LAW) is Status.HELD


def test_an_agent_that_passes_no_count_on() -> None:
    t = Running()
    for n in range(3):
        payload = {"jobId": JOB, "state": "running", "phase": "edit", "iteration": n}
        t.la("job.event", n + 1, payload=payload)
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("A2-038", "A2-039")
def test_a_replay_is_passed_on_again() -> None:
    t = Running()
    t.pass_on(0, 1, 0)
    assert t.violation(LAW).seen == "agent2's event 1 again"


@pytest.mark.req("LA-019")
def test_one_is_left_out() -> None:
    t = Running()
    t.pass_on(0, 2)
    assert t.violation(LAW).seen == "agent2's event 2 left out"


@pytest.mark.req("LA-019")
def test_the_last_are_left_out() -> None:
    t = Running()
    t.pass_on(0, 1)
    t.over()
    assert t.violation(LAW).seen == "agent2's event 3 left out"


@pytest.mark.req("A2-041")
def test_one_that_agent2_never_told() -> None:
    t = Running()
    t.pass_on(0, 7)
    assert t.violation(LAW).seen == "a job.event that agent2 never told"


@pytest.mark.parametrize("why", ["cut", "infra"])
def test_the_last_may_be_missing(why: str) -> None:
    t = Running()
    t.pass_on(0)
    if why == "cut":
        t.add(LinkChanged("agent2", "cut"), "link")
        t.over()
    else:
        t.over("failed", errorCode="infra")
    assert t.status(LAW) is Status.HELD


def test_a_lost_session_may_have_taken_some() -> None:
    t = Running()
    t.pass_on(0)
    t.close()
    t.connect("c2", SESSION_2, resume=(SESSION, 1))
    t.seq = 0
    t.pass_on(2)
    assert t.status(LAW) is Status.HELD


def test_a_lost_session_may_have_taken_the_first_before_it_arrived() -> None:
    t = Running(own=False)
    t.close()
    t.connect("c2", SESSION_2, resume=(SESSION, 1))
    t.pass_on(1, 2)
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("SEC-016")
@pytest.mark.parametrize("kind", ["job.event", "job.result", "audit.event"])
def test_a_frame_of_another_job(kind: str) -> None:
    t = Running(0)
    entry = t.la(kind, 1, payload={"jobId": uuid("foreign"), "state": "running", "outcome": "failed"})
    assert t.violation(LAW).entries == (entry,)


def test_a_note_with_a_short_job_id() -> None:
    t = Running(0, own=False)
    t.la("audit.event", 1, payload={"code": "job_refused_busy", "jobId": "c0000000"})
    assert t.status(LAW) is Status.NOTHING


@pytest.mark.req("LA-018")
def test_a_result_without_a_word_before_it() -> None:
    t = Running(0, own=False)
    t.over()
    assert t.violation(LAW).seen == "a job.result without the agent's own job.event before it"


@pytest.mark.req("LA-018")
def test_what_agent2_told_is_not_the_agents_own_word() -> None:
    t = Running(own=False)
    t.pass_on(0, 1, 2)
    t.over()
    assert t.violation(LAW).due == "job.event with phase context"


@pytest.mark.req("LA-018")
def test_the_agents_own_first_word_is_enough() -> None:
    t = Running(0)
    t.over()
    assert t.status(LAW) is Status.HELD


def test_a_context_that_may_be_agent2s_cannot_be_told() -> None:
    t = Running(0)
    t.told(1, "job.event", state="running", phase="context")
    t.over()
    assert (t.judged(LAW).judgement.unsure, t.status(LAW)) == (1, Status.HELD)


@pytest.mark.req("LA-019", "TY-014")
@pytest.mark.parametrize(("state", "status"), [("waiting_approval", Status.HELD), ("running", Status.BROKEN)])
def test_a_job_that_waits_for_a_person_says_so(state: str, status: Status) -> None:
    t = Running(1)
    t.told(2, "job.event", state="waiting_approval")
    t.told(3, "job.event", **event(5))
    t.pass_on(0)
    t.la("job.event", 50, payload={"jobId": JOB, "state": state})
    t.seq = 60
    t.pass_on(5)
    t.over()
    assert t.status(LAW) is status


def test_a_job_that_agent2_never_took_has_no_progress() -> None:
    t = Tale()
    t.connect()
    t.assign()
    t.post(503)
    t.la("job.result", 1, payload={"jobId": JOB, "outcome": "failed", "errorCode": "infra"})
    assert t.status(LAW) is Status.HELD

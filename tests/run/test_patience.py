"""A patient caller: it waits for an agent that is away, and asks again for what came too late."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from lab.gateway.jobs import CallRefused, Job
from lab.gateway.relay import Answer
from lab.run import driver as driving
from lab.run import patience
from lab.run.step_course import StepFailed
from lab.scenario.model import ApproveStep, AssignStep, CancelStep, ContentStep, StreamStep, WaitStep
from tests.run.made import scenario
from tests.run.test_driver import Bench as DriverBench
from tests.run.test_driver import Reply, body
from tests.run.test_steps import AGENT, Bench

ASSIGN = AssignStep(3, None, "q1", "chat")
UNSUPPORTED = AssignStep(3, None, "q1", "chat", fails="AGENT_UNSUPPORTED")
APPROVE = ApproveStep(3, None, "q1", "deny")
STREAM = StreamStep(3, None, "q1", None)
TURNS = body({"turns": [{"role": "user"}], "truncated": False})


class Patient(Bench):
    """A bench whose gateway gives a new job at each assign."""

    def __init__(self, *steps: Any, patient: bool = True) -> None:
        super().__init__(*steps, patient=patient)
        self.jobs: list[Job] = []

    def _assign(self, step: AssignStep) -> Job:
        super()._assign(step)
        assert self.ready, "the agent is away"
        self.jobs.append(Job(f"job-{len(self.jobs)}", "chat", "agent", "job-1"))
        return self.jobs[-1]

    def comes(self) -> None:
        """The agent is ready."""
        self.session("ready")

    def job_is(self, **members: object) -> Callable[[], None]:
        """The latest job becomes so."""

        def move() -> None:
            for name, value in members.items():
                setattr(self.jobs[-1], name, value)
            self.tell()

        return move

    def goes(self) -> None:
        """The agent goes, and the assign with it."""
        self.ready = False
        self.job_is(code="agent_offline")()


async def test_an_agent_that_is_away_is_waited_for() -> None:
    bench = Patient(ASSIGN)
    await bench.run(bench.tell, bench.comes, bench.job_is(answer="accepted"))
    assert (len(bench.jobs), bench.last().note) == (1, "chat")


@pytest.mark.parametrize("members", [{"answer": "accepted"}, {"answer": "rejected"}, {"results": 1}])
async def test_an_assign_is_over_when_the_agent_has_said_something_of_it(members: dict[str, object]) -> None:
    """Its result may be there before its ack."""
    bench = Patient(ASSIGN)
    bench.ready = True
    await bench.run(bench.tell, bench.job_is(**members))
    assert len(bench.jobs) == 1


async def test_an_assign_that_was_lost_with_its_session_is_made_again() -> None:
    """Once the agent is back, as a new job."""
    bench = Patient(ASSIGN)
    bench.ready = True
    await bench.run(bench.goes, bench.tell, bench.comes, bench.goes, bench.comes, bench.job_is(answer="accepted"))
    assert [job.job_id for job in bench.jobs] == ["job-0", "job-1", "job-2"]


async def test_a_rejected_assign_is_not_made_again() -> None:
    bench = Patient(ASSIGN)
    bench.ready = True
    await bench.run(bench.job_is(answer="rejected", code="rate_limited"))
    assert len(bench.jobs) == 1


async def test_what_the_gateway_refuses_fails_all_the_same() -> None:
    bench = Patient(ASSIGN)
    bench.ready = True
    bench.refuses = "AGENT_OFFLINE"
    await bench.fails(StepFailed, "the gateway refused the job")


@pytest.mark.req("CHAT-005")
async def test_an_agent_that_does_not_announce_what_the_job_needs_gets_none() -> None:
    """As when agent2 was away while the agent announced itself."""
    bench = Patient(ASSIGN)
    bench.ready = True
    bench.refuses = "AGENT_UNSUPPORTED"
    await bench.run()
    assert (bench.jobs, bench.last().note) == ([], "refused: AGENT_UNSUPPORTED")


async def test_an_assign_that_must_fail_waits_for_nobody() -> None:
    bench = Patient(UNSUPPORTED)
    bench.refuses = "AGENT_UNSUPPORTED"
    await bench.run()
    assert bench.last().note == "refused: AGENT_UNSUPPORTED, as it must be"


async def test_without_patience_an_assign_is_made_at_once() -> None:
    bench = Patient(ASSIGN, patient=False)
    bench.ready = True
    await bench.run()
    assert len(bench.jobs) == 1


async def test_a_job_that_was_rejected_has_no_stream() -> None:
    bench = Bench(STREAM, patient=True)
    bench.job.answer = "rejected"
    await bench.run()
    assert bench.last().note == "there is none: the job was rejected"


@pytest.mark.parametrize(("patient", "answer"), [(False, "rejected"), (True, "accepted")])
async def test_any_other_stream_is_read(patient: bool, answer: str) -> None:
    bench = Bench(STREAM, patient=patient)
    bench.job.answer = answer
    bench.follower.done = True
    await bench.run()
    assert bench.last().note == "0 events in 0 pages"


# Approvals


def waiting(bench: Bench) -> Callable[[], None]:
    """The job asks for a decision."""

    def move() -> None:
        bench.job.approval_id, bench.job.state = "approval-1", "waiting_approval"
        bench.tell()

    return move


def becomes(bench: Bench, **members: object) -> Callable[[], None]:
    def move() -> None:
        for name, value in members.items():
            setattr(bench.job, name, value)
        bench.tell()

    return move


async def test_a_decision_is_given_until_the_job_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be lost between the agent and agent2."""
    monkeypatch.setattr(patience, "HEARD_WITHIN", 0.0)
    bench = Bench(APPROVE, patient=True)
    await bench.run(waiting(bench), bench.tell, becomes(bench, state="running"))
    assert len(bench.calls) >= 2
    assert set(bench.calls) == {("approve", "q1", "deny")}
    assert bench.last().note == "approval-1"


async def test_a_job_that_went_on_gets_no_further_decision() -> None:
    bench = Bench(APPROVE, patient=True)
    await bench.run(waiting(bench), becomes(bench, state="running"))
    assert bench.calls == [("approve", "q1", "deny")]


@pytest.mark.parametrize("members", [{"results": 1}, {"answer": "rejected"}])
async def test_a_job_that_ended_without_asking_gets_no_decision(members: dict[str, object]) -> None:
    bench = Bench(APPROVE, patient=True)
    await bench.run(becomes(bench, **members))
    assert (bench.calls, bench.last().note) == ([], "the job ended without asking for one")


# Cancels


CANCEL = CancelStep(3, None, "q1", "user")


async def test_a_cancel_waits_for_the_end_of_its_job() -> None:
    bench = Bench(CANCEL, patient=True)
    await bench.run(bench.tell, becomes(bench, results=1))
    assert bench.calls == [("cancel", "q1", "user")]


async def test_a_cancel_that_changed_nothing_is_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for ever: the job may have been forgotten."""
    monkeypatch.setattr(patience, "HEARD_WITHIN", 0.0)
    bench = Bench(CANCEL, patient=True)
    await bench.run()
    assert bench.calls == [("cancel", "q1", "user")] * patience.MOST_CANCELS


# An agent that comes back


RESUMED = WaitStep(3, None, AGENT, "resumed")


async def test_an_agent_has_come_back_in_whichever_session() -> None:
    bench = Bench(RESUMED, patient=True)
    bench.ready = True
    await bench.run(bench.tell, lambda: bench.session("ended"), lambda: bench.session("ready"))
    assert bench.last().outcome == "done"


async def test_an_agent_that_never_left_is_not_waited_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "BACK_WITHIN", 0.0)
    bench = Bench(RESUMED, patient=True)
    bench.ready = True
    await bench.run()
    assert bench.last().outcome == "done"


# Jobs that are none


async def test_what_was_never_assigned_is_not_waited_for() -> None:
    bench = Bench(STREAM, patient=True)
    vars(bench.runner._driver)["job"] = _nobody
    await bench.run()
    assert bench.last().note == "there is none: the job was never assigned"


def _nobody(_label: str) -> None:
    raise driving.NotAssigned("no")


@pytest.mark.parametrize("patient", [True, False])
async def test_a_job_that_was_rejected_never_runs(patient: bool) -> None:
    bench = Bench(WaitStep(3, None, "job.q1", "running"), patient=patient)
    bench.job.answer = "rejected"
    if patient:
        await bench.run()
    else:
        await bench.fails(StepFailed, "rejected, running was due")


@pytest.mark.parametrize("state", ["running", "waiting_approval", "done"])
async def test_a_job_that_went_on_has_run(state: str) -> None:
    bench = Bench(WaitStep(3, None, "job.q1", "running"))
    bench.job.state = state
    await bench.run()


@pytest.mark.parametrize(("code", "holds"), [("timeout", True), (None, True), ("not_found", False)])
async def test_content_may_fail_as_faults_make_it(code: str | None, holds: bool) -> None:
    bench = Bench(ContentStep(3, None, "q1", "job.stream", 1.0, fails="rate_limited"), patient=True)
    bench.reading.over, bench.reading.code = True, code
    if holds:
        await bench.run()
    else:
        await bench.fails(StepFailed, "rate_limited was due")


# Conversations


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries do not wait for the clock."""
    monkeypatch.setattr(driving, "RETRY_SECONDS", 0.0)


async def opened(*replies: Reply, patient: bool = True) -> tuple[DriverBench, driving.Opening]:
    bench = DriverBench(*replies)
    bench.driver._scenario = scenario((bench.step,), patient=patient)
    bench.driver.assign(bench.step)
    opening = bench.driver.open_session("q1")
    await asyncio.wait_for(asyncio.gather(*bench.driver._openings), 10)
    assert opening.over
    return bench, opening


@pytest.mark.parametrize("code", sorted(driving.RETRIED_CODES))
async def test_a_conversation_that_came_too_late_is_asked_for_again(code: str) -> None:
    """Whether the agent said so or the gateway did."""
    for lost in (Answer("r", "error", code=code), CallRefused(code, "no")):
        bench, opening = await opened(lost, lost, TURNS)
        assert opening.view is not None
        assert [kind for kind, _ in bench.gateway.asked] == 3 * ["chat.session"]


async def test_another_failure_of_a_conversation_is_one() -> None:
    bench, opening = await opened(Answer("r", "error", code="not_found"), TURNS)
    assert (opening.view, len(bench.gateway.asked)) == (None, 1)
    assert "not_found" in str(opening.failure)


async def test_without_patience_a_conversation_is_asked_for_once() -> None:
    bench, opening = await opened(Answer("r", "error", code="timeout"), TURNS, patient=False)
    assert (opening.view, len(bench.gateway.asked)) == (None, 1)

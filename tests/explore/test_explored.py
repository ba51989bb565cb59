"""An explored scenario: its own steps without hurry, the faults among them, and an end that has to come."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lab.durations import LONGEST
from lab.explore.explored import (
    FORGETFUL_SECONDS,
    HORIZON_SECONDS,
    SETTLING_SECONDS,
    explored,
    gateway_links,
    is_lasting,
)
from lab.explore.plan import Plan, Planned
from lab.faults.plan import Fault, FrameAnchor
from lab.scenario.model import (
    AssignStep,
    CancelStep,
    ContentStep,
    Expectation,
    FaultStep,
    GatewaySpec,
    IdleStep,
    InjectStep,
    LinkSpec,
    LocalAgentSpec,
    ResultStep,
    Scenario,
    SessionStep,
    StreamStep,
    WaitStep,
)
from lab.scenario.step import Step
from tests.explore.made import frame_fault, link_fault
from tests.run.made import scenario

LINKS = {"gateway": LinkSpec("gateway", "gateway"), "agent2": LinkSpec("agent2", "agent2")}
READY = WaitStep(1, 5.0, "local_agent", "ready")
ASSIGN = AssignStep(2, 1.0, "q1", "chat", ("Why?",))
REFUSED = AssignStep(3, 1.0, "q2", "chat", fails="AGENT_UNSUPPORTED")
ENDED = WaitStep(9, None, "job.q1", "ended")
OWN = Fault("own", "drop", anchor=FrameAnchor("ack", "gateway"), line=4)

MASKED = (frame_fault("m"),)
LATE = (link_fault("m", seconds=150.0),)
SEEN = (Planned(0, Fault("s", "crash", service="agent2", seconds=2.0)),)
FORGETTING = (Planned(0, Fault("k", "kill", process="local_agent", seconds=2.0)),)


def made(*steps: Step, **members: object) -> Scenario:
    return scenario(steps, **{"links": LINKS, **members})


def steps_of(base: Scenario, plan: Plan) -> list[Step]:
    """The steps but the last, in which everything settles."""
    *steps, last = explored(base, plan).steps
    settling = SETTLING_SECONDS + (150.0 if plan == LATE else 0.0)
    assert last == IdleStep(base.steps[-1].line if base.steps else 0, None, settling)
    return steps


def kept(step: Step, plan: Plan) -> list[Step]:
    """What becomes of one step under a plan, beside its faults and its end."""
    steps = steps_of(made(step), plan)
    return [one for one in steps if not (isinstance(one, FaultStep) and one.fault.id in ("m", "s", "k"))]


def test_faults_stand_before_their_steps_in_their_order() -> None:
    plan = (frame_fault("a"), link_fault("b"), link_fault("c", before=1), link_fault("d", before=2))
    steps = steps_of(made(IdleStep(1, None, 1.0), IdleStep(2, None, 2.0), IdleStep(3, None, 3.0)), plan)
    words = [step.fault.id if isinstance(step, FaultStep) else step.line for step in steps]
    assert words == ["a", "b", 1, "c", 2, "d", 3]


def test_there_is_time_enough_and_nothing_else_that_must_be() -> None:
    base = made(must_judge=("acks",))
    whole = explored(base, MASKED)
    assert (whole.deadline, whole.patient, whole.must_judge) == (base.deadline + HORIZON_SECONDS, True, ())


@pytest.mark.parametrize(
    ("step", "masked", "seen", "forgetting"),
    [
        (
            StreamStep(1, 5.0, "q1", 40),
            StreamStep(1, None, "q1", 40),
            StreamStep(1, None, "q1", None),
            IdleStep(1, None, FORGETFUL_SECONDS),
        ),
        (
            ResultStep(1, 5.0, "q1"),
            ResultStep(1, None, "q1"),
            WaitStep(1, None, "job.q1", "ended"),
            IdleStep(1, None, FORGETFUL_SECONDS),
        ),
        (
            WaitStep(1, 5.0, "job.q1", "accepted"),
            WaitStep(1, None, "job.q1", "accepted"),
            None,
            IdleStep(1, None, FORGETFUL_SECONDS),
        ),
        (
            WaitStep(1, 5.0, "job.q1", "running"),
            *2 * (WaitStep(1, None, "job.q1", "running"),),
            IdleStep(1, None, FORGETFUL_SECONDS),
        ),
        (
            WaitStep(1, 5.0, "job.q1", "cancelled"),
            *2 * (WaitStep(1, None, "job.q1", "ended"),),
            IdleStep(1, None, FORGETFUL_SECONDS),
        ),
        (WaitStep(1, 5.0, "job.q1", "repeated"), None, None, IdleStep(1, None, FORGETFUL_SECONDS)),
        (WaitStep(1, 5.0, "local_agent", "disconnected"), None, None, IdleStep(1, None, FORGETFUL_SECONDS)),
        (SessionStep(1, 5.0, "q1"), SessionStep(1, None, "q1"), None, IdleStep(1, None, FORGETFUL_SECONDS)),
        (
            ContentStep(1, 5.0, "q1", "job.stream", 0.5),
            ContentStep(1, None, "q1", "job.stream", 0.5),
            None,
            IdleStep(1, None, FORGETFUL_SECONDS),
        ),
        (CancelStep(1, 5.0, "q1"), *3 * (CancelStep(1, None, "q1"),)),
        (IdleStep(1, None, 2.0), *3 * (IdleStep(1, None, 2.0),)),
        (FaultStep(1, None, OWN), *3 * (FaultStep(1, None, OWN),)),
        (InjectStep(1, None, OWN, "local_agent"), *3 * (InjectStep(1, None, OWN, "local_agent"),)),
        (WaitStep(1, 5.0, "fault.own", "fired"), None, None, IdleStep(1, None, FORGETFUL_SECONDS)),
        (WaitStep(1, 5.0, "local_agent", "refused"), *3 * (WaitStep(1, None, "local_agent", "refused"),)),
    ],
)
def test_a_step_asks_for_what_still_holds(
    step: Step, masked: Step | None, seen: Step | None, forgetting: Step | None
) -> None:
    """Where a caller sees nothing, where a job may end otherwise, and where it may be forgotten."""
    assert kept(step, MASKED) == [one for one in (masked,) if one]
    assert kept(step, SEEN) == kept(step, LATE) == [one for one in (seen,) if one]
    assert kept(step, FORGETTING) == [one for one in (forgetting,) if one]


def test_a_session_may_be_lost() -> None:
    step = WaitStep(1, 5.0, "local_agent", "resumed")
    end = WaitStep(1, None, "local_agent", "ready")
    assert kept(step, FORGETTING) == kept(step, MASKED) == [replace(step, within=None), end]


def test_every_job_that_was_taken_ends_and_every_agent_is_ready_again() -> None:
    base = made(
        READY, ASSIGN, REFUSED, IdleStep(9, None, 1.0),
        local_agents={name: LocalAgentSpec(name) for name in ("local_agent", "second")},
    )  # fmt: skip
    ready = [WaitStep(9, None, name, "ready") for name in ("local_agent", "second")]
    assert steps_of(base, MASKED)[-3:] == [ENDED, *ready]
    assert steps_of(base, FORGETTING)[-3:] == [IdleStep(9, None, 1.0), *ready]


def test_an_agent_that_never_was_to_be_ready_is_not_waited_for() -> None:
    base = made(WaitStep(1, 5.0, "local_agent", "refused"), ASSIGN)
    assert steps_of(base, ())[-1] == WaitStep(2, None, "job.q1", "ended")


def test_an_empty_scenario_has_no_end() -> None:
    assert steps_of(made(), ()) == []


@pytest.mark.parametrize(("lasts", "settling"), [(40.0, 60.0), (60.0, 120.0), (100.0, 160.0)])
def test_a_fault_that_outlasts_the_end_is_waited_for(lasts: float, settling: float) -> None:
    long = link_fault("m", seconds=lasts)
    own = FaultStep(1, None, long.fault)
    assert explored(made(READY), (link_fault("a", seconds=1.0), long)).steps[-1] == IdleStep(1, None, settling)
    assert explored(made(own), MASKED).steps[-1] == IdleStep(1, None, settling)


EXPECTATIONS = tuple(
    Expectation(path, 1, 1)
    for path in ("job.q1.outcome", "job.q1.runs", "stream.q1.events", "stream.q1.pages", "figures.retransmissions")
)


@pytest.mark.parametrize(
    ("plan", "paths"),
    [
        (MASKED, ["job.q1.outcome", "stream.q1.events"]),
        (SEEN, []),
        (LATE, []),
        (FORGETTING, []),
        ((link_fault("l"),), None),
    ],
)
def test_expectations_that_sending_again_may_change_are_dropped(plan: Plan, paths: list[str] | None) -> None:
    left = [one.path for one in explored(made(expect=EXPECTATIONS), plan).expect]
    assert left == (["job.q1.outcome", "stream.q1.events"] if paths is None else paths)


def test_a_job_that_is_cancelled_may_end_by_itself() -> None:
    both = made(CancelStep(1, None, "q2"), expect=(*EXPECTATIONS, Expectation("job.q2.outcome", "cancelled", 1)))
    assert [one.path for one in explored(both, MASKED).expect] == ["job.q1.outcome", "stream.q1.events"]


@pytest.mark.parametrize("kind", ["tamper", "kill", "inject", "crash"])
def test_faults_of_the_scenario_count_as_those_of_the_plan(kind: str) -> None:
    step = InjectStep(1, None, Fault("own", kind), "local_agent") if kind == "inject" else None
    base = made(step or FaultStep(1, None, Fault("own", kind, service="agent2")), ASSIGN, expect=EXPECTATIONS)
    whole = explored(base, MASKED)
    assert whole.expect == ()
    assert (ENDED in [replace(one, line=9) for one in whole.steps]) is (kind != "kill")


@pytest.mark.parametrize(
    ("path", "lasting"),
    [
        ("job.q1.errorCode", True),
        ("job.q1.filesChangedCount", True),
        ("job.a.b.outcome", True),
        ("session.q1.turns", True),
        ("session.q1.truncated", True),
        ("job.q1.acks", False),
        ("stream.q1.emptyPages", False),
        ("socket.local_agent.opened", False),
        ("figures.outcome", False),
    ],
)
def test_what_lasts_is_what_a_caller_was_promised(path: str, lasting: bool) -> None:
    assert is_lasting(Expectation(path, 1, 1)) is lasting


def test_links_to_a_gateway_are_told_by_where_they_lead() -> None:
    links = {**LINKS, "far": LinkSpec("far", "b"), "near": LinkSpec("near", "agent2")}
    gateways = {name: GatewaySpec(name) for name in ("gateway", "b")}
    assert gateway_links(made(links=links, gateways=gateways)) == {"gateway": "gateway", "far": "b"}


def test_no_deadline_is_longer_than_one_that_can_be_loaded() -> None:
    assert explored(made(READY, deadline=LONGEST), MASKED).deadline == LONGEST
    assert explored(made(READY, deadline=10.0), MASKED).deadline == 10.0 + HORIZON_SECONDS

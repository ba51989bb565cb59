"""A scenario as it is explored: its own steps with a plan's faults among them, and time enough to come to its end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lab.durations import LONGEST
from lab.explore.partner_leg import explored_partner
from lab.explore.plan import Plan, Planned, is_masked
from lab.faults.plan import FAULT_KINDS
from lab.scenario.model import (
    AssignStep,
    CancelStep,
    ContentStep,
    Expectation,
    FaultStep,
    IdleStep,
    InjectStep,
    ResultStep,
    Scenario,
    SessionStep,
    StreamStep,
    WaitStep,
)
from lab.scenario.step import Step

FORGETFUL_SECONDS = 20.0
"""What passes where a step waited for a job that may be forgotten."""

LASTING = frozenset(
    {
        ("job", "outcome"),
        ("job", "errorCode"),
        ("job", "filesChangedCount"),
        ("stream", "events"),
        ("session", "turns"),
        ("session", "truncated"),
    }
)
"""Expectations of a scenario that hold under any fault that the protocol makes good."""

PASSING = frozenset({"disconnected", "repeated"})
"""What a further fault may bring about too early to be waited for, or not at all."""

ANSWERS = frozenset({"accepted", "rejected"})
"""Answers to an assignment; whoever assigns patiently has waited for one, whichever it is."""

NEAREST = {"cancelled": "ended"}
"""What comes whatever else a fault does: a job may end before its cancel arrives."""

SETTLING_SECONDS = 60.0
"""What passes at the end: longer than a frame is sent again, so that what goes on behind a job's end shows as well.
As much passes after a fault that is not over by then."""

HORIZON_SECONDS = 900.0
"""Simulated seconds on top of the scenario's own deadline: faults are over long before, so by then all must be well.
No deadline is longer than the longest that a scenario may have, or a finding could not be loaded."""


def explored(scenario: Scenario, plan: Plan) -> Scenario:
    """The scenario with `plan` in it.

    First the faults strike (each is bounded in number and time), then the run must come to the promised end before
    the horizon: every step done, every job ended, every agent ready again.
    """
    if scenario.partner is not None:
        return explored_partner(scenario, plan)
    own = tuple(Planned(0, step.fault) for step in scenario.steps if isinstance(step, FaultStep | InjectStep))
    # A scenario's own faults strike at other moments when more of them come.
    masked = is_masked((*plan, *own), gateway_links(scenario))
    cancelled = {step.job for step in scenario.steps if isinstance(step, CancelStep)}
    forgets = any(FAULT_KINDS[planned.fault.kind].forgets for planned in (*plan, *own))
    steps = tuple(_with_faults(scenario, plan, masked, forgets))
    return replace(
        scenario,
        steps=(*steps, *_ends(scenario, forgets, _settling((*plan, *own)))),
        deadline=min(scenario.deadline + HORIZON_SECONDS, LONGEST),
        expect=tuple(one for one in scenario.expect if masked and is_lasting(one) and _job_of(one) not in cancelled),
        must_judge=(),
        patient=True,
    )


def is_lasting(expectation: Expectation) -> bool:
    """Whether an expectation holds however often something had to be sent again."""
    subject, _, member = expectation.path.rpartition(".")
    return (subject.partition(".")[0], member) in LASTING


def _job_of(expectation: Expectation) -> str:
    """The job that an expectation is of; one that is cancelled may have ended by itself before that."""
    return expectation.path.rpartition(".")[0].partition(".")[2]


def gateway_links(scenario: Scenario) -> dict[str, str]:
    """The links that lead to a gateway, with its name."""
    return {name: link.to for name, link in scenario.links.items() if link.to in scenario.gateways}


def _with_faults(scenario: Scenario, plan: Plan, masked: bool, forgets: bool) -> Iterator[Step]:
    for number, step in enumerate(scenario.steps):
        yield from (FaultStep(step.line, None, planned.fault) for planned in plan if planned.before == number)
        yield from _of_a_forgetful_run(step) if forgets else _without_hurry(step, masked)


def _without_hurry(step: Step, masked: bool) -> Iterator[Step]:
    """A step without its own deadline, which is meant for a run without further faults.

    Where faults may change how a job ends, a step that wants more than that it ends asks for that alone.
    """
    if isinstance(step, FaultStep | InjectStep):
        yield step
    elif isinstance(step, WaitStep):
        yield from _wait(step, masked)
    elif masked:
        yield replace(step, within=None)
    elif isinstance(step, StreamStep):
        yield replace(step, within=None, events=None)
    elif isinstance(step, ResultStep):
        yield WaitStep(step.line, None, f"job.{step.job}", "ended")
    elif not isinstance(step, SessionStep | ContentStep):
        yield replace(step, within=None)


def _wait(step: WaitStep, masked: bool) -> Iterator[Step]:
    """A wait for what still comes, or for the nearest that does."""
    if step.subject.startswith("fault."):
        # A further fault may take its frame.
        return
    if step.condition in PASSING or (step.condition in ANSWERS and not masked):
        return
    yield replace(step, within=None, condition=NEAREST.get(step.condition, step.condition))


def _of_a_forgetful_run(step: Step) -> Iterator[Step]:
    """A step where no job may be waited for: what waits for one lets time pass, in which the laws see enough."""
    waits_for_agent = isinstance(step, WaitStep) and step.subject.partition(".")[0] not in ("job", "fault")
    if isinstance(step, WaitStep) and waits_for_agent and step.condition not in PASSING:
        yield replace(step, within=None, condition=NEAREST.get(step.condition, step.condition))
    elif isinstance(step, FaultStep | InjectStep | AssignStep | CancelStep | IdleStep):
        yield step if isinstance(step, FaultStep | InjectStep) else replace(step, within=None)
    else:
        yield IdleStep(step.line, None, FORGETFUL_SECONDS)


def _settling(plan: Plan) -> float:
    """What passes at the end. A job may end at the moment at which a fault begins, so a long fault is waited for."""
    longest = max((planned.fault.seconds or 0.0 for planned in plan), default=0.0)
    return SETTLING_SECONDS + (longest if longest >= SETTLING_SECONDS else 0.0)


def _ends(scenario: Scenario, forgets: bool, settling: float) -> Iterator[Step]:
    line = scenario.steps[-1].line if scenario.steps else 0
    for step in scenario.steps:
        if isinstance(step, AssignStep) and step.fails is None and not forgets:
            yield WaitStep(line, None, f"job.{step.job}", "ended")
    if _waits_ready(scenario):
        for name in scenario.local_agents:
            yield WaitStep(line, None, name, "ready")
    yield IdleStep(line, None, settling)


def _waits_ready(scenario: Scenario) -> bool:
    return any(isinstance(step, WaitStep) and step.condition in ("ready", "resumed") for step in scenario.steps)

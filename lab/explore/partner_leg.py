"""The partner leg as it is explored: what can be struck in it, and a scenario with a plan's faults among its steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lab.durations import LONGEST
from lab.explore.plan import Plan
from lab.scenario.model import FaultStep, IdleStep, Scenario
from lab.scenario.partner_model import PartnerSpec
from lab.scenario.partner_names import PARTNER_API, STORE
from lab.scenario.step import Step

SETTLING_SECONDS = 60.0
"""What passes at the end and behind the last fault: a driver that resumes or polls has come to its end by then."""

HORIZON_SECONDS = 1800.0
"""Simulated seconds on top of the scenario's own deadline: many calls may each be tried through a fault."""


def services_of(spec: PartnerSpec) -> tuple[str, ...]:
    """What can die and come back. A partner API that keeps nothing comes back as another one, with other keys."""
    return (PARTNER_API, STORE) if spec.api.keeps_state else (STORE,)


def explored_partner(scenario: Scenario, plan: Plan) -> Scenario:
    """The scenario with `plan` in it, by a patient caller: a step that comes to nothing is noted, and laws alone judge.

    A partner's caller gives up after some tries, so no expectation of the scenario holds under any fault.
    """
    longest = max((planned.fault.seconds or 0.0 for planned in plan), default=0.0)
    line = scenario.steps[-1].line if scenario.steps else 0
    return replace(
        scenario,
        steps=(*_with_faults(scenario, plan), IdleStep(line, None, SETTLING_SECONDS + longest)),
        deadline=min(scenario.deadline + HORIZON_SECONDS, LONGEST),
        expect=(),
        must_judge=(),
        patient=True,
    )


def _with_faults(scenario: Scenario, plan: Plan) -> Iterator[Step]:
    for number, step in enumerate(scenario.steps):
        yield from (FaultStep(step.line, None, planned.fault) for planned in plan if planned.before == number)
        yield replace(step, within=None)

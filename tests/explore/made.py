"""Targets, moments and faults made by hand, for what draws, writes and shrinks plans."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from hypothesis import strategies as st

from lab.draws import Draws
from lab.explore.drawing import Targets, draw_plan
from lab.explore.moments import Moment
from lab.explore.plan import Plan, Planned
from lab.explore.trial import Trial
from lab.explore.workers import Workers
from lab.faults.plan import Fault, FrameAnchor

REGISTER = Moment("register", "local_agent", None, None, False, 1)
READY = Moment("ready", "gateway", None, None, False, 1)
ASSIGN = Moment("job.assign", "gateway", None, None, True, 2)
EVENT = Moment("job.event", "local_agent", None, None, False, 7)
ACK = Moment("ack", "local_agent", "job.assign", None, False, 2)
PAGE = Moment("content.response", "local_agent", None, "job.stream", False, 5)
MOMENTS = (REGISTER, READY, ASSIGN, EVENT, ACK, PAGE)

TARGETS = Targets(("gateway", "agent2"), ("agent2",), ("local_agent",), MOMENTS, 5)
"""Something of each sort."""


def drawn(number: int, targets: Targets = TARGETS) -> Plan:
    """The plan of one number."""
    return draw_plan(targets, Draws(1, "test", f"plan {number}"))


def plans_of(targets: Targets) -> st.SearchStrategy[Plan]:
    """Plans that are drawn for these targets."""
    return st.integers(0, 1_000_000).map(lambda number: drawn(number, targets))


def frame_fault(name: str, kind: str = "drop", *, nth: int = 1, **members: Any) -> Planned:
    """A fault of a job.event."""
    return Planned(0, Fault(name, kind, anchor=FrameAnchor("job.event", "local_agent", nth), **members))


def link_fault(name: str, kind: str = "cut", *, before: int = 0, link: str = "gateway", **members: Any) -> Planned:
    """A fault of a link, made when its step is reached."""
    return Planned(before, Fault(name, kind, link=link, **members))


def names(plan: Plan) -> list[str]:
    """The ids of a plan's faults."""
    return [planned.fault.id for planned in plan]


class Asked:
    """Whether plans fail, with a record of what was asked."""

    def __init__(self, fails: Callable[[Plan], bool]) -> None:
        self._fails = fails
        self.plans: list[Plan] = []

    def __call__(self, plan: Plan) -> bool:
        self.plans.append(plan)
        return self._fails(plan)


HELD = Trial((), (), (), 2.0)


class Trials:
    """Trials that need no run, one at a time; what comes of a plan is told by `outcome`."""

    def __init__(self, outcome: Callable[[Plan], Trial] = lambda _plan: HELD) -> None:
        self._outcome = outcome
        self.plans: list[Plan] = []
        self.workers = Workers(1, self._submit)

    def _submit(self, plan: Plan) -> Future[Trial]:
        self.plans.append(plan)
        tried: Future[Trial] = Future()
        tried.set_result(self._outcome(plan))
        return tried

"""Shrinking: what is left still fails, nothing of it can be left out, and it took no more trials than allowed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.explore.plan import Plan
from lab.explore.shrinking import shrink
from lab.faults.plan import FAULT_KINDS
from tests.explore.made import TARGETS, Asked, frame_fault, link_fault, names, plans_of

PLENTY = 1000

A, B, C, D = (frame_fault(name) for name in "abcd")
CUT = link_fault("cut", seconds=40.0)
DELAY = link_fault("delay", "delay", seconds=20.0, delay=2.0)
CUTS, DELAYS = FAULT_KINDS["cut"].durations, FAULT_KINDS["delay"]


def has(*wanted: str) -> Callable[[Plan], bool]:
    return lambda plan: set(wanted) <= set(names(plan))


@pytest.mark.parametrize(
    ("plan", "fails", "left"),
    [
        ((A, B, C, D), has("a"), ["a"]),
        ((A, B, C, D), has("d"), ["d"]),
        ((A, B, C, D), has("b", "c"), ["b", "c"]),
        ((A, B, C, D), has("a", "d"), ["a", "d"]),
        ((A, B, C), has("a", "b", "c"), ["a", "b", "c"]),
        ((A,), has("a"), ["a"]),
        ((A, B, C, D), lambda plan: len(plan) >= 2, ["a", "b"]),
        # Any one of two will do.
        ((A, B), lambda plan: bool({"a", "b"} & set(names(plan))), ["b"]),
    ],
)
def test_faults_that_do_nothing_are_left_out(plan: Plan, fails: Callable[[Plan], bool], left: list[str]) -> None:
    assert names(shrink(plan, fails, PLENTY)) == left


@pytest.mark.parametrize(
    ("plan", "fails", "left"),
    [
        ((CUT,), lambda _plan: True, link_fault("cut", seconds=min(CUTS))),
        ((CUT,), lambda plan: (plan[0].fault.seconds or 0) >= 3, link_fault("cut", seconds=3.0)),
        ((CUT,), lambda plan: plan[0].fault.seconds == 40.0, CUT),
        (
            (DELAY,),
            lambda _plan: True,
            link_fault("delay", "delay", seconds=min(DELAYS.durations), delay=min(DELAYS.delays)),
        ),
        ((DELAY,), lambda plan: plan[0].fault.delay >= 0.4, link_fault("delay", "delay", seconds=1.0, delay=0.4)),
        ((frame_fault("a", times=4),), lambda _plan: True, frame_fault("a", times=1)),
        ((frame_fault("a", times=4),), lambda plan: (plan[0].fault.times or 0) >= 3, frame_fault("a", times=3)),
        ((frame_fault("a", times=None),), lambda _plan: True, frame_fault("a", times=1)),
        ((frame_fault("a", times=None),), lambda plan: plan[0].fault.times in (None, 4), frame_fault("a", times=4)),
        ((frame_fault("a", times=None),), lambda plan: plan[0].fault.times is None, frame_fault("a", times=None)),
        ((link_fault("a", before=4),), lambda _plan: True, link_fault("a", before=0)),
        ((link_fault("a", before=4),), lambda plan: plan[0].before >= 1, link_fault("a", before=1)),
        ((link_fault("a", before=4),), lambda plan: plan[0].before == 4, link_fault("a", before=4)),
        ((frame_fault("a", nth=9),), lambda _plan: True, frame_fault("a", nth=1)),
        (
            (frame_fault("a", nth=9),),
            lambda plan: plan[0].fault.anchor is not None and plan[0].fault.anchor.nth >= 3,
            frame_fault("a", nth=3),
        ),
    ],
)
def test_parameters_get_plainer(plan: Plan, fails: Callable[[Plan], bool], left: object) -> None:
    assert shrink(plan, fails, PLENTY) == (left,)


@pytest.mark.parametrize("most", [0, 1, 2, 5])
def test_no_more_is_tried_than_allowed(most: int) -> None:
    asked = Asked(has("b", "d"))
    small = shrink((A, B, C, D), asked, most)
    assert len(asked.plans) == most
    assert has("b", "d")(small)


def test_nothing_is_tried_once_it_is_over() -> None:
    """What was found by then is the result."""
    asked = Asked(has("d"))
    assert names(shrink((A, B, C, D), asked, PLENTY, lambda: len(asked.plans) == 2)) == ["c", "d"]
    assert len(asked.plans) == 2


def test_without_a_trial_the_plan_stays() -> None:
    assert shrink((A, B), lambda _plan: True, 0) == (A, B)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Plan, frozenset[str], int]:
    """A plan, the faults that it needs to fail, and how many trials are allowed."""
    plan = draw(plans_of(TARGETS))
    needed = draw(st.sets(st.sampled_from(names(plan)), min_size=1))
    return plan, frozenset(needed), draw(st.integers(0, 60))


@given(cases())
def test_what_is_left_fails(case: tuple[Plan, frozenset[str], int]) -> None:
    plan, needed, most = case
    asked = Asked(has(*needed))
    small = shrink(plan, asked, most)
    assert has(*needed)(small)
    assert len(asked.plans) <= most
    assert set(names(small)) <= set(names(plan))


@given(cases())
def test_with_trials_enough_no_fault_of_what_is_left_can_be_left_out(case: tuple[Plan, frozenset[str], int]) -> None:
    """Nor can any be plainer, here where its parameters do not matter."""
    plan, needed, _ = case
    small = shrink(plan, has(*needed), PLENTY)
    assert set(names(small)) == needed
    assert shrink(small, has(*needed), PLENTY) == small
    for planned in small:
        fault, kind = planned.fault, FAULT_KINDS[planned.fault.kind]
        assert (fault.seconds, fault.delay) == (min(kind.durations, default=None), min(kind.delays, default=0.0))
        assert (fault.times, planned.before) == (1, 0)
        assert fault.anchor is None or fault.anchor.nth == 1


@given(cases())
def test_the_same_is_asked_again(case: tuple[Plan, frozenset[str], int]) -> None:
    plan, needed, most = case
    first, second = Asked(has(*needed)), Asked(has(*needed))
    assert shrink(plan, first, most) == shrink(plan, second, most)
    assert first.plans == second.plans

"""Making a failing plan small: fewer faults first, then shorter and plainer ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from lab.explore.plan import Plan, Planned
from lab.faults.plan import FAULT_KINDS


def shrink(
    plan: Plan, fails: Callable[[Plan], bool], most_trials: int, is_over: Callable[[], bool] = lambda: False
) -> Plan:
    """The smallest plan that was found to fail as `plan` does; `fails` is asked at most `most_trials` times.

    It is not asked any more once `is_over()`. No fault of the result can be left out, as far as the trials went.
    """
    left = most_trials
    smaller = True
    while smaller:
        smaller = False
        for candidate in _simpler(plan):
            if left == 0 or is_over():
                return plan
            left -= 1
            if fails(candidate):
                plan, smaller = candidate, True
                break
    return plan


def _simpler(plan: Plan) -> Iterator[Plan]:
    """Plans that are a little less than `plan`, those that leave out most first."""
    if len(plan) > 2:
        half = len(plan) // 2
        yield plan[:half]
        yield plan[half:]
    if len(plan) > 1:
        for number in range(len(plan)):
            yield plan[:number] + plan[number + 1 :]
    for number, planned in enumerate(plan):
        for plainer in _plainer(planned):
            yield (*plan[:number], plainer, *plan[number + 1 :])


def _plainer(planned: Planned) -> Iterator[Planned]:
    fault = planned.fault
    kind = FAULT_KINDS[fault.kind]
    # One that strikes every frame is more than any that strikes a number of them.
    for times in range(1, max(kind.times) + 1 if fault.times is None else fault.times):
        yield replace(planned, fault=replace(fault, times=times))
    for seconds in kind.durations:
        if fault.seconds is not None and seconds < fault.seconds:
            yield replace(planned, fault=replace(fault, seconds=seconds))
    for delay in kind.delays:
        if delay < fault.delay:
            yield replace(planned, fault=replace(fault, delay=delay))
    if fault.anchor is not None and fault.anchor.nth > 1:
        for nth in sorted({1, fault.anchor.nth // 2, fault.anchor.nth - 1}):
            yield replace(planned, fault=replace(fault, anchor=replace(fault.anchor, nth=nth)))
    if planned.before > 0:
        for before in sorted({0, planned.before // 2, planned.before - 1}):
            yield replace(planned, before=before)

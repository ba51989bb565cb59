"""Trying plan after plan, in several processes, until enough were tried."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice

from lab.explore.drawing import Targets
from lab.explore.plan import Plan, Planned
from lab.explore.trial import Trial, plan_of, try_plan
from lab.faults.plan import Acts
from lab.scenario.model import Scenario
from lab.sim.patches import machine_replaced

AHEAD = 2
"""Trials that wait for each worker, so that none is idle."""


@dataclass(frozen=True)
class Budget:
    """How much is tried: `runs` plans, but none that is begun after `seconds` of the machine's time."""

    runs: int
    seconds: float | None = None


@dataclass(frozen=True)
class Tried:
    """A plan by its number, and what came of it."""

    number: int
    plan: Plan
    trial: Trial


@dataclass
class Progress:
    """What a search has come to so far."""

    runs: int = 0
    failures: int = 0
    simulated: float = 0.0
    struck: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often each kind of fault struck at each moment."""

    def take(self, tried: Tried) -> None:
        """Count one trial."""
        self.runs += 1
        self.failures += bool(tried.trial.broken)
        self.simulated += tried.trial.simulated
        for planned in tried.plan:
            if planned.fault.id in tried.trial.fired:
                self.struck[(planned.fault.kind, moment_of(planned))] += 1


def moment_of(planned: Planned) -> str:
    """The moment that a fault strikes at, in words: a kind of frame, or a step."""
    anchor = planned.fault.anchor
    if anchor is None:
        return f"before step {planned.before}"
    narrowed = f" of {anchor.of}" if anchor.of else f" {anchor.content}" if anchor.content else ""
    return f"{anchor.type}{narrowed} from {anchor.sender}"


def pairs_of(targets: Targets) -> int:
    """How many pairs of a kind of fault and a moment there are to be struck."""
    total = 0
    for kind in targets.kinds():
        moments = len(targets.moments_for(kind))
        steps = targets.steps if kind.acts is not Acts.FRAME else 0
        total += moments + steps
    return total


def search(
    scenario: Scenario, targets: Targets, seed: int, budget: Budget, workers: int, each: Callable[[Tried], bool]
) -> None:
    """Try plans number 0, 1, … of `seed`; `each` is told of every trial and says whether to go on.

    Ctrl-C ends it between two trials, as a `KeyboardInterrupt`.
    """
    numbers = _numbers(budget)
    if workers == 1:
        for number in numbers:
            plan = plan_of(targets, seed, number)
            if not each(Tried(number, plan, try_plan(scenario, plan, seed))):
                return
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_begin_worker) as pool:
        pending: dict[Future[Trial], tuple[int, Plan]] = {}
        try:
            while True:
                for number in islice(numbers, workers * AHEAD - len(pending)):
                    plan = plan_of(targets, seed, number)
                    pending[pool.submit(try_plan, scenario, plan, seed)] = (number, plan)
                if not pending:
                    return
                done, _ = wait(pending, return_when=FIRST_COMPLETED)
                for future in sorted(done, key=lambda one: pending[one][0]):
                    if not each(Tried(*pending.pop(future), future.result())):
                        return
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _numbers(budget: Budget) -> Iterator[int]:
    end = None if budget.seconds is None else time.monotonic() + budget.seconds
    for number in range(budget.runs):
        if end is not None and time.monotonic() >= end:
            return
        yield number


_for_good = ExitStack()
"""What holds until the worker ends."""


def _begin_worker() -> None:
    """A worker finishes its trial; the process that asked for it decides when to stop. It does nothing but trials."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    _for_good.enter_context(machine_replaced())


def _end_with_the_parent() -> None:
    """A parent that was killed can't end its workers, and they would wait for their next trial for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)

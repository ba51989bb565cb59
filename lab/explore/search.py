"""Trying plan after plan until enough were tried."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass, field
from itertools import islice

from lab.errors import EnvironmentFault
from lab.explore.drawing import Targets
from lab.explore.moments import moment_of
from lab.explore.plan import Plan
from lab.explore.trial import Trial, plan_of
from lab.explore.workers import Workers
from lab.faults.plan import Acts


@dataclass(frozen=True)
class Budget:
    """How much is tried: `runs` plans, but nothing is begun once `time.monotonic()` has come to `end`."""

    runs: int
    end: float | None = None

    def is_over(self) -> bool:
        """Whether its time is."""
        return self.end is not None and time.monotonic() >= self.end


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


def pairs_of(targets: Targets) -> int:
    """How many pairs of a kind of fault and a moment there are to be struck."""
    total = 0
    for kind in targets.kinds():
        moments = len({moment.words() for moment in targets.moments_for(kind)})
        steps = targets.steps if kind.acts is not Acts.FRAME else 0
        total += moments + steps
    return total


def search(targets: Targets, seed: int, budget: Budget, workers: Workers, each: Callable[[Tried], bool]) -> None:
    """Try plans number 0, 1, … of `seed`; `each` is told of every trial and says whether to go on.

    Ctrl-C ends it between two trials, as a `KeyboardInterrupt`. A worker that ends by itself raises
    `EnvironmentFault`, which names the plans that it may have been busy with.
    """
    numbers = _numbers(budget)
    pending: dict[Future[Trial], tuple[int, Plan]] = {}
    try:
        while True:
            for number in islice(numbers, workers.ahead - len(pending)):
                plan = plan_of(targets, seed, number)
                pending[workers.submit(plan)] = (number, plan)
            if not pending:
                return
            done, _ = wait(pending, return_when=FIRST_COMPLETED)
            for future in sorted(done, key=lambda one: pending[one][0]):
                if not each(Tried(*pending[future], future.result())):
                    return
                del pending[future]
    except BrokenExecutor as error:
        under_way = ", ".join(str(number) for number, _ in sorted(pending.values(), key=lambda one: one[0]))
        raise EnvironmentFault(
            f"a worker ended by itself; due is that it finishes its trial. Under way or next were these plans of seed "
            f"{seed}: {under_way}. Look for what killed it, such as a lack of memory, or try again with --workers 1."
        ) from error


def _numbers(budget: Budget) -> Iterator[int]:
    for number in range(budget.runs):
        if budget.is_over():
            return
        yield number

"""From plans that failed to ways to fail: each told once, made small, and written as a scenario that fails again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab.errors import EnvironmentFault
from lab.explore.as_yaml import finding_yaml
from lab.explore.plan import Plan
from lab.explore.search import Budget, Progress, Tried
from lab.explore.shrinking import shrink
from lab.explore.workers import Workers
from lab.private_files import write_private
from lab.scenario.loader import resolved_yaml
from lab.scenario.model import Scenario

MOST_SHRINKING = 120
"""Trials that making one plan small may take."""

LONGEST_NAME = 64
"""Characters that a scenario's name may have."""


@dataclass(frozen=True)
class Found:
    """A way to fail: what the plan breaks, and the file that repeats it.

    `number` is that of the plan as it was drawn. Unless `small`, something came between before it was as small as it
    can be: the end of the time, an interrupt.
    """

    number: int
    broken: tuple[str, ...]
    said: tuple[str, ...]
    plan: Plan
    small: bool
    file: Path
    command: str


class Campaign:
    """Takes what was tried, and keeps the ways to fail; `tell` hears of each as soon as its file is there."""

    def __init__(
        self, scenario: Scenario, seed: int, out: Path, budget: Budget, workers: Workers, tell: Callable[[Found], None]
    ) -> None:
        self._scenario = scenario
        self._seed = seed
        self._out = out
        self._budget = budget
        self._workers = workers
        self._tell = tell
        self._ways: dict[tuple[str, ...], Found] = {}
        self._more: Counter[tuple[str, ...]] = Counter()
        self._known: dict[str, tuple[str, ...]] = {}
        """The promises for which a plan was made small, with what that one breaks."""
        self.progress = Progress()

    @property
    def found(self) -> tuple[Found, ...]:
        """The ways to fail, in the order in which they were found."""
        return tuple(self._ways.values())

    def more(self, found: Found) -> int:
        """How many further plans failed so."""
        return self._more[found.broken]

    def take(self, tried: Tried) -> None:
        """Count a trial; one that breaks a promise for the first time is made small.

        Whatever ends that in the middle, the plan is kept as small as it was by then. Raises `EnvironmentFault` where
        the file cannot be written, and what `Workers.submit` does.
        """
        self.progress.take(tried)
        broken = tried.trial.broken
        if not broken:
            return
        promise = next((one for one in broken if one not in self._known), None)
        if promise is None:
            self._more[broken if broken in self._ways else self._known[broken[0]]] += 1
            return
        smaller = _Smaller(promise, tried, self._budget, self._workers)
        try:
            smaller.make()
        finally:
            self._keep(promise, tried.number, smaller)

    def _keep(self, promise: str, number: int, smaller: _Smaller) -> None:
        # What the drawn plan broke beside it may need the faults that were left out.
        broken = self._known[promise] = smaller.trial.broken
        if broken in self._ways:
            self._more[broken] += 1
            return
        found = self._write(number, smaller)
        self._ways[broken] = found
        self._tell(found)

    def _write(self, number: int, smaller: _Smaller) -> Found:
        said, plan = smaller.trial.said, smaller.plan
        end = f"-found-{self._seed}-{number}"
        name = f"{self._scenario.name[: LONGEST_NAME - len(end)].rstrip('-')}{end}"
        file = self._out / f"{name}.yaml"
        command = f"lab run {file} --clock virtual"
        first = f"Found by exploring {self._scenario.file} with seed {self._seed}, plan {number}."
        comment = "\n".join([first, *said, f"Again: {command}"])
        text = finding_yaml(resolved_yaml(self._scenario.file), self._scenario, plan, name, self._seed, comment)
        try:
            self._out.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise EnvironmentFault(
                f"{self._out}: what was found cannot be written there: {error.strerror}. Name another place with --out."
            ) from error
        write_private(file, text)
        return Found(number, smaller.trial.broken, said, plan, smaller.small, file, command)


class _Smaller:
    """Makes a plan that breaks `promise` smaller, and always has the smallest that did, with its trial."""

    def __init__(self, promise: str, tried: Tried, budget: Budget, workers: Workers) -> None:
        self._promise = promise
        self._budget = budget
        self._workers = workers
        self.plan = tried.plan
        self.trial = tried.trial
        self.small = False
        self._late = False

    def make(self) -> None:
        """Come to the smallest plan, or to the end of the budget's time."""
        struck = tuple(planned for planned in self.plan if planned.fault.id in self.trial.fired)
        if struck and struck != self.plan and not self._is_late():
            self._fails(struck)
        shrink(self.plan, self._fails, MOST_SHRINKING, self._is_late)
        self.small = not self._late

    def _is_late(self) -> bool:
        self._late = self._budget.is_over()
        return self._late

    def _fails(self, plan: Plan) -> bool:
        """Whether a plan breaks the promise, whatever else it breaks."""
        trial = self._workers.submit(plan).result()
        if self._promise not in trial.broken:
            return False
        self.plan, self.trial = plan, trial
        return True

"""`lab explore`: try drawn fault plans on a scenario, and write what fails as scenarios that fail again."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text

from lab.commands.loading import check_scripts, load
from lab.errors import EnvironmentFault, ExitStatus, UsageError
from lab.explore.as_yaml import finding_yaml
from lab.explore.drawing import Targets
from lab.explore.plan import Plan
from lab.explore.search import Budget, Progress, Tried, pairs_of, search
from lab.explore.shrinking import shrink
from lab.explore.trial import run_quietly, targets_of, try_plan
from lab.report.console import PatientConsole
from lab.run.runner import check_requires
from lab.run.verdict import Outcome
from lab.run.virtual import check_virtual
from lab.scenario.loader import project_root, resolved_yaml
from lab.scenario.model import Scenario

MOST_SHRINKING = 120
"""Trials that making one plan small may take."""

TOLD_EACH = 5.0
"""Seconds between two lines of progress where there is no terminal."""


@dataclass(frozen=True)
class Found:
    """A way to fail: what broke, the small plan, and the file that repeats it."""

    number: int
    broken: tuple[str, ...]
    said: tuple[str, ...]
    plan: Plan
    file: Path
    command: str


@dataclass
class ExploreCommand:
    """The options of `lab explore`, as the command line gave them."""

    path: Path
    runs: int
    minutes: float | None
    workers: int
    seed: int
    out: Path
    as_json: bool

    def __post_init__(self) -> None:
        self._found: dict[tuple[str, ...], Found] = {}
        self._again: dict[tuple[str, ...], int] = {}
        self._progress = Progress()

    def carry_out(self) -> ExitStatus:
        """Explore. Raises `UsageError` for a scenario that is wrong, or that fails without any further fault."""
        scenario = load(self.path, {})
        check_scripts(scenario)
        check_requires(scenario, None)
        check_virtual(scenario, None)
        self._check_out(scenario)
        console = PatientConsole(stderr=self.as_json, quiet=self.as_json)
        targets = self._targets(scenario)
        console.say(Text(f"{scenario.name} · exploring up to {self.runs} fault plans      seed {self.seed}", "bold"))
        began = time.monotonic()
        interrupted = False
        with _live(console) as live:

            def each(tried: Tried) -> bool:
                self._progress.take(tried)
                live(self._line(began, targets))
                if tried.trial.broken:
                    self._take(scenario, tried, console)
                return console.failure is None

            budget = Budget(self.runs, None if self.minutes is None else self.minutes * 60)
            try:
                signal.signal(signal.SIGTERM, signal.default_int_handler)
                search(scenario, targets, self.seed, budget, self.workers, each)
            except KeyboardInterrupt:
                interrupted = True
        self._tell(console, began, targets, interrupted)
        if console.failure is not None:
            raise EnvironmentFault(f"the output could not be written: {console.failure.strerror}.")
        if interrupted:
            return ExitStatus.INTERRUPTED
        return ExitStatus.BROKEN if self._found else ExitStatus.HELD

    def _check_out(self, scenario: Scenario) -> None:
        """A finding names the scripts of its scenario, which are looked for below its own project's root."""
        root = project_root(scenario.file)
        if (
            any(spec.scripts for spec in scenario.agent2s.values())
            and project_root(self.out / scenario.file.name) != root
        ):
            raise UsageError(
                f"{self.out}: a scenario written there would not find the scripts of {scenario.file}. "
                f"Name a folder below {root} with --out."
            )

    def _targets(self, scenario: Scenario) -> Targets:
        """What can be struck, by a run without a further fault, which has to pass."""
        clean = run_quietly(scenario, self.seed)
        if clean.verdict.outcome is not Outcome.PASS:
            raise UsageError(
                f"{scenario.file}: the scenario does not pass by itself ({clean.verdict.outcome.value}), so there is "
                f"nothing to explore. Look at it with `lab run {scenario.file} --clock virtual --seed {self.seed}`."
            )
        return targets_of(scenario, clean.entries)

    def _take(self, scenario: Scenario, tried: Tried, console: PatientConsole) -> None:
        broken = tried.trial.broken
        if broken in self._found:
            self._again[broken] = self._again.get(broken, 0) + 1
            return
        try:
            found = self._made_small(scenario, tried)
        except KeyboardInterrupt:
            # What was found is kept, as large as it is.
            found = self._write(scenario, tried.number, broken, tried.trial.said, tried.plan)
            self._tell_found(found, console)
            raise
        self._tell_found(found, console)

    def _made_small(self, scenario: Scenario, tried: Tried) -> Found:
        broken = tried.trial.broken
        struck = tuple(planned for planned in tried.plan if planned.fault.id in tried.trial.fired)
        start = struck if struck and self._fails_so(scenario, struck, broken) else tried.plan
        small = shrink(start, lambda plan: self._fails_so(scenario, plan, broken), MOST_SHRINKING)
        said = try_plan(scenario, small, self.seed).said
        return self._write(scenario, tried.number, broken, said, small)

    def _tell_found(self, found: Found, console: PatientConsole) -> None:
        self._found[found.broken] = found
        console.say(Text(f"FAIL  {', '.join(found.broken)}", "bold red"))
        for text in found.said:
            console.say(Text(f"      {text}"))
        for planned in found.plan:
            console.say(Text(f"      fault  {planned.fault.kind} {planned.fault.target}", "dim"))
        console.say(Text(f"      again: {found.command}"))

    def _fails_so(self, scenario: Scenario, plan: Plan, broken: tuple[str, ...]) -> bool:
        """Whether a plan breaks the promise that broke first, whatever else it breaks."""
        return broken[0] in try_plan(scenario, plan, self.seed).broken

    def _write(
        self, scenario: Scenario, number: int, broken: tuple[str, ...], said: tuple[str, ...], plan: Plan
    ) -> Found:
        name = f"{scenario.name}-found-{number}"
        file = self.out / f"{name}.yaml"
        command = f"lab run {file} --clock virtual"
        comment = "\n".join(
            [f"Found by exploring {scenario.file} with seed {self.seed}, plan {number}.", *said, f"Again: {command}"]
        )
        text = finding_yaml(resolved_yaml(scenario.file), scenario, plan, name, self.seed, comment)
        try:
            self.out.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        except OSError as error:
            raise EnvironmentFault(
                f"{file}: what was found cannot be written there: {error.strerror}. Name another place with --out."
            ) from error
        return Found(number, broken, said, plan, file, command)

    # What is told

    def _line(self, began: float, targets: Targets) -> str:
        progress = self._progress
        rate = progress.runs / max(time.monotonic() - began, 1e-9)
        return (
            f"{progress.runs} of {self.runs} runs · {rate:.1f} runs/s · {progress.simulated:.0f} s simulated · "
            f"{len(progress.struck)} of {pairs_of(targets)} (fault × moment) struck · {progress.failures} failed"
        )

    def _tell(self, console: PatientConsole, began: float, targets: Targets, interrupted: bool) -> None:
        if self.as_json:
            print(json.dumps(self._json(began, targets), indent=2))
            return
        console.say(Text(f"  {self._line(began, targets)}", "dim"))
        for broken, count in self._again.items():
            console.say(Text(f"  {', '.join(broken)}: {count} more plans failed so", "dim"))
        verdict = "FAIL" if self._found else "INTERRUPTED" if interrupted else "PASS"
        ways = f"{len(self._found)} ways to fail, in {self.out}" if self._found else "no plan broke a promise"
        console.say(Text(f"{verdict}  {ways}", "bold red" if self._found or interrupted else "bold green"))

    def _json(self, began: float, targets: Targets) -> dict[str, object]:
        progress = self._progress
        return {
            "scenario": str(self.path),
            "seed": self.seed,
            "runs": progress.runs,
            "failures": progress.failures,
            "seconds": round(time.monotonic() - began, 3),
            "simulatedSeconds": round(progress.simulated, 3),
            "struck": [
                {"fault": kind, "moment": moment, "times": count}
                for (kind, moment), count in sorted(progress.struck.items())
            ],
            "strikable": pairs_of(targets),
            "found": [
                {
                    "plan": found.number,
                    "broken": list(found.broken),
                    "said": list(found.said),
                    "faults": [f"{planned.fault.kind} {planned.fault.target}" for planned in found.plan],
                    "file": str(found.file),
                    "again": found.command,
                    "more": self._again.get(found.broken, 0),
                }
                for found in self._found.values()
            ],
        }


class _Live:
    """Progress: one line that changes on a terminal, else a line now and then."""

    def __init__(self, console: PatientConsole) -> None:
        self._console = console
        self._status = console.status("…") if console.is_terminal else None
        self._told = time.monotonic()

    def start(self) -> None:
        if self._status is not None:
            self._status.start()

    def __call__(self, line: str) -> None:
        if self._status is not None:
            self._status.update(line)
        elif time.monotonic() - self._told >= TOLD_EACH:
            self._told = time.monotonic()
            self._console.say(Text(f"  {line}", "dim"))

    def stop(self) -> None:
        if self._status is not None:
            self._status.stop()


@contextmanager
def _live(console: PatientConsole) -> Iterator[_Live]:
    live = _Live(console)
    live.start()
    try:
        yield live
    finally:
        live.stop()

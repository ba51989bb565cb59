"""`lab explore`: try drawn fault plans on a scenario, and write what fails as scenarios that fail again."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text

from lab.commands.loading import check_scripts, load
from lab.errors import EnvironmentFault, ExitStatus, UsageError
from lab.explore.campaign import Campaign, Found
from lab.explore.drawing import Targets
from lab.explore.search import Budget, Tried, pairs_of, search
from lab.explore.trial import run_quietly, targets_of
from lab.explore.workers import workers_for
from lab.report.console import PatientConsole
from lab.report.explored import Asked, Ending, exploration_json, found_lines, live, progress_line, summary_lines
from lab.run.runner import check_requires
from lab.run.verdict import Outcome
from lab.run.virtual import check_virtual
from lab.scenario.loader import project_root
from lab.scenario.model import Scenario


@dataclass(frozen=True)
class ExploreCommand:
    """The options of `lab explore`, as the command line gave them."""

    path: Path
    runs: int
    minutes: float | None
    workers: int
    seed: int
    out: Path
    as_json: bool

    def carry_out(self) -> ExitStatus:
        """Explore. Raises `UsageError` for a scenario that is wrong, or that fails without any further fault.

        Whatever else ends it, what was found by then is told.
        """
        scenario = load(self.path, {})
        check_scripts(scenario)
        check_requires(scenario, None)
        check_virtual(scenario, None)
        self._check_out(scenario)
        with _ended_by_sigterm():
            return self._explore(scenario, self._targets(scenario))

    def _check_out(self, scenario: Scenario) -> None:
        """A finding names the scripts of its scenario, which are looked for below its own project's root."""
        nearest = next(folder for folder in (self.out, *self.out.absolute().parents) if folder.exists())
        if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
            raise EnvironmentFault(
                f"{self.out}: no folder for what is found can be made there. Name another place with --out."
            )
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

    def _explore(self, scenario: Scenario, targets: Targets) -> ExitStatus:
        console = PatientConsole(stderr=self.as_json, quiet=self.as_json)
        console.say(Text(f"{scenario.name} · exploring up to {self.runs} fault plans      seed {self.seed}", "bold"))
        asked = Asked(self.path, self.seed, self.runs, self.out, pairs_of(targets))
        began = time.monotonic()
        budget = Budget(self.runs, None if self.minutes is None else began + self.minutes * 60)

        def tell(found: Found) -> None:
            for line in found_lines(found):
                console.say(line)

        with workers_for(scenario, self.seed, self.workers) as workers:
            campaign = Campaign(scenario, self.seed, self.out, budget, workers, tell)
            ending = Ending.STOPPED
            try:
                with live(console, spins=self.workers > 1) as shown:

                    def each(tried: Tried) -> bool:
                        campaign.take(tried)
                        shown(progress_line(asked, campaign.progress, time.monotonic() - began))
                        return console.failure is None

                    search(targets, self.seed, budget, workers, each)
                ending = Ending.DONE
            except KeyboardInterrupt:
                ending = Ending.INTERRUPTED
            finally:
                self._tell(console, asked, campaign, time.monotonic() - began, ending)
        if console.failure is not None:
            raise EnvironmentFault(f"the output could not be written: {console.failure.strerror}.")
        if ending is Ending.INTERRUPTED:
            return ExitStatus.INTERRUPTED
        return ExitStatus.BROKEN if campaign.found else ExitStatus.HELD

    def _tell(self, console: PatientConsole, asked: Asked, campaign: Campaign, seconds: float, ending: Ending) -> None:
        if self.as_json:
            print(json.dumps(exploration_json(asked, campaign, seconds, ending), indent=2))
            return
        for line in summary_lines(asked, campaign, seconds, ending):
            console.say(line)


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the block as Ctrl-C does, a `KeyboardInterrupt`; what it did before, it does again behind it."""
    former = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if former is None else former)

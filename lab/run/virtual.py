"""What the virtual clock asks of a run: which scenarios can have it, and whether two runs are one."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

from lab.errors import EnvironmentFault, UsageError
from lab.journal.writer import Entry, entry_to_json
from lab.run.agents import REFERENCE, how
from lab.run.runner import RunOptions, RunResult, run_scenario
from lab.scenario.model import Scenario
from lab.sim.run import run_virtual

SHOWN_CHARACTERS = 300


class NotDeterministic(EnvironmentFault):
    """Two runs of one seed differ: a defect of the lab."""


def check_virtual(scenario: Scenario, use: str | None) -> None:
    """Raises `UsageError` for a scenario whose Local Agent is a program: its time cannot be simulated."""
    for spec in scenario.local_agents.values():
        kind = how(use or spec.use)
        if kind != REFERENCE:
            raise UsageError(
                f"{scenario.file}: {spec.name} is {'attached' if kind == 'attach' else 'a program'}, and only the "
                "reference agent runs on the virtual clock. Take --clock virtual away, or use --local-agent reference."
            )


def check_repeated(scenario: Scenario, options: RunOptions, first: RunResult) -> None:
    """Run it once more in a folder that is thrown away; raises `NotDeterministic` at the first entry that differs."""
    with tempfile.TemporaryDirectory(prefix="lab-again-") as out:
        again = run_virtual(
            lambda: run_scenario(scenario, replace(options, out=Path(out)), lambda *_: None), options.seed
        )
    for number, (one, other) in enumerate(zip_longest(first.entries, again.entries)):
        if _shown(one) != _shown(other):
            raise NotDeterministic(
                f"two runs of seed {options.seed} differ at journal entry {number}:\n"
                f"  first   {_shown(one)[:SHOWN_CHARACTERS]}\n  second  {_shown(other)[:SHOWN_CHARACTERS]}"
            )


def _shown(entry: Entry | None) -> str:
    return "nothing" if entry is None else entry_to_json(entry)

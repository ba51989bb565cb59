"""One plan, tried: an ordinary run of the explored scenario on the virtual clock, and what broke in it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from traceback import extract_tb

from lab.draws import Draws
from lab.errors import LabError
from lab.explore.drawing import Targets, draw_plan
from lab.explore.explored import explored
from lab.explore.moments import moments_of
from lab.explore.partner_leg import services_of
from lab.explore.plan import Plan
from lab.journal.events import FaultFired
from lab.journal.writer import Entry
from lab.run.runner import RunOptions, RunResult, run_scenario
from lab.run.verdict import Outcome
from lab.scenario.model import Scenario
from lab.sim.run import run_virtual

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108  a folder of its own is made in it
"""Where files cost no disk; None for the system's usual place."""

FAILURES = (Outcome.FAIL, Outcome.LAB_FAILED)

MOST_REMOVALS = 20
"""How often a folder is removed into which its run still writes."""


class _Latest:
    """The run that this process made last, or makes."""

    folder: str | None = None


@dataclass(frozen=True)
class Trial:
    """What came of a plan. `broken` are the heads of what failed, laws by their id; none of them is a pass."""

    broken: tuple[str, ...]
    said: tuple[str, ...]
    """One sentence for each of `broken`."""
    fired: tuple[str, ...]
    """The ids of the faults that struck; one whose moment never came did not."""
    simulated: float
    """Seconds by the virtual clock."""


def try_plan(scenario: Scenario, plan: Plan, seed: int) -> Trial:
    """Run `scenario` with `plan` once. Its files are thrown away: the plan and the seed make the same run again.

    A run that raises is the lab's failure under this plan, and no reason to give up others.
    """
    try:
        result = run_quietly(explored(scenario, plan), seed)
    except Exception as error:  # noqa: BLE001  whatever a run raises
        return Trial(("lab",), (_said(error),), (), 0.0)
    findings = {finding.head: finding for finding in result.verdict.findings if finding.outcome in FAILURES}
    fired = dict.fromkeys(entry.event.fault for entry in result.entries if isinstance(entry.event, FaultFired))
    return Trial(
        tuple(findings),
        tuple(f"{finding.sentence} — seen {finding.seen}; due {finding.due}" for finding in findings.values()),
        tuple(fired),
        result.seconds,
    )


def _said(error: Exception) -> str:
    """An error of the lab tells itself; the words of any other may hold content, so its place is told."""
    at = extract_tb(error.__traceback__)[-1]
    known = isinstance(error, LabError)
    seen = str(error) if known else f"{type(error).__name__} at {Path(at.filename).name}:{at.lineno}"
    return f"The run comes to a verdict — seen {seen}; due a verdict"


def run_quietly(scenario: Scenario, seed: int) -> RunResult:
    """A run that leaves nothing behind. One that was interrupted tells nothing, so it raises `KeyboardInterrupt`."""
    with tempfile.TemporaryDirectory(prefix="lab-explore-", dir=MEMORY) as out, _scratch_in(out):
        options = RunOptions(Path(out), seed, clock="virtual")
        result = run_virtual(lambda: run_scenario(scenario, options, lambda *_: None), seed)
    if result.interrupted:
        raise KeyboardInterrupt
    return result


@contextmanager
def _scratch_in(folder: str) -> Iterator[None]:
    """What the run makes on disk lies in `folder` as well."""
    former, tempfile.tempdir = tempfile.tempdir, folder
    _Latest.folder = folder
    try:
        yield
    finally:
        tempfile.tempdir = former


def remove_folder() -> None:
    """Take away what a run of this process has on disk, though it goes on: for a process that is about to end."""
    if _Latest.folder is None:
        return
    for _ in range(MOST_REMOVALS):
        shutil.rmtree(_Latest.folder, ignore_errors=True)
        if not Path(_Latest.folder).exists():
            return


def targets_of(scenario: Scenario, entries: Sequence[Entry]) -> Targets:
    """What can be struck in a scenario, given the journal of one run of it."""
    return Targets(
        tuple(scenario.links),
        tuple(scenario.agent2s) if scenario.partner is None else services_of(scenario.partner),
        tuple(scenario.local_agents),
        moments_of(entries),
        len(scenario.steps),
    )


def plan_of(targets: Targets, seed: int, number: int) -> Plan:
    """The plan of run `number` of an exploration with `seed`."""
    return draw_plan(targets, Draws(seed, "explore", f"plan {number}"))

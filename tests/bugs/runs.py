"""One run of a scenario in this process, on the virtual clock, with or without a slip, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lab.journal.events import Event
from lab.laws import ALL_LAWS, CHAT_LAWS, Status
from lab.run.figures import FIGURE_NAMES
from lab.run.runner import RunOptions, RunResult, run_scenario
from lab.run.verdict import Finding, Outcome
from lab.scenario.loader import load_scenario
from lab.scenario.model import Scenario
from lab.sim.run import run_virtual
from tests.bugs.plants import Plant, planted
from tests.bugs.provocations import PROVOCATIONS

SCENARIOS: Final = Path(__file__).with_name("scenarios")
LAWS: Final = {law.id: law for law in CHAT_LAWS}
_IDS: Final = frozenset(law.id for law in ALL_LAWS)


@dataclass(frozen=True)
class Broken:
    """A law that a run broke, in the words of its first violation."""

    law: str
    party: str
    seen: str
    due: str
    told_at: int
    """The journal entry that completed the first violation."""


@dataclass(frozen=True)
class Told:
    """What a run came to. `broken` is in the order in which the journal shows the breaks."""

    scenario: str
    outcome: Outcome
    broken: tuple[Broken, ...]
    steps: tuple[str, ...]
    """What steps waited for in vain."""
    expectations: tuple[str, ...]
    others: tuple[str, ...]
    """Findings that are neither a law, a step nor an expectation."""
    heads: tuple[str, ...]
    """What broke, as the findings are told: a law's id or a word, the first break first."""
    reached: int
    """How often the planted code was reached."""
    seconds: float
    folder: Path
    events: tuple[Event, ...]

    @property
    def exit_status(self) -> int:
        """What a shell would see."""
        return int(self.outcome.exit_status)

    def laws(self, party: str) -> tuple[str, ...]:
        """The laws that a party broke, first break first."""
        return tuple(one.law for one in self.broken if one.party == party)

    def first(self, party: str) -> tuple[str, ...]:
        """The laws that a party broke first: more than one when one journal entry completed the breaks of several."""
        mine = [one for one in self.broken if one.party == party]
        return tuple(one.law for one in mine if one.told_at == mine[0].told_at)

    def words(self) -> str:
        """All that was found, for a failed test."""
        lines = [f"{self.scenario}: {self.outcome.value}, reached {self.reached}, {self.seconds:.2f} s"]
        lines += [f"  law {one.law}: seen {one.seen}; due {one.due}; entry {one.told_at}" for one in self.broken]
        lines += [f"  step {text}" for text in self.steps]
        lines += [f"  expectation {text}" for text in self.expectations]
        lines += [f"  {text}" for text in self.others]
        return "\n".join(lines)


def scenario_names() -> list[str]:
    """The scenarios that slips are run in."""
    return sorted(path.stem for path in SCENARIOS.glob("*.yaml"))


def load(name: str) -> Scenario:
    """One of these scenarios."""
    return load_scenario(SCENARIOS / f"{name}.yaml", known_laws=frozenset(LAWS), known_figures=FIGURE_NAMES)


def run(name: str, out: Path, slip: Plant | None = None, seed: int | None = None) -> Told:
    """Run a scenario, with its provocations, and with a slip if one is given; `seed` goes before the scenario's."""
    scenario = load(name)
    with planted(*(PROVOCATIONS[tag] for tag in scenario.tags if tag in PROVOCATIONS)):
        return run_loaded(scenario, out, slip, seed)


def run_loaded(scenario: Scenario, out: Path, slip: Plant | None = None, seed: int | None = None) -> Told:
    """Run a scenario that was loaded already, with a slip if one is given."""
    own = scenario.seed if scenario.seed is not None else 1
    options = RunOptions(out, own if seed is None else seed, clock="virtual")
    with planted(*([slip.put] if slip is not None else [])) as patch:
        result = run_virtual(lambda: run_scenario(scenario, options, lambda *_: None), options.seed)
    return _told(scenario.name, result, patch.reached)


def _told(name: str, result: RunResult, reached: int) -> Told:
    findings = result.verdict.findings
    broken = [
        Broken(one.law.id, one.law.party, first.seen, first.due, max(first.entries, default=0))
        for one in result.verdict.judged
        if one.status is Status.BROKEN
        for first in [min(one.judgement.violations, key=lambda violation: max(violation.entries, default=0))]
    ]
    return Told(
        name,
        result.verdict.outcome,
        tuple(sorted(broken, key=lambda one: one.told_at)),
        _of(findings, "step"),
        _of(findings, "expectation"),
        tuple(
            f"{finding.head}: {finding.sentence} {finding.seen}"
            for finding in findings
            if finding.head not in _IDS and finding.head not in ("step", "expectation")
        ),
        tuple(finding.head for finding in findings),
        reached,
        result.seconds,
        result.folder,
        tuple(entry.event for entry in result.entries),
    )


def _of(findings: Sequence[Finding], head: str) -> tuple[str, ...]:
    return tuple(f"{one.sentence}: seen {one.seen}; due {one.due}" for one in findings if one.head == head)


SUT_PARTY = "local_agent"
"""Whose slips these are, beside those of the gateway."""

__all__ = ["LAWS", "SCENARIOS", "SUT_PARTY", "Broken", "Told", "load", "run", "run_loaded", "scenario_names"]

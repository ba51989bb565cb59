"""Scenarios of the partner leg that a test writes, played on the virtual clock."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from lab.journal.events import Event, StepEnded
from lab.journal.writer import Journal
from lab.laws import PARTNER_LAWS
from lab.run.figures import FIGURE_NAMES
from lab.run.runner import RunOptions, RunResult, run_scenario
from lab.run.verdict import Finding, Outcome
from lab.scenario.loader import load_scenario
from lab.scenario.model import Scenario
from lab.sim.run import run_virtual
from tests.command_line import ROOT

E = TypeVar("E", bound=Event)

STORE_AGENT = "{ agents: { store: { script: fixtures/partner/product-9001.yaml } } }"
LONG_AGENT = "{ agents: { store: { script: fixtures/partner/long-answer.yaml } } }"
"""Its 240 events take five seconds."""

QUESTION = "What does product 9001 cost?"
OPENED = """\
  - membership: { user: anna }
  - conversation: { conversation: c1, user: anna }
"""
BOUND = f"""\
{OPENED}  - grant: {{ conversation: c1 }}
  - bind: {{ conversation: c1 }}
"""
ASKED = f"""\
{BOUND}  - message: {{ run: r1, conversation: c1, text: "{QUESTION}" }}
"""


def written(folder: Path, steps: str, api: str = STORE_AGENT, more: str = "", requires: str = "controls") -> Scenario:
    """The scenario of these steps; `more` are further members of it."""
    file = folder / "played.yaml"
    file.write_text(
        f"scenario: played\nabout: Played by a test\nrequires: [{requires}]\npartner_api: {api}\n{more}steps:\n{steps}",
        "utf-8",
    )
    laws = [law.id for law in PARTNER_LAWS]
    return load_scenario(file, known_laws=(), known_partner_laws=laws, known_figures=FIGURE_NAMES, root=ROOT)


def play(
    folder: Path,
    steps: str,
    api: str = STORE_AGENT,
    more: str = "",
    *,
    seed: int = 5,
    listen: Callable[[Scenario, int, Journal], None] = lambda *_: None,
) -> RunResult:
    """What comes of a run of these steps."""
    scenario = written(folder, steps, api, more)
    options = RunOptions(folder / "out", seed, clock="virtual")
    return run_virtual(lambda: run_scenario(scenario, options, listen), seed)


def notes(result: RunResult) -> list[str]:
    """What each step came to, in the words of the journal."""
    return [event.note for event in events_of(result, StepEnded)]


def last_step(result: RunResult) -> tuple[str, str]:
    """How the last step ended, and its note."""
    event = events_of(result, StepEnded)[-1]
    return event.outcome, event.note


def events_of(result: RunResult, kind: type[E]) -> list[E]:
    """The events of one kind, in order."""
    return [entry.event for entry in result.entries if isinstance(entry.event, kind)]


def finding_of(result: RunResult, head: str) -> Finding:
    """The first finding of this head."""
    return next(one for one in result.verdict.findings if one.head == head)


def told(result: RunResult) -> str:
    """All that was found, for a failed test."""
    lines = [f"{one.head}: {one.sentence} — {one.seen}; due {one.due}" for one in result.verdict.findings]
    return "\n".join([str(result.verdict.outcome), *lines, *map(repr, result.defects)])


def passed(result: RunResult) -> RunResult:
    """The result of a run that has to pass."""
    assert result.verdict.outcome is Outcome.PASS, told(result)
    return result

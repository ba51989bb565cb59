"""Scenarios, entries and results made by hand, for what judges and shows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lab.clock import Clock
from lab.context import RunContext
from lab.journal.events import Event, Frame, RunEnded, RunStarted, StepEnded, StepStarted
from lab.journal.writer import Entry, Journal
from lab.laws.law import Judged, Judgement, Law, Status, Violation
from lab.run.expectations import Held
from lab.run.figures import Figures
from lab.run.runner import RunResult
from lab.run.verdict import Verdict, reach_verdict
from lab.scenario.model import Agent2Spec, Expectation, GatewaySpec, LocalAgentSpec, Scenario
from lab.scenario.step import Step

STARTED = RunStarted(1, "made", "Made by hand", 1, "real", 1_700_000_000_000, "0.1.0", "2.3")


def context(now: Callable[[], float] = lambda: 0.0) -> RunContext:
    """A run's context with a journal in memory."""
    clock = Clock(now, 1_700_000_000_000)
    return RunContext(1, clock, Journal(clock.now))


def entries(*events: Event, by: str = "gateway") -> list[Entry]:
    """A journal of these events, half a second apart."""
    return [Entry(n, n / 2, by, event) for n, event in enumerate(events)]


def frame(**members: Any) -> Frame:
    """A frame with what matters to a test."""
    return replace(Frame("c1", "la-to-cp", 10, "0" * 64, version=2), **members)


def scenario(steps: tuple[Step, ...] = (), **members: Any) -> Scenario:
    """The smallest scenario."""
    made = Scenario(
        name="made",
        about="Made by hand",
        file=Path("scenarios/made.yaml"),
        seed=None,
        deadline=10.0,
        gateways={"gateway": GatewaySpec("gateway")},
        agent2s={"agent2": Agent2Spec("agent2")},
        local_agents={"local_agent": LocalAgentSpec("local_agent")},
        links={},
        steps=steps,
    )
    return replace(made, **members)


def judged(
    status: Status, *violations: Violation, law: str = "some-law", party: str = "local_agent", count: int = 1
) -> Judged:
    """A law with a judgement."""
    promise = Law(law, f"The promise of {law}", party, ("SQ-020",), lambda _view: Judgement(status, count))
    return Judged(promise, Judgement(status, count, violations))


def violation(law: str = "some-law", party: str = "local_agent", *at: int) -> Violation:
    """A break of a law."""
    return Violation(law, party, party, "seen this", "due that", at, "the nearest miss")


def held(verdict: bool | None, path: str = "job.q1.outcome", line: int = 30) -> Held:
    """A judged expectation."""
    return Held(Expectation(path, "no_change", line), verdict, "seen", "due")


def verdict(
    journal: Sequence[Entry] = (),
    laws: Sequence[Judged] = (),
    expectations: Sequence[Held] = (),
    stop: BaseException | None = None,
    *,
    interrupted: bool = False,
    of: Scenario | None = None,
) -> Verdict:
    """What all this comes to."""
    return reach_verdict(journal, of or scenario(), laws, expectations, Figures(frames=3), stop, interrupted)


def result(reached: Verdict, folder: Path, journal: Sequence[Entry] | None = None) -> RunResult:
    """A finished run."""
    kept = journal if journal is not None else step_entries()
    again, versions = "lab run x.yaml --seed 7", {"lab": "0.1.0"}
    return RunResult(scenario(), 7, folder, reached, list(kept), "real", 1.25, 1.5, again, versions)


def step_entries(title: str = "assign q1 (chat)", outcome: str = "done", note: str = "") -> list[Entry]:
    """A run of one step."""
    return entries(
        STARTED, StepStarted(0, "assign", title, 12), StepEnded(0, outcome, note), RunEnded("completed"), by="driver"
    )

"""The virtual clock: how much faster than time it runs a scenario, and how many fault plans explore tries."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Final

from benchmarks.measure import Goal, Row, Sense, spread
from lab.commands.loading import load
from lab.explore.trial import plan_of, run_quietly, targets_of, try_plan
from lab.scenario.model import Scenario
from lab.sim.patches import machine_replaced

NAME = "simulated"
FASTER: Final = Goal(Sense.AT_LEAST, 1000.0)
RUNS: Final = Goal(Sense.AT_LEAST, 20.0)

_wall = time.perf_counter


def measure(quick: bool, _folder: Path) -> list[Row]:
    """Rows of chat-idle-long-poll, and of a scenario that waits for 100 s, and of exploring chat-resume."""
    rounds = 2 if quick else 20
    with machine_replaced():
        return [
            _faster("chat-idle-long-poll", rounds, FASTER),
            _faster("resume-too-late", rounds, None),
            _explored(4 if quick else 60),
        ]


def _faster(name: str, rounds: int, goal: Goal | None) -> Row:
    scenario = _scenario(name)
    simulated = run_quietly(scenario, 1).seconds
    walls = [_seconds_of(scenario) for _ in range(rounds)]
    rate = simulated / statistics.median(walls)
    detail = f"{simulated:.1f} s in {spread([wall * 1000 for wall in walls])} ms"
    return Row(NAME, f"{name}: simulated seconds a second", rate, "×", goal, detail)


def _seconds_of(scenario: Scenario) -> float:
    began = _wall()
    run_quietly(scenario, 1)
    return _wall() - began


def _explored(plans: int) -> Row:
    scenario = _scenario("chat-resume")
    targets = targets_of(scenario, run_quietly(scenario, 1).entries)
    began = _wall()
    for number in range(plans):
        try_plan(scenario, plan_of(targets, 1, number), 1)
    took = _wall() - began
    return Row(NAME, "explored plans of chat-resume a second, one core", plans / took, "/s", RUNS, f"{plans} plans")


def _scenario(name: str) -> Scenario:
    return load(Path(__file__).parent.parent / "scenarios" / f"{name}.yaml", {})

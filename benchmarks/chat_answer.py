"""What the wall time of `lab run scenarios/chat-answer.yaml` is spent on."""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path

from benchmarks.chat_phases import SCENARIO
from benchmarks.children import output
from benchmarks.measure import Row

NAME = "chat-answer"


def measure(quick: bool, folder: Path) -> list[Row]:
    """The command as a user gives it, and its phases, measured in processes of their own."""
    rounds = 1 if quick else 5
    walls, phases = [], []
    for _ in range(rounds):
        started = time.perf_counter()
        output("-m", "lab", "run", str(SCENARIO), "--out", str(folder / "runs"))
        walls.append(time.perf_counter() - started)
        phases.append(json.loads(output("-m", "benchmarks.chat_phases", str(folder / "staged"))))
    whole = Row(NAME, "wall time of the command", statistics.median(walls) * 1000, "ms")
    return [whole, *(_row(name, [phase[name] for phase in phases]) for name in phases[0])]


def _row(phase: str, seconds: list[float]) -> Row:
    return Row(NAME, f"· {phase}", statistics.median(seconds) * 1000, "ms")

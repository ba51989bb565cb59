"""`lab --help` against `python -c "import asyncio"`: what a user waits for before anything happens."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.children import output
from benchmarks.measure import Goal, Row, Sense, alternate

NAME = "help"
GOAL = Goal(Sense.AT_MOST, 2.0)


def measure(quick: bool, _folder: Path) -> list[Row]:
    """The best of some starts each, alternating: what disturbs a start can only make it longer."""
    own, base = alternate(
        2 if quick else 15, (lambda: _seconds("-m", "lab", "--help"), lambda: _seconds("-c", "import asyncio"))
    )
    detail = f"{min(own) * 1000:.0f} ms / {min(base) * 1000:.0f} ms"
    return [Row(NAME, "lab --help against import asyncio", min(own) / min(base), "×", GOAL, detail)]


def _seconds(*arguments: str) -> float:
    started = time.perf_counter()
    output(*arguments)
    return time.perf_counter() - started

"""What all benchmarks share: goals, rows and their table, rounds that alternate, and the machine's class."""

from __future__ import annotations

import os
import platform
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Differ(Exception):
    """The lab and its baseline did not send the same: their rates do not compare."""


class Sense(StrEnum):
    """On which side of its bound a figure is good."""

    AT_LEAST = "≥"
    AT_MOST = "≤"


class Verdict(StrEnum):
    """What a row says of its goal."""

    MET = "met"
    MISSED = "missed"
    NONE = "–"


@dataclass(frozen=True)
class Goal:
    """A bound that a figure is held against, in the figure's own unit."""

    sense: Sense
    bound: float

    def holds(self, value: float) -> bool:
        """Whether `value` is on the good side; the bound itself is."""
        return value >= self.bound if self.sense is Sense.AT_LEAST else value <= self.bound


@dataclass(frozen=True)
class Row:
    """One figure. `detail` says in a few words what it was made of."""

    benchmark: str
    what: str
    value: float
    unit: str
    goal: Goal | None = None
    detail: str = ""

    @property
    def verdict(self) -> Verdict:
        """Met or missed; none for a figure without a goal."""
        if self.goal is None:
            return Verdict.NONE
        return Verdict.MET if self.goal.holds(self.value) else Verdict.MISSED

    def to_json(self) -> dict[str, object]:
        """The row as a JSON value."""
        goal = None if self.goal is None else {"sense": self.goal.sense.value, "bound": self.goal.bound}
        return {
            "benchmark": self.benchmark,
            "what": self.what,
            "value": self.value,
            "unit": self.unit,
            "goal": goal,
            "verdict": self.verdict.value,
            "detail": self.detail,
        }


def alternate(rounds: int, measures: Sequence[Callable[[], float]]) -> tuple[tuple[float, ...], ...]:
    """Take each measure once a round, in turn, so that a slow spell of the machine meets all of them."""
    taken = [tuple(measure() for measure in measures) for _ in range(rounds)]
    return tuple(zip(*taken, strict=True))


def median_ratio(values: Sequence[float], baseline: Sequence[float]) -> float:
    """The median over the rounds of each value divided by the baseline of the same round."""
    return statistics.median(value / base for value, base in zip(values, baseline, strict=True))


def spread(values: Sequence[float], form: str = ",.0f") -> str:
    """Median and range, for people: `1,200 (1,100…1,300)`."""
    low, mid, high = min(values), statistics.median(values), max(values)
    return f"{mid:{form}} ({low:{form}}…{high:{form}})"


def machine() -> Mapping[str, object]:
    """The class of machine that the figures are of; nothing that names this one."""
    return {
        "cores": os.cpu_count() or 0,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": sys.platform,
        "architecture": platform.machine(),
        "load": round(os.getloadavg()[0], 2),
    }


def table(rows: Sequence[Row]) -> str:
    """The rows as aligned text."""
    heads = ("benchmark", "figure", "value", "goal", "verdict", "detail")
    lines = [heads, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _cells(row: Row) -> tuple[str, ...]:
    goal = "" if row.goal is None else f"{row.goal.sense} {row.goal.bound:g}"
    return (row.benchmark, row.what, f"{figure(row.value)} {row.unit}".rstrip(), goal, row.verdict.value, row.detail)


def figure(value: float) -> str:
    """A number with about three digits that mean something."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"

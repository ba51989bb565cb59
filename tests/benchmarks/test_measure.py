"""The arithmetic of the benchmarks, and that each of them can run; no test here says how fast anything is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.__main__ import BENCHMARKS
from benchmarks.measure import (
    Goal,
    Row,
    Sense,
    Verdict,
    alternate,
    figure,
    machine,
    median_ratio,
    spread,
    table,
)

ROOT = Path(__file__).parents[2]
PATIENCE = 50


@pytest.mark.parametrize(
    ("goal", "value", "verdict"),
    [
        (Goal(Sense.AT_LEAST, 0.5), 0.5, Verdict.MET),
        (Goal(Sense.AT_LEAST, 0.5), 0.49, Verdict.MISSED),
        (Goal(Sense.AT_LEAST, 0.5), 7.0, Verdict.MET),
        (Goal(Sense.AT_MOST, 2.0), 2.0, Verdict.MET),
        (Goal(Sense.AT_MOST, 2.0), 2.01, Verdict.MISSED),
        (Goal(Sense.AT_MOST, 2.0), 0.0, Verdict.MET),
        (None, 1.0, Verdict.NONE),
    ],
)
def test_a_verdict_is_the_goals(goal: Goal | None, value: float, verdict: Verdict) -> None:
    assert Row("b", "w", value, "×", goal).verdict is verdict


def test_measures_alternate() -> None:
    order: list[str] = []

    def measure(name: str, value: float) -> Callable[[], float]:
        def take() -> float:
            order.append(name)
            return value + len(order)

        return take

    taken = alternate(2, (measure("a", 10), measure("b", 20)))
    assert order == ["a", "b", "a", "b"]
    assert taken == ((11, 13), (22, 24))


def test_a_ratio_compares_within_a_round() -> None:
    """A spell in which everything is ten times slower changes nothing."""
    assert median_ratio([50, 5, 50], [100, 10, 100]) == 0.5
    assert median_ratio([1, 2, 9], [1, 1, 1]) == 2


@given(st.lists(st.floats(0.1, 1e6), min_size=1), st.floats(0.1, 10))
def test_a_ratio_is_the_factor(baseline: list[float], factor: float) -> None:
    assert median_ratio([base * factor for base in baseline], baseline) == pytest.approx(factor)


@pytest.mark.parametrize(
    ("value", "text"), [(0.12345, "0.123"), (2.0, "2"), (99.4, "99.4"), (100, "100"), (12345.6, "12,346")]
)
def test_figures_are_short(value: float, text: str) -> None:
    assert figure(value) == text


def test_a_spread_tells_median_and_range() -> None:
    assert spread([3000, 1000, 2000]) == "2,000 (1,000…3,000)"


def test_the_table_has_a_line_a_row() -> None:
    rows = [
        Row("gateway", "frames", 0.4, "×", Goal(Sense.AT_LEAST, 0.5), "a detail"),
        Row("help", "start", 1.5, "×", Goal(Sense.AT_MOST, 2.0)),
        Row("agents", "share", 12.0, "%"),
    ]
    head, *lines = table(rows).splitlines()
    assert head.split() == ["benchmark", "figure", "value", "goal", "verdict", "detail"]
    place = head.index("verdict")
    assert [line[place:].split()[0] for line in lines] == ["missed", "met", "–"]
    assert lines[0].endswith("a detail")
    assert "≥ 0.5" in lines[0]
    assert "≤ 2" in lines[1]


def test_a_row_is_json() -> None:
    row = Row("b", "w", 1.0, "×", Goal(Sense.AT_LEAST, 0.5), "d")
    assert json.loads(json.dumps(row.to_json())) == {
        "benchmark": "b",
        "what": "w",
        "value": 1.0,
        "unit": "×",
        "goal": {"sense": "≥", "bound": 0.5},
        "verdict": "met",
        "detail": "d",
    }
    assert Row("b", "w", 1.0, "×").to_json()["goal"] is None


def test_the_machine_has_a_class_and_no_name() -> None:
    told = machine()
    assert set(told) == {"cores", "python", "implementation", "system", "architecture", "load"}
    assert os.uname().nodename not in told.values()


@pytest.mark.parametrize("name", tuple(BENCHMARKS))
def test_each_benchmark_runs(name: str, tmp_path: Path) -> None:
    """A few iterations: its rows come out on the terminal and as JSON, whatever the figures are."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", "--only", name, "--out", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"{name} …\n"
    (file,) = tmp_path.iterdir()
    document = json.loads(file.read_text("utf-8"))
    assert document["quick"] is True
    assert {row["benchmark"] for row in document["rows"]} == {name}
    assert all(row["value"] >= 0 for row in document["rows"])
    for row in document["rows"]:
        assert row["what"] in done.stdout

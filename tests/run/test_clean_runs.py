"""Runs without a slip raise nothing: over and over, on slow and jittery networks, and on a machine that is busy."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from lab.draws import Draws
from lab.laws import ALL_LAWS
from lab.run.figures import FIGURE_NAMES
from lab.run.runner import RunOptions, RunResult, run_scenario
from lab.run.verdict import Outcome
from lab.scenario.loader import load_scenario
from lab.scenario.model import Scenario
from lab.sim.kernel import Network
from lab.sim.run import run_virtual
from tests.command_line import ROOT
from tests.scenario.legs import CHAT_FILES

FILES: Final = CHAT_FILES

SEEDS: Final = 20
"""For each scenario; with all scenarios more than 500 runs."""

TIMED_BY_THEIR_SCRIPT: Final = frozenset({"agent2-crash", "agent2-stream-cut"})
"""They count the events up to a moment that a slow network moves."""

BURNERS: Final = 2 * (os.cpu_count() or 1)


def drawn_network(seed: int) -> Network:
    """Up to 15 ms one way, as much jitter, small segments and torn reads."""
    draws = Draws(seed, "test", "network")
    return Network(
        latency=0.015 * draws.fraction(),
        jitter=0.015 * draws.fraction(),
        segment=64 + int(64_000 * draws.fraction()),
        fragments=draws.fraction() < 0.5,
    )


def _load(file: Path) -> Scenario:
    return load_scenario(file, known_laws=[law.id for law in ALL_LAWS], known_figures=FIGURE_NAMES)


def _run(file: Path, out: Path, seed: int, network: Network | None) -> RunResult:
    scenario = _load(file)
    options = RunOptions(out, seed, clock="virtual")
    return run_virtual(lambda: run_scenario(scenario, options, lambda *_: None), seed, network=network)


def _told(result: RunResult) -> str:
    return "\n".join(f"{one.head}: {one.sentence} — {one.seen}; due {one.due}" for one in result.verdict.findings)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.stem))
def test_it_passes_on_a_drawn_network(file: Path, tmp_path: Path) -> None:
    result = _run(file, tmp_path, 1, drawn_network(1) if file.stem not in TIMED_BY_THEIR_SCRIPT else None)
    assert result.verdict.outcome is Outcome.PASS, _told(result)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.stem))
def test_it_passes_over_and_over(file: Path, tmp_path: Path) -> None:
    for seed in range(2, 2 + SEEDS):
        network = drawn_network(seed) if seed % 4 and file.stem not in TIMED_BY_THEIR_SCRIPT else None
        result = _run(file, tmp_path, seed, network)
        assert result.verdict.outcome is Outcome.PASS, f"seed {seed}\n{_told(result)}"


@pytest.fixture
def busy_machine() -> Iterator[None]:
    """Twice as many programs that want a processor as there are processors."""
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BURNERS)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("busy_machine")
def test_a_busy_machine_breaks_no_promise(tmp_path: Path) -> None:
    """On the real clock; where a law could not be told for want of time that is said, and nobody is accused."""
    quick = [file for file in FILES if "slow" not in _load(file).tags]
    command = [sys.executable, "-m", "lab", "run", *map(str, quick), "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode in (0, 4), done.stdout + done.stderr

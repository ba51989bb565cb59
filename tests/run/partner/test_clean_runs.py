"""Scenarios of the partner leg raise nothing on slow and jittery networks either."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from lab.commands.loading import load
from lab.run.runner import RunOptions, RunResult, run_scenario
from lab.run.verdict import Outcome
from lab.scenario.model import Scenario
from lab.sim.run import run_virtual
from tests.run.partner.played import told
from tests.run.test_clean_runs import drawn_network
from tests.scenario.legs import PARTNER_FILES

SEEDS: Final = range(2, 12)


def _run(scenario: Scenario, out: Path, seed: int) -> RunResult:
    options = RunOptions(out, seed, clock="virtual")
    return run_virtual(lambda: run_scenario(scenario, options, lambda *_: None), seed, network=drawn_network(seed))


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("file", PARTNER_FILES, ids=lambda file: str(file.stem))
def test_it_passes_on_drawn_networks(file: Path, tmp_path: Path) -> None:
    scenario = load(file)
    for seed in SEEDS:
        result = _run(scenario, tmp_path, seed)
        assert result.verdict.outcome is Outcome.PASS, f"seed {seed}\n{told(result)}"

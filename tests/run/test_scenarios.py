"""Each scenario of the chat leg that comes with the lab passes with the reference agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.scenario.loader import load_scenario
from lab.scenario.model import Scenario
from tests.command_line import PATIENCE, lab
from tests.scenario.legs import CHAT_FILES
from tests.scenario.texts import ALL_LAW_IDS

SLOW = "slow"
"""The tag of a scenario that takes more than a few seconds on a real clock."""

SCENARIOS = [load_scenario(file, known_laws=ALL_LAW_IDS) for file in CHAT_FILES]


def _case(scenario: Scenario) -> object:
    marks = [pytest.mark.slow, pytest.mark.timeout(scenario.deadline + 2 * PATIENCE)] if SLOW in scenario.tags else []
    return pytest.param(scenario, id=scenario.name, marks=marks)


@pytest.mark.parametrize("scenario", [_case(scenario) for scenario in SCENARIOS])
def test_it_passes(scenario: Scenario, tmp_path: Path) -> None:
    done = lab("run", scenario.file, "--out", tmp_path, patience=scenario.deadline + PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr

"""The nightly workflow runs and explores every scenario there is, within its time."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from lab.scenario.loader import find_scenarios
from tests.command_line import ROOT
from tests.compose import services

SCENARIOS = Counter(path.relative_to(ROOT).parent for path in find_scenarios([ROOT / "scenarios"]))
"""How many lie in each folder."""


def jobs() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "nightly.yml").read_text("utf-8"))["jobs"]
    return loaded


def commands(job: str) -> str:
    return "\n".join(step.get("run", "") for step in jobs()[job]["steps"])


def test_it_runs_every_scenario() -> None:
    """A folder stands for all below it: for the partner leg's too, and so it does in the profile of this name."""
    (folder,) = re.findall(r"lab run (\S+) --junit", commands("long"))
    assert Path("scenarios/partner") in SCENARIOS
    assert Counter(path.relative_to(ROOT).parent for path in find_scenarios([ROOT / folder])) == SCENARIOS
    assert services()["scenarios"]["command"][:2] == ["run", folder]


def test_it_explores_every_scenario_in_time() -> None:
    minutes = {Path(one["folder"]): one["minutes"] for one in jobs()["explore"]["strategy"]["matrix"]["include"]}
    assert set(minutes) == set(SCENARIOS)
    assert "in ${{ matrix.folder }}/*.yaml;" in commands("explore")
    assert "--minutes ${{ matrix.minutes }} " in commands("explore")
    for folder, each in minutes.items():
        # A quarter of an hour for all the rest.
        assert SCENARIOS[folder] * each + 15 <= jobs()["explore"]["timeout-minutes"], folder

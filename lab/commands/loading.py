"""Loading a scenario with all that its words are checked against."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lab.laws import ALL_LAWS
from lab.run.figures import FIGURE_NAMES
from lab.scenario.loader import load_scenario
from lab.scenario.model import Scenario


def load(path: Path, overrides: Mapping[str, str] | None = None) -> Scenario:
    """The scenario in a file; see `load_scenario` for what it raises."""
    laws = [law.id for law in ALL_LAWS]
    return load_scenario(path, known_laws=laws, overrides=overrides, known_figures=FIGURE_NAMES)

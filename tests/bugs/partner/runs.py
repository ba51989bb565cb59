"""One run of a scenario of the partner leg in this process, on the virtual clock, with or without a slip."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from lab.laws import PARTNER_LAWS
from lab.run.figures import FIGURE_NAMES
from lab.scenario.loader import load_scenario
from lab.scenario.model import Scenario
from tests.bugs.plants import Plant
from tests.bugs.runs import Told, run_loaded

SUT_PARTY: Final = "partner_api"
"""Whose slips these are, beside those of the driver that calls it."""
LAWS: Final = {law.id: law for law in PARTNER_LAWS}

OWN: Final = Path(__file__).with_name("scenarios")
_SHIPPED: Final = Path(__file__).parents[3] / "scenarios"
_FOLDERS: Final = (OWN, _SHIPPED / "partner", _SHIPPED)


def own_scenarios() -> list[str]:
    """The scenarios that exist for slips alone."""
    return sorted(path.stem for path in OWN.glob("*.yaml"))


def scenario_path(name: str) -> Path:
    """A scenario's file: one of these, or one that is shipped. An unknown name raises `KeyError`."""
    for folder in _FOLDERS:
        if (folder / f"{name}.yaml").is_file():
            return folder / f"{name}.yaml"
    raise KeyError(name)


def load(name: str) -> Scenario:
    """One of these scenarios."""
    laws = frozenset(LAWS)
    return load_scenario(
        scenario_path(name), known_laws=laws, known_partner_laws=laws, known_figures=frozenset(FIGURE_NAMES)
    )


def run(name: str, out: Path, slip: Plant | None = None, seed: int | None = None) -> Told:
    """Run a scenario, with a slip if one is given; `seed` goes before the scenario's."""
    return run_loaded(load(name), out, slip, seed)

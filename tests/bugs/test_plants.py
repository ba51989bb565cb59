"""Planted slips are reached and caught by the law that they are registered with, and clean runs raise nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.bugs.explored import SOUGHT_IN
from tests.bugs.plants import Patch, all_plants, planted
from tests.bugs.provocations import PROVOCATIONS
from tests.bugs.runs import load, run, scenario_names
from tests.bugs.table import catalogue, mismatches

PLANTS: Final = all_plants()

CLEAN_RUNS: Final = 20
"""Of each scenario, with a seed each."""


def _check(slip: str, out: Path) -> None:
    plant = PLANTS[slip]
    told = run(plant.scenario, out, plant)
    found = mismatches(plant, catalogue()[slip].party, told)
    assert not found, "\n".join((*found, told.words()))


@pytest.mark.parametrize("slip", PLANTS)
def test_a_slip_is_caught(slip: str, tmp_path: Path) -> None:
    _check(slip, tmp_path)


@pytest.mark.parametrize("scenario", scenario_names())
def test_a_clean_run_raises_nothing(scenario: str, tmp_path: Path) -> None:
    told = run(scenario, tmp_path)
    assert told.exit_status == 0, told.words()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("scenario", scenario_names())
def test_clean_runs_raise_nothing(scenario: str, tmp_path: Path) -> None:
    for seed in range(2, 2 + CLEAN_RUNS):
        told = run(scenario, tmp_path, seed=seed)
        assert told.exit_status == 0, f"seed {seed}\n{told.words()}"


@pytest.mark.parametrize("scenario", scenario_names())
def test_a_scenario_has_a_plant_and_its_tags_are_provocations(scenario: str) -> None:
    """A scenario that nobody plants or seeks anything in, or a provocation that none asks for, tells nothing."""
    assert any(plant.scenario == scenario for plant in PLANTS.values()) or scenario in SOUGHT_IN.values()
    assert set(load(scenario).tags) <= set(PROVOCATIONS)


def test_every_provocation_is_asked_for() -> None:
    asked = {tag for scenario in scenario_names() for tag in load(scenario).tags}
    assert asked == set(PROVOCATIONS)


class _Base:
    def word(self) -> str:
        return "base"


class _Own(_Base):
    number = 1


def test_a_patch_is_undone() -> None:
    def put(patch: Patch) -> None:
        patch.set(_Own, "number", 2)
        patch.wrap(_Own, "word", lambda original: lambda self: f"not {original(self)}")
        patch.after(_Own, "word", lambda _self: patch.slipped())

    with planted(put) as patch:
        assert (_Own.number, _Own().word(), _Base().word()) == (2, "not base", "base")
        assert patch.reached == 1
    assert (_Own.number, _Own().word()) == (1, "base")
    assert "word" not in vars(_Own)


def test_a_patch_is_undone_when_the_run_fails() -> None:
    def fail() -> None:
        with planted(lambda patch: patch.set(_Own, "number", 2)):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert _Own.number == 1


def test_a_name_that_is_not_there_is_no_patch() -> None:
    with planted() as patch, pytest.raises(AttributeError, match="no colour"):
        patch.set(_Own, "colour", 2)

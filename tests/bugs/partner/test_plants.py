"""Planted slips of the partner leg are reached and caught first by the right law, and clean runs raise nothing."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from lab.contract.requirements import default_requirements_folder, load_requirements
from tests.bugs.partner.catalogue import CATALOGUE, catalogue, mismatches
from tests.bugs.partner.left import NOT_PLANTED
from tests.bugs.partner.plants import all_plants
from tests.bugs.partner.runs import LAWS, own_scenarios, run, scenario_path

PLANTS: Final = all_plants()
FEWEST: Final = {"partner_api": 60, "partner_client": 15}
BOUND_AS: Final = {"partner_api": "partner-double", "partner_client": "partner-client"}
PREFIX: Final = {"partner_api": "api-", "partner_client": "client-"}
REQUIREMENTS: Final = load_requirements(default_requirements_folder())


def _entries() -> list[dict[str, Any]]:
    loaded = yaml.safe_load(CATALOGUE.read_text("utf-8"))
    assert isinstance(loaded, list)
    return loaded


@pytest.mark.parametrize("slip", PLANTS)
def test_a_slip_is_caught_by_the_right_law(slip: str, tmp_path: Path) -> None:
    plant = PLANTS[slip]
    told = run(plant.scenario, tmp_path, plant)
    found = mismatches(plant, catalogue()[slip], told)
    assert not found, "\n".join((*found, told.words()))


@pytest.mark.parametrize("scenario", own_scenarios())
def test_a_clean_run_raises_nothing(scenario: str, tmp_path: Path) -> None:
    told = run(scenario, tmp_path)
    assert told.exit_status == 0, told.words()


def test_every_slip_is_planted_or_left_with_a_reason() -> None:
    assert set(PLANTS) | set(NOT_PLANTED) == set(catalogue())
    assert not set(PLANTS) & set(NOT_PLANTED)


def test_each_plant_names_a_scenario_and_a_law_of_its_party_and_each_scenario_has_a_plant() -> None:
    for slip, plant in PLANTS.items():
        assert scenario_path(plant.scenario).is_file(), slip
        if plant.law is not None:
            assert LAWS[plant.law].party == catalogue()[slip].party, slip
    assert set(own_scenarios()) <= {plant.scenario for plant in PLANTS.values()}


@pytest.mark.parametrize("party", FEWEST)
def test_there_are_enough_slips_of_a_party(party: str) -> None:
    assert sum(slip.party == party for slip in catalogue().values()) >= FEWEST[party]


@pytest.mark.parametrize("slip", _entries(), ids=[one["id"] for one in _entries()])
def test_a_slip_is_well_formed_and_breaks_a_rule_that_binds_its_party(slip: dict[str, Any]) -> None:
    assert list(slip) == ["id", "party", "slip", "breaks"]
    assert slip["id"].startswith(PREFIX[slip["party"]])
    assert slip["slip"].endswith(".")
    assert len(set(slip["breaks"])) == len(slip["breaks"]) > 0
    assert any(BOUND_AS[slip["party"]] in REQUIREMENTS[one].who for one in slip["breaks"])


def test_no_two_slips_are_alike() -> None:
    for member in ("id", "slip"):
        assert [text for text, count in Counter(one[member] for one in _entries()).items() if count > 1] == []

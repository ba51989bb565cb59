"""The page in docs/ is what the plants' registrations say, and these name what there is."""

from __future__ import annotations

from typing import Final

import pytest

from tests.bugs.plants import Plant, all_plants
from tests.bugs.runs import LAWS, SUT_PARTY, scenario_names
from tests.bugs.table import TABLE, Slip, catalogue, is_right, render

PLANTS: Final = all_plants()


def test_the_page_is_as_registered() -> None:
    due = render(PLANTS, catalogue(), LAWS)
    assert TABLE.read_text("utf-8") == due, "write it with `python -m tests.bugs.table --write`"


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS)
def test_a_plant_names_what_there_is(plant: Plant) -> None:
    slip = catalogue()[plant.slip]
    assert plant.scenario in scenario_names()
    if plant.law is not None:
        assert LAWS[plant.law].party == slip.party
    for law in plant.blamed:
        assert LAWS[law].party == SUT_PARTY != slip.party


def test_most_slips_are_caught_by_the_right_law() -> None:
    slips = catalogue()
    caught = [plant for plant in PLANTS.values() if plant.law is not None]
    right = [plant for plant in caught if is_right(plant, slips[plant.slip], LAWS[plant.law or ""])]
    assert len(right) / len(caught) > 0.8


def test_a_law_is_right_by_its_citation_or_by_its_promise() -> None:
    law = LAWS["acks"]
    cited = Slip("agent-a", SUT_PARTY, "", ("SQ-008",))
    other = Slip("agent-a", SUT_PARTY, "", ("CH-001",))
    told = Plant("agent-a", "fix", "acks", lambda _: None)
    promised = Plant("agent-a", "fix", "acks", lambda _: None, promise=True)
    assert is_right(told, cited, law)
    assert not is_right(told, other, law)
    assert is_right(promised, other, law)


def test_a_slip_that_no_law_catches_stays_out_of_the_count() -> None:
    slips = {name: Slip(name, SUT_PARTY, "slips | so", ("SQ-008",)) for name in ("agent-a", "agent-b", "agent-c")}
    plants = {
        "agent-a": Plant("agent-a", "fix", "acks", lambda _: None),
        "agent-b": Plant("agent-b", "cut", None, lambda _: None, why="what nobody sees"),
    }
    page = render(plants, slips, {"acks": LAWS["acks"]})
    assert "3 slips are listed; 2 are planted, 1 of them caught." in page
    assert "| agent-a | slips / so | fix | `acks` | yes |" in page
    assert "| agent-b | slips / so | cut | what nobody sees |" in page
    assert "| agent-c | slips / so |" in page.partition("## Not planted yet")[2]

"""What `shipped.yaml` says that the shipped scenarios catch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pytest

from tests.bugs.plants import all_plants
from tests.bugs.shipped import alone, caught, rarest, recorded, scenario_names

RECORD: Final[Mapping[str, Mapping[str, Sequence[str]]]] = recorded()


def test_every_scenario_is_recorded_with_slips_that_are_planted() -> None:
    assert sorted(RECORD) == scenario_names()
    assert {slip for slips in RECORD.values() for slip in slips} <= set(all_plants())


@pytest.mark.parametrize("name", scenario_names())
def test_a_scenario_catches_what_few_others_do(name: str) -> None:
    slip = rarest(RECORD, name)
    found = caught(name, slip)
    assert found is not None, slip
    assert set(found.by) & set(RECORD[name][slip])


def test_what_one_scenario_alone_catches() -> None:
    record = {"a": {"x": ["l"], "y": ["l"]}, "b": {"y": ["l"], "z": ["l"]}}
    assert alone(record) == {"a": ["x"], "b": ["z"]}
    assert (rarest(record, "a"), rarest(record, "b")) == ("x", "z")

"""The scenarios that come with the lab keep the house rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.scenario.loader import find_scenarios, load_scenario
from tests.scenario.texts import ALL_LAW_IDS, ROOT

FILES = find_scenarios([ROOT / "scenarios"])


def test_abouts_are_unique() -> None:
    abouts = [load_scenario(file, known_laws=ALL_LAW_IDS).about for file in FILES]
    assert len(set(abouts)) == len(abouts)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.stem))
def test_editors_find_the_schema(file: Path) -> None:
    first = file.read_text("utf-8").splitlines()[0]
    name = first.removeprefix("# yaml-language-server: $schema=")
    assert (file.parent / name).resolve() == ROOT / "contract" / "scenario.schema.json"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.stem))
def test_each_says_what_it_must_judge(file: Path) -> None:
    assert load_scenario(file, known_laws=ALL_LAW_IDS).must_judge

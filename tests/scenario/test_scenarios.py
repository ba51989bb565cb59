"""The scenarios that come with the lab keep the house rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.commands.loading import load
from tests.scenario.legs import ALL_FILES as FILES
from tests.scenario.legs import CHAT_FILES, PARTNER_FILES
from tests.scenario.texts import ROOT


def test_each_is_of_the_leg_that_its_file_says() -> None:
    """The predicate by which tests choose agrees with the loader."""
    assert [load(file).partner is not None for file in FILES] == [file in PARTNER_FILES for file in FILES]
    assert {*CHAT_FILES, *PARTNER_FILES} == {*FILES}


def test_abouts_are_unique() -> None:
    abouts = [load(file).about for file in FILES]
    assert len(set(abouts)) == len(abouts)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.stem))
def test_editors_find_the_schema(file: Path) -> None:
    first = file.read_text("utf-8").splitlines()[0]
    name = first.removeprefix("# yaml-language-server: $schema=")
    assert (file.parent / name).resolve() == ROOT / "contract" / "scenario.schema.json"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.stem))
def test_each_says_what_it_must_judge(file: Path) -> None:
    assert load(file).must_judge

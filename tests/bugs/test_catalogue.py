"""The catalogue of slips is well-formed, large enough and about rules that exist."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from lab.contract.requirements import default_requirements_folder, load_requirements

CATALOGUE: Final = Path(__file__).with_name("catalogue.yaml")
README: Final = Path(__file__).with_name("README.md")

MEMBERS: Final = ["id", "party", "slip", "breaks", "seen", "needs", "promise"]
BOUND_AS: Final = {"local_agent": "la", "gateway": "cp"}
PREFIX: Final = {"local_agent": "agent-", "gateway": "gateway-"}
FEWEST: Final = {"local_agent": 85, "gateway": 22}


def _entries() -> list[dict[str, Any]]:
    loaded = yaml.safe_load(CATALOGUE.read_text(encoding="utf-8"))
    assert isinstance(loaded, list)
    return loaded


def _situations() -> list[str]:
    """The first column of the table below the README's heading, its head and rule left out."""
    table = README.read_text(encoding="utf-8").partition("## Situations")[2]
    return re.findall(r"^\| ([^|-][^|]*?) \|", table, re.MULTILINE)[1:]


def _twice(texts: Iterable[str]) -> list[str]:
    return [text for text, count in Counter(texts).items() if count > 1]


def _bare(sentence: str) -> str:
    return re.sub(r"[^a-z0-9]+", " ", sentence.lower()).strip()


SLIPS: Final = _entries()
REQUIREMENTS: Final = load_requirements(default_requirements_folder())
SITUATIONS: Final = _situations()


@pytest.mark.parametrize("slip", SLIPS, ids=[str(slip.get("id")) for slip in SLIPS])
def test_a_slip_is_well_formed(slip: dict[str, Any]) -> None:
    assert list(slip) == MEMBERS
    for member in (member for member in MEMBERS if member != "breaks"):
        assert isinstance(slip[member], str), member
        assert slip[member] == slip[member].strip() != "", member

    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", slip["id"])
    assert slip["id"].startswith(PREFIX[slip["party"]])
    assert slip["needs"] in SITUATIONS
    for member in ("slip", "seen"):
        assert slip[member].endswith("."), member
        assert re.search(r"\. [A-Z]", slip[member]) is None, f"{member}: one sentence is due"


@pytest.mark.parametrize("slip", SLIPS, ids=[str(slip.get("id")) for slip in SLIPS])
def test_a_slip_breaks_known_rules_and_one_that_binds_its_party(slip: dict[str, Any]) -> None:
    breaks = slip["breaks"]

    assert isinstance(breaks, list)
    assert len(set(breaks)) == len(breaks) > 0
    assert [id_ for id_ in breaks if id_ not in REQUIREMENTS] == []
    assert any(BOUND_AS[slip["party"]] in REQUIREMENTS[id_].who for id_ in breaks)


def test_ids_are_unique() -> None:
    assert _twice(slip["id"] for slip in SLIPS) == []


@pytest.mark.parametrize("member", ["slip", "seen"])
def test_no_two_slips_are_told_alike(member: str) -> None:
    assert _twice(_bare(slip[member]) for slip in SLIPS) == []


@pytest.mark.parametrize("party", FEWEST)
def test_there_are_enough_slips_of_a_party(party: str) -> None:
    assert sum(slip["party"] == party for slip in SLIPS) >= FEWEST[party]


def test_every_situation_is_explained_once_and_needed() -> None:
    assert _twice(SITUATIONS) == []
    assert [situation for situation in SITUATIONS if situation not in {slip["needs"] for slip in SLIPS}] == []

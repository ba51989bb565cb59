"""The slips of the partner leg, and in what a run with one is not as that was registered."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import yaml

from lab.laws.law import Law
from tests.bugs.partner.runs import LAWS, SUT_PARTY
from tests.bugs.plants import Plant
from tests.bugs.runs import Told
from tests.bugs.table import Slip, is_right

CATALOGUE: Final = Path(__file__).with_name("catalogue.yaml")


@cache
def catalogue() -> Mapping[str, Slip]:
    """The slips by id, in the catalogue's order."""
    entries = yaml.safe_load(CATALOGUE.read_text("utf-8"))
    return {one["id"]: Slip(one["id"], one["party"], one["slip"], tuple(one["breaks"])) for one in entries}


def law_of(plant: Plant) -> Law:
    """The law that catches a plant first; one that no law catches raises `KeyError`."""
    return LAWS[plant.law or ""]


def mismatches(plant: Plant, slip: Slip, told: Told) -> list[str]:
    """In what a run with the slip is not as the slip was registered."""
    found = [] if told.reached else ["the planted code was never reached"]
    first = told.first(slip.party)
    if plant.law is None:
        return found + ([f"caught by {' and '.join(first)}: no law was registered"] if first else [])
    if plant.law not in first or told.heads[:1] not in [(one,) for one in first]:
        found.append(f"first finding {', '.join(told.heads[:1]) or 'none'}, {plant.law} was registered")
    if not is_right(plant, slip, law_of(plant)):
        found.append(f"{plant.law} cites none of {', '.join(slip.breaks)}")
    # What the API does after the driver broke a law is the driver's doing.
    wrongly = [one for one in told.laws(SUT_PARTY) if slip.party != SUT_PARTY and one not in plant.blamed]
    if wrongly:
        found.append(f"the partner API is blamed by {', '.join(wrongly)}")
    due = 1 if slip.party == SUT_PARTY else 3
    if told.exit_status != due:
        found.append(f"exit status {told.exit_status}, {due} was due")
    return found

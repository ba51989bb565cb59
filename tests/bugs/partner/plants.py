"""Where the plants of the partner leg are registered; see `tests/bugs/plants.py` for how one is made."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from tests.bugs.plants import Plant, Plants

_PARTNER_LEG: Final = Plants("tests.bugs.partner", Path(__file__).parent)
plant: Final = _PARTNER_LEG.plant


@cache
def all_plants() -> Mapping[str, Plant]:
    """Every plant of the partner leg by its slip."""
    return _PARTNER_LEG.all()

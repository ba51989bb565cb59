"""black_hole: nothing passes and nothing is closed, as when a cable is pulled; one way, or with two of them both ways.

TCP forgets nothing meanwhile, so what was sent is held, as far as the bound on buffers goes, and arrives when the
toxic is removed. What is to be lost for good is lost under `timeout`.
"""

from __future__ import annotations

from dataclasses import dataclass

from lab.faults.flow import Item
from lab.faults.toxics.attributes import Attributes
from lab.faults.toxics.stage import HoldingStage, Kind


@dataclass(frozen=True)
class BlackHoleAttributes(Attributes):
    """None."""


class BlackHole(HoldingStage[BlackHoleAttributes]):
    """Holds chunks and ends."""

    def feed(self, item: Item, now: float) -> list[Item]:
        self._put(item, now)
        return []


KIND = Kind("black_hole", BlackHoleAttributes(), BlackHole, drawn=(BlackHoleAttributes(),))

"""slicer: chunks are cut into slices, with a pause after each."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lab.faults.flow import End, Item
from lab.faults.toxics.attributes import Attributes
from lab.faults.toxics.stage import Given, HoldingStage, Kind

SLICES_AT_ONCE = 1000
"""Slices that go on at one moment at most; others follow in the next turn of the loop."""


@dataclass(frozen=True)
class SlicerAttributes(Attributes):
    """Sizes in bytes, `delay` in microseconds."""

    average_size: int = 0
    size_variation: int = 0
    delay: int = 0

    def fault(self) -> tuple[str, str] | None:
        if self.average_size <= 0:
            return "average_size", "a slice has at least one byte"
        if not 0 <= self.size_variation <= self.average_size:
            return "size_variation", f"it is between 0 and average_size, {self.average_size}"
        return None


class Slicer(HoldingStage[SlicerAttributes]):
    """Each slice's size is drawn evenly from average_size - size_variation to average_size + size_variation."""

    def __init__(self, attributes: SlicerAttributes, given: Given) -> None:
        super().__init__(attributes, given)
        self._ready = 0.0
        self._moment = -math.inf
        self._at_once = 0

    def feed(self, item: Item, now: float) -> list[Item]:
        self._put(item, now)
        return self.wake(now)

    def wake(self, now: float) -> list[Item]:
        passed: list[Item] = []
        self.due = None
        while self._line:
            received, item = self._line[0]
            start = max(self._ready, received)
            if start > now:
                self.due = start
                break
            if not self._may_slice(now):
                self.due = math.nextafter(now, math.inf)
                break
            passed.append(self._take(self._size()))
            if not isinstance(item, End):
                self._ready = start + self._pause
        return passed

    def adapt(self, now: float) -> list[Item]:
        # A pause that has begun is no longer than the new one.
        self._ready = min(self._ready, now + self._pause)
        return self.wake(now)

    def _may_slice(self, now: float) -> bool:
        if now != self._moment:
            self._moment, self._at_once = now, 0
        self._at_once += 1
        return self._at_once <= SLICES_AT_ONCE

    @property
    def _pause(self) -> float:
        return max(0, self._attributes.delay) / 1_000_000

    def _size(self) -> int:
        variation = self._attributes.size_variation
        drawn = int(self._given.dice.fraction() * (2 * variation + 1)) if variation else 0
        return max(1, self._attributes.average_size - variation + drawn)


# The defaults are the Go server's and cannot work: whoever adds a slicer must name a size.
KIND = Kind("slicer", SlicerAttributes(), Slicer, drawn=(SlicerAttributes(64, 32, 500),))

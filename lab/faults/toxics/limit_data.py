"""limit_data: the connection is closed behind so many bytes."""

from __future__ import annotations

from dataclasses import dataclass

from lab.faults.flow import End, Item
from lab.faults.toxics.attributes import Attributes
from lab.faults.toxics.stage import Given, Kind, Stage


@dataclass(frozen=True)
class LimitDataAttributes(Attributes):
    """0 or less closes at the first byte, and lets none through."""

    bytes: int = 0


class LimitData(Stage[LimitDataAttributes]):
    """Counts from when the toxic met the connection; an update goes on with the count."""

    bides = True

    def __init__(self, attributes: LimitDataAttributes, given: Given) -> None:
        super().__init__(attributes, given)
        self._passed = 0
        self._closed = False

    def feed(self, item: Item, now: float) -> list[Item]:
        del now
        if self._closed:
            return []
        if isinstance(item, End):
            return [item]
        left = max(0, self._attributes.bytes - self._passed)
        passing = item[:left]
        self._passed += len(passing)
        if len(item) < left:
            return [passing]
        self._closed = True
        return [passing, End.CLOSE] if passing else [End.CLOSE]


KIND = Kind(
    "limit_data", LimitDataAttributes(), LimitData, drawn=(LimitDataAttributes(2000), LimitDataAttributes(20_000))
)

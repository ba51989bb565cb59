"""cut_after: FIN behind so many bytes to the side that the stream leads to; the other direction lives on."""

from __future__ import annotations

from dataclasses import dataclass

from lab.faults.flow import End, Item
from lab.faults.toxics.attributes import Attributes
from lab.faults.toxics.stage import Given, Kind, Stage


@dataclass(frozen=True)
class CutAfterAttributes(Attributes):
    """0 or less cuts at once, without waiting for a byte."""

    bytes: int = 0


class CutAfter(Stage[CutAfterAttributes]):
    """What comes behind the cut is read and lost, so that its sender is not held up. The count survives an update."""

    bides = True

    def __init__(self, attributes: CutAfterAttributes, given: Given) -> None:
        super().__init__(attributes, given)
        self._passed = 0
        self._cut = False

    def start(self, now: float) -> list[Item]:
        return self.wake(now)

    def feed(self, item: Item, now: float) -> list[Item]:
        if self._cut:
            return [item] if item is End.RESET else []
        if isinstance(item, End):
            return [item]
        passing = item[: self._attributes.bytes - self._passed]
        self._passed += len(passing)
        return [passing, *self.wake(now)]

    def wake(self, now: float) -> list[Item]:
        del now
        if self._cut or self._passed < self._attributes.bytes:
            return []
        self._cut = True
        return [End.EOF]


KIND = Kind("cut_after", CutAfterAttributes(), CutAfter, drawn=(CutAfterAttributes(3000),))

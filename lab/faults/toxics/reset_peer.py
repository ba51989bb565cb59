"""reset_peer: the connection is broken, with RST on both sides, a time after something comes."""

from __future__ import annotations

from dataclasses import dataclass

from lab.faults.flow import End, Item
from lab.faults.toxics.attributes import Attributes
from lab.faults.toxics.stage import Given, HoldingStage, Kind


@dataclass(frozen=True)
class ResetPeerAttributes(Attributes):
    """In milliseconds, from the first chunk or end."""

    timeout: int = 0


class ResetPeer(HoldingStage[ResetPeerAttributes]):
    """Nothing passes: what came is held until the RST, or goes on if the toxic is taken away before."""

    def __init__(self, attributes: ResetPeerAttributes, given: Given) -> None:
        super().__init__(attributes, given)
        self._broken = False

    def feed(self, item: Item, now: float) -> list[Item]:
        if self._broken:
            return []
        self._put(item, now)
        return self.wake(now)

    def wake(self, now: float) -> list[Item]:
        self.due = None
        if not self._line:
            return []
        due = self._line[0][0] + self._attributes.timeout / 1000
        if due > now:
            self.due = due
            return []
        self.release(now)
        self._broken = True
        return [End.BREAK]


KIND = Kind("reset_peer", ResetPeerAttributes(), ResetPeer, drawn=(ResetPeerAttributes(0), ResetPeerAttributes(1500)))

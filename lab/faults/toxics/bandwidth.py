"""bandwidth: so many bytes in a second, for each connection or for all of a proxy's connections together."""

from __future__ import annotations

from dataclasses import dataclass, field

from lab.faults.flow import End, Item
from lab.faults.toxics.attributes import EXTENSION, Attributes
from lab.faults.toxics.stage import Given, HoldingStage, Kind, Meter

BYTES_PER_KILOBYTE = 1000
SLICE_SECONDS = 0.1
"""A chunk that takes longer goes on in slices of so long."""


@dataclass(frozen=True)
class BandwidthAttributes(Attributes):
    """`rate` in KB/s, 0 stalls; `shared` gives all connections of the proxy's stream one such line."""

    rate: int = 0
    shared: bool = field(default=False, metadata=EXTENSION)

    def fault(self) -> tuple[str, str] | None:
        return ("rate", "it is 0 (nothing passes) or more KB/s") if self.rate < 0 else None


class Bandwidth(HoldingStage[BandwidthAttributes]):
    """A line that takes one slice after the other; each goes on when its last byte has passed.

    A shared line is reserved slice by slice, so that connections that want it take turns.
    """

    def __init__(self, attributes: BandwidthAttributes, given: Given) -> None:
        super().__init__(attributes, given)
        self._own = Meter()

    def feed(self, item: Item, now: float) -> list[Item]:
        self._put(item, now)
        return self._pass(now) + self.wake(now) if len(self._line) == 1 else []

    def wake(self, now: float) -> list[Item]:
        passed: list[Item] = []
        while self.due is not None and self.due <= now:
            passed.append(self._take(self._slice()))
            # From when it was due, so that being woken late costs no bandwidth.
            passed += self._pass(self.due)
        return passed

    def adapt(self, now: float) -> list[Item]:
        """The slice that is under way begins again, at the new rate."""
        self._own.free_at = now
        return self._pass(now) + self.wake(now)

    def _pass(self, now: float) -> list[Item]:
        """Ends that are first in line go on; a slice that is first reserves the line."""
        passed: list[Item] = []
        self.due = None
        while self._line and isinstance(self._line[0][1], End):
            passed.append(self._take())
        if self._line and self._attributes.rate:
            meter = self._given.meter if self._attributes.shared else self._own
            start = max(now, meter.free_at)
            self.due = start + self._slice() / (self._attributes.rate * BYTES_PER_KILOBYTE)
            meter.free_at = self.due
        return passed

    def _slice(self) -> int:
        return min(self._left, max(1, int(self._attributes.rate * BYTES_PER_KILOBYTE * SLICE_SECONDS)))


KIND = Kind(
    "bandwidth",
    BandwidthAttributes(),
    Bandwidth,
    drawn=(BandwidthAttributes(20), BandwidthAttributes(1), BandwidthAttributes(0)),
)

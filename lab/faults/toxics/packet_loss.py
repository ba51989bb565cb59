"""packet_loss: packets are lost, and TCP sends them again; so bytes come late, and none is missing.

A chunk travels in packets of the size that Ethernet carries. A lost one is sent again after a time-out that doubles
each time, and everything behind it waits, as a receiver's kernel makes it wait.
"""

from __future__ import annotations

from dataclasses import dataclass

from lab.faults.flow import End, Item
from lab.faults.toxics.attributes import Attributes
from lab.faults.toxics.stage import Given, HoldingStage, Kind

PACKET_BYTES = 1448
"""What one packet carries on Ethernet."""

FIRST_TIMEOUT_SECONDS = 0.2
LONGEST_TIMEOUT_SECONDS = 120.0
"""Where the doubling ends, as it does in Linux."""


@dataclass(frozen=True)
class PacketLossAttributes(Attributes):
    """`loss_rate`: the share of packets that is lost; `correlation`: how much a packet fares as the one before it."""

    loss_rate: float = 0.0
    correlation: float = 0.0

    @property
    def is_idle(self) -> bool:
        return self.loss_rate == 0

    def fault(self) -> tuple[str, str] | None:
        for name in ("loss_rate", "correlation"):
            if not 0 <= getattr(self, name) <= 1:
                return name, "it is a share, from 0 to 1"
        return None


class PacketLoss(HoldingStage[PacketLossAttributes]):
    """Ends are not lost: they follow the bytes before them."""

    def __init__(self, attributes: PacketLossAttributes, given: Given) -> None:
        super().__init__(attributes, given)
        self._lost_before = False
        self._timeout = FIRST_TIMEOUT_SECONDS

    def feed(self, item: Item, now: float) -> list[Item]:
        self._put(item, now)
        return self._send(now, now) if self.due is None else self.wake(now)

    def wake(self, now: float) -> list[Item]:
        return self._send(self.due, now) if self.due is not None and self.due <= now else []

    def release(self, now: float) -> list[Item]:
        self._timeout = FIRST_TIMEOUT_SECONDS
        return super().release(now)

    def _send(self, sent: float, now: float) -> list[Item]:
        """Send packets from the moment `sent` on, until one is lost whose time-out is later than `now`."""
        passed: list[Item] = []
        arrived: list[bytes] = []
        self.due = None
        while self._line:
            if isinstance(self._line[0][1], End):
                passed += [b"".join(arrived)] if arrived else []
                arrived = []
                passed.append(self._take())
            elif self._is_lost():
                sent += self._timeout
                self._timeout = min(2 * self._timeout, LONGEST_TIMEOUT_SECONDS)
                if sent > now:
                    self.due = sent
                    break
            else:
                packet = self._take(PACKET_BYTES)
                assert isinstance(packet, bytes)
                arrived.append(packet)
                self._timeout = FIRST_TIMEOUT_SECONDS
        return [*passed, b"".join(arrived)] if arrived else passed

    def _is_lost(self) -> bool:
        """A chain of two states: its long-run share of lost packets is loss_rate, whatever the correlation."""
        rate, correlation = self._attributes.loss_rate, self._attributes.correlation
        chance = rate * (1 - correlation) + (correlation if self._lost_before else 0.0)
        self._lost_before = self._given.dice.fraction() < chance
        return self._lost_before


KIND = Kind(
    "packet_loss",
    PacketLossAttributes(),
    PacketLoss,
    drawn=(PacketLossAttributes(0.05), PacketLossAttributes(0.3, 0.5)),
)

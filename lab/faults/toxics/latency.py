"""latency: each chunk goes on later, by a time between latency - jitter and latency + jitter."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from lab.faults.flow import End, Item
from lab.faults.toxics.attributes import Attributes
from lab.faults.toxics.stage import Given, HoldingStage, Kind


@dataclass(frozen=True)
class LatencyAttributes(Attributes):
    """Both in milliseconds; a negative jitter is none."""

    latency: int = 0
    jitter: int = 0

    @property
    def most_held(self) -> float | None:
        return max(0, self.latency + max(0, self.jitter)) / 1000

    @property
    def is_idle(self) -> bool:
        return self.most_held == 0


class Latency(HoldingStage[LatencyAttributes]):
    """Order outranks the delay: a chunk waits for those before it. An end follows the bytes before it at once.

    With other attributes what is held is due anew from the time of its receipt.
    """

    def __init__(self, attributes: LatencyAttributes, given: Given) -> None:
        super().__init__(attributes, given)
        self._drawn: deque[float] = deque()
        """One draw for each item in line, so that an update need not draw again."""

    def feed(self, item: Item, now: float) -> list[Item]:
        self._put(item, now)
        self._drawn.append(0.0 if isinstance(item, End) else self._given.dice.fraction())
        return self.wake(now)

    def wake(self, now: float) -> list[Item]:
        passed: list[Item] = []
        self.due = None
        while self._line:
            due = self._first_due()
            if due > now:
                self.due = due
                break
            self._drawn.popleft()
            passed.append(self._take())
        return passed

    def release(self, now: float) -> list[Item]:
        self._drawn.clear()
        return super().release(now)

    def _first_due(self) -> float:
        received, item = self._line[0]
        if isinstance(item, End):
            return received
        jitter = max(0, self._attributes.jitter)
        return received + (self._attributes.latency - jitter + 2 * jitter * self._drawn[0]) / 1000


KIND = Kind(
    "latency",
    LatencyAttributes(),
    Latency,
    drawn=(LatencyAttributes(60, 40), LatencyAttributes(400, 300), LatencyAttributes(2000, 500)),
)

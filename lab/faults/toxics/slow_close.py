"""slow_close: the end of a direction goes on later; bytes pass at once."""

from __future__ import annotations

from dataclasses import dataclass

from lab.faults.flow import End, Item
from lab.faults.toxics.attributes import Attributes
from lab.faults.toxics.stage import HoldingStage, Kind


@dataclass(frozen=True)
class SlowCloseAttributes(Attributes):
    """In milliseconds."""

    delay: int = 0

    @property
    def is_idle(self) -> bool:
        return self.delay <= 0


class SlowClose(HoldingStage[SlowCloseAttributes]):
    """Holds an end, FIN or RST, for its delay."""

    bides = True

    def feed(self, item: Item, now: float) -> list[Item]:
        if not isinstance(item, End):
            return [item]
        self._put(item, now)
        return self.wake(now)

    def wake(self, now: float) -> list[Item]:
        self.due = None
        if not self._line:
            return []
        due = self._line[0][0] + self._attributes.delay / 1000
        if due <= now:
            return self.release(now)
        self.due = due
        return []


KIND = Kind("slow_close", SlowCloseAttributes(), SlowClose, drawn=(SlowCloseAttributes(2000),))

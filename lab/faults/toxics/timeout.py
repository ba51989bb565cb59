"""timeout: everything is lost, and the connection is closed once nothing has come for a time."""

from __future__ import annotations

from dataclasses import dataclass

from lab.faults.flow import End, Item
from lab.faults.toxics.attributes import Attributes
from lab.faults.toxics.stage import Kind, Stage


@dataclass(frozen=True)
class TimeoutAttributes(Attributes):
    """In milliseconds; 0 or less never closes."""

    timeout: int = 0


class Timeout(Stage[TimeoutAttributes]):
    """Drops chunks and ends. The time begins again with each chunk that is dropped; an end does not stop it."""

    def start(self, now: float) -> list[Item]:
        self._begin(now)
        return []

    def feed(self, item: Item, now: float) -> list[Item]:
        passed = self.wake(now)
        if self.due is not None and not isinstance(item, End):
            self._begin(now)
        return passed

    def wake(self, now: float) -> list[Item]:
        if self.due is None or self.due > now:
            return []
        self.due = None
        return [End.CLOSE]

    def adapt(self, now: float) -> list[Item]:
        """The time begins again."""
        return self.start(now)

    def release(self, now: float) -> list[Item]:
        del now
        self.due = None
        return []

    def removed(self, now: float) -> list[Item]:
        """Bytes are missing by now, so the connection cannot go on."""
        return [*self.release(now), End.CLOSE]

    def _begin(self, now: float) -> None:
        self.due = now + self._attributes.timeout / 1000 if self._attributes.timeout > 0 else None


KIND = Kind("timeout", TimeoutAttributes(), Timeout, drawn=(TimeoutAttributes(0), TimeoutAttributes(3000)))

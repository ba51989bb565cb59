"""idle_close: the connection is closed once it has been silent for a time, both ways, as a corporate proxy does."""

from __future__ import annotations

from dataclasses import dataclass

from lab.faults.flow import End, Item
from lab.faults.toxics.attributes import Attributes
from lab.faults.toxics.stage import Kind, Stage


@dataclass(frozen=True)
class IdleCloseAttributes(Attributes):
    """In milliseconds; 0 or less never closes."""

    timeout: int = 0

    @property
    def is_idle(self) -> bool:
        return self.timeout <= 0


class IdleClose(Stage[IdleCloseAttributes]):
    """Everything passes. The time begins again with each byte that comes, whichever way it goes."""

    bides = True

    def start(self, now: float) -> list[Item]:
        self._begin(now)
        return []

    def feed(self, item: Item, now: float) -> list[Item]:
        closed = self.wake(now)
        if self.due is not None and not isinstance(item, End):
            self._begin(now)
        return [*closed, item]

    def wake(self, now: float) -> list[Item]:
        if self.due is None or self.due > now:
            return []
        # A byte of the other direction does not wake it, so it looks for one when its own time is over.
        self.due = max(self.due, self._given.heard.at + self._attributes.timeout / 1000)
        if self.due > now:
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

    def _begin(self, now: float) -> None:
        self.due = now + self._attributes.timeout / 1000 if self._attributes.timeout > 0 else None


KIND = Kind(
    "idle_close",
    IdleCloseAttributes(),
    IdleClose,
    drawn=(IdleCloseAttributes(5000), IdleCloseAttributes(60_000)),
)

"""idle_close: the connection is closed once its stream has been silent for a time, as a corporate proxy does."""

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
    """Everything passes. The time begins again with each chunk of its stream; the other stream does not count."""

    bides = True

    def start(self, now: float) -> list[Item]:
        self.due = now + self._attributes.timeout / 1000 if self._attributes.timeout > 0 else None
        return []

    def feed(self, item: Item, now: float) -> list[Item]:
        closed = self.wake(now)
        if self.due is not None and not isinstance(item, End):
            self.start(now)
        return [*closed, item]

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


KIND = Kind(
    "idle_close",
    IdleCloseAttributes(),
    IdleClose,
    drawn=(IdleCloseAttributes(5000), IdleCloseAttributes(60_000)),
)

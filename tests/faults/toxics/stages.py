"""A stage under a clock that the test moves: what went on, and when."""

from __future__ import annotations

from typing import Any

import pytest

from lab.draws import Draws
from lab.faults.flow import End, Item, LastByte
from lab.faults.toxics import KINDS
from lab.faults.toxics.attributes import read_attributes
from lab.faults.toxics.stage import Given, Meter, Stage

Log = list[tuple[float, Item]]


def near(seconds: float) -> Any:
    """That time, but for the last digits of a float."""
    return pytest.approx(seconds, abs=1e-9)


class Driven:
    """One stage of a kind, started at time 0, with dice of its own."""

    def __init__(
        self,
        kind: str,
        *,
        seed: int = 1,
        meter: Meter | None = None,
        heard: LastByte | None = None,
        **attributes: Any,
    ) -> None:
        self.kind = KINDS[kind]
        self.attributes = read_attributes(kind, self.kind.attributes, attributes)
        assert self.kind.stage is not None
        given = Given(Draws(seed, "test", kind), meter or Meter(), heard or LastByte())
        self.stage: Stage[Any] = self.kind.stage(self.attributes, given)
        self.now = 0.0
        self.log: Log = []
        self.put = 0
        self._note(self.stage.start(0.0))

    @property
    def bytes(self) -> bytes:
        """All bytes that went on."""
        return b"".join(item for _, item in self.log if isinstance(item, bytes))

    @property
    def ends(self) -> list[tuple[float, End]]:
        """All ends that went on."""
        return [(when, item) for when, item in self.log if isinstance(item, End)]

    @property
    def sizes(self) -> list[tuple[float, int]]:
        """When bytes went on, and how many."""
        return [(when, len(item)) for when, item in self.log if isinstance(item, bytes)]

    def feed(self, *items: Item, at: float | None = None) -> None:
        """Give it items, at a later time."""
        self.run_to(self.now if at is None else at)
        for item in items:
            self.put += len(item) if isinstance(item, bytes) else 0
            self._note(self.stage.feed(item, self.now))

    def run_to(self, time: float) -> None:
        """Wake it whenever it wants, as its owner would."""
        while self.stage.due is not None and self.stage.due <= time:
            self.now = self.stage.due
            self._note(self.stage.wake(self.now))
        self.now = time

    def update(self, **attributes: object) -> None:
        """Give it other attributes now."""
        self.attributes = read_attributes(self.kind.name, self.attributes, attributes)
        self.stage.set_attributes(self.attributes)
        self._note(self.stage.adapt(self.now))

    def release(self) -> None:
        """Let it stand in the stream no longer."""
        self._note(self.stage.release(self.now))

    def remove(self) -> None:
        """Take its toxic away."""
        self._note(self.stage.removed(self.now))

    def _note(self, items: list[Item]) -> None:
        # What every stage promises, checked after every call.
        assert self.stage.due is None or self.stage.due > self.now
        assert self.stage.held >= 0
        assert all(item != b"" for item in items)
        self.log += [(self.now, item) for item in items]

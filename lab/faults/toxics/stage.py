"""What every toxic is made of: a stage in one direction of one connection, without I/O or a clock.

A stage is given items and the time, and gives the items that go on. After every call it has either nothing to do
by itself (`due` is None) or something later than `now`; whoever runs it calls `wake` then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from lab.draws import Draws
from lab.faults.flow import Item, LastByte, charge_of, size_of
from lab.faults.toxics.attributes import Attributes

A = TypeVar("A", bound=Attributes)


@dataclass
class Meter:
    """When the line that stages of one toxic may share is free again."""

    free_at: float = 0.0


@dataclass(frozen=True)
class Given:
    """What a stage is given beside its attributes: dice of its own, the meter that its toxic's stages share, and what
    its connection's directions share."""

    dice: Draws
    meter: Meter
    heard: LastByte = field(default_factory=LastByte)


class Stage(Generic[A]):
    """A toxic at work in one direction of one connection. As it stands it passes everything on."""

    bides: ClassVar[bool] = False
    """Whether bytes pass it as if it were not there until a moment that may never come."""

    def __init__(self, attributes: A, given: Given) -> None:
        self._attributes = attributes
        self._given = given
        self.due: float | None = None
        """When it wants to be woken; always later than the last call's `now`."""
        self.held = 0
        """Bytes inside."""
        self.charge = 0
        """What they count for against the bound."""

    def start(self, now: float) -> list[Item]:  # noqa: ARG002  most need no timer
        """It stands in the stream from now on, for the first time or again."""
        return []

    def feed(self, item: Item, now: float) -> list[Item]:  # noqa: ARG002
        """The next item of the stream."""
        return [item]

    def wake(self, now: float) -> list[Item]:  # noqa: ARG002
        """Do what is due by `now`."""
        return []

    def set_attributes(self, attributes: A) -> None:
        """Other attributes hold from now on; what has been counted stays counted. `adapt` follows if it acts."""
        self._attributes = attributes

    def adapt(self, now: float) -> list[Item]:
        """What its new attributes mean for what it has already."""
        return self.wake(now)

    def release(self, now: float) -> list[Item]:  # noqa: ARG002
        """It stands in the stream no longer: what it holds goes on."""
        return []

    def removed(self, now: float) -> list[Item]:
        """Its toxic is taken out of the proxy; what it holds goes on, unless its kind says otherwise."""
        return self.release(now)


class HoldingStage(Stage[A]):
    """A stage in which items wait in line, each with the time at which it was received."""

    def __init__(self, attributes: A, given: Given) -> None:
        super().__init__(attributes, given)
        self._line: deque[tuple[float, Item]] = deque()
        self._gone = 0
        """Bytes of the first chunk that went on already."""

    def release(self, now: float) -> list[Item]:
        del now
        items = [self._take() for _ in range(len(self._line))]
        self.due = None
        return items

    @property
    def _left(self) -> int:
        """Bytes that the first item in line still has."""
        return size_of(self._line[0][1]) - self._gone

    def _put(self, item: Item, now: float) -> None:
        self._line.append((now, item))
        self.held += size_of(item)
        self.charge += charge_of(size_of(item))

    def _take(self, size: int | None = None) -> Item:
        """What is left of the first item, or the next `size` bytes of it."""
        _, item = self._line[0]
        if isinstance(item, bytes):
            item = item[self._gone :] if size is None else item[self._gone : self._gone + size]
        self.held -= size_of(item)
        self.charge -= charge_of(self._left)
        self._gone += size_of(item)
        self.charge += charge_of(self._left)
        if self._left == 0:
            self._line.popleft()
            self._gone = 0
        return item


@dataclass(frozen=True)
class Door:
    """What keeps a new connection from its upstream: for how many seconds, and whether it is dropped then."""

    seconds: float
    drops: bool = False


@dataclass(frozen=True)
class Kind(Generic[A]):
    """A kind of toxic: its name, its attributes with their defaults, and what it does.

    `stage` acts on what flows; `door` acts before the upstream is asked. A kind has one of the two. `drawn` are the
    attributes that a plan of faults may draw; none where the toxic would say nothing.
    """

    name: str
    attributes: A
    stage: Callable[[A, Given], Stage[Any]] | None = None
    door: Callable[[A], Door] | None = None
    drawn: tuple[A, ...] = ()

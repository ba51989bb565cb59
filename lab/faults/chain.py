"""The toxics of one direction of one connection, one behind the other, without I/O or a clock.

    feed ──> [stage] ──> [stage] ──> … ──> what goes on

Nothing in it ever waits for room: its caller reads no more from the source than `held` leaves room for. So it can be
changed at any moment, and under back-pressure too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lab.faults.flow import CHUNK_BYTES, End, Item
from lab.faults.toxics.attributes import Attributes
from lab.faults.toxics.stage import Stage


@dataclass
class _Place:
    """A toxic's place in the chain; one whose toxicity did not strike the connection passes everything on."""

    toxic: str
    stage: Stage[Any]
    active: bool


class Chain:
    """Stages in order. Each method gives the items that come out at its far end; `due` is when to call `wake`."""

    def __init__(self) -> None:
        self._places: list[_Place] = []

    @property
    def is_empty(self) -> bool:
        """Whether no toxic has a place in it."""
        return not self._places

    @property
    def held(self) -> int:
        """Bytes inside."""
        return sum(place.stage.held for place in self._places)

    @property
    def due(self) -> float | None:
        """When the first of its stages wants to be woken."""
        return min((place.stage.due for place in self._places if place.stage.due is not None), default=None)

    @property
    def touching(self) -> tuple[str, ...]:
        """The toxics that strike the connection, in order."""
        return tuple(place.toxic for place in self._places if place.active)

    def feed(self, item: Item, now: float) -> list[Item]:
        """The next item from the source."""
        if isinstance(item, End) or len(item) <= CHUNK_BYTES:
            return self._through(0, [item], now)
        chunks: list[Item] = [item[start : start + CHUNK_BYTES] for start in range(0, len(item), CHUNK_BYTES)]
        return self._through(0, chunks, now)

    def wake(self, now: float) -> list[Item]:
        """Do what is due by `now`."""
        passed: list[Item] = []
        for index, place in enumerate(self._places):
            if place.stage.due is not None and place.stage.due <= now:
                passed += self._through(index + 1, place.stage.wake(now), now)
        return passed

    def add(self, toxic: str, stage: Stage[Any], now: float, *, active: bool) -> list[Item]:
        """Put a stage behind the others."""
        self._places.append(_Place(toxic, stage, active))
        return stage.start(now) if active else []

    def update(self, toxic: str, attributes: Attributes, now: float, *, active: bool) -> list[Item]:
        """Give a toxic's stage other attributes, and the outcome of a new roll of its toxicity."""
        index = self._index(toxic)
        place = self._places[index]
        stage, was_active = place.stage, place.active
        stage.set_attributes(attributes)
        place.active = active
        if was_active:
            passed = stage.adapt(now) if active else stage.release(now)
        else:
            passed = stage.start(now) if active else []
        return self._through(index + 1, passed, now)

    def remove(self, toxic: str, now: float) -> list[Item]:
        """Take a toxic's stage out; what it held is passed through those behind it."""
        index = self._index(toxic)
        place = self._places.pop(index)
        return self._through(index, place.stage.removed(now) if place.active else [], now)

    def _through(self, index: int, items: list[Item], now: float) -> list[Item]:
        for place in self._places[index:]:
            if place.active:
                items = [passed for item in items for passed in place.stage.feed(item, now)]
        return items

    def _index(self, toxic: str) -> int:
        return next(index for index, place in enumerate(self._places) if place.toxic == toxic)

"""The toxics of one direction of one connection, one behind the other, without I/O or a clock.

    feed ──> [stage] ──> [stage] ──> … ──> what goes on

Nothing in it ever waits for room: its caller reads no more from the source than `charge` leaves room for. So it can be
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
    touched: bool = False
    """Whether it has touched a byte or the connection."""


class Chain:
    """Stages in order. Each method gives the items that come out at its far end; `due` is when to call `wake`."""

    def __init__(self) -> None:
        self._places: list[_Place] = []
        self._news: list[str] = []

    @property
    def is_empty(self) -> bool:
        """Whether no toxic has a place in it."""
        return not self._places

    @property
    def held(self) -> int:
        """Bytes inside."""
        return sum(place.stage.held for place in self._places)

    @property
    def charge(self) -> int:
        """What they count for against the bound."""
        return sum(place.stage.charge for place in self._places)

    @property
    def due(self) -> float | None:
        """When the first of its stages wants to be woken."""
        return min((place.stage.due for place in self._places if place.stage.due is not None), default=None)

    @property
    def touching(self) -> tuple[str, ...]:
        """The toxics that strike the connection, in order."""
        return tuple(place.toxic for place in self._places if place.active)

    def touched(self) -> tuple[str, ...]:
        """The toxics that have touched a byte or the connection for the first time since this was asked last.

        One that only bides its moment touches nothing before that; and an end that passes as it came is not touched.
        """
        news, self._news = tuple(self._news), []
        return news

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
                passed += self._through(index + 1, self._acting(place, place.stage.wake(now)), now)
        return passed

    def add(self, toxic: str, stage: Stage[Any], now: float, *, active: bool) -> list[Item]:
        """Put a stage behind the others."""
        place = _Place(toxic, stage, active)
        self._places.append(place)
        return self._acting(place, stage.start(now)) if active else []

    def update(self, toxic: str, attributes: Attributes, now: float, *, active: bool) -> list[Item]:
        """Give a toxic's stage other attributes, and the outcome of a new roll of its toxicity."""
        index = self._index(toxic)
        place = self._places[index]
        stage, was_active = place.stage, place.active
        stage.set_attributes(attributes)
        place.active = active
        if active:
            passed = self._acting(place, stage.adapt(now) if was_active else stage.start(now))
        else:
            passed = stage.release(now) if was_active else []
        return self._through(index + 1, passed, now)

    def remove(self, toxic: str, now: float) -> list[Item]:
        """Take a toxic's stage out; what it held is passed through those behind it."""
        index = self._index(toxic)
        place = self._places.pop(index)
        return self._through(index, place.stage.removed(now) if place.active else [], now)

    def _through(self, index: int, items: list[Item], now: float) -> list[Item]:
        for place in self._places[index:]:
            if place.active:
                items = [passed for item in items for passed in self._fed(place, item, now)]
        return items

    def _fed(self, place: _Place, item: Item, now: float) -> list[Item]:
        passed = place.stage.feed(item, now)
        if not place.touched and (passed != [item] or not (place.stage.bides or isinstance(item, End))):
            self._touch(place)
        return passed

    def _acting(self, place: _Place, items: list[Item]) -> list[Item]:
        """What a stage gives by itself."""
        if items and not place.touched:
            self._touch(place)
        return items

    def _touch(self, place: _Place) -> None:
        place.touched = True
        self._news.append(place.toxic)

    def _index(self, toxic: str) -> int:
        return next(index for index, place in enumerate(self._places) if place.toxic == toxic)

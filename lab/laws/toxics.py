"""The toxics of a journal: when each stood on its link, and how late bytes could come through it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from lab.journal.events import LinkChanged

BEHIND_IT = 0.25
"""Seconds in which what was held back has come through, once nothing holds it any more."""


@dataclass
class _Stood:
    """A toxic on its link. `holds` is the most by which a byte came later; None where nothing bounds it."""

    link: str
    name: str
    begin: float
    holds: float | None
    over: float = inf

    def overlaps(self, start: float, end: float) -> bool:
        return self.begin <= end and self.over >= start


class Toxics:
    """Told of every change of a link, in order; then only read. Times are lab times in seconds."""

    def __init__(self) -> None:
        self._stood: list[_Stood] = []

    def take(self, t: float, change: LinkChanged) -> bool:
        """Take a change in; whether it was one of a toxic."""
        if not change.change.startswith("toxic-"):
            return False
        for stood in self._stood:
            if (stood.link, stood.name, stood.over) == (change.link, change.toxic, inf):
                stood.over = t + (stood.holds or 0.0) + BEHIND_IT
        if change.change != "toxic-removed":
            self._stood.append(_Stood(change.link, change.toxic, t, change.holds))
        return True

    def held(self, start: float, end: float) -> dict[str, float]:
        """For each link the most seconds by which toxics that have a bound let bytes come later, both ways together."""
        most: dict[str, dict[str, float]] = {}
        for stood in self._stood:
            if stood.holds and stood.overlaps(start, end):
                of_link = most.setdefault(stood.link, {})
                # A name comes again where toxics come and go by turns.
                of_link[stood.name] = max(stood.holds, of_link.get(stood.name, 0.0))
        return {link: sum(by_name.values()) for link, by_name in most.items()}

    def delaying(self, start: float, end: float) -> Iterable[str]:
        """The links on which a toxic let bytes come later between two times."""
        return [stood.link for stood in self._stood if stood.holds != 0.0 and stood.overlaps(start, end)]

    def stalling(self, start: float, end: float) -> Iterable[str]:
        """The links on which a toxic without a bound stood between two times: bytes, and connections, may be lost."""
        return [stood.link for stood in self._stood if stood.holds is None and stood.overlaps(start, end)]

    def stalled(self, start: float, end: float) -> float:
        """Seconds by which something due by `end` could come later, since it may wait for a stall to be over."""
        room, counted = 0.0, -inf
        for stood in sorted(self._stood, key=lambda one: one.begin):
            # Within the room that one stall makes another may begin; two at the same time are one.
            touches = stood.begin <= end + room and stood.over >= start
            if stood.holds is None and touches and stood.over > counted:
                room += stood.over - max(stood.begin, counted)
                counted = stood.over
        return room

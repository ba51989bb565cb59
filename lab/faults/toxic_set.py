"""The toxics of one proxy: named, in order, and at work on each of its connections."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from lab.draws import Draws
from lab.faults.connection import Connection, Direction
from lab.faults.refusals import BadToxic, TooManyToxics, ToxicExists, ToxicNotFound
from lab.faults.specs import STREAMS, Stream, Toxic, ToxicSpec
from lab.faults.toxics import KINDS
from lab.faults.toxics.attributes import Attributes, listed_attributes, read_attributes
from lab.faults.toxics.stage import Given, Kind, Meter

DIRECTIONS: Mapping[Stream, Direction] = MappingProxyType({"upstream": "up", "downstream": "down"})

MOST_TOXICS = 1000
"""Toxics of one proxy at most: each of them costs every connection memory, and every chunk time."""


@dataclass
class _Placed:
    """A toxic in its proxy. `serial` tells it from others that have borne its name."""

    name: str
    kind: Kind[Any]
    stream: Stream
    toxicity: float
    attributes: Attributes
    serial: int
    updates: int = 0
    meter: Meter = field(default_factory=Meter)

    @property
    def listed(self) -> Toxic:
        attributes = MappingProxyType(listed_attributes(self.attributes))
        return Toxic(self.name, self.kind.name, self.stream, self.toxicity, attributes)


class ToxicSet:
    """Adds, updates and removes toxics, on the connections that there are and on those to come.

    Toxicity is rolled for each connection (and so direction, since a toxic is in one), and again at each update.
    `changing` is told of each change that can be, before it acts on connections: `added`, `updated` or `removed`.
    """

    def __init__(self, proxy: str, draws: Callable[[str, str], Draws], changing: Callable[[str, Toxic], None]) -> None:
        self._proxy = proxy
        self._draws = draws
        self._changing = changing
        self._placed: dict[str, _Placed] = {}
        self._serial = 0

    @property
    def listed(self) -> tuple[Toxic, ...]:
        """Those of `upstream` first, in the order they were added."""
        return tuple(placed.listed for stream in STREAMS for placed in self._placed.values() if placed.stream == stream)

    def get(self, name: str) -> Toxic:
        """The toxic of that name. Raises `ToxicNotFound`."""
        return self._find(name).listed

    def add(self, spec: ToxicSpec, connections: Iterable[Connection]) -> Toxic:
        """Put a toxic behind those of its stream.

        Raises `BadToxic`, `ToxicExists` and `TooManyToxics`; nothing has changed then.
        """
        kind = KINDS.get(spec.type)
        if kind is None:
            raise BadToxic("type", f"there is no toxic of type {spec.type!r}; there are {', '.join(sorted(KINDS))}")
        if spec.stream not in STREAMS:
            raise BadToxic("stream", f"a toxic's stream is upstream or downstream, not {spec.stream!r}")
        name = spec.name or f"{spec.type}_{spec.stream}"
        if name in self._placed:
            raise ToxicExists(self._proxy, name)
        attributes = read_attributes(kind.name, kind.attributes, spec.attributes)
        if len(self._placed) >= MOST_TOXICS:
            raise TooManyToxics(self._proxy, MOST_TOXICS)
        self._serial += 1
        placed = _Placed(name, kind, spec.stream, _checked_toxicity(spec.toxicity), attributes, self._serial)
        self._placed[name] = placed
        self._changing("added", placed.listed)
        for connection in connections:
            self._place(placed, connection)
        return placed.listed

    def update(
        self,
        name: str,
        attributes: Mapping[str, object] | None,
        toxicity: float | None,
        connections: Iterable[Connection],
    ) -> Toxic:
        """Merge attributes, set the toxicity, roll it again. Raises `ToxicNotFound` and `BadToxic`."""
        placed = self._find(name)
        read = read_attributes(placed.kind.name, placed.attributes, attributes or {})
        placed.toxicity = placed.toxicity if toxicity is None else _checked_toxicity(toxicity)
        placed.attributes = read
        placed.updates += 1
        # What was reserved at another rate is reserved anew.
        placed.meter.free_at = 0.0
        self._changing("updated", placed.listed)
        for connection in connections:
            strikes = self._strikes(placed, connection)
            if placed.kind.door is None:
                pipe = connection.pipe(DIRECTIONS[placed.stream])
                pipe.update_stage(placed.name, read, active=strikes)
            elif strikes:
                connection.doorway.put(placed.name, placed.kind.door(read))
            else:
                connection.doorway.take(placed.name)
        return placed.listed

    def remove(self, name: str, connections: Iterable[Connection]) -> None:
        """Take a toxic out. Raises `ToxicNotFound`."""
        placed = self._find(name)
        del self._placed[name]
        self._changing("removed", placed.listed)
        for connection in connections:
            self._take(placed, connection)

    def clear(self, connections: Iterable[Connection]) -> None:
        """Take every toxic out."""
        gone = [placed for stream in STREAMS for placed in self._placed.values() if placed.stream == stream]
        self._placed.clear()
        for placed in gone:
            self._changing("removed", placed.listed)
        for connection in connections:
            with connection.up.changing(), connection.down.changing():
                for placed in gone:
                    self._take(placed, connection)

    def meet(self, connection: Connection) -> None:
        """Let every toxic meet a connection that has just been accepted."""
        with connection.up.changing(), connection.down.changing():
            for placed in tuple(self._placed.values()):
                self._place(placed, connection)

    def _place(self, placed: _Placed, connection: Connection) -> None:
        strikes = self._strikes(placed, connection)
        if placed.kind.stage is not None:
            given = Given(self._dice(placed, connection, "chunks"), placed.meter, connection.heard)
            stage = placed.kind.stage(placed.attributes, given)
            connection.pipe(DIRECTIONS[placed.stream]).add_stage(placed.name, stage, active=strikes)
        if placed.kind.door is not None and strikes:
            connection.doorway.put(placed.name, placed.kind.door(placed.attributes))

    def _take(self, placed: _Placed, connection: Connection) -> None:
        if placed.kind.door is None:
            connection.pipe(DIRECTIONS[placed.stream]).remove_stage(placed.name)
        else:
            connection.doorway.take(placed.name)

    def _strikes(self, placed: _Placed, connection: Connection) -> bool:
        return self._dice(placed, connection, f"toxicity {placed.updates}").fraction() < placed.toxicity

    def _dice(self, placed: _Placed, connection: Connection, purpose: str) -> Draws:
        actor = f"proxy {self._proxy}"
        return self._draws(actor, f"{connection.id} {placed.stream} {placed.name} {placed.serial} {purpose}")

    def _find(self, name: str) -> _Placed:
        placed = self._placed.get(name)
        if placed is None:
            raise ToxicNotFound(self._proxy, name)
        return placed


def _checked_toxicity(toxicity: float) -> float:
    if isinstance(toxicity, bool) or not math.isfinite(toxicity):
        raise BadToxic("attributes", f"a toxic's toxicity is a number, not {toxicity}", attribute="toxicity")
    return toxicity

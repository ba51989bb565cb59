"""Drawing a fault plan. Every kind of fault that can be drawn takes part by what `FAULT_KINDS` says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from lab.draws import Draws
from lab.explore.moments import Moment
from lab.explore.plan import Plan, Planned
from lab.faults.plan import FAULT_KINDS, Acts, Fault, FaultKind, FrameAnchor

MOST_FAULTS = 4

T = TypeVar("T")


@dataclass(frozen=True)
class Targets:
    """What a scenario has that can be struck. `steps` is how many steps it has."""

    links: tuple[str, ...]
    services: tuple[str, ...]
    processes: tuple[str, ...]
    moments: tuple[Moment, ...]
    steps: int

    def kinds(self) -> tuple[FaultKind, ...]:
        """The kinds that have something to strike here."""
        return tuple(kind for kind in FAULT_KINDS.values() if kind.drawn and self._can_strike(kind))

    def moments_for(self, kind: FaultKind) -> tuple[Moment, ...]:
        """The frames that a kind can be anchored to."""
        if kind.acts is Acts.LINK:
            return self.moments
        if kind.acts is not Acts.FRAME:
            return ()
        return tuple(moment for moment in self.moments if moment.numbered and (moment.signed or not kind.signed_only))

    def _can_strike(self, kind: FaultKind) -> bool:
        struck: dict[Acts, Sequence[object]] = {
            Acts.LINK: self.links,
            Acts.FRAME: self.moments_for(kind),
            Acts.SERVICE: self.services,
            Acts.PROCESS: self.processes,
        }
        return bool(struck.get(kind.acts))


def draw_plan(targets: Targets, draws: Draws) -> Plan:
    """One to four faults, in the order of the steps that they stand before."""
    kinds = targets.kinds()
    count = 1 + int(draws.fraction() * MOST_FAULTS)
    plan = [_draw(targets, _one_of(kinds, draws), f"drawn-{number + 1}", draws) for number in range(count)]
    return tuple(sorted(plan, key=lambda planned: planned.before))


def _draw(targets: Targets, kind: FaultKind, name: str, draws: Draws) -> Planned:
    seconds = _one_of(kind.durations, draws) if kind.durations else None
    if kind.acts is Acts.FRAME:
        anchor = _anchor(targets.moments_for(kind), draws)
        return Planned(0, Fault(name, kind.name, anchor=anchor, seconds=seconds, times=_one_of(kind.times, draws)))
    if kind.acts is Acts.LINK:
        link = _one_of(targets.links, draws)
        delay = _one_of(kind.delays, draws) if kind.delays else 0.0
        toxics = (_one_of(kind.toxics, draws),) if kind.toxics else ()
        # Most moments of a protocol are frames, not steps.
        if targets.moments and draws.fraction() < 0.75:
            anchor = _anchor(targets.moments, draws)
            return Planned(0, Fault(name, kind.name, link, anchor, seconds, delay, toxics=toxics))
        return Planned(_step(targets, draws), Fault(name, kind.name, link, None, seconds, delay, toxics=toxics))
    if kind.acts is Acts.SERVICE:
        service = _one_of(targets.services, draws)
        return Planned(_step(targets, draws), Fault(name, kind.name, service=service, seconds=seconds))
    process = _one_of(targets.processes, draws)
    return Planned(_step(targets, draws), Fault(name, kind.name, process=process, seconds=seconds))


def _anchor(moments: Sequence[Moment], draws: Draws) -> FrameAnchor:
    moment = _one_of(moments, draws)
    nth = 1 + int(draws.fraction() * moment.count)
    return FrameAnchor(moment.type, moment.sender, nth, moment.of, moment.content)


def _step(targets: Targets, draws: Draws) -> int:
    return int(draws.fraction() * targets.steps)


def _one_of(choices: Sequence[T], draws: Draws) -> T:
    return choices[int(draws.fraction() * len(choices))]

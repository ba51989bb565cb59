"""The moments of a scenario at which faults can strike, as one clean run of it shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lab.explore.plan import Planned
from lab.faults.plan import FrameAnchor
from lab.gateway.frame_faults import FrameFaults
from lab.journal.events import Frame, SocketOpened
from lab.journal.writer import Entry

HANDSHAKE = ("register", "hello", "ready")
"""Frames that have no number: the transport loses none of them, and the protocol has no second copy."""


@dataclass(frozen=True)
class Moment:
    """A kind of frame that a run has, and how often."""

    type: str
    sender: str
    of: str | None
    content: str | None
    signed: bool
    count: int

    @property
    def numbered(self) -> bool:
        """Whether the protocol makes its loss good, or means to."""
        return self.type not in HANDSHAKE

    def words(self) -> str:
        """The moment in a few words."""
        return _words(self)


def moment_of(planned: Planned) -> str:
    """The moment that a fault strikes at, in words: a kind of frame, or a step."""
    anchor = planned.fault.anchor
    return f"before step {planned.before}" if anchor is None else _words(anchor)


def _words(frame: Moment | FrameAnchor) -> str:
    narrowed = f" of {frame.of}" if frame.of else f" {frame.content}" if frame.content else ""
    return f"{frame.type}{narrowed} from {frame.sender}"


def moments_of(entries: Sequence[Entry]) -> tuple[Moment, ...]:
    """Every kind of frame in a journal, in the order in which each came first."""
    agents: dict[str, str] = {}
    seen: dict[str, FrameFaults] = {}
    counts: Counter[tuple[str, str, str | None, str | None, bool]] = Counter()
    for entry in entries:
        event = entry.event
        if isinstance(event, SocketOpened):
            agents[event.conn] = event.agent
        elif isinstance(event, Frame) and event.type is not None and not event.by_lab:
            sender = _sender(event, entry.by, agents)
            shown = seen.setdefault(entry.by, FrameFaults()).seen(event, sender)
            signed = event.facts.get("signature") is not None and event.direction == "cp-to-la"
            counts[(shown.type, shown.sender, shown.of, shown.content, signed)] += 1
    return tuple(Moment(*kind, count) for kind, count in counts.items())


def _sender(frame: Frame, gateway: str, agents: Mapping[str, str]) -> str:
    return agents[frame.conn] if frame.direction == "la-to-cp" else gateway

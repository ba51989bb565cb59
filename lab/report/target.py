"""What a run of the partner leg drove, so that nobody takes it for more (PA-029, US-040)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lab.journal.events import ParticipantDeclared
from lab.journal.writer import Entry
from lab.scenario.partner_names import PARTNER_API

DOUBLE = "double"
LIVE = "live"


@dataclass(frozen=True, slots=True)
class ReportTarget:
    """`name` is double, fixture-mock, fixture or live."""

    name: str

    @property
    def synthetic(self) -> bool:
        """Whether the usage that it tells is no real cost (FX-008)."""
        return self.name != LIVE

    def line(self) -> str:
        """The target in a line."""
        cost = "its usage is synthetic, no real cost" if self.synthetic else "its usage is real cost"
        return f"target: {self.name} · what is told here holds for it alone · {cost}"

    def to_json(self) -> dict[str, object]:
        """For machines."""
        return {"name": self.name, "usage": "synthetic" if self.synthetic else "real"}


def target_of_run(entries: Sequence[Entry]) -> ReportTarget | None:
    """The target of a run of the partner leg; None of another, or of one that came to none."""
    for entry in entries:
        event = entry.event
        if isinstance(event, ParticipantDeclared) and event.name == PARTNER_API:
            return ReportTarget(str(event.facts.get("target", DOUBLE)))
    return None

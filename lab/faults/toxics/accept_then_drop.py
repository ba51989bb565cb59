"""accept_then_drop: the client is accepted and then given FIN; the upstream is never asked."""

from __future__ import annotations

from dataclasses import dataclass

from lab.faults.toxics.attributes import Attributes
from lab.faults.toxics.stage import Door, Kind


@dataclass(frozen=True)
class AcceptThenDropAttributes(Attributes):
    """Milliseconds from the accept to the FIN."""

    delay: int = 0


def _door(attributes: AcceptThenDropAttributes) -> Door:
    return Door(max(0, attributes.delay) / 1000, drops=True)


KIND = Kind(
    "accept_then_drop",
    AcceptThenDropAttributes(),
    door=_door,
    drawn=(AcceptThenDropAttributes(0), AcceptThenDropAttributes(2000)),
)

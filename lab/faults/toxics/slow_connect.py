"""slow_connect: the client is accepted at once, and the upstream is asked only after a time."""

from __future__ import annotations

from dataclasses import dataclass

from lab.faults.toxics.attributes import Attributes
from lab.faults.toxics.stage import Door, Kind


@dataclass(frozen=True)
class SlowConnectAttributes(Attributes):
    """In milliseconds; several add up."""

    delay: int = 0

    @property
    def is_idle(self) -> bool:
        return self.delay <= 0


def _door(attributes: SlowConnectAttributes) -> Door:
    return Door(max(0, attributes.delay) / 1000)


KIND = Kind("slow_connect", SlowConnectAttributes(), door=_door, drawn=(SlowConnectAttributes(3000),))

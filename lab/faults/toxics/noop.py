"""noop: everything passes as it is."""

from __future__ import annotations

from dataclasses import dataclass

from lab.faults.toxics.attributes import Attributes
from lab.faults.toxics.stage import Kind, Stage


@dataclass(frozen=True)
class NoopAttributes(Attributes):
    """None."""

    @property
    def most_held(self) -> float | None:
        return 0.0

    @property
    def is_idle(self) -> bool:
        return True


class Noop(Stage[NoopAttributes]):
    """A stage as it stands."""

    bides = True


KIND = Kind("noop", NoopAttributes(), Noop)

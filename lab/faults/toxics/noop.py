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


class Noop(Stage[NoopAttributes]):
    """A stage as it stands."""


KIND = Kind("noop", NoopAttributes(), Noop)

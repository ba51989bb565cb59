"""What every step of a scenario has, whichever leg it belongs to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """Base of all steps. `within` is the step's own deadline in seconds, None for what is left of the run's."""

    line: int
    within: float | None

"""What a simulated run may not do for ever, and the errors that say so."""

from __future__ import annotations

from dataclasses import dataclass

from lab.errors import EnvironmentFault


@dataclass(frozen=True)
class Limits:
    """How far a simulated run may go."""

    horizon: float = 24 * 3600.0
    """Simulated seconds."""
    standstill: int = 100_000
    """Turns of the loop in a row in which no simulated time passes."""
    turns: int = 50_000_000
    """Turns of the loop in all."""
    wall_seconds: float = 300.0
    """Seconds of the machine's own clock."""


class SimulationStopped(EnvironmentFault):
    """A simulated run was ended by one of its guards."""


class Deadlock(SimulationStopped):
    """Every task waits for something that nothing can bring about any more."""


class HorizonPassed(SimulationStopped):
    """The run went on past its last simulated second."""


class Standstill(SimulationStopped):
    """The loop turns and turns while no time passes: something polls without waiting."""


class TooManyTurns(SimulationStopped):
    """The run took more turns of the loop than it may."""


class WallClockPassed(SimulationStopped):
    """The run took longer on the machine's own clock than it may."""

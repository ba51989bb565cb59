"""What a run asks of the leg that a scenario is about: its participants, its steps, its expectations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lab.run.expectations import Held


class Leg(Protocol):
    """Everything of a run that one leg does in its own way."""

    @property
    def held(self) -> Sequence[Held]:
        """The scenario's expectations as they were judged; filled when `run` is over."""

    async def run(self) -> None:
        """Start the participants, carry out the steps, judge the expectations, and end everything again.

        Raises what ended it early: `StepFailed`, `SutFault`, `EnvironmentFault`, or a defect of the lab.
        """

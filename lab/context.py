"""What a run gives to its parts in place of the wall clock, the system's dice and fresh ids.

No double, link or reference SUT reads a clock or draws a number by itself, so one seed gives one run. The one
exception is the token by which a started program's processes are found again (lab.sut.process).
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from lab.clock import Clock, wall_ms
from lab.draws import Draws
from lab.journal.events import Defect

if TYPE_CHECKING:
    from lab.journal.writer import Journal


class RunContext:
    """A run's clock, seed and journal, handed to every double, link and reference SUT."""

    def __init__(self, seed: int, clock: Clock, journal: Journal, secret_seed: int | None = None) -> None:
        self.seed = seed
        self._life = 1
        self._secret_seed = seed if secret_seed is None else secret_seed
        self.clock = clock
        self.journal = journal
        self.defects: list[BaseException] = []
        """Errors that nobody caused on purpose: defects of the lab. A run with one ends with exit status 3."""

    def draws(self, actor: str, purpose: str) -> Draws:
        """A fresh sub-stream; whoever asks keeps it, since asking again starts it again."""
        return Draws(self.seed, actor if self._life == 1 else f"{actor} life {self._life}", purpose)

    def for_life(self, life: int) -> RunContext:
        """The same run for a program's life number `life`, from 1: one that was started again draws anew."""
        again = copy.copy(self)
        again._life = life
        return again

    def apart(self) -> RunContext:
        """The same run for parts whose wall clock is set by itself: `clock.epoch_ms` of it may be moved."""
        other = copy.copy(self)
        other.clock = copy.copy(self.clock)
        return other

    def secret_draws(self, actor: str, purpose: str) -> Draws:
        """A sub-stream for tokens and keys: on the real clock nobody who knows the run's seed can guess it."""
        return Draws(self._secret_seed, actor, purpose)

    def fail(self, defect: BaseException) -> None:
        """Note a defect, and tell whoever waits for the journal."""
        self.defects.append(defect)
        self.journal.record("run", Defect(type(defect).__name__))

    def now(self) -> float:
        """Lab time in seconds."""
        return self.clock.now()

    def wall_ms(self) -> int:
        """Milliseconds since 1970 UTC."""
        return wall_ms(self.clock.epoch_ms, self.clock.now())

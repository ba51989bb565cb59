"""Where a turn's time went: exclusive stages of one monotonic clock, and its model iterations.

Time is kept in whole microseconds, so that the stages add up to the total exactly (TM-027). Nothing here holds a name,
an argument, a result or an error text (TM-029, TM-041).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum

from lab.errors import MisuseError
from lab.partner.model.usage import TokenCounts

MICROS_PER_MS = 1000


class Stage(StrEnum):
    """What a turn is doing; the value is the member of `Timings` without its unit."""

    ADMISSION = "admission"
    LOCK = "lock"
    AGENT = "agent"
    PROMPT = "prompt"
    TOOL_SETUP = "toolSetup"
    WORKER = "worker"
    CLASSIFICATION = "classification"
    MODEL = "model"
    TOOL = "tool"
    HISTORY = "history"
    OTHER = "other"


# TM-025: what setupMs is the subtotal of
SETUP = (Stage.ADMISSION, Stage.AGENT, Stage.PROMPT, Stage.TOOL_SETUP, Stage.WORKER, Stage.CLASSIFICATION)


@dataclass(slots=True)
class Iteration:
    """One model request and the tools that it asked for; all in microseconds (TM-026)."""

    wall: int = 0
    model: int = 0
    first_token: int | None = None
    tool: int = 0
    tools: list[int] = field(default_factory=list)
    usage: TokenCounts | None = None

    def to_json(self) -> dict[str, object]:
        """The iteration as it stands in `Timings`; without `usage` when the provider told none (TM-040)."""
        body: dict[str, object] = {
            "wallMs": _ms(self.wall),
            "modelMs": _ms(self.model),
            "firstTokenMs": None if self.first_token is None else _ms(self.first_token),
            "toolMs": _ms(self.tool),
            "tools": [{"durationMs": _ms(duration)} for duration in self.tools],
        }
        if self.usage is not None:
            body["usage"] = self.usage.of_iteration()
        return body


class StageClock:
    """Which stage a turn's time belongs to. `now` reads a monotonic clock in seconds (TM-009).

    Time runs from the construction, the claim, until `close`. What belongs to no stage is `other` (TM-024).
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._spent = dict.fromkeys(Stage, 0)
        self._stack = [Stage.OTHER]
        self._since = self.micros()
        self._closed = False

    def micros(self) -> int:
        """The clock's reading in microseconds."""
        return round(self._now() * 1_000_000)

    @contextmanager
    def stage(self, stage: Stage) -> Iterator[None]:
        """Count the time of the block as `stage`. A stage inside another one pauses that one (TM-010)."""
        self._settle()
        self._stack.append(stage)
        try:
            yield
        finally:
            self._settle()
            self._stack.pop()

    def spent(self, stage: Stage) -> int:
        """Microseconds of `stage` up to now."""
        self._settle()
        return self._spent[stage]

    def close(self) -> None:
        """Stop the clock: what comes later is in no stage (TM-012). May be called again."""
        self._settle()
        self._closed = True

    def snapshot(self, queued_micros: int, iterations: Sequence[Iteration]) -> dict[str, object]:
        """The final snapshot. A clock that still runs raises `MisuseError`."""
        if not self._closed:
            raise MisuseError("a snapshot of a turn's timings was asked for while its clock ran; close it first")
        return _snapshot(True, queued_micros, self._spent, [iteration.to_json() for iteration in iterations])

    def _settle(self) -> None:
        if self._closed:
            return
        now = max(self._since, self.micros())
        self._spent[self._stack[-1]] += now - self._since
        self._since = now


class IterationMeter:
    """Measures one iteration of a turn. Call `answered` when its response is over, `close` when its tools are as well.

    `settle` brings one that is still open up to now.
    """

    def __init__(self, clock: StageClock) -> None:
        self.iteration = Iteration()
        self._clock = clock
        self._start = clock.micros()
        self._model, self._tool = clock.spent(Stage.MODEL), clock.spent(Stage.TOOL)
        self._answered = self._closed = False

    def delta(self) -> None:
        """A delta with text or thinking in it came; the first one counts (TM-030)."""
        if self.iteration.first_token is None:
            self.iteration.first_token = self._clock.micros() - self._start

    def answered(self) -> None:
        """The model request is over; tools come next."""
        self.settle()
        self._answered = True

    def close(self) -> None:
        """The iteration is over: later ones do not count for it."""
        self.settle()
        self._closed = True

    def settle(self) -> None:
        """Bring the iteration up to now."""
        if self._closed:
            return
        if not self._answered:
            # TM-032: the whole request with what its delivery took, and no tool
            self.iteration.wall = self._clock.micros() - self._start
        self.iteration.model = self._clock.spent(Stage.MODEL) - self._model
        self.iteration.tool = self._clock.spent(Stage.TOOL) - self._tool


def pending_snapshot() -> dict[str, object]:
    """The snapshot of a run that has not ended, or never will: zeros with `complete` false (TM-047, TM-053)."""
    return _snapshot(False, 0, dict.fromkeys(Stage, 0), [])


def queued_micros(accepted_ms: int, claimed_ms: int) -> int:
    """The wait by the wall clock, which may have been set back meanwhile (TM-008); both in epoch milliseconds."""
    return max(0, claimed_ms - accepted_ms) * MICROS_PER_MS


def _snapshot(
    complete: bool, queued: int, spent: dict[Stage, int], iterations: list[dict[str, object]]
) -> dict[str, object]:
    # TM-027: the seven addends are the queue, setup and the five stages that are no setup
    body: dict[str, object] = {"complete": complete, "queuedMs": _ms(queued)}
    body.update({f"{stage}Ms": _ms(spent[stage]) for stage in Stage})
    body["setupMs"] = _ms(sum(spent[stage] for stage in SETUP))
    body["totalMs"] = _ms(queued + sum(spent.values()))
    body["iterations"] = iterations
    return body


def _ms(micros: int) -> int | float:
    """Milliseconds; a whole number where there is one (TM-046)."""
    whole, rest = divmod(micros, MICROS_PER_MS)
    return whole if rest == 0 else micros / MICROS_PER_MS

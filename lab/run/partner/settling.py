"""What a step makes of an outcome: a value, a note on a refusal that was due, or a failure in words."""

from __future__ import annotations

from typing import Any, TypeVar

from lab.partner.client.asking import Departure
from lab.partner.client.context import Contested
from lab.partner.client.outcomes import ApiRefusal, Done, GaveUp, TransportError
from lab.run.step_course import StepFailed

T = TypeVar("T")

Result = Done[T] | ApiRefusal | TransportError | GaveUp | Contested


def settle(outcome: Result[T], fails: str | None) -> tuple[Any, str]:
    """The value of a call that succeeded, or the note on a refusal that was due. Raises `StepFailed` otherwise."""
    match outcome:
        case Done():
            if fails is not None:
                raise not_refused(fails)
            return outcome.value, ""
        case ApiRefusal():
            if outcome.code == fails:
                return None, f"refused: {outcome.code} ({outcome.status}), as it must be"
            due = f"{fails} was due" if fails else "it must succeed"
            raise StepFailed(f"refused: {outcome.code} ({outcome.status}); {due}")
        case TransportError():
            status = f" (HTTP {outcome.status})" if outcome.status else ""
            raise StepFailed(f"no usable answer: {outcome.kind}{status} at try {outcome.attempts}")
        case GaveUp():
            raise StepFailed(f"the run did not end: {outcome.status or 'no status'} after {outcome.polls} polls")
        case Contested():
            if fails is not None and isinstance(outcome.last, ApiRefusal) and outcome.last.code == fails:
                return None, f"refused: {fails} in {outcome.rounds} rounds, as it must be"
            raise StepFailed(f"the context was lost to others in {outcome.rounds} rounds")


def not_refused(fails: str) -> StepFailed:
    """The failure of what succeeded though a refusal was due."""
    return StepFailed(f"it succeeded, {fails} was due")


def too_few(came: int, due: int) -> StepFailed:
    """The failure of a stream that ended early."""
    return StepFailed(f"the stream ended after {came} events, {due} were due")


def by_order(odd: bool) -> Departure | None:
    """What tells the laws that the scenario, not the driver, chose to do so."""
    return Departure() if odd else None


def in_brackets(reason: str | None) -> str:
    """A reason behind a status, if there is one."""
    return f" ({reason})" if reason else ""

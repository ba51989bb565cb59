"""What a step makes of an outcome."""

from __future__ import annotations

import pytest

from lab.partner.client.asking import Departure
from lab.partner.client.context import Contested
from lab.partner.client.outcomes import ApiRefusal, Done, GaveUp, TransportError
from lab.run.partner.settling import Result, by_order, in_brackets, settle
from lab.run.step_course import StepFailed

REFUSED = ApiRefusal("CHAT_CONFLICT", 409)


def test_a_value_and_a_refusal_that_was_due() -> None:
    assert settle(Done(7, 200), None) == (7, "")
    assert settle(REFUSED, "CHAT_CONFLICT") == (None, "refused: CHAT_CONFLICT (409), as it must be")
    assert settle(Contested(5, REFUSED), "CHAT_CONFLICT") == (
        None,
        "refused: CHAT_CONFLICT in 5 rounds, as it must be",
    )


@pytest.mark.parametrize(
    ("outcome", "fails", "words"),
    [
        (Done(7, 200), "EXECUTION_DENIED", "it succeeded, EXECUTION_DENIED was due"),
        (REFUSED, None, "refused: CHAT_CONFLICT (409); it must succeed"),
        (REFUSED, "EXECUTION_DENIED", "refused: CHAT_CONFLICT (409); EXECUTION_DENIED was due"),
        (TransportError("cut", 200, 3), None, "no usable answer: cut (HTTP 200) at try 3"),
        (TransportError("refused"), "EXECUTION_DENIED", "no usable answer: refused at try 1"),
        (GaveUp("running", 9), None, "the run did not end: running after 9 polls"),
        (GaveUp(None, 0), None, "the run did not end: no status after 0 polls"),
        (Contested(5, REFUSED), None, "the context was lost to others in 5 rounds"),
        (Contested(5, TransportError("reset")), "CHAT_CONFLICT", "the context was lost to others in 5 rounds"),
    ],
)
def test_everything_else_fails(outcome: Result[int], fails: str | None, words: str) -> None:
    with pytest.raises(StepFailed) as failed:
        settle(outcome, fails)
    assert str(failed.value) == words


def test_small_words() -> None:
    assert by_order(False) is None
    assert by_order(True) == Departure()
    assert (in_brackets(None), in_brackets("CHAT_X")) == ("", " (CHAT_X)")

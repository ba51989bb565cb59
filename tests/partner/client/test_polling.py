import asyncio
from collections.abc import Sequence

import pytest

from lab.partner.client.outcomes import ApiRefusal, Done, GaveUp, Outcome, TransportError
from lab.partner.client.polling import poll_until_terminal
from lab.partner.client.shapes import Run, run_untrusted
from tests.partner.client.scripted_api import virtually
from tests.partner.client.test_shapes import RUN_WITH_EXACT_NUMBERS

LOST = TransportError("reset")


def told(status: str) -> Done[Run]:
    return Done(run_untrusted({**RUN_WITH_EXACT_NUMBERS, "status": status}), 200)


def polled(answers: Sequence[Outcome[Run]], deadline_s: float = 60.0) -> tuple[object, list[float]]:
    """What came of it, and when each poll was made."""

    async def main() -> tuple[object, list[float]]:
        now = asyncio.get_running_loop().time
        start, times = now(), list[float]()

        async def ask(number: int) -> Outcome[Run]:
            times.append(round(now() - start, 2))
            assert number == len(times)
            return answers[min(number, len(answers)) - 1]

        return await poll_until_terminal(ask, now, deadline_s), times

    return virtually(main)


@pytest.mark.req("MSG-043", "MSG-020")
def test_polls_come_at_once_then_after_a_quarter_second_doubling_to_two() -> None:
    answers = [told(status) for status in ("accepted", "running", "paused", "running", "running", "running")]
    outcome, times = polled([*answers, told("limited")])
    assert outcome == told("limited")
    assert times == [0.0, 0.25, 0.75, 1.75, 3.75, 5.75, 7.75]


@pytest.mark.req("MSG-043")
def test_polling_gives_up_at_its_deadline_with_the_last_status() -> None:
    outcome, times = polled([told("running")])
    assert outcome == GaveUp("running", len(times))
    assert times[-1] == 59.75
    assert polled([LOST], 1.0) == (GaveUp(None, 3), [0.0, 0.25, 0.75])


@pytest.mark.parametrize("final", [ApiRefusal("EXECUTION_DENIED", 403), TransportError("not-envelope", 200)])
def test_a_refusal_ends_polling(final: ApiRefusal | TransportError) -> None:
    assert polled([told("running"), final, told("completed")]) == (final, [0.0, 0.25])


def test_a_poll_without_an_answer_does_not_end_it() -> None:
    outcome, times = polled([LOST, TransportError("not-json", 502), told("completed")])
    assert outcome == told("completed")
    assert len(times) == 3


@pytest.mark.req("MSG-034")
@pytest.mark.parametrize("status", ["completed", "failed", "limited", "interrupted", "cancelled"])
def test_any_terminal_status_ends_it(status: str) -> None:
    assert polled([told(status)]) == (told(status), [0.0])

"""Asking for a run again and again until its status is terminal (MSG-043)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from lab.partner.client.calls import passing
from lab.partner.client.outcomes import ApiRefusal, Done, GaveUp, Outcome, TransportError
from lab.partner.client.shapes import Run

FIRST_WAIT_S = 0.25
LONGEST_WAIT_S = 2.0
DEADLINE_S = 60.0

Ask = Callable[[int], Awaitable[Outcome[Run]]]
"""Makes poll number k, from 1."""


async def poll_until_terminal(
    ask: Ask, now: Callable[[], float], deadline_s: float = DEADLINE_S
) -> Done[Run] | ApiRefusal | TransportError | GaveUp:
    """Poll at once, then after 250 ms, doubling to 2 s. A refusal, and an answer of no known form, end it.

    `deadline_s` counts from now; the poll that is under way then is the last.
    """
    end, wait, polls = now() + deadline_s, FIRST_WAIT_S, 0
    status: str | None = None
    while True:
        polls += 1
        outcome = await ask(polls)
        if isinstance(outcome, Done):
            status = outcome.value.status
            if outcome.value.terminal:
                return outcome
        elif not passing(outcome):
            return outcome
        if now() + wait > end:
            return GaveUp(status, polls)
        await asyncio.sleep(wait)
        wait = min(2 * wait, LONGEST_WAIT_S)

"""Reading one of a job's streams to its end, over breaks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from lab.errors import Agent2Error
from lab.localagent.counters import Counters

# A stream that is not there, or that this agent2 does not have, is not asked for again.
_FINAL = frozenset({"not_found"})


class StreamLost(Exception):
    """A stream that can't be read any more; what was read of it stands."""


async def read_through(
    connect: Callable[[], Awaitable[None]],
    position: Callable[[], int],
    *,
    attempts: int,
    retry: float,
    counters: Counters,
) -> None:
    """Call `connect` until a stream ended cleanly; `attempts` breaks in a row without progress raise `StreamLost`.

    `position` grows with what was read that is new. Before attempt n it waits n times `retry` seconds (A2-042).
    """
    failures = 0
    while True:
        before = position()
        try:
            await connect()
            return
        except Agent2Error as error:
            # Progress gives the stream its whole budget back.
            failures = 1 if position() > before else failures + 1
            # A2-043: the budget is used up.
            if failures > attempts or error.code in _FINAL:
                raise StreamLost from error
        counters.stream_reconnects += 1
        await asyncio.sleep(retry * failures)

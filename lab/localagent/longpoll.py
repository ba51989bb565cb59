"""Answering `job.stream`: at once when there is something, else after a hold (CHAT-036, CHAT-039)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from lab.localagent.answer import Answer, found, refused
from lab.localagent.streams import NotFound, Page, StreamBook, TooSmall, Wait, encode_page


@dataclass
class Polls:
    """How many requests wait now, and how many may."""

    limit: int
    waiting: int = 0


async def answer_job_stream(
    book: StreamBook,
    ref: str,
    max_bytes: int,
    *,
    hold: float,
    is_active_chat: Callable[[str], bool],
    polls: Polls,
) -> Answer:
    """The page at `ref`; waits up to `hold` seconds for one. A cancelled call leaves nothing behind."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + hold
    while True:
        state = book.page(ref, max_bytes)
        if isinstance(state, Page):
            # CHAT-039: all that is there, without gathering more.
            return found(encode_page(state))
        if isinstance(state, TooSmall):
            return refused("error", "payload_too_large")
        # CHAT-045: neither recorded nor about to be.
        if isinstance(state, NotFound) or not (state.recorded or is_active_chat(state.job_id)):
            return refused("not_found")
        # CHAT-070: so many may wait, no more.
        if polls.waiting >= polls.limit:
            return refused("error", "rate_limited")
        if not await _changed(loop, book, state, deadline, polls):
            # CHAT-036: an empty page when the hold is over.
            body = encode_page(book.empty_page(ref))
            return found(body) if len(body) <= max_bytes else refused("error", "payload_too_large")


async def _changed(
    loop: asyncio.AbstractEventLoop, book: StreamBook, state: Wait, deadline: float, polls: Polls
) -> bool:
    """Wait for a change of the job's record; False when the deadline came first."""
    woken: asyncio.Future[bool] = loop.create_future()

    def wake(change: bool) -> None:
        if not woken.done():
            woken.set_result(change)

    stop = book.watch(state.job_id, lambda: wake(True))
    timer = loop.call_at(deadline, wake, False)
    polls.waiting += 1
    try:
        return await woken
    finally:
        polls.waiting -= 1
        timer.cancel()
        stop()

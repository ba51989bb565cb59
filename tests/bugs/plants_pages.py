"""Slips of an agent in which content requests it answers, and in how much of a conversation or a stream it gives."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from lab.localagent import content, longpoll, streams
from lab.localagent.answer import Answer
from lab.localagent.content import Content
from lab.localagent.conversation import Turn
from lab.localagent.longpoll import Polls
from lab.localagent.streams import MAX_EVENTS, PageEvent, StreamBook
from tests.bugs import odd_requests
from tests.bugs.plants import Function, Patch, plant

# Who may ask for what


@plant("agent-foreign-workspace-answered", scenario="foreign-workspace", law="refs")
def foreign_workspace_answered(patch: Patch) -> None:
    """The request's workspace is not looked at."""

    def make(original: Function) -> Function:
        async def job_stream(self: Any, chats: Any, ref: str, max_bytes: int, workspace_id: str) -> Answer:
            place = chats.book.place(ref)
            owner = None if place is None else self._active.workspace_of(place[0])
            if owner is not None and owner != workspace_id:
                patch.slipped()
            answer: Answer = await original(self, chats, ref, max_bytes, owner or workspace_id)
            return answer

        return job_stream

    patch.wrap(Content, "_job_stream", make)


@plant("agent-unknown-cursor-starts-over", scenario="invented-cursor", law="refs")
def unknown_cursor_starts_over(patch: Patch) -> None:
    """A place that is not known is the first."""

    def make(original: Function) -> Function:
        def place(self: Any, ref: str) -> tuple[str, int] | None:
            known: tuple[str, int] | None = original(self, ref)
            if known is None and self._records:
                patch.slipped()
                return next(reversed(self._records)), 0
            return known

        return place

    patch.wrap(StreamBook, "place", make)


@plant("agent-unknown-job-waited-for", scenario="invented-job", law="refs")
def unknown_job_waited_for(patch: Patch) -> None:
    """The job may be on its way."""

    def make(original: Function) -> Function:
        async def answer(*args: Any, **named: Any) -> Answer:
            first: Answer = await original(*args, **named)
            if first.status != "not_found":
                return first
            patch.slipped()
            await asyncio.sleep(named["hold"])
            second: Answer = await original(*args, **named)
            return second

        return answer

    patch.wrap(content, "answer_job_stream", make)


@plant("agent-polls-unbounded", scenario="many-polls", law="polls-bounded")
def polls_unbounded(patch: Patch) -> None:
    """Nobody counts who waits."""

    def make(original: Function) -> Function:
        async def changed(loop: Any, book: Any, state: Any, deadline: float, polls: Polls) -> object:
            if polls.waiting >= polls.limit - 1:
                patch.slipped()
                polls = Polls(polls.limit)
            return await original(loop, book, state, deadline, polls)

        return changed

    patch.wrap(longpoll, "_changed", make)


# How much of it


@plant("agent-page-over-size", scenario="chat-of-long-lines", law="answer-limits")
def page_over_size(patch: Patch) -> None:
    """A page is full when it has its 512 events."""

    def fitting(lines: Sequence[str], start: int, max_bytes: int) -> tuple[PageEvent, ...]:
        events = [PageEvent(i, lines[i]) for i in range(start, min(len(lines), start + MAX_EVENTS))]
        if sum(map(streams._event_bytes, events)) > max_bytes:
            patch.slipped()
        return tuple(events)

    patch.set(streams, "_fitting", fitting)


@plant("agent-newest-turns-cut", scenario="little-room", law="conversation")
def newest_turns_cut(patch: Patch) -> None:
    """The body is filled from the front."""

    def make(original: Function) -> Function:
        def body(turns: Sequence[Turn], max_bytes: int) -> bytes:
            kept = list(turns)
            while kept and len(original(kept, 1 << 21)) > max_bytes:
                kept.pop()
            if len(kept) < len(turns):
                patch.slipped()
            whole = json.loads(original(kept, 1 << 21))
            return json.dumps({**whole, "truncated": len(kept) < len(turns)}, separators=(",", ":")).encode()

        return body

    patch.wrap(content, "session_body", make)


@plant("agent-cut-not-flagged", scenario="little-room", law="conversation")
def cut_not_flagged(patch: Patch) -> None:
    """`truncated` is a constant."""

    def make(original: Function) -> Function:
        def body(turns: Sequence[Turn], max_bytes: int) -> bytes:
            cut: bytes = original(turns, max_bytes)
            if cut.endswith(b'"truncated":true}'):
                patch.slipped()
            return cut.replace(b'"truncated":true}', b'"truncated":false}')

        return body

    patch.wrap(content, "session_body", make)


__all__ = ["odd_requests"]

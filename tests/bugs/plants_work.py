"""Slips of an agent in what it gives of a running chat: pages, cursors and the long poll."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from lab.localagent import chatstore, content, longpoll, streams
from lab.localagent.answer import Answer
from lab.localagent.chats import Chats
from lab.localagent.chatstore import MAX_LINE_CHARS
from lab.localagent.jobs import Jobs
from lab.localagent.streams import Page, PageEvent, StreamBook
from tests.bugs.plants import Function, Patch, plant

TURN_TIME: Final = "2026-01-01T00:00:00.000Z"


# The long poll


@plant("agent-no-hold", scenario="chat-paused", law="long-poll")
def no_hold(patch: Patch) -> None:
    """`_changed` says at once that the hold is over."""

    async def changed(*_: object) -> bool:
        patch.slipped()
        return False

    patch.set(longpoll, "_changed", changed)


@plant("agent-hold-beyond-first-chunk", scenario="chat-silent", law="content-in-time")
def hold_beyond_first_chunk(patch: Patch) -> None:
    """25 s of hold instead of 8."""
    original = longpoll.answer_job_stream

    async def answer(*args: Any, **named: Any) -> Answer:
        patch.slipped()
        return await original(*args, **{**named, "hold": 25.0})

    patch.set(content, "answer_job_stream", answer)


@plant("agent-hold-with-events-there", scenario="chat-read-late", law="long-poll")
def hold_with_events_there(patch: Patch) -> None:
    """The hold comes before the first look."""
    original = longpoll.answer_job_stream

    async def answer(*args: Any, **named: Any) -> Answer:
        patch.slipped()
        await asyncio.sleep(named["hold"])
        return await original(*args, **named)

    patch.set(content, "answer_job_stream", answer)


@plant("agent-hold-not-woken-by-events", scenario="chat-held", law="long-poll")
def hold_not_woken_by_events(patch: Patch) -> None:
    """A further line tells nobody."""

    def append(self: Any, job_id: str, line: str) -> None:
        patch.slipped()
        streams._take(self._records[job_id], line)

    patch.set(StreamBook, "append", append)


@plant("agent-hold-not-woken-by-end", scenario="chat-late-end", law="stream-done")
def hold_not_woken_by_end(patch: Patch) -> None:
    """The close of a record tells nobody."""

    def close(self: Any, job_id: str) -> None:
        patch.slipped()
        self._records[job_id].closed = True

    patch.set(StreamBook, "close", close)


@plant("agent-queued-chat-not-found", scenario="two-chats", law="refs")
def queued_chat_not_found(patch: Patch) -> None:
    """A chat that waits is no active one."""

    def make(original: Function) -> Function:
        def is_active_chat(self: Any, job_id: str) -> bool:
            if job_id in self._waiting:
                patch.slipped()
                return False
            return bool(original(self, job_id))

        return is_active_chat

    patch.wrap(Jobs, "is_active_chat", make)


# Pages and cursors


def pages(patch: Patch, alter: Callable[[Any, str, Page], Page]) -> None:
    """Let `alter` change each page that a book gives."""

    def make(original: Function) -> Function:
        def page(self: Any, ref: str, *args: int) -> object:
            state = original(self, ref, *args)
            return alter(self, ref, state) if isinstance(state, Page) else state

        return page

    patch.wrap(StreamBook, "page", make)


@plant("agent-done-when-caught-up", scenario="chat-paused", law="stream-done")
def done_when_caught_up(patch: Patch) -> None:
    """A page up to the last recorded event says done."""

    def alter(book: Any, ref: str, page: Page) -> Page:
        job_id, start = book.place(ref)
        if start + len(page.events) >= len(book._records[job_id].lines) and not page.done:
            patch.slipped()
            return replace(page, done=True)
        return page

    pages(patch, alter)


@plant("agent-failed-chat-never-done", scenario="chat-cancelled", law="stream-done")
def failed_chat_never_done(patch: Patch) -> None:
    """The record of a chat that did not end well stays open."""

    def make(original: Function) -> Function:
        def close(self: Any, job_id: str, state: str, text: str) -> None:
            if state == "done":
                original(self, job_id, state, text)
            else:
                patch.slipped()

        return close

    patch.wrap(Chats, "close", make)


@plant("agent-cursor-repeats-last-event", scenario="chat-read-late", law="stream-complete")
def cursor_repeats_last_event(patch: Patch) -> None:
    """The cursor stands for the last event of the page."""

    def alter(book: Any, ref: str, page: Page) -> Page:
        job_id, start = book.place(ref)
        if len(page.events) < 2:
            return page
        patch.slipped()
        return replace(page, next_ref=book.cursor(job_id, start + len(page.events) - 1), done=False)

    pages(patch, alter)


@plant("agent-cursor-skips-events", scenario="chat-burst", law="stream-complete")
def cursor_skips_events(patch: Patch) -> None:
    """The cursor stands for the record's end."""

    def alter(book: Any, ref: str, page: Page) -> Page:
        job_id, start = book.place(ref)
        length = len(book._records[job_id].lines)
        if length > start + len(page.events):
            patch.slipped()
        return replace(page, next_ref=book.cursor(job_id, length))

    pages(patch, alter)


@plant("agent-cursor-used-once", scenario="chat-lost-page", law="refs")
def cursor_used_once(patch: Patch) -> None:
    """A cursor that was answered is forgotten."""

    def forget(book: Any, ref: str) -> None:
        place = book._places.pop(ref, None)
        if place is not None:
            patch.slipped()
            book._cursors.pop(place, None)

    def alter(book: Any, ref: str, page: Page) -> Page:
        forget(book, ref)
        return page

    def empty_page(self: Any, ref: str) -> Page:
        place = self.place(ref)
        forget(self, ref)
        return Page((), self.cursor(*place), done=False)

    pages(patch, alter)
    patch.set(StreamBook, "empty_page", empty_page)


@plant("agent-cursor-shows-position", scenario="chat-paused", law="cursors-tell-nothing")
def cursor_shows_position(patch: Patch) -> None:
    """The cursor is its position, padded."""

    def cursor(self: Any, job_id: str, position: int) -> str:
        patch.slipped()
        text = f"{job_id.replace('-', '')}{position:011d}"
        self._places[text] = (job_id, position)
        return text

    patch.set(StreamBook, "cursor", cursor)


def encoded(patch: Patch, alter: Callable[[dict[str, Any]], object]) -> None:
    """Let `alter` change the body of each page."""
    original = streams.encode_page

    def encode(page: Page) -> bytes:
        body = json.loads(original(page))
        alter(body)
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()

    patch.set(longpoll, "encode_page", encode)


@plant("agent-cursor-missing-at-end", scenario="chat", law="stream-complete")
def cursor_missing_at_end(patch: Patch) -> None:
    """The last page has no nextRef."""

    def alter(body: dict[str, Any]) -> None:
        if body["done"]:
            patch.slipped()
            del body["nextRef"]

    encoded(patch, alter)


@plant("agent-page-line-as-object", scenario="chat", law="stream-complete")
def page_line_as_object(patch: Patch) -> None:
    """The line goes out parsed."""

    def alter(body: dict[str, Any]) -> None:
        for event in body["events"]:
            patch.slipped()
            event["e"] = json.loads(event["e"])

    encoded(patch, alter)


@plant("agent-positions-per-page", scenario="chat-paused", law="stream-complete")
def positions_per_page(patch: Patch) -> None:
    """Each page counts from 0."""

    def make(original: Function) -> Function:
        def fitting(lines: Sequence[str], start: int, max_bytes: int) -> tuple[PageEvent, ...]:
            if start:
                patch.slipped()
            return tuple(PageEvent(place, event.e) for place, event in enumerate(original(lines, start, max_bytes)))

        return fitting

    patch.wrap(streams, "_fitting", make)


@plant("agent-page-over-count", scenario="chat-burst", law="stream-complete")
def page_over_count(patch: Patch) -> None:
    """A page has no most events."""
    patch.set(streams, "MAX_EVENTS", 1_000_000)
    patch.after(streams, "_fitting", lambda *_: patch.slipped())


@plant("agent-long-line-dropped", scenario="chat-long-line", law="stream-complete", promise=True)
def long_line_dropped(patch: Patch) -> None:
    """No marker stands for a line that is too long."""

    def make(original: Function) -> Function:
        def recorded(line: str, *args: Any) -> object:
            if len(line) > MAX_LINE_CHARS:
                patch.slipped()
                return None
            return original(line, *args)

        return recorded

    patch.wrap(chatstore, "recorded_line", make)

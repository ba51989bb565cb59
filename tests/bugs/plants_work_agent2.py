"""Slips of an agent's reading of an agent2 that is legal but rare, or wrong."""

from __future__ import annotations

import json
from typing import Any

from lab.localagent import watching
from lab.localagent.agent2_client import Agent2Client, Health
from lab.localagent.chats import Chats
from lab.localagent.frames import FrameGate
from lab.localagent.runner import Runner
from lab.localagent.sse import SseEvent, SseParser
from lab.localagent.streams import StreamBook
from tests.bugs import odd_agent2
from tests.bugs.plants import Function, Patch, plant

# Server-sent events


@plant("agent-sse-split-line-end", scenario="agent2-line-ends-apart", law="stream-complete", promise=True)
def sse_split_line_end(patch: Patch) -> None:
    """A CR at the end of a read ends a line by itself."""

    def make(original: Function) -> Function:
        def feed(self: Any, raw: bytes) -> object:
            if raw.endswith(b"\r"):
                patch.slipped()
                raw = raw[:-1] + b"\n"
            return original(self, raw)

        return feed

    patch.wrap(SseParser, "feed", make)


def data_line(patch: Patch, take: Any) -> None:
    """Let `take` deal with the value of each data line."""

    def make(original: Function) -> Function:
        def line(self: Any, text: str) -> object:
            if text.startswith("data:"):
                return take(self, text[5:])
            return original(self, text)

        return line

    patch.wrap(SseParser, "_line", make)


@plant("agent-sse-data-trimmed", scenario="agent2-blank-ends", law="stream-complete", promise=True)
def sse_data_trimmed(patch: Patch) -> None:
    """The value of data loses all its blanks."""

    def take(parser: Any, value: str) -> None:
        if value[1:] != value.strip():
            patch.slipped()
        parser._data.append(value.strip())

    data_line(patch, take)


@plant("agent-sse-data-lines-apart", scenario="agent2-two-data-lines", law="stream-complete", promise=True)
def sse_data_lines_apart(patch: Patch) -> None:
    """Each data line is an event."""

    def take(parser: Any, value: str) -> SseEvent:
        patch.slipped()
        return SseEvent(parser._name, value.removeprefix(" "))

    data_line(patch, take)


@plant("agent-sse-named-events-dropped", scenario="agent2-named-lines", law="stream-complete", promise=True)
def sse_named_events_dropped(patch: Patch) -> None:
    """Only events without a name are lines."""

    def make(original: Function) -> Function:
        def dispatch(self: Any) -> SseEvent | None:
            event: SseEvent | None = original(self)
            if event is not None and event.name == "line":
                patch.slipped()
                return None
            return event

        return dispatch

    patch.wrap(SseParser, "_dispatch", make)


@plant("agent-sse-half-event-kept", scenario="agent2-half-line", law="stream-complete", promise=True)
def sse_half_event_kept(patch: Patch) -> None:
    """What is left when a stream breaks off is an event."""
    parsers: list[Any] = []

    def make(original: Function) -> Function:
        async def stream(self: Any, job_id: str, on_line: Any) -> None:
            parsers.clear()
            try:
                await original(self, job_id, on_line)
            except BaseException:
                for parser in parsers:
                    half = parser._partial.removeprefix("data: ")
                    if half.startswith('{"type"'):
                        patch.slipped()
                        on_line(half)
                raise

        return stream

    patch.after(SseParser, "__init__", lambda self, *_: parsers.append(self))
    patch.wrap(Agent2Client, "stream", make)


# Frames


@plant("agent-foreign-frames-passed-on", scenario="agent2-foreign-frame", law="progress")
def foreign_frames_passed_on(patch: Patch) -> None:
    """Tenant and job of a frame are not compared."""

    def make(original: Function) -> Function:
        def accept(self: Any, value: Any) -> object:
            if isinstance(value, dict) and value.get("jobId") != self._job_id:
                patch.slipped()
                frame = original(self, {**value, "jobId": self._job_id})
                self.last_seq -= 1
                return frame
            return original(self, value)

        return accept

    patch.wrap(FrameGate, "accept", make)


@plant(
    "agent-bad-frame-ends-stream",
    scenario="agent2-bad-frame",
    law="job-outcome",
    promise=True,
)
def bad_frame_ends_stream(patch: Patch) -> None:
    """A frame that is no JSON raises."""

    def make(original: Function) -> Function:
        async def events(self: Any, job_id: str, on_frame: Any) -> None:
            def take(event: SseEvent) -> None:
                try:
                    frame = json.loads(event.data or "")
                except ValueError:
                    patch.slipped()
                    raise
                on_frame(frame)

            await self._read_sse(f"/jobs/{job_id}/events", take)

        return events

    patch.wrap(Agent2Client, "events", make)


# Chats


@plant("agent-done-with-the-result", scenario="agent2-lines-after-result", law="stream-done")
def done_with_the_result(patch: Patch) -> None:
    """A page is the last one when the job has its result."""
    over: list[str] = []

    def note(self: Any, *_: object) -> None:
        if self._result is not None:
            over.append(self._job.job_id)
            self._chats.book._tell(self._job.job_id)

    def make(original: Function) -> Function:
        def page(self: Any, ref: str, *args: int) -> object:
            place = self.place(ref)
            if place is not None and place[0] in over and place[0] in self._records:
                record = self._records[place[0]]
                if not record.closed:
                    patch.slipped()
                record.closed, closed = True, record.closed
                state = original(self, ref, *args)
                record.closed = closed
                return state
            return original(self, ref, *args)

        return page

    patch.after(watching.Watch, "_on_frame", note)
    patch.wrap(StreamBook, "page", make)


@plant("agent-chat-run-as-fix", scenario="agent2-chat-vanishes", law="as-assigned")
def chat_run_as_fix(patch: Patch) -> None:
    """A chat that agent2 does not list is sent as a fix."""

    def make_ready(original: Function) -> Function:
        async def ready(self: Any, job: Any, cancel: Any) -> None:
            health: Health = await self._client.health()
            if "chat" not in health.kinds:
                patch.slipped()

        return ready

    def make(original: Function) -> Function:
        def body(self: Any, job: Any, workspace: Any) -> dict[str, object]:
            return {**original(self, job, workspace), "kind": "fix"}

        return body

    patch.wrap(Runner, "_agent2_ready", make_ready)
    patch.wrap(Runner, "_job_body", make)


@plant("agent-store-opened-late", scenario="agent2-chat-vanishes", law="refs")
def store_opened_late(patch: Patch) -> None:
    """The record of a chat is opened after health."""
    later: list[Any] = []

    def make_begin(original: Function) -> Function:
        def begin(self: Chats, *args: str) -> None:
            later.append(lambda: original(self, *args))

        return begin

    def make_ready(original: Function) -> Function:
        async def ready(self: Any, job: Any, cancel: Any) -> None:
            try:
                await original(self, job, cancel)
            except BaseException:
                patch.slipped()
                raise
            if job.chat:
                later.pop()()

        return ready

    def make_close(original: Function) -> Function:
        def close(self: Chats, job_id: str, *args: str) -> None:
            if self.book.knows(job_id):
                original(self, job_id, *args)

        return close

    patch.wrap(Chats, "begin", make_begin)
    patch.wrap(Chats, "close", make_close)
    patch.wrap(Runner, "_agent2_ready", make_ready)


__all__ = ["odd_agent2"]

"""Slips of the driver in following runs, in polling, in history and with files."""

from __future__ import annotations

from typing import Any

from lab.partner.client import polling
from lab.partner.client.asking import Ask
from lab.partner.client.follow import Follower, FollowSettings
from lab.partner.client.history_steps import HistorySteps
from lab.partner.client.outcomes import ApiRefusal, Done, TransportError
from lab.partner.client.run_events import RunEnd, RunEvents
from lab.partner.client.run_steps import RunSteps
from lab.partner.client.shapes import Run
from lab.partner.client.sse_reader import SseReader, WireEvent
from lab.partner.client.words import POST_MESSAGE
from tests.bugs.partner.plants import plant
from tests.bugs.partner.plants_client import asks
from tests.bugs.plants import Function, Patch

# Streams


def reopened(patch: Patch, change: Any) -> None:
    """Let `change` give another header for what a stream goes on behind."""

    def make(original: Function) -> Function:
        def ask_for(self: RunSteps, record: Any, member: Any, header: str | None, departure: Any) -> Ask:
            if header is not None and departure is None:
                patch.slipped()
                header = change(record.told.run_id, int(header.rpartition(":")[2]))
            made: Ask = original(self, record, member, header, departure)
            return made

        return ask_for

    patch.wrap(RunSteps, "_stream_ask", make)


@plant("client-reconnects-from-start", scenario="stream-cut", law="resumes-with-last-id", blamed=("resume-continues",))
def reconnects_from_start(patch: Patch) -> None:
    """A stream is opened as the first time."""
    reopened(patch, lambda run_id, after: None)


@plant("client-reconnects-one-back", scenario="stream-cut", law="resumes-with-last-id", blamed=("resume-continues",))
def reconnects_one_back(patch: Patch) -> None:
    """The last event is better had twice."""
    reopened(patch, lambda run_id, after: f"{run_id}:{after - 1}")


@plant(
    "client-resumes-unfinished-event",
    scenario="stream-cut-in-an-event",
    law="resumes-with-last-id",
    blamed=("resume-continues",),
)
def resumes_unfinished_event(patch: Patch) -> None:
    """An event whose id came has come."""
    halves: dict[int, str] = {}

    def make(original: Function) -> Function:
        def feed(self: SseReader, raw: bytes) -> list[WireEvent]:
            found: list[WireEvent] = original(self, raw)
            rest = self.pending.decode("utf-8", "replace")
            if rest.startswith("id: ") and "\n" in rest:
                halves["last"] = rest.partition("\n")[0].rpartition(":")[2]  # type: ignore[index]
            return found

        return feed

    def skip(run_id: str, after: int) -> str:
        half = int(halves.pop("last", 0))  # type: ignore[call-overload]
        return f"{run_id}:{max(half, after)}"

    patch.wrap(SseReader, "feed", make)
    reopened(patch, skip)


@plant("client-never-gives-up-stream", scenario="api-gone-for-long", law="reconnects-bounded")
def never_gives_up_stream(patch: Patch) -> None:
    """Sooner or later the stream will be there."""

    def make(original: Function) -> Function:
        def begin(self: Follower, *args: Any) -> None:
            original(self, *args)
            patch.slipped()
            self._settings = FollowSettings(most_reconnects=1000, first_wait_s=0.05, longest_wait_s=0.05)

        return begin

    patch.wrap(Follower, "__init__", make)


@plant("client-no-poll-after-error", scenario="provider-fails", law="outcome-from-authority")
def no_poll_after_error(patch: Patch) -> None:
    """An error is the end."""

    def make(original: Function) -> Function:
        def take(self: RunEvents, event: WireEvent) -> bool:
            took = bool(original(self, event))
            if self.error_code is not None and self.end is None:
                patch.slipped()
                self.end = RunEnd("failed", self.error_code, (), None, None)
            return took

        return take

    patch.wrap(RunEvents, "take", make)


@plant("client-no-poll-after-close", scenario="stream-over-rotation", law="outcome-from-authority")
def no_poll_after_close(patch: Patch) -> None:
    """A stream that ended is a run that ended."""

    def make(original: Function) -> Function:
        async def followed(self: Follower, ask_for: Any, events: RunEvents, after: Any, deadline: float) -> Any:
            end = await original(self, ask_for, events, after, deadline)
            if not isinstance(end, ApiRefusal | TransportError) and end.why == "closed" and events.end is None:
                patch.slipped()
                events.end = RunEnd("completed", None, (), None, None)
            return end

        return followed

    patch.wrap(Follower, "follow", make)


# Polls


@plant("client-polls-in-a-rush", scenario="polled-to-the-end", law="polls-back-off")
def polls_in_a_rush(patch: Patch) -> None:
    """The sooner it is known the better."""
    patch.set(polling, "FIRST_WAIT_S", 0.01)
    patch.set(polling, "LONGEST_WAIT_S", 0.01)
    patch.after(RunSteps, "poll", lambda *_, **__: patch.slipped())


@plant("client-stops-polling-early", scenario="polled-to-the-end", law="polls-to-the-end")
def stops_polling_early(patch: Patch) -> None:
    """Whatever is not accepted any more is over."""

    def terminal(self: Run) -> bool:
        if self.status == "running":
            patch.slipped()
        return self.status != "accepted"

    patch.set(Run, "terminal", property(terminal))


@plant("client-sends-again-after-interruption", scenario="killed-in-a-turn", law="messages-by-step")
def sends_again_after_interruption(patch: Patch) -> None:
    """What was interrupted is asked again."""

    def make(original: Function) -> Function:
        async def poll(self: RunSteps, run: str, **more: Any) -> Any:
            told = await original(self, run, **more)
            if isinstance(told, Done) and told.value.status == "interrupted":
                patch.slipped()
                label = self.run(run).conversation.label
                await self.message(label, f"{run}-again", "What does product 9001 cost?")
            return told

        return poll

    patch.wrap(RunSteps, "poll", make)


# History


@plant("client-cursor-decoded", scenario="history-pages", law="walk-ends")
def cursor_decoded(patch: Patch) -> None:
    """A cursor is something that one may look into."""
    cursors(patch, lambda cursor: cursor[:-22])


@plant("client-cursor-not-sent", scenario="history-pages", law="walk-ends")
def cursor_not_sent(patch: Patch) -> None:
    """A page is a page."""
    cursors(patch, lambda _: None)


def cursors(patch: Patch, change: Any) -> None:
    """Let `change` alter the cursor of a walk."""

    def make(original: Function) -> Function:
        async def page(self: HistorySteps, conversation: str, **more: Any) -> Any:
            if more.get("number") and more.get("cursor"):
                patch.slipped()
                more["cursor"] = change(more["cursor"])
            return await original(self, conversation, **more)

        return page

    patch.wrap(HistorySteps, "page", make)


# Files


@plant("client-file-in-message-first", scenario="files", law="uploads-before-message")
def file_in_message_first(patch: Patch) -> None:
    """A file has the id that the driver gives it."""

    def invented(self: Any, route: str, more: Any) -> dict[str, Any] | None:
        if route != POST_MESSAGE or not more["members"].get("attachmentIds"):
            return None
        return {"members": {**more["members"], "attachmentIds": ["file-1"]}}

    asks(patch, invented)

"""Slips of an agent in how it reads agent2's streams and asks for its health."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import Callable
from typing import Any

from lab.localagent import agent2_client, watching
from lab.localagent.agent2_client import Agent2Client, Health, health_from
from lab.localagent.outcome import failed
from lab.localagent.reading import StreamLost
from lab.localagent.sse import SseParser
from lab.localagent.watching import Watch
from tests.bugs.plants import Function, Patch, plant


def lines(patch: Patch, known: Callable[[Any, int, str], bool]) -> None:
    """Let `known` say whether a line of a connection, by its place there, was read before."""

    async def read(self: Any, chats: Any) -> None:
        def connect() -> Any:
            place = 0

            def on_line(line: str) -> None:
                nonlocal place
                place += 1
                if known(self, place, line):
                    return
                self._lines += 1
                self._answer.take(line)
                chats.append(self._job.job_id, line)

            return self._client.stream(self._job.job_id, on_line)

        await self._through(connect, lambda: self._lines)

    patch.set(Watch, "_read_lines", read)


@plant("agent-replayed-lines-recorded", scenario="chat-lines-torn", law="stream-complete")
def replayed_lines_recorded(patch: Patch) -> None:
    """Each connection's lines are new."""

    def known(watch: Any, place: int, _line: str) -> bool:
        if place <= watch._lines:
            patch.slipped()
        return False

    lines(patch, known)


@plant("agent-replay-skipped-by-text", scenario="chat-lines-torn", law="stream-complete")
def replay_skipped_by_text(patch: Patch) -> None:
    """A line that was there before is a replay."""
    seen: set[str] = set()

    def known(watch: Any, place: int, line: str) -> bool:
        if line in seen:
            if place > watch._lines:
                patch.slipped()
            return True
        seen.add(line)
        return False

    lines(patch, known)


@plant("agent-content-stream-failure-fails-job", scenario="chat-mute", law="job-outcome", promise=True)
def content_stream_failure_fails_job(patch: Patch) -> None:
    """A stream of lines that is lost fails the job."""
    lost: list[Any] = []

    def make_read(original: Function) -> Function:
        async def read(*args: Any, **named: Any) -> None:
            try:
                await original(*args, **named)
            except StreamLost:
                patch.slipped()
                lost.append(args)
                raise

        return read

    def make(original: Function) -> Function:
        def outcome(self: Any) -> object:
            return failed("infra") if lost else original(self)

        return outcome

    patch.wrap(watching, "read_through", make_read)
    patch.wrap(Watch, "_outcome", make)


def reopening(patch: Patch, **altered: float) -> None:
    """Streams are opened again by another rule."""

    def make(original: Function) -> Function:
        async def read(*args: Any, **named: Any) -> None:
            patch.slipped()
            await original(*args, **{**named, **altered})

        return read

    patch.wrap(watching, "read_through", make)


@plant("agent-broken-stream-not-reopened", scenario="fix-events-torn", law="agent2-client")
def broken_stream_not_reopened(patch: Patch) -> None:
    """The first break is the last."""
    reopening(patch, attempts=0)


@plant("agent-stream-reopened-without-pause", scenario="fix-events-torn", law="agent2-client")
def stream_reopened_without_pause(patch: Patch) -> None:
    """No wait before an attempt."""
    reopening(patch, retry=0.0)


@plant("agent-stream-reopened-for-ever", scenario="fix-deaf", law="agent2-client")
def stream_reopened_for_ever(patch: Patch) -> None:
    """Attempts are not counted."""
    reopening(patch, attempts=1_000_000)


@plant("agent-sse-split-character", scenario="chat-foreign", law="stream-complete", promise=True)
def sse_split_character(patch: Patch) -> None:
    """Each read is decoded by itself."""

    def make(original: Function) -> Function:
        def feed(self: Any, raw: bytes) -> object:
            self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
            text = raw.decode("utf-8", "replace")
            if "�" in text:
                patch.slipped()
            return original(self, text.encode())

        return feed

    patch.wrap(SseParser, "feed", make)


@plant("agent-token-on-health", scenario="fix", law="agent2-client")
def token_on_health(patch: Patch) -> None:
    """Health is asked like all else."""

    async def health(self: Any) -> Health:
        patch.slipped()
        async with self._session.get(self._address("/health"), headers=self._headers()) as response:
            return health_from(await agent2_client._bounded_json(response))

    patch.set(Agent2Client, "health", health)


@plant("agent-health-remembered", scenario="two-chats", law="as-assigned")
def health_remembered(patch: Patch) -> None:
    """Health is asked once."""
    known: list[Health] = []

    def make(original: Function) -> Function:
        async def health(self: Any) -> Health:
            if known:
                patch.slipped()
            else:
                known.append(await original(self))
            return known[0]

        return health

    patch.wrap(Agent2Client, "health", make)


@plant("agent-streams-left-open", scenario="cancel-ignored", law="agent2-client")
def streams_left_open(patch: Patch) -> None:
    """A job's readers outlive it."""
    kept: list[asyncio.Task[None]] = []

    def make(original: Function) -> Function:
        async def read(self: Any) -> None:
            task = asyncio.create_task(original(self))
            kept.append(task)
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError:
                patch.slipped()
                raise

        return read

    patch.wrap(Watch, "_read_events", make)

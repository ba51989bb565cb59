"""Following a job that agent2 accepted: both streams, cancel, timeout, and what it all comes to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from lab.clock import timestamp
from lab.context import RunContext
from lab.errors import Agent2Error
from lab.localagent.agent2_client import Agent2Client
from lab.localagent.chats import Chats
from lab.localagent.chatstore import ChatStoreError
from lab.localagent.config import AgentConfig
from lab.localagent.conversation import AnswerText
from lab.localagent.counters import Counters
from lab.localagent.frames import Agent2Frame, FrameGate, audit, is_terminal, progress
from lab.localagent.job import CancelSignal, Job
from lab.localagent.outcome import CANCELLED, Outcome, failed, of_result, of_terminal_event
from lab.localagent.reading import StreamLost, read_through
from lab.localagent.uplink import Uplink


class Watch:
    """One accepted job. `run` follows it to its end; `answer` takes what a chat says."""

    def __init__(
        self,
        ctx: RunContext,
        config: AgentConfig,
        client: Agent2Client,
        uplink: Uplink,
        counters: Counters,
        job: Job,
        cancel: CancelSignal,
        chats: Chats | None,
        answer: AnswerText,
    ) -> None:
        self._ctx = ctx
        self._config = config
        self._client = client
        self._uplink = uplink
        self._counters = counters
        self._job = job
        self._cancel = cancel
        self._chats = chats
        self._gate = FrameGate(config.tenant_id, job.job_id, counters)
        self._lines = 0
        self._most_files = 0
        self._terminal: Mapping[str, object] | None = None
        self._result: Mapping[str, object] | None = None
        self._resulted = asyncio.Event()
        self._answer = answer

    async def run(self, deadline: float) -> Outcome:
        """Follow the job to its end; at loop time `deadline` it has taken too long."""
        tasks = [asyncio.create_task(self._read_events())]
        if self._chats is not None:
            tasks.append(asyncio.create_task(self._read_lines(self._chats)))
        try:
            outcome = await self._until_over(tasks[0], deadline)
            if self._result is not None or tasks[0].done():
                await self._drain(tasks)
            for task in tasks:
                # What a stream may do to a reader is dealt with there: this is a defect, and is not passed over.
                if task.done() and (error := task.exception()) is not None:
                    raise error
            return outcome or self._outcome()
        finally:
            # LA-028: in every ending both streams are let go.
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _until_over(self, events: asyncio.Task[None], deadline: float) -> Outcome | None:
        """Wait for agent2's end of the job; an outcome when there is another one than agent2's."""
        over = asyncio.create_task(self._over(events))
        try:
            timed_out = await self._signalled(over, deadline)
            if over.done():
                return None
            # LA-020, LA-022: one cancel, whether asked for or because of the time.
            await self._post_cancel("timeout" if timed_out else self._cancel.reason)
            # LA-021: agent2 has so long to end the job by itself.
            await asyncio.wait([over], timeout=self._config.cancel_wait)
            return self._after_cancel(timed_out)
        finally:
            over.cancel()
            await asyncio.gather(over, return_exceptions=True)

    async def _signalled(self, over: asyncio.Task[None], deadline: float) -> bool:
        """Wait for the end, a cancel or the deadline; whether it was the deadline."""
        cancelled = asyncio.create_task(self._cancel.wait())
        try:
            left = max(0.0, deadline - asyncio.get_running_loop().time())
            done, _ = await asyncio.wait([over, cancelled], timeout=left, return_when=asyncio.FIRST_COMPLETED)
            return not done
        finally:
            cancelled.cancel()
            await asyncio.gather(cancelled, return_exceptions=True)

    async def _over(self, events: asyncio.Task[None]) -> None:
        """Return when agent2's result is here, or no more events will come."""
        resulted = asyncio.create_task(self._resulted.wait())
        try:
            await asyncio.wait([events, resulted], return_when=asyncio.FIRST_COMPLETED)
        finally:
            resulted.cancel()
            await asyncio.gather(resulted, return_exceptions=True)

    async def _post_cancel(self, reason: str) -> None:
        try:
            await self._client.cancel(self._job.job_id, reason)
        except Agent2Error:
            # LA-020: exactly one call; agent2's own end or the wait decides.
            return

    def _after_cancel(self, timed_out: bool) -> Outcome | None:
        succeeded = self._result is not None and self._result["outcome"] in ("pr_opened", "no_change")
        if succeeded:
            return None
        return failed("timeout") if timed_out else CANCELLED

    async def _drain(self, tasks: list[asyncio.Task[None]]) -> None:
        # CHAT-030: the streams may end by themselves, for so long.
        await asyncio.wait(tasks, timeout=self._config.stream_drain)

    def _outcome(self) -> Outcome:
        if self._result is not None:
            return of_result(self._result, chat=self._job.chat, most_files=self._most_files)
        return of_terminal_event(self._terminal)

    async def _read_events(self) -> None:
        await self._through(lambda: self._client.events(self._job.job_id, self._on_frame), lambda: self._gate.last_seq)

    async def _read_lines(self, chats: Chats) -> None:
        def connect() -> Coroutine[Any, Any, None]:
            # A2-038: a connection replays from the start; so many lines are known.
            skip = self._lines

            def on_line(line: str) -> None:
                nonlocal skip
                if skip > 0:
                    skip -= 1
                    return
                self._lines += 1
                self._answer.take(line)
                chats.append(self._job.job_id, line)

            return self._client.stream(self._job.job_id, on_line)

        try:
            await self._through(connect, lambda: self._lines)
        except ChatStoreError:
            # CHAT-066: a record that can't be kept does not fail the job.
            return

    async def _through(self, connect: Callable[[], Coroutine[Any, Any, None]], position: Callable[[], int]) -> None:
        try:
            await read_through(
                connect,
                position,
                attempts=self._config.stream_reconnects,
                retry=self._config.stream_retry,
                counters=self._counters,
            )
        except StreamLost:
            # A2-051, CHAT-066: for events no result is infra; for content the result stands.
            return

    def _on_frame(self, value: object) -> None:
        frame = self._gate.accept(value)
        if frame is None:
            return
        if frame.type == "job.event":
            self._on_event(frame)
        elif frame.type == "audit.event":
            at = timestamp(self._ctx.wall_ms())
            self._counters.audit_forwarded += 1
            self._send("audit.event", audit(self._job.job_id, frame.payload, at))
        elif self._result is None:
            # The first result is the job's; another one does not change it.
            self._result = frame.payload
            self._resulted.set()

    def _on_event(self, frame: Agent2Frame) -> None:
        if is_terminal(frame.payload):
            self._terminal = frame.payload
            return
        payload = progress(self._job.job_id, frame.payload)
        files = payload.get("filesChanged")
        # CHAT-009, CHAT-011: only events of a running job count.
        if isinstance(files, int):
            self._most_files = max(self._most_files, files)
        self._send("job.event", payload)

    def _send(self, type_name: str, payload: Mapping[str, object]) -> None:
        self._uplink.send(type_name, payload, self._job.workspace_id)

"""The queue in front of the runner: what is accepted, what runs next, and what a repeated id means."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from lab.localagent.chats import Chats
from lab.localagent.job import CancelSignal, Job, assigned_job
from lab.localagent.outcome import CANCELLED, Outcome, failed
from lab.localagent.uplink import Uplink

MAX_RESULTS = 256


class Runs(Protocol):
    """What runs a job (see `runner.Runner`)."""

    async def run(self, job: Job, cancel: CancelSignal) -> Outcome:
        """Run a job to its outcome."""


@dataclass(frozen=True)
class _Assigned:
    job: Job
    cancel: CancelSignal = field(default_factory=CancelSignal)


class Jobs:
    """Jobs one after the other. `kinds` is asked at each assignment; `fail` is told of each defect of the agent."""

    def __init__(
        self,
        runner: Runs,
        uplink: Uplink,
        kinds: Callable[[], tuple[str, ...]],
        limit: int,
        chats: Chats | None,
        fail: Callable[[BaseException], None],
    ) -> None:
        self._runner = runner
        self._fail = fail
        self._uplink = uplink
        self._kinds = kinds
        self._limit = limit
        self._chats = chats
        self._waiting: dict[str, _Assigned] = {}
        self._running: _Assigned | None = None
        self._results: dict[str, tuple[Mapping[str, object], str]] = {}
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> Job | None:
        """The job that runs now."""
        return None if self._running is None else self._running.job

    @property
    def depth(self) -> int:
        """Jobs that wait."""
        return len(self._waiting)

    def assign(self, payload: Mapping[str, Any], workspace_id: str) -> str | None:
        """Take a job.assign whose schema held: None when it is accepted, else the wire code of its rejection."""
        job_id = payload["jobId"]
        # Known already: accepted and not run again; its result is said once more.
        if self._active(job_id) is not None:
            return None
        if job_id in self._results:
            self._send_result(job_id)
            return None
        if payload.get("workspaceId", workspace_id) != workspace_id:
            return "schema_violation"
        # LA-010, CHAT-005: a kind that is not served now.
        if payload["kind"] not in self._kinds():
            return "protocol_unsupported"
        # LA-014: a bounded queue.
        if len(self._waiting) >= self._limit:
            return "rate_limited"
        self._waiting[job_id] = _Assigned(assigned_job(payload, workspace_id))
        if self._task is None:
            self._task = asyncio.create_task(self._work())
        return None

    def cancel(self, job_id: str, reason: str) -> None:
        """End a job: at once when it waits, through agent2 when it runs; an unknown one is passed over."""
        waiting = self._waiting.pop(job_id, None)
        if waiting is not None:
            if waiting.job.chat and self._chats is not None:
                # CHAT-069: its stream ends, without an event.
                self._chats.abandon(job_id, waiting.job.workspace_id)
            self._finish(waiting.job, CANCELLED)
        elif self._running is not None and self._running.job.job_id == job_id:
            self._running.cancel.give(reason)

    def is_active_chat(self, job_id: str) -> bool:
        """Whether a chat of that id waits, is being prepared or runs (CHAT-044)."""
        assigned = self._active(job_id)
        return assigned is not None and assigned.job.chat

    def workspace_of(self, job_id: str) -> str | None:
        """The workspace of a job that is not over."""
        assigned = self._active(job_id)
        return None if assigned is None else assigned.job.workspace_id

    async def close(self) -> None:
        """Stop without another word to the gateway; jobs that wait are dropped."""
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def _active(self, job_id: str) -> _Assigned | None:
        if self._running is not None and self._running.job.job_id == job_id:
            return self._running
        return self._waiting.get(job_id)

    async def _work(self) -> None:
        """LA-013: one job at a time, in the order of their assignment."""
        try:
            while self._waiting:
                job_id = next(iter(self._waiting))
                assigned = self._running = self._waiting.pop(job_id)
                try:
                    self._finish(assigned.job, await self._run(assigned))
                except Exception as defect:  # noqa: BLE001  a defect costs this job, not those behind it, and is told
                    self._fail(defect)
                finally:
                    self._running = None
        finally:
            self._task = None

    async def _run(self, assigned: _Assigned) -> Outcome:
        task = asyncio.create_task(self._runner.run(assigned.job, assigned.cancel))
        try:
            await asyncio.wait([task])
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        error = task.exception()
        if error is None:
            return task.result()
        # SEC-019: a defect of the agent costs this job, not the next one, and its text goes nowhere near the gateway.
        self._fail(error)
        return CANCELLED if assigned.cancel.given else failed("infra")

    def _finish(self, job: Job, outcome: Outcome) -> None:
        self._results[job.job_id] = (outcome.payload(job.job_id), job.workspace_id)
        while len(self._results) > MAX_RESULTS:
            del self._results[next(iter(self._results))]
        self._send_result(job.job_id)

    def _send_result(self, job_id: str) -> None:
        payload, workspace_id = self._results[job_id]
        self._uplink.send("job.result", payload, workspace_id)

"""Slips of an agent with its queue of jobs and with cancels."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from lab.localagent import runner
from lab.localagent.agent2_client import Agent2Client
from lab.localagent.job import CancelSignal, Job
from lab.localagent.jobs import Jobs
from lab.localagent.outcome import Outcome, failed
from lab.localagent.runner import Refused, Runner
from lab.localagent.watching import Watch
from lab.localagent.work import AgentWork
from tests.bugs.plants import Function, Patch, plant

# The queue


@plant("agent-two-jobs-at-once", scenario="two-jobs", law="one-job-at-a-time")
def two_jobs_at_once(patch: Patch) -> None:
    """A task for each job."""
    running: list[asyncio.Task[None]] = []

    async def work(self: Any, assigned: Any) -> None:
        self._finish(assigned.job, await self._run(assigned))

    def start(self: Any, payload: Mapping[str, Any], _workspace_id: str) -> None:
        if self._running is not None and payload["jobId"] in self._waiting:
            patch.slipped()
            self._runner._busy = False
            running.append(asyncio.create_task(work(self, self._waiting.pop(payload["jobId"]))))

    patch.after(Jobs, "assign", start)


@plant("agent-second-job-refused", scenario="two-jobs", law="every-job-its-turn")
def second_job_refused(patch: Patch) -> None:
    """A job beside another fails at once."""

    def refuse(self: Any, payload: Mapping[str, Any], _workspace_id: str) -> None:
        waiting = self._waiting.pop(payload["jobId"], None) if self._running is not None else None
        if waiting is not None:
            patch.slipped()
            self._finish(waiting.job, failed("infra"))

    patch.after(Jobs, "assign", refuse)


@plant("agent-slot-kept-after-failure", scenario="job-after-refusal", law="every-job-its-turn")
def slot_kept_after_failure(patch: Patch) -> None:
    """A job that did not go well keeps the slot."""

    def make(original: Function) -> Function:
        async def run(self: Any, assigned: Any) -> Outcome:
            outcome: Outcome = await original(self, assigned)
            if outcome.outcome == "failed":
                patch.slipped()
                self._finish(assigned.job, outcome)
                await asyncio.Event().wait()
            return outcome

        return run

    patch.wrap(Jobs, "_run", make)


@plant("agent-queue-unbounded", scenario="many-jobs", law="jobs-admitted")
def queue_unbounded(patch: Patch) -> None:
    """Any number of jobs may wait."""

    def make(original: Function) -> Function:
        def assign(self: Any, *args: Any) -> object:
            if len(self._waiting) >= self._limit:
                patch.slipped()
                self._limit = 1_000_000
            return original(self, *args)

        return assign

    patch.wrap(Jobs, "assign", make)


@plant("agent-quality-accepted", scenario="refused-kind", law="jobs-admitted")
def quality_accepted(patch: Patch) -> None:
    """All kinds of the contract are taken."""

    def kinds(_self: Any) -> tuple[str, ...]:
        patch.slipped()
        return ("fix", "implement", "quality", "chat")

    patch.set(AgentWork, "kinds", property(kinds))
    patch.set(runner, "request_text", lambda *_: "Look at the quality.")


# Cancels


@plant("agent-cancel-posted-twice", scenario="fix-cancelled", law="cancel-honoured")
def cancel_posted_twice(patch: Patch) -> None:
    """Two places post the cancel."""

    def make(original: Function) -> Function:
        async def cancel(self: Any, job_id: str, reason: str = "user") -> None:
            patch.slipped()
            await original(self, job_id, reason)
            await original(self, job_id, reason)

        return cancel

    patch.wrap(Agent2Client, "cancel", make)


@plant("agent-cancel-not-passed-on", scenario="fix-cancelled", law="cancel-honoured")
def cancel_not_passed_on(patch: Patch) -> None:
    """agent2 hears of no cancel."""

    async def post(self: Any, _reason: str) -> None:
        patch.slipped()

    patch.set(Watch, "_post_cancel", post)


@plant("agent-cancel-without-reason", scenario="fix-cancelled", law="cancel-at-agent2")
def cancel_without_reason(patch: Patch) -> None:
    """The default reason is left out."""

    async def cancel(self: Any, job_id: str, _reason: str = "user") -> None:
        patch.slipped()
        await self._call("POST", f"/jobs/{job_id}/cancel", {})

    patch.set(Agent2Client, "cancel", cancel)


def impatient(patch: Patch, seconds: float | None) -> None:
    """After a cancel agent2 has `seconds` to end the job; None for ever."""

    async def after(self: Any, over: asyncio.Task[None], timed_out: bool) -> Outcome | None:
        patch.slipped()
        await asyncio.wait([over], timeout=seconds)
        outcome: Outcome | None = self._after_cancel(timed_out)
        return outcome

    async def until_over(self: Any, events: asyncio.Task[None], deadline: float) -> Outcome | None:
        over = asyncio.create_task(self._over(events))
        try:
            timed_out = await self._signalled(over, deadline)
            if over.done():
                return None
            await self._post_cancel(self._cancel.reason)
            return await after(self, over, timed_out)
        finally:
            over.cancel()

    patch.set(Watch, "_until_over", until_over)


@plant("agent-cancel-waits-for-ever", scenario="cancel-ignored", law="cancel-honoured")
def cancel_waits_for_ever(patch: Patch) -> None:
    """No limit to the wait for agent2."""
    impatient(patch, None)


@plant("agent-cancel-does-not-wait", scenario="cancel-late", law="cancel-at-agent2")
def cancel_does_not_wait(patch: Patch) -> None:
    """The job is over when the cancel is posted."""
    impatient(patch, 0.0)


@plant("agent-queued-cancel-still-runs", scenario="cancel-queued", law="cancel-honoured")
def queued_cancel_still_runs(patch: Patch) -> None:
    """Only running jobs are looked at."""

    def cancel(self: Any, job_id: str, reason: str) -> None:
        patch.slipped()
        if self._running is not None and self._running.job.job_id == job_id:
            self._running.cancel.give(reason)

    patch.set(Jobs, "cancel", cancel)


@plant("agent-cancel-hits-running-job", scenario="cancel-queued", law="cancel-at-agent2")
def cancel_hits_running_job(patch: Patch) -> None:
    """Whatever runs is cancelled."""

    def cancel(self: Any, _job_id: str, reason: str) -> None:
        if self._running is not None:
            patch.slipped()
            self._running.cancel.give(reason)

    patch.set(Jobs, "cancel", cancel)


@plant("agent-cancel-in-health-is-infra", scenario="cancel-in-health", law="cancel-honoured")
def cancel_in_health_is_infra(patch: Patch) -> None:
    """A cancel during health reads as an agent2 that is down."""

    def make(original: Function) -> Function:
        async def ready(self: Any, job: Job, cancel: CancelSignal) -> None:
            try:
                await original(self, job, cancel)
            except Refused:
                if cancel.given:
                    patch.slipped()
                    raise Refused(failed("infra")) from None
                raise

        return ready

    patch.wrap(Runner, "_agent2_ready", make)

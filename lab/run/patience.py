"""What a patient caller does more: it waits for an agent that is away, and asks again for what was lost on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from lab.gateway.jobs import CallRefused, Job
from lab.run.driver import Driver
from lab.scenario.model import ApproveStep, AssignStep, CancelStep

HEARD_WITHIN = 30.0
"""Seconds after which a cancel or a decision that has changed nothing is given once more: it may have been lost."""

MOST_CANCELS = 4

BACK_WITHIN = 60.0
"""Seconds in which an agent that was to lose its connection has come back."""

Until = Callable[[Callable[[], bool]], Awaitable[None]]


class PatientCaller:
    """Carries out steps of a scenario whose caller is patient.

    `until` waits for a condition; `is_over` says whether a job has ended, or will never begin.
    """

    def __init__(
        self, driver: Driver, until: Until, is_ready: Callable[[str], bool], is_over: Callable[[Job], bool]
    ) -> None:
        self._driver = driver
        self._until = until
        self._is_ready = is_ready
        self._is_over = is_over

    async def assign(self, step: AssignStep) -> str:
        """Assign when the agent is there, and once more when the assign was lost with its session.

        Raises `CallRefused`, except for an agent that does not announce what the job needs: there is no job then.
        """
        while True:
            await self._until(lambda: self._is_ready(step.to))
            try:
                job = self._driver.assign(step)
            except CallRefused as refused:
                if refused.code != "AGENT_UNSUPPORTED":
                    raise
                # CHAT-005: agent2 was away when the agent announced itself.
                self._driver.jobs.pop(step.job, None)
                return f"refused: {refused.code}"
            await self._until(partial(_is_answered, job))
            # A code without an answer tells that it never reached the agent.
            if job.answer is not None or job.results > 0:
                return job.kind

    async def await_return(self, has_returned: Callable[[], bool]) -> None:
        """Wait until an agent has come back; a minute at most, since a further fault may have kept it from leaving."""
        with suppress(TimeoutError):
            async with asyncio.timeout(BACK_WITHIN):
                await self._until(has_returned)

    async def cancel(self, step: CancelStep) -> str:
        """Cancel a job, and again while it goes on; in the end it may be one that was forgotten."""
        job = self._driver.job(step.job).job
        for _ in range(MOST_CANCELS):
            self._driver.cancel(step.job, step.reason)
            with suppress(TimeoutError):
                async with asyncio.timeout(HEARD_WITHIN):
                    await self._until(lambda: self._is_over(job))
            if self._is_over(job):
                break
        return step.reason

    async def approve(self, step: ApproveStep) -> str:
        """Decide what a job waits for, again and again until it goes on; none where it ended without asking."""
        job = self._driver.job(step.job).job
        await self._until(lambda: job.approval_id is not None or self._is_over(job))
        if job.approval_id is None:
            return "the job ended without asking for one"
        await self._until(lambda: job.state == "waiting_approval" or self._is_over(job))
        while job.state == "waiting_approval" and not self._is_over(job):
            # One that has no session any more gets its decision when it has one again.
            with suppress(CallRefused):
                self._driver.approve(step.job, step.decision)
            with suppress(TimeoutError):
                async with asyncio.timeout(HEARD_WITHIN):
                    await self._until(lambda: job.state != "waiting_approval" or self._is_over(job))
        return job.approval_id


def _is_answered(job: Job) -> bool:
    """Whether an assignment was answered, or lost."""
    return job.answer is not None or job.results > 0 or job.code is not None

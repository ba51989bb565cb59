"""Slips of an agent whose agent2 dies, starts anew, refuses or never ends, and whose gateway forgot a job."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from lab.errors import Agent2Error
from lab.localagent import agent2_client, runner
from lab.localagent.agent2_client import Agent2Client
from lab.localagent.jobs import Jobs
from lab.localagent.outcome import Outcome, failed
from lab.localagent.watching import Watch
from tests.bugs import odd_lives
from tests.bugs.plants import Function, Patch, plant
from tests.bugs.plants_work_outcome import unchecked


@plant("agent-job-known-runs-again", scenario="assigned-anew", law="job-at-most-once")
def job_known_runs_again(patch: Patch) -> None:
    """A job that is over is forgotten."""

    def make(original: Function) -> Function:
        def assign(self: Any, payload: Mapping[str, Any], workspace_id: str) -> object:
            if self._results.pop(payload["jobId"], None) is not None:
                patch.slipped()
            return original(self, payload, workspace_id)

        return assign

    patch.wrap(Jobs, "assign", make)


@plant("agent-drain-without-limit", scenario="agent2-never-hangs-up", law="job-outcome")
def drain_without_limit(patch: Patch) -> None:
    """The end of both streams is waited for."""

    async def drain(_self: Any, tasks: list[asyncio.Task[None]]) -> None:
        patch.slipped()
        await asyncio.wait(tasks)

    patch.set(Watch, "_drain", drain)


@plant("agent-token-read-once", scenario="agent2-new-token", law="agent2-client")
def token_read_once(patch: Patch) -> None:
    """The client keeps the token that it was built with."""

    def make(original: Function) -> Function:
        def init(self: Any, session: object, url: str, token: Any, *rest: float) -> None:
            first = token()

            def same() -> str:
                if token() != first:
                    patch.slipped()
                return str(first)

            original(self, session, url, same, *rest)

        return init

    patch.wrap(Agent2Client, "__init__", make)


@plant("agent-crash-of-agent2-unnoticed", scenario="agent2-dies", law="job-outcome")
def crash_of_agent2_unnoticed(patch: Patch) -> None:
    """Events that are lost are waited for without end."""

    def make(original: Function) -> Function:
        async def read(self: Any) -> None:
            await original(self)
            if self._result is None:
                patch.slipped()
                await asyncio.Event().wait()

        return read

    patch.wrap(Watch, "_read_events", make)


@plant("agent-refusal-text-in-result", scenario="job-denied", law="job-outcome")
def refusal_text_in_result(patch: Patch) -> None:
    """What agent2 said is the code."""
    unchecked(patch)
    said: list[str] = []

    async def post(self: Any, body: Mapping[str, object]) -> object:
        async with self._session.post(self._address("/jobs"), json=body, headers=self._headers()) as response:
            answer = await agent2_client._bounded_json(response)
            if response.status >= 300:
                said.append(answer["error"])
                raise Agent2Error("http_error", response.status)
            return answer

    def of_refusal(_error: Agent2Error) -> Outcome:
        patch.slipped()
        return failed(said[-1])

    patch.set(Agent2Client, "post_job", post)
    patch.set(runner, "of_refusal", of_refusal)


__all__ = ["odd_lives"]


@plant("agent-audit-told-twice", scenario="audited", law="audit-forwarded")
def audit_told_twice(patch: Patch) -> None:
    """An audit is sent once more."""

    def make(original: Function) -> Function:
        def send(self: Any, type_name: str, payload: Mapping[str, object]) -> None:
            original(self, type_name, payload)
            if type_name == "audit.event":
                patch.slipped()
                original(self, type_name, payload)

        return send

    patch.wrap(Watch, "_send", make)

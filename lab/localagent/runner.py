"""Running one job on agent2, step by step in the order of LA-016, with an outcome in every ending."""

from __future__ import annotations

import asyncio

from lab.context import RunContext
from lab.errors import Agent2Error
from lab.localagent.agent2_client import Agent2Client
from lab.localagent.chats import Chats
from lab.localagent.chatstore import ChatStoreError
from lab.localagent.config import AgentConfig, Workspace
from lab.localagent.conversation import AnswerText
from lab.localagent.counters import Counters
from lab.localagent.job import CancelSignal, Job
from lab.localagent.outcome import CANCELLED, Outcome, failed, of_refusal
from lab.localagent.prompt import PromptEmpty, PromptTooLarge, chat_text, joined, request_text
from lab.localagent.uplink import Notes, Uplink
from lab.localagent.watching import Watch

MODE = "attach"


class Refused(Exception):
    """The job ends here, before agent2 has it."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.error_code or outcome.outcome)
        self.outcome = outcome


class Runner:
    """The agent's one slot for jobs."""

    def __init__(
        self,
        ctx: RunContext,
        config: AgentConfig,
        client: Agent2Client,
        uplink: Uplink,
        notes: Notes,
        counters: Counters,
        chats: Chats | None,
    ) -> None:
        self._ctx = ctx
        self._config = config
        self._client = client
        self._uplink = uplink
        self._notes = notes
        self._counters = counters
        self._chats = chats
        self._busy = False
        self.chat_vanished = False
        """agent2 was up and no longer listed chat: further chats are rejected until it is probed again."""

    async def run(self, job: Job, cancel: CancelSignal) -> Outcome:
        """Run a job to its end. What is raised is a defect or the caller's cancellation, never agent2's doing."""
        outcome = await (self._run_chat(job, cancel) if job.chat else self._guarded(job, cancel, AnswerText()))
        # LA-026: audit frames are through before the result.
        await self._uplink.settled()
        self._counters.ended(outcome.outcome, outcome.error_code)
        return outcome

    async def _run_chat(self, job: Job, cancel: CancelSignal) -> Outcome:
        # CHAT-021: no chat without a place to keep it.
        if self._chats is None:
            return failed("infra")
        answer = AnswerText()
        state = "failed"
        try:
            # CHAT-018, CHAT-019: the user's turn is the inline parts, kept before anything else happens.
            self._chats.begin(job.job_id, job.workspace_id, joined(job.inline), job.conversation_id)
            outcome = await self._guarded(job, cancel, answer)
            state = outcome.chat_state
        except ChatStoreError:
            # CHAT-020: the store could not begin.
            self._notes.note("chat_store_unavailable", job.workspace_id, job.job_id)
            return failed("infra")
        except BaseException:
            # CHAT-022: an ending nobody expected.
            state = "cancelled" if cancel.given else "failed"
            raise
        finally:
            self._chats.close(job.job_id, state, answer.text())
        return outcome

    async def _guarded(self, job: Job, cancel: CancelSignal, answer: AnswerText) -> Outcome:
        # LA-015: one job at a time, whoever asks.
        if self._busy:
            self._counters.busy += 1
            self._notes.note("job_refused_busy", job.workspace_id, job.job_id)
            return failed("infra")
        self._busy = True
        try:
            return await self._steps(job, cancel, answer)
        except Refused as refusal:
            return refusal.outcome
        finally:
            # LA-028: the slot is free after any ending.
            self._busy = False

    async def _steps(self, job: Job, cancel: CancelSignal, answer: AnswerText) -> Outcome:
        deadline = asyncio.get_running_loop().time() + self._config.job_timeout
        workspace = self._config.workspace(job.workspace_id)
        if workspace is None:
            return failed("infra")
        await self._agent2_ready(job, cancel)
        body = self._job_body(job, workspace)
        try:
            await self._client.post_job(body)
        except Agent2Error as error:
            return CANCELLED if cancel.given else of_refusal(error)
        # LA-018: agent2 has the job.
        self._uplink.send("job.event", {"jobId": job.job_id, "state": "running", "phase": "context"}, job.workspace_id)
        chats = self._chats if job.chat else None
        watch = Watch(self._ctx, self._config, self._client, self._uplink, self._counters, job, cancel, chats, answer)
        outcome = await watch.run(deadline)
        # CHAT-007: passed on, and said aloud.
        if job.chat and outcome.outcome == "pr_opened":
            self._notes.note("chat_unexpected_pr", job.workspace_id, job.job_id)
        return outcome

    async def _agent2_ready(self, job: Job, cancel: CancelSignal) -> None:
        health = await self._client.health()
        # LA-017, CHAT-024: a cancel wins over whatever agent2's health says.
        if cancel.given:
            raise Refused(CANCELLED)
        if not health.up:
            self._notes.note("agent2_unavailable", job.workspace_id, job.job_id, mode=MODE, errorCode="unreachable")
            raise Refused(failed("infra"))
        # CHAT-023: asked anew for each chat, which never runs as another kind.
        if job.chat and "chat" not in health.kinds:
            self.chat_vanished = True
            self._notes.note("chat_unsupported_by_agent2", job.workspace_id, job.job_id, mode=MODE)
            raise Refused(failed("infra"))

    def _job_body(self, job: Job, workspace: Workspace) -> dict[str, object]:
        """The body of POST /jobs (A2-008)."""
        body: dict[str, object] = {
            "jobId": job.job_id,
            "tenantId": self._config.tenant_id,
            "workspaceId": job.workspace_id,
            "kind": job.kind,
            "requestText": self._text(job),
            "workspaceRoot": workspace.path,
        }
        optional: dict[str, object] = {
            "repoRef": job.repo_ref,
            "llm": None if job.alias is None else {"alias": job.alias},
            "incidentId": job.incident_id,
            "options": job.options or None,
        }
        return body | {name: value for name, value in optional.items() if value is not None}

    def _text(self, job: Job) -> str:
        if not job.chat:
            return request_text(job.kind, job.inline, job.incident_id)
        try:
            return chat_text(job.inline)
        except PromptTooLarge:
            # CHAT-012: agent2 never sees a shortened prompt.
            self._notes.note("chat_prompt_too_large", job.workspace_id, job.job_id)
            raise Refused(failed("unknown")) from None
        except PromptEmpty:
            # CHAT-017: no prompt is invented.
            raise Refused(failed("unknown")) from None

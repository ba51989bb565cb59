"""All that the reference agent does between two frames: what its socket shell calls.

The shell starts it before the first connection, asks `capabilities` for register and hello, hands it the payloads
of frames that passed the contract, and writes what the uplink is given.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import aiohttp

from lab.context import RunContext
from lab.errors import Agent2Error
from lab.localagent.agent2_client import Agent2Client, open_session
from lab.localagent.answer import Answer
from lab.localagent.approvals import allows, verified_claims
from lab.localagent.chats import Chats
from lab.localagent.chatstore import ChatStore, ChatStoreError
from lab.localagent.config import AgentConfig
from lab.localagent.content import ActiveChats, Content
from lab.localagent.counters import Counters
from lab.localagent.filelist import FileLists
from lab.localagent.jobs import Jobs
from lab.localagent.runner import MODE, Runner
from lab.localagent.streams import StreamBook
from lab.localagent.uplink import Notes, Uplink

_ALWAYS_SERVED = ("fix", "implement")


class AgentWork:
    """One agent's jobs, chats, content and approvals. Call `start` first and `close` last."""

    def __init__(self, ctx: RunContext, config: AgentConfig, uplink: Uplink, name: str) -> None:
        self._ctx = ctx
        self._config = config
        self._notes = Notes(ctx, uplink, audit=config.audit_notes)
        self._uplink = uplink
        self._name = name
        self.counters = Counters()
        self._agent2_token = config.agent2_token
        self._chat_ready = False
        self._approved: dict[str, None] = {}
        self._approved_job = ""
        self._calls: list[asyncio.Task[None]] = []
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Open the store, and look whether agent2 can chat. Neither missing stops the agent (CHAT-064)."""
        self._session = open_session()
        self._client = Agent2Client(
            self._session,
            self._config.agent2_url,
            lambda: self._agent2_token,
            self._config.request_timeout,
            self._config.stream_idle,
        )
        self._chats = self._open_chats() if self._config.chat else None
        self._runner = Runner(
            self._ctx, self._config, self._client, self._uplink, self._notes, self.counters, self._chats
        )
        self._jobs = Jobs(
            self._runner, self._uplink, lambda: self.kinds, self._config.queue, self._chats, self._ctx.fail
        )
        self._content = Content(
            self._chats,
            ActiveChats(self._jobs.is_active_chat, self._jobs.workspace_of),
            FileLists(self._config.workspaces, self._ctx.draws(self._name, "file-refs")),
            self._config.stream_hold,
            self._config.polls,
        )
        await self.reprobe()

    async def reprobe(self) -> None:
        """Ask agent2 again what it serves: before each further connection, since only a handshake says it."""
        if self._chats is None:
            return
        health = await self._client.health()
        # CHAT-003: the store is there; now agent2 must list chat.
        self._chat_ready = health.up and "chat" in health.kinds
        self._runner.chat_vanished = False
        if not self._chat_ready:
            self._note("chat_probe_negative", mode=MODE)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of job that are accepted now (LA-009)."""
        chat = ("chat",) if self._chat_ready and not self._runner.chat_vanished else ()
        return _ALWAYS_SERVED + chat

    def capabilities(self) -> tuple[str, ...]:
        """What register and hello announce (CHAT-002, CHAT-004)."""
        chat = ("job.chat",) if self._chat_ready else ()
        inline = ("job.inline.16k",) if self._config.inline_16k else ()
        return ("job.assign", "job.options", *chat, *inline)

    def state(self) -> dict[str, object]:
        """The payload of a heartbeat."""
        running = 0 if self._jobs.running is None else 1
        state = "busy" if running or self._jobs.depth else "idle"
        return {"state": state, "jobsRunning": running, "queueDepth": self._jobs.depth}

    def new_agent2_token(self, token: str) -> None:
        """agent2 was started again with another token: the next call uses it (A2-017)."""
        self._agent2_token = token

    def assign(self, payload: Mapping[str, Any], workspace_id: str) -> str | None:
        """A job.assign: None when accepted, else the wire code for its ack."""
        return self._jobs.assign(payload, workspace_id)

    def cancel(self, payload: Mapping[str, Any]) -> None:
        """A job.cancel; TY-013: the reason is user unless it is said."""
        self._jobs.cancel(payload["jobId"], payload.get("reason", "user"))

    def approve(self, payload: Mapping[str, Any]) -> str | None:
        """An approval.decision: None when its token holds and agent2 is being told, else `unauthorized`."""
        approval_id, job_id, decision = payload["approvalId"], payload["jobId"], payload["decision"]
        running = self._jobs.running
        claims = verified_claims(payload["token"], self._config.trusted_keys)
        now = self._ctx.wall_ms() / 1000
        # LA-031: bad, foreign or late tokens, and those of a job that does not run, reach nobody.
        if (
            claims is None
            or running is None
            or running.job_id != job_id
            or not allows(claims, approval_id, job_id, self._config.tenant_id, decision, now)
        ):
            return "unauthorized"
        if self._first_decision(job_id, approval_id):
            self._spawn_approval(approval_id, job_id, decision)
        return None

    def serves(self, kind: str) -> bool:
        """Whether content of that kind has a handler; without one the ack is `protocol_unsupported`."""
        return self._content.serves(kind)

    async def content(self, kind: str, ref: str, max_bytes: int | None, workspace_id: str) -> Answer:
        """The answer to a content.request; job.stream may be held. Cancel the call to give it up."""
        return await self._content.answer_content(kind, ref, max_bytes, workspace_id)

    async def close(self) -> None:
        """End everything that runs and close the connection to agent2. Safe to call again, or without `start`."""
        if self._session is None:
            return
        await self._jobs.close()
        for task in self._calls:
            task.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)
        self._calls.clear()
        await self._session.close()

    def _open_chats(self) -> Chats | None:
        try:
            store = ChatStore(self._config.state_dir / "chats")
        except ChatStoreError:
            self._note("chat_store_unavailable")
            return None
        return Chats(self._ctx, store, StreamBook(self._ctx.draws(self._name, "cursors")))

    def _note(self, code: str, **members: str) -> None:
        # A note that belongs to no job goes out under the first workspace.
        self._notes.note(code, self._config.workspaces[0].workspace_id, **members)

    def _first_decision(self, job_id: str, approval_id: str) -> bool:
        """Approvals are kept for the running job and forgotten with it (LA-028)."""
        if self._approved_job != job_id:
            self._approved_job, self._approved = job_id, {}
        first = approval_id not in self._approved
        self._approved[approval_id] = None
        return first

    def _spawn_approval(self, approval_id: str, job_id: str, decision: str) -> None:
        async def tell() -> None:
            try:
                await self._client.approve(approval_id, job_id, decision)
            except Agent2Error:
                # agent2 did not hear of it: the same decision may come again.
                self._approved.pop(approval_id, None)
            except Exception as defect:  # noqa: BLE001  a defect of the agent must be told
                self._approved.pop(approval_id, None)
                self._ctx.fail(defect)

        task = asyncio.create_task(tell())
        self._calls.append(task)
        task.add_done_callback(self._calls.remove)

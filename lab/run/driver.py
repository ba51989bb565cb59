"""What the gateway's caller does in a run: assigns jobs, follows their streams, opens conversations."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lab.context import RunContext
from lab.errors import RemoteError
from lab.gateway.approvals import mint_token
from lab.gateway.core import GatewayCore
from lab.gateway.follow import BadPage, Follower
from lab.gateway.jobs import CallRefused, Job, Order
from lab.gateway.relay import Answer
from lab.gateway.server import GatewayServer
from lab.journal.events import (
    Agent2Request,
    CallFailed,
    ContentRead,
    ConversationOpened,
    Frame,
    JobAssigned,
    StreamOver,
    StreamPage,
    digest,
)
from lab.journal.writer import Entry
from lab.localagent.masking import mask
from lab.run.conditions import until
from lab.run.expectations import ConversationView, JobView, StreamView, Views
from lab.run.figures import figures_of
from lab.run.identity import PROMPT_CANARY, Identity
from lab.run.sockets import sockets_of
from lab.run.whereabouts import gateway_of
from lab.scenario.model import AssignStep, LocalAgentSpec, Scenario

CANARY_ROOM = 4000
"""A prompt up to this many characters gets the prompt's canary behind it; a longer one tests a limit and stays."""

RETRIED_CODES = frozenset({"timeout", "agent_offline", "rate_limited"})
"""A page that failed so is asked for again with the last known cursor (CP-027)."""

PATIENT_CODES = RETRIED_CODES | {"unauthorized"}
"""As RETRIED_CODES, for a patient caller: a request whose signature a fault broke is lost, the next one is not."""

RETRY_SECONDS = 0.25
"""Wait before a page is asked for again, so that an agent that is ready and refuses is not overrun."""


class StreamFailed(RemoteError):
    """A job's stream cannot be read on."""


class NotAssigned(RemoteError):
    """A step wants a job that the gateway refused before."""


class ConversationFailed(RemoteError):
    """A stored conversation could not be opened."""


@dataclass
class Assigned:
    """A job of the scenario, by its label."""

    label: str
    job: Job
    agent: LocalAgentSpec
    follower: Follower
    following: asyncio.Task[None] | None = None
    failure: BaseException | None = None


@dataclass
class Opening:
    """A conversation that is being opened."""

    view: ConversationView | None = None
    failure: ConversationFailed | None = None

    @property
    def over(self) -> bool:
        """Whether it came, or failed."""
        return self.view is not None or self.failure is not None


@dataclass
class Reading:
    """Content that is being read chunk by chunk. `code` is that of its failure."""

    chunks: int = 0
    code: str | None = None
    over: bool = False


class Driver:
    """Acts for the scenario on the gateway doubles. Content stays in memory and goes with the driver."""

    def __init__(
        self, ctx: RunContext, scenario: Scenario, identity: Identity, gateways: Mapping[str, GatewayServer]
    ) -> None:
        self._ctx = ctx
        self._scenario = scenario
        self._identity = identity
        self._gateways = gateways
        self._ids = ctx.draws("driver", "ids")
        self._retried = PATIENT_CODES if scenario.patient else RETRIED_CODES
        self.jobs: dict[str, Assigned] = {}
        self._sessions: dict[str, ConversationView] = {}
        self._openings: list[asyncio.Task[None]] = []

    async def close(self) -> None:
        """Stop following."""
        following = [assigned.following for assigned in self.jobs.values() if assigned.following is not None]
        tasks = [*following, *self._openings]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # Jobs

    def job(self, label: str) -> Assigned:
        """A job by its label. Raises `NotAssigned` for one whose assign was refused."""
        if label not in self.jobs:
            raise NotAssigned(f"job {label} was never assigned: the gateway refused it")
        return self.jobs[label]

    def assign(self, step: AssignStep) -> Job:
        """Assign a job. Raises `CallRefused` with the gateway's code."""
        agent = self._scenario.local_agents[step.to]
        gateway = self._gateway_of(agent)
        agent_id = self._identity.agents[agent.name].agent_id
        inputs = tuple(self._with_canary(self._identity.filled(text)) for text in step.inputs)
        order = Order(self._ids.uuid(), step.kind, inputs, step.options, step.llm, step.incident)
        self._ctx.journal.record("driver", _assigned(order, step.job, agent.name))
        try:
            job: Job = self._call(gateway, lambda core, now: core.assign(agent_id, order, now))
        except CallRefused as refused:
            self._ctx.journal.record("driver", CallFailed("assign", refused.code, order.job_id))
            raise
        self.jobs[step.job] = Assigned(step.job, job, agent, Follower(order.job_id))
        return job

    def _with_canary(self, text: str) -> str:
        # At both ends, so that a text cut short by whoever prints it is known as well.
        canary = self._identity.canaries[PROMPT_CANARY]
        return f"[{canary}] {text} [{canary}]" if len(text) <= CANARY_ROOM else text

    def _gateway_of(self, agent: LocalAgentSpec) -> GatewayServer:
        """Where an agent is now."""
        return gateway_of(self._scenario, self._gateways, agent, self._identity.agents[agent.name].agent_id)

    def _call(self, gateway: GatewayServer, action: Callable[[GatewayCore, float], Any]) -> Any:
        results: list[Any] = []
        gateway.after(lambda now: results.append(action(gateway.core, now)))
        return results[0]

    def approve(self, label: str, decision: str) -> None:
        """Decide the approval that a job waits for."""
        assigned = self.job(label)
        job, key = assigned.job, self._identity.signing_keys[assigned.agent.gateway]
        approval_id = job.approval_id or ""
        now_seconds = self._ctx.wall_ms() // 1000
        token = mint_token(key, approval_id, job.job_id, self._identity.tenant_id, decision, now_seconds)
        gateway = self._gateway_of(assigned.agent)
        self._call(gateway, lambda core, now: core.decide(job.job_id, approval_id, decision, token, now))

    def cancel(self, label: str, reason: str) -> None:
        """Cancel a job."""
        assigned = self.job(label)
        gateway = self._gateway_of(assigned.agent)
        self._call(gateway, lambda core, now: core.cancel(assigned.job.job_id, reason, now))

    # Streams

    def follow(self, label: str) -> Assigned:
        """Read a job's stream from now on, page by page, until it is done; called again, it changes nothing."""
        assigned = self.job(label)
        if assigned.following is None:
            loop = asyncio.get_running_loop()
            assigned.following = loop.create_task(self._follow(assigned), name=f"follow {label}")
        return assigned

    async def _follow(self, assigned: Assigned) -> None:
        try:
            while not assigned.follower.done:
                await self._one_page(assigned)
            self._ctx.journal.record("driver", StreamOver(assigned.job.job_id))
        except asyncio.CancelledError:
            raise
        except (RemoteError, BadPage) as failure:
            assigned.failure = failure
            self._ctx.journal.record("driver", CallFailed("stream", type(failure).__name__, assigned.job.job_id))
        except Exception as defect:  # noqa: BLE001  a defect of the lab must end the run as one
            self._ctx.fail(defect)

    async def _one_page(self, assigned: Assigned) -> None:
        follower = assigned.follower
        answer = await self._content(assigned, "job.stream", follower.ref)
        if answer.status == "ok":
            fresh = follower.take(answer.body)
            page = StreamPage(assigned.job.job_id, follower.pages, fresh, len(follower.events), follower.done)
            self._ctx.journal.record("driver", page)
        elif answer.status == "error" and answer.code in self._retried:
            await asyncio.sleep(RETRY_SECONDS)
            await self._until_ready(assigned)
        else:
            raise StreamFailed(f"job.stream was answered {_words(answer)}")

    async def _content(self, assigned: Assigned, kind: str, ref: str) -> Answer:
        agent_id = self._identity.agents[assigned.agent.name].agent_id
        try:
            return await self._gateway_of(assigned.agent).content(agent_id, kind, ref)
        except CallRefused as refused:
            return Answer("", "error", code="agent_offline" if refused.code == "AGENT_OFFLINE" else refused.code)

    async def _until_ready(self, assigned: Assigned) -> None:
        agent_id = self._identity.agents[assigned.agent.name].agent_id
        await until(self._ctx, lambda: self._gateway_of(assigned.agent).core.is_ready(agent_id))

    # Conversations

    def open_session(self, label: str) -> Opening:
        """Open the stored conversation of a job; the outcome is there once `over`."""
        opening = Opening()
        task = asyncio.get_running_loop().create_task(self._open(self.job(label), opening), name=f"open {label}")
        self._openings.append(task)
        return opening

    async def _open(self, assigned: Assigned, opening: Opening) -> None:
        job_id = assigned.job.job_id
        try:
            opening.view = await self._session(assigned)
            self._sessions[assigned.label] = opening.view
            turns, truncated = len(opening.view.turns), opening.view.truncated
            self._ctx.journal.record("driver", ConversationOpened(job_id, turns, truncated))
        except ConversationFailed as failure:
            opening.failure = failure
            self._ctx.journal.record("driver", CallFailed("session", "ConversationFailed", job_id))
        except Exception as defect:  # noqa: BLE001  a defect of the lab must end the run as one
            self._ctx.fail(defect)

    async def _session(self, assigned: Assigned) -> ConversationView:
        answer = await self._content(assigned, "chat.session", assigned.job.conversation_id)
        while self._scenario.patient and answer.code in self._retried:
            await asyncio.sleep(RETRY_SECONDS)
            await self._until_ready(assigned)
            answer = await self._content(assigned, "chat.session", assigned.job.conversation_id)
        if answer.status != "ok":
            raise ConversationFailed(f"chat.session was answered {_words(answer)}")
        view = _session_view_untrusted(answer.body)
        if view is None:
            size = len(answer.body)
            raise ConversationFailed(f"a chat.session body of {size} bytes that is not {{turns, truncated}}")
        return view

    # A caller that reads chunk by chunk

    def read_content(self, label: str, kind: str, pace: float) -> Reading:
        """Ask for content of a job and take a chunk of it every `pace` seconds; the outcome is there once `over`."""
        reading = Reading()
        task = asyncio.get_running_loop().create_task(
            self._read(self.job(label), kind, pace, reading), name=f"read {kind} of {label}"
        )
        self._openings.append(task)
        return reading

    async def _read(self, assigned: Assigned, kind: str, pace: float, reading: Reading) -> None:
        agent_id = self._identity.agents[assigned.agent.name].agent_id
        ref = assigned.job.job_id if kind == "job.stream" else assigned.job.conversation_id
        try:
            content = self._gateway_of(assigned.agent).open_content(agent_id, kind, ref)
            while not content.answer.done():
                await asyncio.wait((content.answer,), timeout=pace)
                reading.chunks += content.read() is not None
            reading.code = _failure(content.answer.result())
        except CallRefused as refused:
            reading.code = refused.code
        except Exception as defect:  # noqa: BLE001  a defect of the lab must end the run as one
            self._ctx.fail(defect)
        reading.over = True
        # Whoever waits for the reading looks again after an entry of the journal.
        self._ctx.journal.record("driver", ContentRead(assigned.job.job_id, kind, reading.chunks, reading.code or ""))

    # What there is at the end

    def views(self, entries: list[Entry]) -> Views:
        """Everything that expectations can name."""
        return Views(
            {label: _job_view(assigned, entries) for label, assigned in self.jobs.items()},
            {
                label: _stream_view(assigned.follower)
                for label, assigned in self.jobs.items()
                if assigned.following is not None
            },
            dict(self._sessions),
            figures_of(entries).as_json(),
            sockets_of(entries),
        )


def _failure(answer: Answer) -> str | None:
    return None if answer.status == "ok" else answer.code or answer.status


def _words(answer: Answer) -> str:
    return f"{answer.status} ({answer.code})" if answer.code else answer.status


def _session_view_untrusted(body: bytes) -> ConversationView | None:
    """What a chat.session body says; None when it is not of its form."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    turns, truncated = value.get("turns"), value.get("truncated")
    if not isinstance(turns, list) or not isinstance(truncated, bool):
        return None
    if not all(isinstance(turn, dict) for turn in turns):
        return None
    return ConversationView(turns, truncated)


def _stream_view(follower: Follower) -> StreamView:
    return StreamView(len(follower.events), not follower.odd, follower.pages, follower.empty_pages)


def _assigned(order: Order, label: str, agent: str) -> JobAssigned:
    """What the journal is told of a job: digests of its inputs, and of what must become of them."""
    digests = tuple(digest("input", text) for text in order.inputs)
    joined = "\n\n".join(order.inputs)
    if mask(joined) != joined:
        # What an agent may store or send on is then not known to the byte.
        return JobAssigned(order.job_id, label, order.kind, agent, digests)
    turn, prompt = digest("user-turn", joined), digest("prompt", joined.strip())
    return JobAssigned(order.job_id, label, order.kind, agent, digests, turn, prompt)


def _job_view(assigned: Assigned, entries: list[Entry]) -> JobView:
    job = assigned.job
    result = job.result or {}
    assigns = {
        entry.event.msg_id: None
        for entry in entries
        if isinstance(entry.event, Frame)
        and entry.event.type == "job.assign"
        and entry.event.payload.get("jobId") == job.job_id
    }
    acks = tuple(
        str(entry.event.payload.get("status"))
        for entry in entries
        if isinstance(entry.event, Frame)
        and not entry.event.by_lab
        and entry.event.type == "ack"
        and entry.event.direction == "la-to-cp"
        and entry.event.payload.get("ackMsgId") in assigns
    )
    posts = [
        entry.event
        for entry in entries
        if isinstance(entry.event, Agent2Request)
        and entry.event.job_id == job.job_id
        and (entry.event.method, entry.event.route) == ("POST", "/local/v1/jobs")
    ]
    # A start that agent2 refuses because it knows the job already is one that the agent wanted.
    first = next((at for at, post in enumerate(posts) if 200 <= post.status < 300), len(posts))
    runs = len(posts) - first
    return JobView(
        result.get("outcome"), result.get("errorCode"), result.get("filesChangedCount"), runs, acks, bool(job.results)
    )

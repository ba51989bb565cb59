"""All connections of one gateway, as a state machine without I/O.

A shell opens a connection per WebSocket, hands in its messages, and carries out `take_output`. What happened is
told as news, in order; content is in an `Answer` only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab.gateway.jobs import CallRefused, Job, Order, refuse_unsupported
from lab.gateway.news import ContentNews, JobNews, News, SessionNews, UndeliveredNews
from lab.gateway.relay import ContentRelay
from lab.protocol.capabilities import has_capabilities
from lab.protocol.contract import Contract
from lab.protocol.events import (
    BecameReady,
    Ended,
    Event,
    Output,
    Overdue,
    PeerError,
    Received,
    Settled,
    TurnedV1,
)
from lab.protocol.frames import Draft, Frame, FrameBuilder, IdSource, RefusedDraft
from lab.protocol.gateway_side import GatewayConnection, GatewayPolicy, SessionStore
from lab.protocol.outbox import Outbox
from lab.protocol.reliability import Delivery
from lab.protocol.session import GATEWAY_SENDER, Session
from lab.protocol.signing import Signer

HANDLED = frozenset(
    {
        "heartbeat",
        "job.event",
        "job.result",
        "content.response",
        "audit.event",
        "incident.candidate",
        "alert",
        "log.stats",
        "scan.uploaded",
    }
)
"""Data types that this gateway takes; any other that an agent may send is acked rejected (WS-076)."""


@dataclass
class _Agent:
    """What the gateway keeps of one agent: its READY connection, and the outbox of its newest session."""

    ready: str | None = None
    outbox: Outbox | None = None
    announced: tuple[str, ...] = ()
    workspace_id: str = "unknown"
    """What its frames carry: the workspace that the agent named last."""


class GatewayCore:
    """One gateway instance of one tenant. `ids` gives fresh UUIDs for everything that leaves it.

    `conn_prefix` tells the connections of several gateways apart; `jobs` are shared by the instances of one gateway.
    """

    def __init__(
        self,
        contract: Contract,
        tenant_id: str,
        agent_ids: tuple[str, ...],
        epoch_ms: int,
        policy: GatewayPolicy,
        signer: Signer | None,
        ids: IdSource,
        conn_prefix: str = "c",
        jobs: dict[str, Job] | None = None,
    ) -> None:
        self._contract = contract
        self._tenant_id = tenant_id
        self._epoch_ms = epoch_ms
        self._policy = policy
        self._signer = signer
        self._ids = ids
        self._agents = {agent_id: _Agent() for agent_id in agent_ids}
        self._sessions = SessionStore(contract.limits.session_ttl_seconds)
        self._connections: dict[str, GatewayConnection] = {}
        # Asking every connection after every message would cost a thousand agents a thousand times as much.
        self._moved: dict[str, None] = {}
        """Connections that were acted on since their output was taken, in order."""
        self._undated: dict[str, None] = {}
        """Connections that were acted on since they were asked for their timeout."""
        self._due: dict[str, float] = {}
        self._conn_prefix = conn_prefix
        self._opened = 0
        self._relay = ContentRelay()
        self._news: list[News] = []
        self.jobs: dict[str, Job] = {} if jobs is None else jobs

    @property
    def max_frame_bytes(self) -> int:
        """The largest frame that its contract allows, in bytes."""
        return self._contract.limits.max_frame_bytes

    # Connections

    def connect(self, agent_id: str, now: float) -> str:
        """An agent's WebSocket is open; returns the connection's name."""
        self._opened += 1
        conn = f"{self._conn_prefix}{self._opened}"
        self._connections[conn] = GatewayConnection(
            self._contract,
            self._tenant_id,
            agent_id,
            self._epoch_ms,
            self._policy,
            self._sessions,
            lambda: self._fresh_outbox(agent_id),
            now,
        )
        self._touch(conn)
        return conn

    def _touch(self, conn: str) -> None:
        """Whoever acts on a connection says so: it may have something to write, and another timeout."""
        self._moved[conn] = self._undated[conn] = None

    def _fresh_outbox(self, agent_id: str) -> Outbox:
        builder = FrameBuilder(self._contract, self._tenant_id, agent_id, self._epoch_ms, self._signer)
        session = Session(self._contract.limits, GATEWAY_SENDER)
        return Outbox(session, self._contract, builder, self._ids, signs_anew=True)

    def receive_untrusted(self, conn: str, message: str | bytes, now: float) -> None:
        """A message came on a connection."""
        connection = self._connections[conn]
        self._touch(conn)
        self._handle(conn, connection, connection.receive_untrusted(message, now), now)

    def closed(self, conn: str, now: float) -> None:
        """A WebSocket is gone."""
        connection = self._connections.pop(conn)
        self._due.pop(conn, None)
        self._handle(conn, connection, connection.closed(now), now)
        self._no_longer_ready(conn, connection)

    def take_output(self) -> list[tuple[str, Output]]:
        """What to write, by connection, in order."""
        moved, self._moved = self._moved, {}
        # One that has closed meanwhile has nobody to write to.
        connections = [(conn, self._connections[conn]) for conn in moved if conn in self._connections]
        return [(conn, output) for conn, connection in connections for output in connection.take_output()]

    def take_news(self) -> list[News]:
        """What happened since the last call."""
        news, self._news = self._news, []
        return news

    def next_timeout(self) -> float | None:
        """Lab time of the next `handle_timeout`."""
        for conn in self._undated:
            connection = self._connections.get(conn)
            due = connection.next_timeout() if connection is not None else None
            if due is None:
                self._due.pop(conn, None)
            else:
                self._due[conn] = due
        self._undated.clear()
        relay = self._relay.next_timeout()
        return min(self._due.values() if relay is None else (*self._due.values(), relay), default=None)

    def handle_timeout(self, now: float) -> None:
        """Do what is due at `now`."""
        for conn, connection in list(self._connections.items()):
            self._touch(conn)
            self._handle(conn, connection, connection.handle_timeout(now), now)
        self._news.extend(ContentNews(answer) for answer in self._relay.handle_timeout(now))

    @property
    def in_flight(self) -> bool:
        """Whether anybody is connected, or a frame or a request of its callers waits for its end."""
        outboxes = [agent.outbox for agent in self._agents.values() if agent.outbox is not None]
        unacked = any(outbox.session.outbound.unacked() or outbox.session.outbound.queued for outbox in outboxes)
        return bool(self._connections) or unacked or self._relay.next_timeout() is not None

    def is_ready(self, agent_id: str) -> bool:
        """Whether the agent has a READY connection."""
        return self._agents[agent_id].ready is not None

    # What connections tell

    def _handle(self, conn: str, connection: GatewayConnection, events: list[Event], now: float) -> None:
        for event in events:
            match event:
                case Received():
                    self._on_received(connection, event, now)
                case BecameReady():
                    self._on_ready(conn, connection, event, now)
                case Settled():
                    self._on_settled(conn, event.delivery)
                case Overdue():
                    self._undelivered(conn, event.delivery, "timeout")
                case PeerError():
                    self._news.append(self._session_news(conn, connection, "peer-error", {"code": event.code}))
                case TurnedV1():
                    self._news.append(self._session_news(conn, connection, "v1", {}))
                case Ended():
                    self._no_longer_ready(conn, connection)
                    detail = {"code": event.code, "by": event.by}
                    self._news.append(self._session_news(conn, connection, "ended", detail))
                case _:
                    # A repeated frame was acked by the connection; nothing else concerns a gateway.
                    pass
        self._relay.note_written(now)

    def _no_longer_ready(self, conn: str, connection: GatewayConnection) -> None:
        agent = self._agents[connection.agent_id]
        if agent.ready == conn:
            agent.ready = None

    def _session_news(
        self, conn: str, connection: GatewayConnection, state: str, detail: Mapping[str, Any]
    ) -> SessionNews:
        return SessionNews(conn, connection.agent_id, state, connection.session.session_id, detail)

    def _on_ready(self, conn: str, connection: GatewayConnection, ready: BecameReady, now: float) -> None:
        agent = self._agents[connection.agent_id]
        if agent.ready is not None and agent.ready != conn:
            # RS-021: the newest READY session wins, the older socket is closed plainly.
            self._touch(agent.ready)
            self._connections[agent.ready].end(None, "local")
        if agent.outbox is not None and agent.outbox is not connection.outbox:
            self._lose(conn, connection, agent.outbox, now)
        agent.ready, agent.outbox, agent.announced = conn, connection.outbox, connection.announced
        agent.workspace_id = connection.workspace_id
        detail = {
            "capabilities": list(ready.capabilities),
            "sentAgain": ready.sent_again,
            "revision": self._contract.revision,
        }
        state = "resumed" if ready.resumed else "ready"
        self._news.append(self._session_news(conn, connection, state, detail))
        connection.flush(now)

    def _lose(self, conn: str, connection: GatewayConnection, older: Outbox, now: float) -> None:
        # RS-005, RS-007: what was in flight in the older session fails to its callers, content requests with it.
        if older.session.session_id is not None:
            self._sessions.discard(older.session.session_id)
        for delivery in older.session.lost():
            self._undelivered(conn, delivery, "agent_offline")
        # Decision 23: what had no number yet goes out in the new session.
        for delivery in older.session.outbound.waiting():
            if delivery.draft.type != "content.request":
                self._send_anew(conn, connection, delivery, now)
        answers = self._relay.fail_all(connection.agent_id, "agent_offline")
        self._news.extend(ContentNews(answer) for answer in answers)

    def _send_anew(self, conn: str, connection: GatewayConnection, delivery: Delivery, now: float) -> None:
        order = delivery.draft.tag
        try:
            if isinstance(order, Order):
                # CP-034: an agent that came back with less must not get what it cannot read.
                self._gate(order, connection.announced)
            connection.outbox.enqueue(delivery.draft, now)
        except (CallRefused, RefusedDraft) as refused:
            self._undelivered(conn, delivery, refused.code)

    def _undelivered(self, conn: str, delivery: Delivery, code: str) -> None:
        draft = delivery.draft
        job_id = draft.payload.get("jobId")
        self._news.append(UndeliveredNews(conn, draft.type, delivery.seq, code, job_id))
        if draft.type == "job.assign" and code != "timeout":
            job = self.jobs[str(job_id)]
            job.code = code
            self._news.append(JobNews(job))

    def _on_settled(self, conn: str, delivery: Delivery) -> None:
        if delivery.state == "failed":
            self._undelivered(conn, delivery, delivery.code or "agent_offline")
            return
        draft = delivery.draft
        if draft.type == "job.assign":
            job = self.jobs[draft.payload["jobId"]]
            job.answer = "rejected" if delivery.state == "rejected" else "accepted"
            job.code = delivery.code
            self._news.append(JobNews(job))
        elif draft.type == "content.request" and delivery.state == "rejected":
            answer = self._relay.fail(draft.request_id or "", delivery.code or "internal")
            self._news.extend([ContentNews(answer)] if answer is not None else [])

    def _on_received(self, connection: GatewayConnection, received: Received, now: float) -> None:
        frame = received.frame
        if frame.type not in HANDLED:
            connection.reject(frame, "protocol_unsupported", now)
            return
        # CP-023, SQ-034: acked on receipt, whatever becomes of it.
        connection.accept(frame, now)
        if frame.type in ("job.event", "job.result"):
            self._on_job_frame(connection, frame)
        elif frame.type == "audit.event":
            self._on_audit(connection, frame)
        elif frame.type == "content.response":
            answer = self._relay.take(frame, received.data, connection.agent_id)
            self._news.extend([ContentNews(answer)] if answer is not None else [])

    def _job_of(self, connection: GatewayConnection, frame: Frame) -> Job | None:
        """The job that a frame names, if it is one of the agent that sent it."""
        job = self.jobs.get(frame.payload.get("jobId", ""))
        return None if job is None or job.agent_id != connection.agent_id else job

    def _on_job_frame(self, connection: GatewayConnection, frame: Frame) -> None:
        job = self._job_of(connection, frame)
        if job is None:
            return
        if frame.type == "job.result":
            job.results += 1
            job.result = job.result or dict(frame.payload)
        else:
            job.events += 1
            job.state = frame.payload["state"]
        self._news.append(JobNews(job))

    def _on_audit(self, connection: GatewayConnection, frame: Frame) -> None:
        job = self._job_of(connection, frame)
        if job is not None and "approvalId" in frame.payload:
            job.approval_id = frame.payload["approvalId"]
            self._news.append(JobNews(job))

    # What callers ask

    def assign(self, agent_id: str, order: Order, now: float) -> Job:
        """Assign a job. Raises `CallRefused`: AGENT_OFFLINE, AGENT_UNSUPPORTED, JOB_EXISTS.

        Or the wire code of why no frame can be made: frame_too_large, schema_violation, rate_limited (queue full).
        """
        agent = self._agent(agent_id)
        if agent.outbox is None:
            raise CallRefused("AGENT_OFFLINE", "the agent has no session")
        if order.job_id in self.jobs:
            raise CallRefused("JOB_EXISTS", "a job of that id was assigned already")
        self._gate(order, agent.announced)
        self._send(agent_id, Draft("job.assign", order.payload(), agent.workspace_id, tag=order), now)
        job = Job(order.job_id, order.kind, agent_id, order.conversation_id)
        self.jobs[order.job_id] = job
        return job

    def _gate(self, order: Order, announced: tuple[str, ...]) -> None:
        # CP-007: without capabilities nobody is asked for them; the schemas alone say what goes out.
        if has_capabilities(self._contract.revision):
            refuse_unsupported(order, announced)

    def cancel(self, job_id: str, reason: str, now: float) -> None:
        """Cancel a job. Raises `CallRefused`, JOB_UNKNOWN among others."""
        job = self._job(job_id)
        agent = self._agents[job.agent_id]
        payload = {"jobId": job_id, "reason": reason}
        self._send(job.agent_id, Draft("job.cancel", payload, agent.workspace_id), now)

    def decide(self, job_id: str, approval_id: str, decision: str, token: str, now: float) -> None:
        """Send an approval.decision. Raises `CallRefused`, JOB_UNKNOWN among others."""
        job = self._job(job_id)
        payload = {"approvalId": approval_id, "jobId": job_id, "decision": decision, "token": token}
        self._send(job.agent_id, Draft("approval.decision", payload, self._agents[job.agent_id].workspace_id), now)

    def request_content(self, agent_id: str, kind: str, ref: str, now: float, in_chunks: bool = False) -> str:
        """Ask for content; returns the requestId whose `ContentNews` will come. Raises `CallRefused`.

        With `in_chunks` the caller takes the body with `read_content`, and the news has none.
        """
        request_id = self._ids()
        agent = self._agent(agent_id)
        draft = Draft("content.request", {"kind": kind, "ref": ref}, agent.workspace_id, request_id)
        self._relay.asked(request_id, agent_id, self._send(agent_id, draft, now), now, in_chunks)
        return request_id

    def read_content(self, request_id: str) -> bytes | None:
        """The next chunk that waits for its caller, None when there is none."""
        chunk, answer = self._relay.read(request_id)
        self._news.extend([ContentNews(answer)] if answer is not None else [])
        return chunk

    def _job(self, job_id: str) -> Job:
        job = self.jobs.get(job_id)
        if job is None:
            raise CallRefused("JOB_UNKNOWN", "no job of that id was assigned here")
        return job

    def _agent(self, agent_id: str) -> _Agent:
        agent = self._agents.get(agent_id)
        if agent is None:
            raise CallRefused("AGENT_UNKNOWN", "no agent of that id has a credential here")
        return agent

    def _send(self, agent_id: str, draft: Draft, now: float) -> Delivery:
        agent = self._agents[agent_id]
        if agent.outbox is None:
            raise CallRefused("AGENT_OFFLINE", "the agent has no session")
        try:
            delivery = agent.outbox.enqueue(draft, now)
        except RefusedDraft as refused:
            # CP-008, CP-009, CP-029: nothing was written and no seq used.
            raise CallRefused(refused.code, refused.reason) from None
        connection = self._connections.get(agent.ready or "")
        if connection is not None and agent.ready is not None:
            self._touch(agent.ready)
            connection.flush(now)
        return delivery

"""A journal as the laws read it: connections, sessions, jobs, what was disturbed and how far bounds widen."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from lab.journal.events import (
    Agent2Frame,
    Agent2Job,
    Agent2Line,
    Agent2Request,
    Agent2Stream,
    BodyAnswered,
    Frame,
    JobAssigned,
    LinkChanged,
    LinkConnection,
    LoopLag,
    ParticipantDeclared,
    RunEnded,
    RunStarted,
    SocketClosed,
    SocketOpened,
    SutChanged,
    TextMessage,
)
from lab.journal.writer import Entry

LOCAL_AGENT = "local_agent"
GATEWAY = "gateway"

CONTROL_TYPES = frozenset({"register", "hello", "ready", "ack", "error"})
"""Types that count no seq (TY-044)."""

DEFAULT_ACK_TIMEOUT = 5.0
"""Seconds, where no ready named another (WS-022)."""

LEAST_PATIENCE = 1.0
"""Seconds that any answer is given, however short a session's ack timeout: a busy machine breaks no promise."""


@dataclass(frozen=True)
class FrameAt:
    """A frame with its place in the journal."""

    n: int
    t: float
    by: str
    frame: Frame

    @property
    def party(self) -> str:
        """Who made the frame, as its direction tells."""
        return LOCAL_AGENT if self.frame.direction == "la-to-cp" else GATEWAY

    @property
    def made(self) -> bool:
        """Whether its sender made it; an extra copy was made by the lab."""
        return not (self.frame.fate == "copied" and self.frame.fault is not None)

    @property
    def delivered(self) -> bool:
        """Whether the lab passed it on; a cut can still have lost it on the way."""
        return self.frame.fate != "dropped"

    @property
    def is_data(self) -> bool:
        """Whether it counts a seq."""
        return self.frame.type is not None and self.frame.type not in CONTROL_TYPES

    @property
    def clean(self) -> bool:
        """Whether nothing in it gives its receiver a reason to refuse it."""
        facts = self.frame.facts
        signature = facts.get("signature")
        return (
            all(facts.get(name, "ok") == "ok" for name in ("parse", "size", "type", "schema", "tenant", "agent"))
            and facts.get("direction") is not False
            and (signature is None or all(signature.get(name, True) for name in SIGNATURE_FACTS))
        )


SIGNATURE_FACTS = ("present", "verified", "bound", "equal")


@dataclass
class Connection:
    """One WebSocket of an agent at a gateway, as the gateway's witness saw it."""

    conn: str
    gateway: str
    opened: float
    closed: Entry | None = None
    frames: list[FrameAt] = field(default_factory=list)
    texts: list[Entry] = field(default_factory=list)
    register: FrameAt | None = None
    answered: FrameAt | None = None
    """The gateway's ready, whatever became of it."""
    ready: FrameAt | None = None
    """The ready that was passed on to the agent."""
    agent_id: str | None = None
    agent_name: str = ""
    """The participant whose credential opened it, where the witness told."""

    def after(self, n: int) -> Iterator[FrameAt]:
        """The frames behind journal entry `n`."""
        start = bisect.bisect_right(self.frames, n, key=lambda seen: seen.n)
        return (self.frames[at] for at in range(start, len(self.frames)))

    def made(self, party: str) -> Iterator[FrameAt]:
        """The frames that `party` made here, whatever became of them."""
        return (seen for seen in self.frames if seen.party == party and seen.made)

    def data(self, party: str) -> Iterator[FrameAt]:
        """The data frames that `party` made here in its session."""
        return (seen for seen in self.made(party) if seen.is_data and self.in_session(seen))

    def in_session(self, seen: FrameAt) -> bool:
        """Whether a frame came after ready."""
        return self.ready is not None and seen.n > self.ready.n

    @property
    def session_id(self) -> str | None:
        """The session that ready named."""
        return self.ready.frame.payload.get("sessionId") if self.ready else None

    @property
    def resumed(self) -> bool:
        """Whether ready went on with an older session."""
        return self.ready is not None and self.ready.frame.payload.get("resumed") is True

    @property
    def ack_timeout(self) -> float:
        """The session's ack timeout in seconds (HS-027)."""
        limits = (self.ready.frame.payload.get("limits") or {}) if self.ready else {}
        value = limits.get("ackTimeoutMs")
        return value / 1000 if isinstance(value, int) and value > 0 else DEFAULT_ACK_TIMEOUT

    @property
    def patience(self) -> float:
        """Seconds in which an answer is due (SQ-027: before the other side would send again)."""
        return max(self.ack_timeout, LEAST_PATIENCE)

    def resume(self) -> tuple[str | None, int | None] | None:
        """What register asked to resume: session id and lastRecvSeq."""
        asked = self.register.frame.payload.get("resume") if self.register else None
        return (asked.get("sessionId"), asked.get("lastRecvSeq")) if isinstance(asked, dict) else None

    def error(self, codes: frozenset[str], party: str | None = None) -> FrameAt | None:
        """The first error frame with one of `codes`, of `party` or of either."""
        for seen in self.frames:
            is_error = seen.frame.type == "error" and seen.made and party in (None, seen.party)
            if is_error and seen.frame.payload.get("code") in codes:
                return seen
        return None


@dataclass
class Session:
    """A session over all connections that carried it."""

    session_id: str | None
    agent_id: str | None
    connections: list[Connection] = field(default_factory=list)

    def data(self, party: str) -> Iterator[FrameAt]:
        """All data frames of `party`, in the order they were seen."""
        return (seen for connection in self.connections for seen in connection.data(party))


@dataclass
class Job:
    """What is known of a job."""

    job_id: str
    kind: str = ""
    assigned: list[Entry] = field(default_factory=list)
    assigns: list[FrameAt] = field(default_factory=list)
    cancels: list[FrameAt] = field(default_factory=list)
    results: list[FrameAt] = field(default_factory=list)
    bodies: list[tuple[Entry, BodyAnswered]] = field(default_factory=list)
    requests: list[tuple[Entry, Agent2Request]] = field(default_factory=list)
    states: list[tuple[Entry, Agent2Job]] = field(default_factory=list)
    lines: list[tuple[Entry, Agent2Line]] = field(default_factory=list)
    told: list[tuple[Entry, Agent2Frame]] = field(default_factory=list)
    streams: list[tuple[Entry, Agent2Stream]] = field(default_factory=list)

    @property
    def posts(self) -> list[tuple[Entry, Agent2Request]]:
        """The calls of POST /jobs."""
        return [
            (entry, request)
            for entry, request in self.requests
            if request.method == "POST" and request.route.endswith("/jobs")
        ]


class JournalView:
    """Built once from a journal's entries, however early it stops; then only read."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = tuple(entries)
        self.connections: dict[str, Connection] = {}
        self.sessions: list[Session] = []
        self.jobs: dict[str, Job] = {}
        self.participants: dict[str, ParticipantDeclared] = {}
        self.clock = "real"
        self.has_agent2 = False
        self.end = entries[-1].t if entries else 0.0
        """Lab time up to which the journal tells; what was due later is not judged."""
        self._lags: list[tuple[float, float]] = []
        self._delays: list[list[Any]] = []
        self._breaks: list[tuple[float, int]] = []
        self.sut_ends: list[tuple[float, str, str]] = []
        for entry in self.entries:
            self._take(entry)

    def _take(self, entry: Entry) -> None:
        event = entry.event
        if isinstance(event, Frame):
            self._take_frame(FrameAt(entry.n, entry.t, entry.by, event))
        elif isinstance(event, SocketOpened):
            self._connection(event.conn, entry).agent_name = event.agent
        elif isinstance(event, SocketClosed):
            connection = self._connection(event.conn, entry)
            connection.closed = connection.closed or entry
        elif isinstance(event, TextMessage):
            self._connection(event.conn, entry).texts.append(entry)
        elif isinstance(event, JobAssigned):
            job = self._job(event.job_id)
            job.kind = event.job_kind
            job.assigned.append(entry)
        elif isinstance(event, BodyAnswered):
            if event.job_id is not None:
                self._job(event.job_id).bodies.append((entry, event))
        elif isinstance(event, ParticipantDeclared):
            self.participants[event.name] = event
            self.has_agent2 |= event.role == "agent2"
        elif isinstance(event, RunStarted):
            self.clock = event.clock
        elif isinstance(event, RunEnded):
            self.end = entry.t
        elif isinstance(event, SutChanged):
            if event.change in ("exited", "stopping", "stopped", "killed", "started"):
                self.sut_ends.append((entry.t, event.name, event.change))
        else:
            self._take_agent2(entry)
            self._take_link(entry)

    def _take_agent2(self, entry: Entry) -> None:
        event = entry.event
        if isinstance(event, Agent2Request):
            if event.job_id is not None:
                self._job(event.job_id).requests.append((entry, event))
        elif isinstance(event, Agent2Job):
            job = self._job(event.job_id)
            job.kind = job.kind or event.job_kind
            job.states.append((entry, event))
        elif isinstance(event, Agent2Line):
            self._job(event.job_id).lines.append((entry, event))
        elif isinstance(event, Agent2Frame):
            self._job(event.job_id).told.append((entry, event))
        elif isinstance(event, Agent2Stream):
            self._job(event.job_id).streams.append((entry, event))
        else:
            return
        self.has_agent2 = True

    def _take_link(self, entry: Entry) -> None:
        event = entry.event
        if isinstance(event, LoopLag):
            self._lags.append((entry.t, event.seconds))
        elif isinstance(event, LinkChanged):
            for delay in self._delays:
                if delay[3] == event.link and delay[1] is None:
                    # Bytes held back when a delay ends still come late.
                    delay[1] = entry.t + delay[2]
            if event.seconds > 0:
                self._delays.append([entry.t, None, event.seconds, event.link])
            elif event.change in ("cut", "reset"):
                self._breaks.append((entry.t, entry.n))
        elif isinstance(event, LinkConnection) and event.change in ("cut", "reset", "refused"):
            self._breaks.append((entry.t, entry.n))

    def _take_frame(self, seen: FrameAt) -> None:
        frame = seen.frame
        connection = self.connections.setdefault(frame.conn, Connection(frame.conn, seen.by, seen.t))
        connection.frames.append(seen)
        if seen.party == LOCAL_AGENT:
            if frame.type == "register" and connection.register is None:
                connection.register = seen
            connection.agent_id = connection.agent_id or frame.agent_id
        elif frame.type == "ready" and connection.answered is None and seen.made:
            connection.answered = seen
            if seen.delivered:
                connection.ready = seen
                self._open_session(connection)
        self._take_job_frame(seen)

    def _open_session(self, connection: Connection) -> None:
        if connection.resumed:
            for session in reversed(self.sessions):
                if session.session_id == connection.session_id:
                    session.connections.append(connection)
                    return
        self.sessions.append(Session(connection.session_id, connection.agent_id, [connection]))

    def _take_job_frame(self, seen: FrameAt) -> None:
        job_id = seen.frame.payload.get("jobId")
        if not isinstance(job_id, str) or not seen.made:
            return
        if seen.frame.type == "job.assign":
            job = self._job(job_id)
            job.assigns.append(seen)
            kind = seen.frame.payload.get("kind")
            job.kind = job.kind or (kind if isinstance(kind, str) else "")
        elif seen.frame.type == "job.cancel":
            self._job(job_id).cancels.append(seen)
        elif seen.frame.type == "job.result":
            self._job(job_id).results.append(seen)

    def _connection(self, conn: str, entry: Entry) -> Connection:
        return self.connections.setdefault(conn, Connection(conn, entry.by, entry.t))

    def _job(self, job_id: str) -> Job:
        return self.jobs.setdefault(job_id, Job(job_id))

    # What a law asks

    def slack(self, start: float, end: float) -> float:
        """Seconds by which a bound widens between two times: both ways of the slowest link, and the loop's lag."""
        held = [seconds for begin, over, seconds, _ in self._delays if begin <= end and (over is None or over >= start)]
        low = bisect.bisect_left(self._lags, (start, 0.0))
        late = sum(seconds for t, seconds in self._lags[low:] if t - seconds <= end)
        return 2 * max(held, default=0.0) + late

    def disturbed(self, start: float, end: float) -> bool:
        """Whether a link was cut, reset or refused anybody between two times."""
        return any(start <= t <= end for t, _ in self._breaks)

    def delayed(self, start: float, end: float) -> bool:
        """Whether a link held bytes back between two times."""
        return any(begin <= end and (over is None or over >= start) for begin, over, *_ in self._delays)

    def horizon(self, connection: Connection, after: float) -> float:
        """Until when something due from either side of a connection could still come.

        The connection's end, the first sign that the agent's process is being stopped, or the journal's end.
        """
        ends = [self.end]
        if connection.closed is not None:
            ends.append(connection.closed.t)
        name = self.agent_of(connection)
        ends += [t for t, who, change in self.sut_ends if t >= after and change != "started" and who == name]
        return min(ends)

    def participant(self, agent_id: str | None) -> str:
        """The name of the local agent with this id."""
        agents = [declared for declared in self.participants.values() if declared.role == LOCAL_AGENT]
        for declared in agents:
            if agent_id is not None and declared.facts.get("agentId") == agent_id:
                return declared.name
        return agents[0].name if len(agents) == 1 else (agent_id or LOCAL_AGENT)

    def name_of(self, party: str, connection: Connection) -> str:
        """The participant that stands on `party`'s side of a connection."""
        return connection.gateway if party == GATEWAY else self.agent_of(connection)

    def agent_of(self, connection: Connection) -> str:
        """The name of the local agent on a connection."""
        return connection.agent_name or self.participant(connection.agent_id)

    def agent_process_changed(self, name: str, start: float, end: float) -> bool:
        """Whether the agent's process came or went between two times, as far as the lab can see it."""
        declared = self.participants.get(name)
        unseen = declared is not None and declared.how == "attach"
        return unseen or any(who == name and start <= t <= end for t, who, _ in self.sut_ends)


def other_party(party: str) -> str:
    """The other side of a connection."""
    return GATEWAY if party == LOCAL_AGENT else LOCAL_AGENT

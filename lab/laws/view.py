"""A journal as the laws read it: who took part, what was disturbed, and how far bounds widen."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from functools import cached_property
from math import inf
from typing import Any

from lab.journal.events import (
    Agent2Frame,
    Agent2Job,
    Agent2Line,
    Agent2Request,
    Agent2Stream,
    BodyAnswered,
    CallFailed,
    FaultFired,
    Frame,
    JobAssigned,
    LinkChanged,
    LinkConnection,
    LinkOpened,
    LoopLag,
    ParticipantDeclared,
    RunEnded,
    RunStarted,
    SocketClosed,
    SocketOpened,
    StepEnded,
    StepStarted,
    SutChanged,
    TextMessage,
)
from lab.journal.writer import Entry
from lab.laws.partner.view import PartnerView
from lab.laws.revisions import as_read_by, declared_revision
from lab.laws.seen import GATEWAY, LOCAL_AGENT, Connection, Exchange, FrameAt, Job, Session
from lab.laws.toxics import BEHIND_IT, Toxics

THERE = frozenset({"started", "went-on"})
"""Changes behind which a program is there, and goes on."""


class JournalView:
    """Built once from a journal's entries, however early it stops; then only read."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = tuple(entries)
        self.connections: dict[str, Connection] = {}
        self.sessions: list[Session] = []
        self.session_of: dict[str, Session] = {}
        """The session of each connection that became ready."""
        self.jobs: dict[str, Job] = {}
        self.exchanges: dict[str, Exchange] = {}
        """Content asked for, by requestId."""
        self.acks: dict[str, list[FrameAt]] = {}
        """Ack frames of both sides by the msgId that they name."""
        self.agent2_requests: list[tuple[Entry, Agent2Request]] = []
        self.completed = False
        """Whether the run came to the end of its steps."""
        self.faulted = False
        """Whether any planned fault took effect."""
        self.steps_end: float | None = None
        """Lab time at which the last step was over; later the lab ends its parts."""
        self.participants: dict[str, ParticipantDeclared] = {}
        self.clock = "real"
        self.has_agent2 = False
        self.has_gateway = False
        self.end = entries[-1].t if entries else 0.0
        """Lab time up to which the journal tells; what was due later is not judged."""
        self._lags: list[tuple[float, float]] = []
        self._longest_lag = 0.0
        self._delays: list[list[Any]] = []
        self._toxics = Toxics()
        self._breaks: list[tuple[float, str]] = []
        self._links_to: dict[str, str] = {}
        self._cuts: list[list[Any]] = []
        self.sut_ends: list[tuple[float, str, str]] = []
        self.crashes: list[tuple[Entry, str]] = []
        """Where an agent2 died by order, and which service that was."""
        for entry in self.entries:
            self._take(entry)

    def _take(self, entry: Entry) -> None:
        event = entry.event
        if isinstance(event, Frame):
            self._take_frame(FrameAt(entry.n, entry.t, entry.by, self._for_its_reader(event)))
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
            self._exchange(event.request_id).body = (entry, event)
            if event.job_id is not None:
                self._job(event.job_id).bodies.append((entry, event))
        elif isinstance(event, CallFailed):
            if event.call == "content" and event.request_id is not None:
                self._exchange(event.request_id).failed = (entry, event)
        elif isinstance(event, ParticipantDeclared):
            self.participants[event.name] = event
            self.has_agent2 |= event.role == "agent2"
            self.has_gateway |= event.role == "gateway"
        elif isinstance(event, RunStarted):
            self.clock = event.clock
        elif isinstance(event, RunEnded):
            self.end = entry.t
            self.completed = event.end == "completed"
        elif isinstance(event, StepStarted | StepEnded):
            self.steps_end = entry.t
        elif isinstance(event, FaultFired):
            self.faulted = True
            if event.what == "crash":
                self.crashes.append((entry, event.target))
        elif isinstance(event, SutChanged):
            if event.change in ("exited", "stopping", "stopped", "killed", "crashed", "paused", "started", "went-on"):
                self.sut_ends.append((entry.t, event.name, event.change))
        else:
            self._take_agent2(entry)
            self._take_link(entry)

    def _for_its_reader(self, frame: Frame) -> Frame:
        if frame.direction != "cp-to-la" or "since" not in frame.facts:
            return frame
        connection = self.connections.get(frame.conn)
        agent = self.agent_of(connection) if connection is not None else ""
        return as_read_by(frame, declared_revision(self.participants.get(agent)))

    def _take_agent2(self, entry: Entry) -> None:
        event = entry.event
        if isinstance(event, Agent2Request):
            self.agent2_requests.append((entry, event))
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
        if isinstance(event, LinkOpened):
            self._links_to[event.link] = event.to
        elif isinstance(event, LoopLag):
            self._lags.append((entry.t, event.seconds))
            self._longest_lag = max(self._longest_lag, event.seconds)
        elif isinstance(event, LinkChanged) and not self._toxics.take(entry.t, event):
            for delay in self._delays:
                # A delay outlasts a cut and a reset, which are told without it.
                goes_on = event.change in ("cut", "reset")
                if delay[3] == event.link and delay[1] is None and not goes_on:
                    # Bytes held back when a delay ends still come late, and what is behind them with them.
                    delay[1] = entry.t + delay[2] + BEHIND_IT
            if event.seconds > 0:
                self._delays.append([entry.t, None, event.seconds, event.link])
            elif event.change in ("cut", "reset"):
                self._breaks.append((entry.t, event.link))
            if event.change == "cut":
                self._cuts.append([entry.t, None, event.link])
            elif event.change == "healed":
                for cut in self._cuts:
                    if cut[2] == event.link and cut[1] is None:
                        cut[1] = entry.t
        elif isinstance(event, LinkConnection) and event.change in ("cut", "reset", "refused"):
            self._breaks.append((entry.t, event.link))

    def _take_frame(self, seen: FrameAt) -> None:
        frame = seen.frame
        connection = self.connections.setdefault(frame.conn, Connection(frame.conn, seen.by, seen.t))
        connection.frames.append(seen)
        if frame.type == "error" and seen.made:
            connection.errors.append(seen)
        signature = frame.facts.get("signature")
        if signature is not None and seen.delivered:
            connection.nonces.setdefault(signature.get("nonce"), seen)
        if seen.party == LOCAL_AGENT:
            if frame.type == "register" and connection.register is None:
                connection.register = seen
            connection.agent_id = connection.agent_id or frame.agent_id
        elif frame.type == "ready" and connection.answered is None and seen.made:
            connection.answered = seen
            if seen.passed_on:
                connection.ready = seen
                self._open_session(connection)
        if frame.type in ("content.request", "content.response"):
            self._take_content_frame(seen)
        elif frame.type == "ack":
            named = frame.payload.get("ackMsgId")
            if isinstance(named, str) and seen.made:
                self.acks.setdefault(named, []).append(seen)
        else:
            self._take_job_frame(seen)

    def _take_content_frame(self, seen: FrameAt) -> None:
        if seen.frame.request_id is None or not seen.made:
            return
        exchange = self._exchange(seen.frame.request_id)
        if seen.frame.type == "content.request" and seen.party == GATEWAY:
            exchange.asks.append(seen)
        elif seen.frame.type == "content.response" and seen.party == LOCAL_AGENT:
            exchange.answers.append(seen)

    def _open_session(self, connection: Connection) -> None:
        if connection.resumed:
            for session in reversed(self.sessions):
                if session.session_id == connection.session_id:
                    session.connections.append(connection)
                    self.session_of[connection.conn] = session
                    return
        session = Session(connection.session_id, connection.agent_id, [connection])
        self.sessions.append(session)
        self.session_of[connection.conn] = session

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
        elif seen.frame.type == "job.event":
            self._job(job_id).events.append(seen)
        elif seen.frame.type == "audit.event" and job_id in self.jobs:
            # LA-035: a note of the agent's own may name a short job id, which makes no job.
            self.jobs[job_id].audits.append(seen)
        elif seen.frame.type == "approval.decision":
            self._job(job_id).decisions.append(seen)

    def _connection(self, conn: str, entry: Entry) -> Connection:
        return self.connections.setdefault(conn, Connection(conn, entry.by, entry.t))

    def _exchange(self, request_id: str) -> Exchange:
        return self.exchanges.setdefault(request_id, Exchange(request_id))

    def _job(self, job_id: str) -> Job:
        return self.jobs.setdefault(job_id, Job(job_id))

    # What a law asks

    @cached_property
    def partner(self) -> PartnerView:
        """The partner leg, read when a law first asks for it."""
        return PartnerView(self)

    def slack(self, start: float, end: float) -> float:
        """Seconds by which a bound widens between two times: both ways of the slowest link, stalls, the loop's lag."""
        held = self._toxics.held(start, end)
        delays: dict[str, float] = {}
        for begin, over, seconds, link in self._delays:
            if begin <= end and (over is None or over >= start):
                delays[link] = max(seconds, delays.get(link, 0.0))
        for link, seconds in delays.items():
            held[link] = held.get(link, 0.0) + 2 * seconds
        low = bisect.bisect_left(self._lags, (start, 0.0))
        high = bisect.bisect_right(self._lags, (end + self._longest_lag, inf))
        late = sum(seconds for t, seconds in self._lags[low:high] if t - seconds <= end)
        # Who stands still within goes on where the pause is over, however long that is after the bound.
        still = sum(over - max(begin, start) for begin, over in self._pauses() if begin <= end + late and over >= start)
        most = max(held.values(), default=0.0)
        return most + late + still + self._toxics.stalled(start, end + most + late)

    def paused(self, start: float, end: float) -> bool:
        """Whether a local agent stood still by order at any moment between two times."""
        return any(begin <= end and over >= start for begin, over in self._pauses())

    def _pauses(self) -> list[tuple[float, float]]:
        """When a local agent stood still by order."""
        pauses: list[tuple[float, float]] = []
        began: dict[str, float] = {}
        for t, name, change in self.sut_ends:
            if change == "paused":
                began[name] = t
            elif name in began:
                pauses.append((began.pop(name), t))
        return pauses + [(t, self.end) for t in began.values()]

    def disturbed(self, start: float, end: float, role: str | None = None) -> bool:
        """Whether a link was cut, reset or refused anybody between two times, stayed cut or was stalled meanwhile.

        `role` narrows it to links that lead to a gateway or to an agent2.
        """
        broke = any(start <= t <= end and self._leads(link, role) for t, link in self._breaks)
        broke |= any(self._leads(link, role) for link in self._toxics.stalling(start, end))
        return broke or any(
            cut <= end and (healed is None or healed >= start) and self._leads(link, role)
            for cut, healed, link in self._cuts
        )

    def stalled(self, start: float, end: float) -> bool:
        """Whether something without a bound stood on a link between two times: what was sent may not have arrived."""
        return any(True for _ in self._toxics.stalling(start, end))

    def _leads(self, link: str, role: str | None) -> bool:
        """Whether a link leads to a double of `role`; any link does where nobody said where it leads."""
        target = self.participants.get(self._links_to.get(link, ""))
        return role is None or target is None or target.role == role

    def delayed(self, start: float, end: float, role: str | None = None) -> bool:
        """Whether a link held bytes back between two times; `role` as for `disturbed`."""
        return any(self._leads(link, role) for link in self._toxics.delaying(start, end)) or any(
            begin <= end and (over is None or over >= start) and self._leads(link, role)
            for begin, over, _, link in self._delays
        )

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
        """Whether the agent's process came or went between two times, or was not there, as far as the lab can see."""
        declared = self.participants.get(name)
        unseen = declared is not None and declared.how == "attach"
        before = [change for t, who, change in self.sut_ends if who == name and t < start]
        away = before[-1:] != [] and before[-1] not in THERE
        return unseen or away or any(who == name and start <= t <= end for t, who, _ in self.sut_ends)

    def crashes_of(self, agent2: str) -> list[Entry]:
        """Where this agent2 died by order."""
        return [entry for entry, target in self.crashes if target == f"service {agent2}"]

    def agent_of_job(self, job: Job) -> str:
        """The name of the local agent that a job was assigned to."""
        for seen in (*job.results, *job.assigns):
            return self.agent_of(self.connections[seen.frame.conn])
        return self.participant(None)

    def quiet(self, start: float, end: float) -> bool:
        """Whether no link was broken or held bytes back between two times."""
        return not self.disturbed(start, end) and not self.delayed(start, end)

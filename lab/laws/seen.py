"""What the laws read a journal into: frames in their places, connections, sessions, jobs, content exchanges."""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from dataclasses import dataclass, field

from lab.journal.events import (
    Agent2Frame,
    Agent2Job,
    Agent2Line,
    Agent2Request,
    Agent2Stream,
    BodyAnswered,
    CallFailed,
    Frame,
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
        """Whether its sender made it in this place; a copy, or what had been held, is of the lab's making."""
        return not self.frame.by_lab

    @property
    def delivered(self) -> bool:
        """Whether the lab passed it on in this place; a cut can still have lost it on the way."""
        return self.frame.fate not in ("dropped", "delayed")

    @property
    def passed_on(self) -> bool:
        """Whether the lab passed it on, here or, where it was held, later."""
        return self.frame.fate != "dropped"

    @property
    def is_v1_register(self) -> bool:
        """Whether it is a register of v1: without schemaVersion, and without v2's member `protocol` (V1-001)."""
        return self.frame.type == "register" and self.frame.version is None and "protocol" not in self.frame.payload

    @property
    def ack_seq(self) -> int:
        """The seq that an ack frame names; 0 for any other frame."""
        value = self.frame.payload.get("ackSeq") if self.frame.type == "ack" else None
        return value if isinstance(value, int) else 0

    @property
    def is_data(self) -> bool:
        """Whether it counts a seq."""
        return self.frame.type is not None and self.frame.type not in CONTROL_TYPES

    @property
    def code(self) -> str | None:
        """The code of an error frame, None where it is not of its form."""
        value = self.frame.payload.get("code")
        return value if isinstance(value, str) else None

    @property
    def clean(self) -> bool:
        """Whether nothing in it gives its receiver a reason to refuse it."""
        signature = self.frame.facts.get("signature")
        return self.form_clean and (signature is None or all(signature.get(name, True) for name in SIGNATURE_FACTS))

    @property
    def form_clean(self) -> bool:
        """Whether nothing in it but its signature, which a mode may let pass, gives such a reason."""
        facts = self.frame.facts
        named = ("parse", "size", "type", "schema", "tenant", "agent")
        return all(facts.get(name, "ok") == "ok" for name in named) and facts.get("direction") is not False


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
    errors: list[FrameAt] = field(default_factory=list)
    """The error frames of both sides, without copies that the lab made."""
    nonces: dict[object, FrameAt] = field(default_factory=dict)
    """The first frame that bore a nonce (by its hash) here."""

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

    def arrived(self, party: str) -> Iterator[FrameAt]:
        """The data frames of `party` in the places where they came to the other side, extra copies included."""
        return (
            seen
            for seen in self.frames
            if seen.party == party and seen.delivered and seen.is_data and self.in_session(seen)
        )

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
        for seen in self.errors:
            if party in (None, seen.party) and seen.code in codes:
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
    events: list[FrameAt] = field(default_factory=list)
    audits: list[FrameAt] = field(default_factory=list)
    decisions: list[FrameAt] = field(default_factory=list)
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


@dataclass
class Exchange:
    """A content.request, and all that came of it."""

    request_id: str
    asks: list[FrameAt] = field(default_factory=list)
    answers: list[FrameAt] = field(default_factory=list)
    """The agent's chunks, without copies that the lab made."""
    body: tuple[Entry, BodyAnswered] | None = None
    failed: tuple[Entry, CallFailed] | None = None

    @property
    def kind(self) -> str | None:
        """The kind of content that was asked for."""
        kind = self.asks[0].frame.payload.get("kind") if self.asks else None
        return kind if isinstance(kind, str) else None

    @property
    def on_one_connection(self) -> bool:
        """Whether it began and ended on one connection, asked once, with nothing held back or lost by a fault."""
        frames = (*self.asks, *self.answers)
        return (
            len(self.asks) == 1
            and len({seen.frame.conn for seen in frames}) == 1
            and all(seen.frame.fate == "passed" for seen in frames)
        )


def other_party(party: str) -> str:
    """The other side of a connection."""
    return GATEWAY if party == LOCAL_AGENT else LOCAL_AGENT

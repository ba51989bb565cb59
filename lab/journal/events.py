"""The events of a journal, version 1.

An event is a frozen dataclass with a `kind`; its fields are JSON values. Content never stands in one: only a
`Digest` of it (SEC-012). A new field gets a default, so that an older journal can still be read; a changed
meaning gets a new version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypedDict

JOURNAL_VERSION = 1

JsonObject = Mapping[str, Any]


class Digest(TypedDict):
    """What stands in a journal in place of content: its kind, length in bytes and SHA-256."""

    kind: str
    bytes: int
    sha256: str


def digest(kind: str, content: str | bytes) -> Digest:
    """The digest of `content`."""
    raw = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return {"kind": kind, "bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}


@dataclass(frozen=True)
class Event:
    """Base of all events."""

    kind: ClassVar[str]


_KINDS: dict[str, type[Event]] = {}


def register(cls: type[Event]) -> type[Event]:
    """Make a journal line of the class's kind readable as it. Two of one kind raise ValueError."""
    if cls.kind in _KINDS:
        raise ValueError(f"two events of kind {cls.kind}")
    _KINDS[cls.kind] = cls
    return cls


def event_kinds() -> Mapping[str, type[Event]]:
    """Every kind of event by its name in the journal."""
    return _KINDS


# The run


@register
@dataclass(frozen=True)
class RunStarted(Event):
    """First entry of every journal."""

    kind: ClassVar[str] = "run.started"
    version: int
    scenario: str
    about: str
    seed: int
    clock: str
    epoch_ms: int
    lab: str
    contract: str


@register
@dataclass(frozen=True)
class RunEnded(Event):
    """Last entry: why the run stopped. `end` is completed, failed, interrupted or lab-failed."""

    kind: ClassVar[str] = "run.ended"
    end: str
    reason: str = ""


@register
@dataclass(frozen=True)
class ParticipantDeclared(Event):
    """A participant takes part. `role` gateway, agent2, local_agent; `how` double, reference, command or attach.

    `facts` of a local agent: {agentId, roots? (by workspaceId the SHA-256 of each form of its path), revision? (of its
    contract, where the lab knows it)}.
    """

    kind: ClassVar[str] = "participant"
    name: str
    role: str
    how: str
    facts: JsonObject = field(default_factory=dict)


@register
@dataclass(frozen=True)
class StepStarted(Event):
    """The runner began step `index` (from 0), written at `line` of the scenario."""

    kind: ClassVar[str] = "step.started"
    index: int
    step: str
    title: str
    line: int


@register
@dataclass(frozen=True)
class StepEnded(Event):
    """A step is over. `outcome` done, failed, or interrupted; `note` is a few words for people."""

    kind: ClassVar[str] = "step.ended"
    index: int
    outcome: str
    note: str = ""


@register
@dataclass(frozen=True)
class Defect(Event):
    """The lab itself failed; `error` is the name of the error's class."""

    kind: ClassVar[str] = "defect"
    error: str


@register
@dataclass(frozen=True)
class LoopLag(Event):
    """The event loop answered `seconds` late: bounds of laws widen by it."""

    kind: ClassVar[str] = "loop.lag"
    seconds: float


@register
@dataclass(frozen=True)
class SecretsDrawn(Event):
    """The canaries, by id, that stand for keys in what agent2 or the user says: an agent has to mask them."""

    kind: ClassVar[str] = "secrets"
    canaries: tuple[str, ...]


# Faults and links


@register
@dataclass(frozen=True)
class FaultPlanned(Event):
    """A fault of the plan, before it fires. `excuses` lists [law, party] pairs that it voids by order.

    `times` is how often it has to fire at least.
    """

    kind: ClassVar[str] = "fault.planned"
    fault: str
    what: str
    target: str
    line: int
    excuses: tuple[tuple[str, str], ...] = ()
    times: int = 1


@register
@dataclass(frozen=True)
class FaultFired(Event):
    """A planned fault took effect."""

    kind: ClassVar[str] = "fault.fired"
    fault: str
    what: str
    target: str
    detail: JsonObject = field(default_factory=dict)


@register
@dataclass(frozen=True)
class FaultEnded(Event):
    """A fault with a duration is over."""

    kind: ClassVar[str] = "fault.ended"
    fault: str


@register
@dataclass(frozen=True)
class LinkOpened(Event):
    """A link listens for the participants that are wired through it; `to` is the double behind it."""

    kind: ClassVar[str] = "link.opened"
    link: str
    to: str = ""


@register
@dataclass(frozen=True)
class LinkConnection(Event):
    """A connection through a link. `change` opened, closed, cut, reset, refused; byte counts on the last change."""

    kind: ClassVar[str] = "link.connection"
    link: str
    conn: str
    change: str
    up_bytes: int = 0
    down_bytes: int = 0


@register
@dataclass(frozen=True)
class LinkChanged(Event):
    """A link was cut, healed, reset, moved or delayed, or got or lost a toxic; `seconds` is the delay each way.

    `toxic` is the name of the one that was added, updated or removed, `type` its kind; `holds` is the most seconds by
    which it lets a byte come later, None where nothing bounds that.
    """

    kind: ClassVar[str] = "link.changed"
    link: str
    change: str
    seconds: float = 0.0
    toxic: str = ""
    type: str = ""
    holds: float | None = 0.0


# The gateway's witness


@register
@dataclass(frozen=True)
class SocketOpened(Event):
    """A WebSocket upgrade was accepted; `path` is the request's path without its query, `agent` a participant.

    `canaries` are the ids of those found in the request's whole target. `credential` is what came with it: ok (the one
    of `agent`), none, unknown, or empty where nobody looked.
    """

    kind: ClassVar[str] = "socket.opened"
    conn: str
    path: str
    agent: str = ""
    canaries: tuple[str, ...] = ()
    credential: str = ""


@register
@dataclass(frozen=True)
class SocketRefused(Event):
    """A WebSocket upgrade was refused with an HTTP status."""

    kind: ClassVar[str] = "socket.refused"
    status: int
    reason: str


@register
@dataclass(frozen=True)
class SocketClosed(Event):
    """A WebSocket is gone. `by` is who sent the first close frame: local, remote, or none (cut)."""

    kind: ClassVar[str] = "socket.closed"
    conn: str
    code: int | None
    by: str


@register
@dataclass(frozen=True)
class TextMessage(Event):
    """A message that is no frame: `text` is ping, pong or other."""

    kind: ClassVar[str] = "text"
    conn: str
    direction: str
    text: str
    size: int


@register
@dataclass(frozen=True)
class Frame(Event):
    """A message on a gateway socket, judged from its raw bytes before redaction.

    `direction` is la-to-cp or cp-to-la. `fate` tells what the lab then did with it: passed, dropped, delayed
    (held back by fault `fault`), released (the delayed frame once more, where it was let go; not there when its socket
    had gone) or copied (an extra copy made by the fault). Envelope members keep their names; one that is not of its
    form is None. `payload` holds metadata and digests. `facts` are the tap's verdicts:

    parse        "ok" or why the text is no JSON object; without "ok" only `canaries` stands beside it
    size         "ok" or frame_too_large
    type         "ok" or unknown_type
    schema       "ok" or {keyword, path}
    since        the oldest revision of the contract that takes the frame, where that is not the first one
    typeSince    the same for its type
    direction    whether this side may send the type; None for an unknown type
    tenant       "ok" or tenant_mismatch
    agent        "ok" or agent_mismatch (missing where it is due, or unknown)
    control      whether the type is a handshake or control frame; None for an unknown type
    signature    {present, verified, bound, equal, nonce, skewMs} or None where the type is not signed
    canaries     [{id, place}]
    decoded      decoded bytes of a chunk's data
    v1           true where schemaVersion does not stand in it: a message of v1
    ping         ping or pong for a JSON form of the liveness messages; only `parse` stands beside it
    skewMs       how far the wall clock is ahead of a register's or hello's own time (the farther of ts and clock)
    inlineChars  characters of the longest inline input of a job.assign
    token        of an approval.decision: {form ("ok" or why it is no token), verified (a trusted key signed it), equal
                 (it allows exactly this decision, for this tenant), leftMs (until it ends; negative once it has)}
    """

    kind: ClassVar[str] = "frame"
    conn: str
    direction: str
    size: int
    sha256: str
    fate: str = "passed"
    fault: str | None = None
    version: int | None = None
    type: str | None = None
    msg_id: str | None = None
    seq: int | None = None
    ack: int | None = None
    request_id: str | None = None
    tenant_id: str | None = None
    agent_id: str | None = None
    workspace_id: str | None = None
    chunk: JsonObject | None = None
    payload: JsonObject = field(default_factory=dict)
    facts: JsonObject = field(default_factory=dict)

    @property
    def by_lab(self) -> bool:
        """Whether the lab wrote it here once more: its sender's own frame stands in an earlier entry."""
        return self.fate in ("copied", "released")


@register
@dataclass(frozen=True)
class BodyAnswered(Event):
    """The last chunk of a content.response completed a body, as the witness put it together.

    `content` is the kind asked for, `ref` the hash of the ref, `status` ok, error, not_found or forbidden.
    `ref` and `next` are SHA-256 in hex. An answer that is not ok has `facts` {errorCode}; one that is has
    {total ("ok" or differs, against totalBytes), canaries? (ids that stand in clear in the body), schema} and
    for job.stream {events: [{i, sha256, chars}], done, next (digest of nextRef), nextAlike?} (characters that
    nextRef has in common, place by place, with the nearest of the job's earlier cursors; absent for the first of them,
    and for one that is handed out again),
    for chat.session {turns: [{role, sha256, chars}], truncated}.
    """

    kind: ClassVar[str] = "body.answered"
    conn: str
    request_id: str
    content: str
    ref: str
    job_id: str | None
    status: str
    bytes: int
    sha256: str
    facts: JsonObject = field(default_factory=dict)


@register
@dataclass(frozen=True)
class SessionChanged(Event):
    """The gateway double's session on a socket. `state` ready, resumed, refused, kept, gone."""

    kind: ClassVar[str] = "session"
    conn: str
    state: str
    agent: str
    session_id: str | None = None
    detail: JsonObject = field(default_factory=dict)


@register
@dataclass(frozen=True)
class JobAssigned(Event):
    """The driver had the gateway double assign a job; `label` is its name in the scenario.

    `user_turn` is the digest of the inputs joined by a blank line, `prompt` that of the same text trimmed; either
    is None where masking may change it or nobody told.
    """

    kind: ClassVar[str] = "job.assigned"
    job_id: str
    label: str
    job_kind: str
    agent: str
    inputs: tuple[Digest, ...] = ()
    user_turn: Digest | None = None
    prompt: Digest | None = None


@register
@dataclass(frozen=True)
class JobMoved(Event):
    """The gateway double's idea of a job changed: accepted, rejected, a state of job.event, ended.

    `events` and `results` count the job.event and job.result frames that its caller was told of so far; None where
    nobody counted.
    """

    kind: ClassVar[str] = "job.moved"
    job_id: str
    state: str
    events: int | None = None
    results: int | None = None


@register
@dataclass(frozen=True)
class ContentRead(Event):
    """The driver has read content of a job chunk by chunk; `code` tells why it got no more, empty when it got all."""

    kind: ClassVar[str] = "content.read"
    job_id: str
    content: str
    chunks: int
    code: str = ""


@register
@dataclass(frozen=True)
class ConversationOpened(Event):
    """The driver opened a job's stored conversation."""

    kind: ClassVar[str] = "conversation.opened"
    job_id: str
    turns: int
    truncated: bool


@register
@dataclass(frozen=True)
class CallFailed(Event):
    """A call of the driver failed. `call` assign, cancel, content, stream, session; `code` a wire or API code."""

    kind: ClassVar[str] = "call.failed"
    call: str
    code: str
    job_id: str | None = None
    request_id: str | None = None


@register
@dataclass(frozen=True)
class Undelivered(Event):
    """A data frame of the gateway double had no ack after its last retransmission, or its session was lost."""

    kind: ClassVar[str] = "undelivered"
    conn: str
    seq: int | None
    type: str
    code: str


@register
@dataclass(frozen=True)
class GatewayLogged(Event):
    """A line that a gateway double logged, as digest, with the canaries found in it."""

    kind: ClassVar[str] = "gateway.logged"
    line: Digest
    canaries: tuple[str, ...] = ()


@register
@dataclass(frozen=True)
class GatewayKept(Event):
    """What a gateway double still held at its end, with every frame acked, every request over and nobody connected.

    `canaries` are [{id, place}], a place being the names on the way to it; None where something was still in flight.
    """

    kind: ClassVar[str] = "gateway.kept"
    canaries: tuple[JsonObject, ...] | None = None


# agent2's witness


@register
@dataclass(frozen=True)
class Agent2Request(Event):
    """A request that agent2 answered (or began to answer). `route` is the template, never the raw path.

    `facts` by route: {authorization, kinds?} of health (whether a token came, which kinds were told), {kind, root?} of
    POST /jobs (`root` is the SHA-256 of workspaceRoot), {reason} of a cancel (None when the body had none),
    {approvalId, decision}, {accepts_sse} of a stream; on any of them {canaries} (ids found in the request's target).
    A request without a good token has 401 and no other fact.
    """

    kind: ClassVar[str] = "agent2.request"
    method: str
    route: str
    status: int
    job_id: str | None = None
    facts: JsonObject = field(default_factory=dict)


@register
@dataclass(frozen=True)
class Agent2Job(Event):
    """agent2's job changed its state: accepted, running, waiting_approval, cancelling, done, failed, cancelled.

    With `accepted`: `prompt` is the digest of requestText. With an end: `result` is the job.result's metadata.
    """

    kind: ClassVar[str] = "agent2.job"
    job_id: str
    state: str
    job_kind: str = ""
    prompt: Digest | None = None
    result: JsonObject | None = None


@register
@dataclass(frozen=True)
class Agent2Line(Event):
    """agent2 produced line `i` (from 0) of a job's content stream.

    `source` is `fixtures/…:line`; `secret` says that the line holds a canary that the agent must mask.
    """

    kind: ClassVar[str] = "agent2.line"
    job_id: str
    i: int
    sha256: str
    chars: int
    source: str = ""
    secret: bool = False
    role: str = ""
    text: Digest | None = None


@register
@dataclass(frozen=True)
class Agent2Frame(Event):
    """agent2 produced a metadata frame (job.event, job.result, audit.event) of a job."""

    kind: ClassVar[str] = "agent2.frame"
    job_id: str
    seq: int
    type: str
    payload: JsonObject = field(default_factory=dict)


@register
@dataclass(frozen=True)
class Agent2Stream(Event):
    """A reader's connection to one of a job's streams. `stream` events or stream; `change` opened, ended, broken."""

    kind: ClassVar[str] = "agent2.stream"
    job_id: str
    stream: str
    change: str
    reader: int
    sent: int = 0


# The system under test


@register
@dataclass(frozen=True)
class SutChanged(Event):
    """The SUT's life: started, exited, stopping, stopped, killed, attached. `detail` holds an exit code or signal.

    By a fault's order it is crashed (and started again), or paused and then went-on.
    """

    kind: ClassVar[str] = "sut"
    name: str
    change: str
    detail: JsonObject = field(default_factory=dict)


@register
@dataclass(frozen=True)
class SutOutput(Event):
    """A line of the SUT's output, as digest, with the canaries found in it."""

    kind: ClassVar[str] = "sut.output"
    name: str
    stream: str
    line: Digest
    canaries: tuple[str, ...] = ()


@register
@dataclass(frozen=True)
class SutFile(Event):
    """A file or folder of the SUT's state, as it lay there when the SUT had ended.

    `path` is relative to the state's folder, with `*` for a name that may be content; `mode` the permission bits.
    `canaries` are the ids of those found in a file, None where nobody looked (a folder, a link, beyond the bounds).
    """

    kind: ClassVar[str] = "sut.file"
    name: str
    path: str
    folder: bool
    mode: int
    canaries: tuple[str, ...] | None = None


@register
@dataclass(frozen=True)
class ConnectionLeft(Event):
    """A client still held its end of a connection through a link, `seconds` after every agent had been ended."""

    kind: ClassVar[str] = "connection.left"
    link: str
    conn: str
    seconds: float


# The driver


@register
@dataclass(frozen=True)
class StreamPage(Event):
    """The driver took a page of a job's stream: `fresh` events were new to it, `total` it has now."""

    kind: ClassVar[str] = "stream.page"
    job_id: str
    page: int
    fresh: int
    total: int
    done: bool


@register
@dataclass(frozen=True)
class StreamOver(Event):
    """The driver's caller was told that a job's stream is over, without an error."""

    kind: ClassVar[str] = "stream.over"
    job_id: str


@register
@dataclass(frozen=True)
class ExpectationJudged(Event):
    """One line of the scenario's `expect`, judged from the bytes the driver holds."""

    kind: ClassVar[str] = "expectation"
    path: str
    held: bool | None
    seen: str
    due: str
    line: int

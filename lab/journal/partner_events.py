"""The events of the partner leg: what the driver, the partner API model, the store and the issuer saw and did.

Keys and grants stand in them as fingerprints only (PRIV-015), content as digests (SEC-012). The driver's events are
what a partner's server sees of any API; `partner.request` and `partner.turn` come from the lab's model alone.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import ClassVar

from lab.journal.events import Event, JsonObject, register

FINGERPRINT_CHARACTERS = 12


def fingerprint(secret: str) -> str:
    """What stands in a journal in place of a key or grant (PRIV-015)."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()[:FINGERPRINT_CHARACTERS]


# The driver


@register
@dataclass(frozen=True)
class PartnerCall(Event):
    """The driver made a call of the partner API or of the issuer, and this came back.

    `route` is the template: `PUT /memberships` of the API, `POST grants` and `POST conversations` (registration) of the
    issuer, `POST /__lab/...` of a control. `call` is the same over the tries of one call; `attempt` counts them from 1.
    `status` is 0 when no whole answer came; `code` is the error code of the envelope. `misses` are the places at
    which the answer misses the contract, `leaks` the names of secrets and canaries found in it.

    `facts`, under the contract's names: {
    sent: {members of body and query; grant and cursor as fingerprints, message as a digest, attachmentIds a list; of
        an upload mimeType, bytes, sha256},
    answer: {members of `data`, or of the issuer's bare answer; grant and nextCursor as fingerprints; items: [{id,
        turnId, role, text: digest, createdAt, attachments: [id], parts?: [{type, text: digest} or {type, toolCallId,
        name, status}]}]; of a run toolErrors, timings and usage as they stand; of a refusal reason, acceptedTypes,
        maxBytes; of a file contentType, bytes, sha256, cacheControl, contentTypeOptions, contentSecurityPolicy},
    shows: which key such a call shows, in the scenario's word (chat, none, only:<scope> and so on),
    poll: k from 1 for the polls of one loop; page: k from 1 for the pages of one walk; byOrder: true where the
        scenario asked for something odd (a body, key, version, cursor or header of its own): the driver's laws say
        nothing of it}.
    """

    kind: ClassVar[str] = "partner.call"
    call: str
    route: str
    status: int
    code: str | None = None
    attempt: int = 1
    seconds: float = 0.0
    key: str | None = None
    """Fingerprint of the bearer key that was sent."""
    idempotency_key: str | None = None
    """Fingerprint of the Idempotency-Key that was sent."""
    request: str = ""
    """SHA-256 of the request's input (MSG-029): the parsed body, keys sorted, without null and empty members."""
    conversation_id: str | None = None
    run_id: str | None = None
    facts: JsonObject = field(default_factory=dict)
    misses: tuple[str, ...] = ()
    leaks: tuple[str, ...] = ()
    error: str | None = None
    """What kept an answer from coming: refused, reset, timeout, cut, not-json."""
    began: int | None = None
    """`journal.count` when the call began: what has a lower number was seen before it."""


@register
@dataclass(frozen=True)
class PartnerStream(Event):
    """The driver's stream of a run's events.

    `change` opened, refused, ended or broken; `stream` numbers them from 1. `facts`: {sentLastEventId (the header,
    where one was sent), contentType, cacheControl, byOrder (the scenario chose where it begins)}.
    """

    kind: ClassVar[str] = "partner.stream"
    stream: int
    run_id: str
    change: str
    conversation_id: str | None = None
    status: int = 0
    code: str | None = None
    last_event_id: int | None = None
    """The sequence that the driver asked to continue after; None when it sent no Last-Event-ID."""
    events: int = 0
    facts: JsonObject = field(default_factory=dict)
    misses: tuple[str, ...] = ()


@register
@dataclass(frozen=True)
class PartnerEvent(Event):
    """An event that came on a stream, before the driver drops what it has already (SSE-046).

    `event_id` is the id line's text and `sequence` its number, None where the id is no `<runId>:<number>` of this run.
    `name` is the event line, `type` the data's. `facts`: name, toolCallId, ok, error, stopReason, status, reason, code,
    timings, usage, toolErrors, turnId as they stand in the data; text as a digest. `sha256` is that of the data line.
    """

    kind: ClassVar[str] = "partner.event"
    stream: int
    run_id: str
    event_id: str
    sequence: int | None
    name: str
    type: str | None
    sha256: str
    applied: bool = True
    """Whether the driver took it, or had it already."""
    facts: JsonObject = field(default_factory=dict)
    misses: tuple[str, ...] = ()
    leaks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Legal variants of the format: crlf, several-data-lines."""


@register
@dataclass(frozen=True)
class PartnerAnswerText(Event):
    """The whole text that the driver joined from a run's `text` events once it has followed the run to its end."""

    kind: ClassVar[str] = "partner.text"
    run_id: str
    text: JsonObject
    events: int
    """How many events it took; fewer than there are where it did not see them all."""
    outcome: str
    """The terminal status that the driver took as the run's outcome."""
    source: str
    """What told it: run_status or poll."""
    segments: tuple[JsonObject, ...] = ()
    """Digests of the text between tool calls, in order, without empty ones: the text parts of history (HIS-011)."""
    leaks: tuple[str, ...] = ()
    """The names of the secrets in it, also of those that no event holds as a whole."""


# The partner API model


@register
@dataclass(frozen=True)
class PartnerRequest(Event):
    """The model answered a request.

    It is told when it was decided, before the answer goes out. `route` is the template, with its method or without.
    `key_role` is the role that the model gives the key: chat, provisioning, another; None for an unknown one. `facts`:
    members of the answer under the contract's names, the grant of a bind as a fingerprint, plus why.
    """

    kind: ClassVar[str] = "partner.request"
    method: str
    route: str
    status: int
    code: str | None = None
    key: str | None = None
    key_role: str | None = None
    idempotency_key: str | None = None
    request: str = ""
    conversation_id: str | None = None
    run_id: str | None = None
    replay: bool = False
    facts: JsonObject = field(default_factory=dict)


@register
@dataclass(frozen=True)
class PartnerTurn(Event):
    """A run of the model changed or had an effect.

    `change`: accepted, claimed, model (a model request begins), discovery, tool (a store call begins), tool-ended,
    ended. `facts` of a tool: {name, grant (fingerprint)}; of ended: {stopReason}.
    """

    kind: ClassVar[str] = "partner.turn"
    run_id: str
    conversation_id: str
    turn_id: str
    change: str
    status: str = ""
    reason: str | None = None
    call_id: str | None = None
    facts: JsonObject = field(default_factory=dict)


@register
@dataclass(frozen=True)
class PartnerDelivery(Event):
    """The model's end of a stream of events. `change` opened, ended, broken or withheld (authority was lost)."""

    kind: ClassVar[str] = "partner.delivery"
    stream: int
    run_id: str
    change: str
    last_event_id: str | None = None
    sent: int = 0


# The store and the issuer


@register
@dataclass(frozen=True)
class StoreRequest(Event):
    """The store answered an HTTP request at its MCP endpoint.

    `era` is 2025 (sessions) or 2026 (stateless); `method` the JSON-RPC method, `tool` the tool of a call. `status` is
    the HTTP status, 0 when the answer was torn on purpose; `rpc_error` the JSON-RPC code. `refused` says why no tool
    ran: static, grant-missing, grant-unknown, grant-expired, grant-revoked, grant-destination, grant-conversation,
    session, shape. `executed` is true when the tool ran for this request, `duplicate` when its call id was answered
    from the first result (MCP-021). `misbehaved` names the scripted misbehaviour that shaped the answer.
    It is told once it was decided, before the answer goes out, however long that takes.
    """

    kind: ClassVar[str] = "store.request"
    http: str
    era: str
    method: str | None
    status: int
    tool: str | None = None
    rpc_error: int | None = None
    is_error: bool = False
    refused: str | None = None
    executed: bool = False
    duplicate: bool = False
    misbehaved: str | None = None
    grant: str | None = None
    """Fingerprint of the grant that came."""
    binding: JsonObject | None = None
    """When it opened: organizationId, environment, teamId, actorId, agentId, conversationId, destination, grantId."""
    turn_id: str | None = None
    call_id: str | None = None
    conversation_header: str | None = None
    session: str | None = None
    """Fingerprint of the session id."""
    facts: JsonObject = field(default_factory=dict)


@register
@dataclass(frozen=True)
class IssuerRequest(Event):
    """The issuer answered.

    `route` is grants, conversations, lab-grants or lab-revocations; `grant` the fingerprint of what it minted,
    `grant_id` the id of what it minted or revoked. `facts` of conversations: {actorId, teamId, agentId, destination};
    of what it minted: {expiresAtMs (epoch)}; of a revocation: {grantIds}.
    """

    kind: ClassVar[str] = "issuer.request"
    route: str
    status: int
    code: str | None = None
    conversation_id: str | None = None
    grant: str | None = None
    grant_id: str | None = None
    facts: JsonObject = field(default_factory=dict)

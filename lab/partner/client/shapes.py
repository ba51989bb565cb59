"""The answers of the partner API as the driver reads them: leniently, by the members that it needs.

Members that it does not know are passed over (CV-014, TM-044); whether an answer keeps the contract is the tap's
question. Every function that ends in `_untrusted` raises `BadShape` and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeVar

from lab.partner.client.members import BadShape, Members, Moment, moment_or_epoch_untrusted, moment_untrusted
from lab.partner.client.words import TERMINAL

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Membership:
    """An employee's place in a team, as it is stored now (MB-002)."""

    actor_id: str
    team_id: str
    source_revision: int
    role: str
    subject_version: int
    membership_version: int
    active: bool
    valid_until: Moment | None


@dataclass(frozen=True, slots=True)
class McpTarget:
    """The one store server of a conversation; both texts go back unchanged in a bind (CV-014)."""

    server_id: str
    destination: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation as its creation tells it (CV-002)."""

    conversation_id: str
    actor_id: str
    team_id: str
    agent_id: str
    mcp: McpTarget | None


@dataclass(frozen=True, slots=True)
class Context:
    """State of a conversation's bound grant (CX-001)."""

    version: int
    expires_at: Moment | None
    active: bool


@dataclass(frozen=True, slots=True)
class Grant:
    """What the issuer minted; the text is opaque and stands in no repr (GR-003)."""

    text: str = field(repr=False)
    expires_at: Moment


@dataclass(frozen=True, slots=True)
class Attachment:
    """A stored file (AT-002)."""

    id: str
    kind: str
    mime_type: str
    name: str = field(repr=False)
    size: int
    created_at: Moment


@dataclass(frozen=True, slots=True)
class FileContent:
    """The bytes of a file and the type that they came under (AT-019)."""

    content: bytes = field(repr=False)
    mime_type: str


@dataclass(frozen=True, slots=True)
class ToolError:
    """A tool call that failed (MSG-016)."""

    tool_call_id: str
    name: str
    error_code: str


STAGES = (
    "queuedMs",
    "admissionMs",
    "lockMs",
    "agentMs",
    "promptMs",
    "toolSetupMs",
    "workerMs",
    "classificationMs",
    "setupMs",
    "modelMs",
    "toolMs",
    "historyMs",
    "otherMs",
    "totalMs",
)
"""The durations of a snapshot, by the contract's names (TM-044)."""


@dataclass(frozen=True, slots=True)
class Iteration:
    """One request of the model, durations in milliseconds (TM-026). `first_token_ms` None: no delta came (TM-031)."""

    wall_ms: Decimal
    model_ms: Decimal
    first_token_ms: Decimal | None
    tool_ms: Decimal
    tools: tuple[Decimal, ...]


@dataclass(frozen=True, slots=True)
class Timings:
    """A run's durations in milliseconds by the contract's names; None for one that came as null (TM-047)."""

    complete: bool
    stages: Mapping[str, Decimal | None]
    iterations: tuple[Iteration, ...]


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """What one model took (US-011)."""

    model: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost: Decimal


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run took and cost, in US dollars, exact (US-005). Without one a run is unaccounted, not free (US-022)."""

    model: str | None
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost: Decimal
    price_side: str
    kinds: tuple[tuple[str, Decimal], ...]
    models: tuple[ModelUsage, ...] | None


@dataclass(frozen=True, slots=True)
class Run:
    """A run as a 202 or a GET tells it; the 202 may lack the last three (MSG-024)."""

    run_id: str
    conversation_id: str
    turn_id: str
    status: str
    reason: str | None
    created_at: Moment
    tool_errors: tuple[ToolError, ...] = ()
    timings: Timings | None = None
    usage: Usage | None = None

    @property
    def terminal(self) -> bool:
        """Whether the status never changes again (MSG-020)."""
        return self.status in TERMINAL


def membership_untrusted(data: Any) -> Membership:
    """The data of PUT /memberships."""
    at = Members(data)
    return Membership(
        at.text("actorId"),
        at.text("teamId"),
        at.whole("sourceRevision"),
        at.text("role"),
        at.whole("subjectVersion"),
        at.whole("membershipVersion"),
        at.flag("active"),
        at.moment_or_none("validUntil"),
    )


def conversation_untrusted(data: Any) -> Conversation:
    """The data of POST /conversations; `mcp` must be there, as an object or null."""
    at = Members(data)
    mcp = at.value("mcp")
    target = None if mcp is None else Members(mcp)
    return Conversation(
        at.text("conversationId"),
        at.text("actorId"),
        at.text("teamId"),
        at.text("agentId"),
        None if target is None else McpTarget(target.text("serverId"), target.text("destination")),
    )


def context_untrusted(data: Any) -> Context:
    """The data of GET …/context."""
    at = Members(data)
    return Context(at.whole("version"), at.moment_or_none("expiresAt"), at.flag("active"))


def version_untrusted(data: Any) -> int:
    """The data of PUT …/context."""
    return Members(data).whole("version")


def grant_untrusted(body: Any) -> Grant:
    """The issuer's answer: the bare object, or inside a success envelope (GR-008)."""
    inner = body.get("data") if isinstance(body, dict) and "grant" not in body else body
    at = Members(inner)
    return Grant(at.text("grant"), moment_or_epoch_untrusted(at.value("expiresAt"), "expiresAt"))


def attachment_untrusted(data: Any) -> Attachment:
    """A stored file."""
    at = Members(data)
    return Attachment(
        at.text("id"),
        at.text("kind"),
        at.text("mimeType"),
        at.text("name", empty=True),
        at.whole("size"),
        moment_untrusted(at.value("createdAt"), "createdAt"),
    )


def run_untrusted(data: Any) -> Run:
    """The data of a 202 or of GET run."""
    at = Members(data)
    return Run(
        at.text("runId"),
        at.text("conversationId"),
        at.text("turnId"),
        at.text("status"),
        at.text_or_none("reason"),
        moment_untrusted(at.value("createdAt"), "createdAt"),
        tool_errors_untrusted(at.optional("toolErrors")),
        timings_untrusted(at.optional("timings")),
        usage_untrusted(at.optional("usage")),
    )


def tool_errors_untrusted(value: Any) -> tuple[ToolError, ...]:
    """Failed tool calls; absent and null are none."""
    return () if value is None else _listed(value, "toolErrors", _tool_error)


def _tool_error(value: Any) -> ToolError:
    at = Members(value)
    return ToolError(at.text("toolCallId"), at.text("name"), at.text("errorCode"))


def timings_untrusted(value: Any) -> Timings | None:
    """A snapshot, None for a run that was never measured (TM-005)."""
    if value is None:
        return None
    at = Members(value)
    stages = {name: at.duration_or_none(name) for name in STAGES}
    return Timings(at.flag("complete"), stages, _listed(at.value("iterations"), "iterations", _iteration))


def _iteration(value: Any) -> Iteration:
    at = Members(value)
    return Iteration(
        at.duration("wallMs"),
        at.duration("modelMs"),
        at.duration_or_none("firstTokenMs"),
        at.duration("toolMs"),
        _listed(at.value("tools"), "tools", lambda tool: Members(tool).duration("durationMs")),
    )


def usage_untrusted(value: Any) -> Usage | None:
    """What was accounted, None when nothing was (US-022, US-039)."""
    if value is None:
        return None
    at = Members(value)
    models = at.optional("models")
    return Usage(
        at.text_or_none("model"),
        *at.tokens(),
        at.cost("costUsd"),
        at.text("priceSide"),
        _listed(at.value("kinds"), "kinds", lambda kind: (Members(kind).text("kind"), Members(kind).cost("costUsd"))),
        None if models is None else _listed(models, "models", _model_usage),
    )


def _model_usage(value: Any) -> ModelUsage:
    at = Members(value)
    return ModelUsage(at.text("model"), *at.tokens(), at.cost("costUsd"))


def _listed(value: Any, member: str, item: Callable[[Any], T]) -> tuple[T, ...]:
    if not isinstance(value, list):
        raise BadShape(member)
    return tuple(item(one) for one in value)

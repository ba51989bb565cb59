"""The store context of a conversation: bound by compare-and-set, its grant sealed (CX-*)."""

from __future__ import annotations

from dataclasses import dataclass, field

from lab.journal.events import digest
from lab.journal.partner_events import fingerprint
from lab.partner.model.answers import Answer, ApiRequest, success
from lab.partner.model.authority import Caller, Conversation
from lab.partner.model.parts import Parts
from lab.partner.model.refusals import Refusal, context_conflict, context_denied, invalid
from lab.partner.model.settings import GrantClaims
from lab.partner.model.shape import Fields, read_object_untrusted
from lab.partner.model.words import (
    DESTINATION_CHARACTERS,
    EXTERNAL_ID_CHARACTERS,
    GRANT_CHARACTERS,
    ID_CHARACTERS,
)


@dataclass(frozen=True, slots=True)
class Binding:
    """What is bound to a conversation; a version of 0 was never bound (CX-005)."""

    version: int = 0
    expires_ms: int | None = None
    revoked: bool = False

    def active(self, now_ms: int) -> bool:
        """Whether its grant may be used now (CX-006, CX-021)."""
        return not self.revoked and self.expires_ms is not None and now_ms < self.expires_ms


@dataclass(frozen=True, slots=True)
class Bind:
    """A bind as it was asked for."""

    external_user_id: str
    external_team_id: str
    server_id: str
    destination: str
    grant: str = field(repr=False)
    expires_ms: int
    expected_version: int


def judge(target: tuple[str, str] | None, binding: Binding, bind: Bind, *, claims_fit: bool = True) -> Refusal | None:
    """Why a bind is refused, in the order of PA-050: null target, revoked, mismatch, version."""
    if target is None:
        # CX-015, CX-020: conversation only
        return context_denied("conversation only")
    if binding.revoked:
        # CX-007: a revoked binding stays denied
        return context_denied("revoked")
    if (bind.server_id, bind.destination) != target:
        # CX-022, CX-034: exact text
        return context_denied("another target")
    if not claims_fit:
        # CX-027
        return context_denied("claims")
    if bind.expected_version != binding.version:
        return context_conflict("version")
    return None


def get_context(parts: Parts, caller: Caller, request: ApiRequest) -> Answer:
    """GET context: {version, expiresAt, active}, never the grant (CX-001, CX-002)."""
    _, conversation = parts.own_conversation(caller, request)
    binding = binding_of(parts, conversation.conversation_id)
    data = {
        "version": binding.version,
        "expiresAt": parts.stamp(binding.expires_ms),
        "active": binding.active(parts.now_ms()),
    }
    return success(200, data, conversation_id=conversation.conversation_id, facts=data)


def put_context(parts: Parts, caller: Caller, request: ApiRequest) -> Answer:
    """PUT context: binds a grant if expectedVersion is the present version (CX-003, CX-013)."""
    bind = read_bind_untrusted(parts, request)
    actor = parts.authority.actor_of(caller, bind.external_user_id, bind.external_team_id)
    conversation = parts.authority.conversation_of(actor, request.path["conversationId"])
    with parts.state.transaction():
        binding = binding_of(parts, conversation.conversation_id)
        fit = _claims_fit(parts, conversation, bind)
        refusal = judge(target_of(conversation), binding, bind, claims_fit=fit)
        if refusal is not None:
            raise refusal
        version = binding.version + 1
        parts.state.run(
            "INSERT INTO bindings VALUES (?, ?, ?, ?, 0) ON CONFLICT (conversation_id) DO UPDATE SET "
            "version = excluded.version, expires_ms = excluded.expires_ms, sealed_grant = excluded.sealed_grant",
            conversation.conversation_id,
            version,
            bind.expires_ms,
            parts.state.seal(bind.grant),
        )
    parts.bell.ring()
    facts = {
        "version": version,
        "expiresAt": parts.stamp(bind.expires_ms),
        "grant": fingerprint(bind.grant),
        "destination": digest("destination", bind.destination),
    }
    return success(200, {"version": version}, conversation_id=conversation.conversation_id, facts=facts)


def read_bind_untrusted(parts: Parts, request: ApiRequest) -> Bind:
    """The seven fields of a bind; an expiresAt that is past already is malformed (CX-023, CX-028)."""
    fields = Fields(read_object_untrusted(request), parts.settings.strict_json)
    bind = Bind(
        fields.text("externalUserId", EXTERNAL_ID_CHARACTERS),
        fields.text("externalTeamId", EXTERNAL_ID_CHARACTERS),
        fields.text("serverId", ID_CHARACTERS),
        fields.text("destination", DESTINATION_CHARACTERS),
        fields.text("grant", GRANT_CHARACTERS),
        fields.instant("expiresAt"),
        fields.integer("expectedVersion"),
    )
    fields.done()
    if bind.expires_ms <= parts.now_ms():
        raise invalid("expiresAt is past")
    return bind


def binding_of(parts: Parts, conversation_id: str) -> Binding:
    """What is bound now."""
    row = parts.state.row("SELECT * FROM bindings WHERE conversation_id = ?", conversation_id)
    return Binding() if row is None else Binding(row["version"], row["expires_ms"], bool(row["revoked"]))


def target_of(conversation: Conversation) -> tuple[str, str] | None:
    """The one store server of a conversation; None for conversation only."""
    if conversation.server_id is None or conversation.destination is None:
        return None
    return conversation.server_id, conversation.destination


@dataclass(frozen=True, slots=True)
class UsableGrant:
    """A grant for the next store call, and where it may go."""

    grant: str = field(repr=False)
    destination: str
    version: int


def usable_grant(parts: Parts, conversation: Conversation) -> UsableGrant | Refusal:
    """The newest grant, if it may be used now (CX-025, CX-026, CX-029). Ask anew before each store call."""
    target = target_of(conversation)
    binding = binding_of(parts, conversation.conversation_id)
    if target is None:
        return context_denied("conversation only")
    if not binding.active(parts.now_ms()):
        return context_denied("revoked" if binding.revoked else "not bound" if binding.version == 0 else "expired")
    row = parts.state.row("SELECT sealed_grant FROM bindings WHERE conversation_id = ?", conversation.conversation_id)
    if row is None or row["sealed_grant"] is None:
        return context_denied("not bound")
    return UsableGrant(parts.state.unseal(row["sealed_grant"]), target[1], binding.version)


def _claims_fit(parts: Parts, conversation: Conversation, bind: Bind) -> bool:
    """Whether the grant says of itself what is due; without the switch nobody looks (CX-027)."""
    if parts.settings.claim_reader is None:
        return True
    due = GrantClaims(
        parts.settings.organization_id,
        parts.settings.environment,
        conversation.team_id,
        conversation.actor_id,
        conversation.agent_id,
        conversation.conversation_id,
        bind.destination,
    )
    return parts.settings.claim_reader(bind.grant) == due

"""Slips of a partner API in binding conversations to their store, and in the grants that it uses there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lab.partner.model import context, messages, shape, store_calls
from lab.partner.model.answers import Answer, ApiRequest
from lab.partner.model.authority import Caller, Conversation
from lab.partner.model.context import Bind, Binding, UsableGrant
from lab.partner.model.parts import Parts
from lab.partner.model.refusals import Refusal
from tests.bugs.partner import patching
from tests.bugs.partner.plants import plant
from tests.bugs.plants import Function, Patch

# Context


@plant("api-grant-in-context", scenario="partner-chat", law="answers-fit-contract")
def grant_in_context(patch: Patch) -> None:
    """The context is told as it is stored."""

    def make(original: patching.Route) -> patching.Route:
        def told(parts: Parts, caller: Caller, request: ApiRequest) -> Answer:
            usual = original(parts, caller, request)
            found = parts.authority.find_conversation(request.path["conversationId"])
            grant = context.usable_grant(parts, found) if found is not None else None
            if not isinstance(grant, UsableGrant) or not isinstance(usual.body, dict):
                return usual
            patch.slipped()
            return replace(usual, body={"success": True, "data": {**usual.body["data"], "grant": grant.grant}})

        return told

    patching.route(patch, patching.GET_CONTEXT, make)


@plant("api-version-from-one", scenario="conversation-only", law="context-told")
def version_from_one(patch: Patch) -> None:
    """What was never bound has version 1."""

    def one(data: patching.Data) -> bool:
        if data["version"] == 0:
            data["version"] = 1
            return True
        return False

    patching.data(patch, patching.GET_CONTEXT, one)


def judged(patch: Patch, why: str) -> None:
    """One reason to refuse a bind is none."""

    def make(original: Function) -> Function:
        def judge(target: Any, binding: Binding, bind: Bind, *, claims_fit: bool = True) -> Refusal | None:
            refusal: Refusal | None = original(target, binding, bind, claims_fit=claims_fit)
            if refusal is not None and refusal.why == why:
                patch.slipped()
                return None
            return refusal

        return judge

    patch.wrap(context, "judge", make)


@plant("api-bind-overwrites", scenario="context-recovered", law="context-cas")
def bind_overwrites(patch: Patch) -> None:
    """The latest bind counts."""
    judged(patch, "version")


@plant("api-revoked-binding-replaced", scenario="unbound-for-good", law="revoked-binding-stays-denied")
def revoked_binding_replaced(patch: Patch) -> None:
    """A fresh grant takes the place of a revoked one."""

    def make(original: Function) -> Function:
        def binding_of(parts: Parts, conversation_id: str) -> Binding:
            parts.state.run("UPDATE bindings SET revoked = 0 WHERE conversation_id = ?", conversation_id)
            found: Binding = original(parts, conversation_id)
            patch.slipped()
            return found

        return binding_of

    patch.wrap(context, "binding_of", make)


@plant("api-destination-unchecked", scenario="context-wrong-destination", law="context-cas")
def destination_unchecked(patch: Patch) -> None:
    """A grant may be for any place."""
    judged(patch, "another target")


@plant("api-bind-without-store", scenario="conversation-only", law="bound-before-run")
def bind_without_store(patch: Patch) -> None:
    """A binding is stored for whatever conversation."""
    judged(patch, "conversation only")


@plant("api-expired-binding-version-zero", scenario="grant-expired", law="context-told")
def expired_binding_version_zero(patch: Patch) -> None:
    """What has expired is no binding."""

    def none(data: patching.Data) -> bool:
        if data["expiresAt"] is None or data["active"]:
            return False
        data.update(version=0, expiresAt=None)
        return True

    patching.data(patch, patching.GET_CONTEXT, none)


@plant("api-expired-binding-active", scenario="grant-long-expired", law="context-told")
def expired_binding_active(patch: Patch) -> None:
    """What was bound is active."""

    def active(data: patching.Data) -> bool:
        if data["expiresAt"] is None or data["active"]:
            return False
        data["active"] = True
        return True

    patching.data(patch, patching.GET_CONTEXT, active)


@plant("api-message-without-binding", scenario="unbound-message", law="bound-before-run")
def message_without_binding(patch: Patch) -> None:
    """The turn will see whether there is a grant."""

    def make(original: Function) -> Function:
        def usable(parts: Parts, conversation: Conversation) -> Any:
            if isinstance(original(parts, conversation), Refusal):
                patch.slipped()
            return None

        return usable

    patch.wrap(messages, "usable_grant", make)


@plant("api-version-by-time", scenario="partner-chat", law="context-cas")
def version_by_time(patch: Patch) -> None:
    """A version is the time of the bind."""

    def late(data: patching.Data) -> bool:
        data["version"] += 1_700_000_000_000
        return True

    patching.data(patch, patching.PUT_CONTEXT, late)


@plant("api-expired-grant-bound", scenario="bind-of-the-past", law="malformed-is-refused")
def expired_grant_bound(patch: Patch) -> None:
    """When a grant ends is the store's business."""

    def make(original: Function) -> Function:
        def instant(self: shape.Fields, name: str) -> int:
            value: int = original(self, name)
            if name == "expiresAt" and value < 1 << 40:
                patch.slipped()
                return 1 << 50
            return value

        return instant

    patch.wrap(shape.Fields, "instant", make)


# Grants in use


@plant("api-grant-cached-per-actor", scenario="two-conversations", law="newest-grant")
def grant_cached_per_actor(patch: Patch) -> None:
    """An employee has one grant."""
    first: dict[str, UsableGrant] = {}

    def make(original: Function) -> Function:
        def usable(parts: Parts, conversation: Conversation) -> UsableGrant | Refusal:
            grant = original(parts, conversation)
            if isinstance(grant, Refusal):
                return grant
            if conversation.actor_id in first:
                patch.slipped()
            return first.setdefault(conversation.actor_id, grant)

        return usable

    patch.wrap(store_calls, "usable_grant", make)


@plant("api-oldest-grant-used", scenario="grant-replaced", law="newest-grant")
def oldest_grant_used(patch: Patch) -> None:
    """The first grant is the conversation's."""
    kept: list[bytes] = []

    def make(original: Function) -> Function:
        def bind(parts: Parts, caller: Caller, request: ApiRequest) -> Answer:
            told: Answer = original(parts, caller, request)
            row = parts.state.row("SELECT sealed_grant FROM bindings")
            if row is not None:
                kept.append(row["sealed_grant"])
            return told

        return bind

    def use(original: Function) -> Function:
        def usable(parts: Parts, conversation: Conversation) -> UsableGrant | Refusal:
            grant: UsableGrant | Refusal = original(parts, conversation)
            if isinstance(grant, Refusal):
                return grant
            patch.slipped()
            return replace(grant, grant=parts.state.unseal(kept[0]))

        return usable

    patching.route(patch, patching.PUT_CONTEXT, make)
    patch.wrap(store_calls, "usable_grant", use)


@plant("api-store-called-after-expiry", scenario="grant-ends-in-a-run", law="no-call-after-expiry")
def store_called_after_expiry(patch: Patch) -> None:
    """A run keeps the grant that it began with."""

    def make(original: Function) -> Function:
        def usable(parts: Parts, conversation: Conversation) -> UsableGrant | Refusal:
            grant: UsableGrant | Refusal = original(parts, conversation)
            if not isinstance(grant, Refusal):
                return grant
            row = parts.state.row("SELECT * FROM bindings WHERE conversation_id = ?", conversation.conversation_id)
            assert row is not None
            patch.slipped()
            return UsableGrant(parts.state.unseal(row["sealed_grant"]), str(conversation.destination), row["version"])

        return usable

    patch.wrap(store_calls, "usable_grant", make)

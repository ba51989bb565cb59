"""Slips of a partner API in its receipts and in opening conversations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lab.partner.model import conversations, messages
from lab.partner.model.answers import ApiRequest
from lab.partner.model.authority import Actor, Authority, Caller, Conversation
from lab.partner.model.parts import Parts
from lab.partner.model.receipts import Receipt, ReceiptPlace, Receipts
from lab.partner.model.refusals import Refusal, context_denied, unavailable
from lab.partner.model.settings import McpCandidate
from tests.bugs.partner import patching
from tests.bugs.partner.plants import plant
from tests.bugs.plants import Function, Patch

# Receipts


def receipts_unread(patch: Patch, operation: str) -> None:
    """No receipt of an operation is found, and a later one takes the place of an earlier one."""

    def find(original: Function) -> Function:
        def found(self: Receipts, place: ReceiptPlace, key: str, given: str) -> Receipt | None:
            if place.operation != operation:
                return original(self, place, key, given)  # type: ignore[no-any-return]
            if self._state.run("DELETE FROM receipts WHERE key_hash = ?", place.hash_of(key)):
                patch.slipped()
            return None

        return found

    patch.wrap(Receipts, "find", find)


def receipts_by_key_alone(patch: Patch, operation: str) -> None:
    """A receipt is found by its key, whatever the input was."""

    def make(original: Function) -> Function:
        def found(self: Receipts, place: ReceiptPlace, key: str, given: str) -> Receipt | None:
            row = self._state.row("SELECT * FROM receipts WHERE key_hash = ?", place.hash_of(key))
            if place.operation == operation and row is not None and row["input_hash"] != given:
                patch.slipped()
                given = row["input_hash"]
            return original(self, place, key, given)  # type: ignore[no-any-return]

        return found

    patch.wrap(Receipts, "find", make)


@plant("api-create-repeated", scenario="create-again", law="one-run-per-key")
def create_repeated(patch: Patch) -> None:
    """Every create is a new one."""
    receipts_unread(patch, conversations.OPERATION)


@plant("api-message-repeated", scenario="message-replayed", law="one-run-per-key")
def message_repeated(patch: Patch) -> None:
    """Every message is a new one."""
    receipts_unread(patch, messages.OPERATION)


@plant("api-changed-create-replayed", scenario="create-changed", law="changed-input-conflicts")
def changed_create_replayed(patch: Patch) -> None:
    """The key of a create says it all."""
    receipts_by_key_alone(patch, conversations.OPERATION)


@plant("api-changed-message-replayed", scenario="changed-input", law="changed-input-conflicts")
def changed_message_replayed(patch: Patch) -> None:
    """The key of a message says it all."""
    receipts_by_key_alone(patch, messages.OPERATION)


@plant("api-receipts-per-key", scenario="rotated-key", law="one-run-per-key")
def receipts_per_key(patch: Patch) -> None:
    """A receipt belongs to the credential."""

    def make(original: Function) -> Function:
        def place(self: Parts, caller: Caller, operation: str, conversation_id: str = "") -> ReceiptPlace:
            patch.slipped()
            usual: ReceiptPlace = original(self, caller, operation, conversation_id)
            return replace(usual, namespace=caller.key_hash)

        return place

    patch.wrap(Parts, "place", make)


@plant("api-create-without-key", scenario="malformed-calls", law="malformed-is-refused")
def create_without_key(patch: Patch) -> None:
    """A key is made up where none came."""

    def make(original: Function) -> Function:
        def key(request: ApiRequest) -> str:
            if request.header("Idempotency-Key"):
                return original(request)  # type: ignore[no-any-return]
            patch.slipped()
            return f"made-up-{patch.reached}"

        return key

    patch.wrap(conversations, "idempotency_key_untrusted", make)


# Creating


@plant(
    "api-first-of-several-stores",
    scenario="no-candidate",
    law=None,
    why="how many stores the agent has, which its setup knows",
)
def first_of_several_stores(patch: Patch) -> None:
    """The first store that is there will do."""

    def make(original: Function) -> Function:
        def first(candidates: Any) -> McpCandidate | None:
            if candidates is not None and len(candidates) > 1:
                patch.slipped()
                candidates = candidates[:1]
            return original(candidates)  # type: ignore[no-any-return]

        return first

    patch.wrap(conversations, "only_candidate", make)


@plant(
    "api-no-store-is-no-mcp",
    scenario="no-candidate",
    law=None,
    why="whether the profile declares a store, which its setup knows",
)
def no_store_is_no_mcp(patch: Patch) -> None:
    """Without a store there is no store context."""

    def make(original: Function) -> Function:
        def none(candidates: Any) -> McpCandidate | None:
            if candidates == ():
                patch.slipped()
                return None
            return original(candidates)  # type: ignore[no-any-return]

        return none

    patch.wrap(conversations, "only_candidate", make)


@plant("api-mcp-key-left-out", scenario="conversation-only", law="answers-fit-contract")
def mcp_key_left_out(patch: Patch) -> None:
    """What is null is left out."""

    def drop(data: patching.Data) -> bool:
        return data["mcp"] is None and data.pop("mcp", True) is None

    patching.data(patch, patching.CONVERSATIONS, drop)


@plant("api-conversation-shared", scenario="context-of-another", law="conversations-are-ones-own")
def conversation_shared(patch: Patch) -> None:
    """Who knows the id may have the conversation."""

    def own(self: Authority, actor: Actor, conversation_id: str) -> Conversation:
        found = self.find_conversation(conversation_id)
        if found is None:
            raise unavailable("conversation")
        if found.actor_id != actor.actor_id:
            patch.slipped()
        return found

    patch.set(Authority, "conversation_of", own)


@plant("api-one-conversation-per-agent", scenario="files", law="one-run-per-key")
def one_conversation_per_agent(patch: Patch) -> None:
    """An employee has one conversation with an agent."""
    answers: dict[str, Receipt] = {}

    def make(original: Function) -> Function:
        def create(parts: Parts, actor: Actor, agent_id: str) -> Receipt:
            if actor.actor_id in answers:
                patch.slipped()
            else:
                answers[actor.actor_id] = original(parts, actor, agent_id)
            return answers[actor.actor_id]

        return create

    patch.wrap(conversations, "_create", make)


@plant("api-create-answers-200", scenario="partner-chat", law="answers-fit-contract")
def create_answers_200(patch: Patch) -> None:
    """All that went well is 200."""
    patching.answer(patch, patching.CONVERSATIONS, lambda usual: replace(usual, status=200))


@plant("api-create-replay-answers-200", scenario="create-again", law="answers-fit-contract")
def create_replay_answers_200(patch: Patch) -> None:
    """Nothing was made, so it is 200."""
    patching.answer(patch, patching.CONVERSATIONS, lambda usual: replace(usual, status=200) if usual.replay else None)


@plant("api-agent-only-conversation-needs-bind", scenario="conversation-only", law="bound-before-run")
def conversation_only_needs_bind(patch: Patch) -> None:
    """No message without a binding."""

    def make(original: Function) -> Function:
        def refuse(parts: Parts, conversation: Conversation, message: Any) -> Refusal | None:
            if conversation.server_id is None:
                patch.slipped()
                return context_denied("not bound")
            return original(parts, conversation, message)  # type: ignore[no-any-return]

        return refuse

    patch.wrap(messages, "refuse", make)

"""Slips of a partner API in its keys, its checks and the forms of its answers."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from lab.partner.model import (
    answers,
    attachments,
    budget,
    context,
    controls,
    history,
    messages,
    parts,
    refusals,
    removal,
    runs,
    server,
    shape,
    turn_record,
)
from lab.partner.model.answers import Answer, ApiRequest
from lab.partner.model.authority import Actor, Authority, Caller, Conversation
from lab.partner.model.parts import Parts
from lab.partner.model.refusals import Refusal
from lab.partner.model.turn import Turn
from lab.partner.model.turn_record import Ending
from lab.partner.model.words import CHAT_EXECUTION_FAILED, ORG_SPEND, Code, Scope
from tests.bugs.partner import patching
from tests.bugs.partner.plants import plant
from tests.bugs.plants import Function, Patch

# Keys and scopes


@plant("api-scope-of-history-unchecked", scenario="other-keys", law="keys-open-their-routes")
def scope_of_history_unchecked(patch: Patch) -> None:
    """History opens for any key."""

    def make(original: patching.Route) -> patching.Route:
        def page(given: Parts, caller: Caller, request: ApiRequest) -> Answer:
            if Scope.READ not in caller.scopes:
                patch.slipped()
            return original(given, caller, request)

        return page

    patching.route(patch, patching.HISTORY, make)
    patching.operations(patch, lambda one: replace(one, scopes=()) if one.route == patching.HISTORY else one)


@plant("api-missing-scope-as-401", scenario="other-keys", law="keys-open-their-routes")
def missing_scope_as_401(patch: Patch) -> None:
    """A scope that is not there makes the key unknown."""

    def make(original: Function) -> Function:
        def check(self: Authority, caller: Caller, *scopes: Scope) -> None:
            try:
                original(self, caller, *scopes)
            except Refusal:
                patch.slipped()
                raise refusals.credential_rejected("scope") from None

        return check

    patch.wrap(Authority, "check_scope", make)


@plant("api-wrong-key-as-403", scenario="wrong-keys", law="error-codes-known")
def wrong_key_as_403(patch: Patch) -> None:
    """An unknown key is forbidden, in words of its own."""

    def forbidden(usual: Answer) -> Answer | None:
        if usual.code != Code.CREDENTIAL_REJECTED:
            return None
        return Answer(403, {"success": False, "error": {"code": "FORBIDDEN", "message": "No."}}, code="FORBIDDEN")

    patching.refusals(patch, forbidden)


@plant("api-missing-key-served", scenario="wrong-keys", law="keys-open-their-routes")
def missing_key_served(patch: Patch) -> None:
    """Who shows no key has the chat key."""

    def make(original: Function) -> Function:
        def check(self: Authority, authorization: Any, organization_id: str | None) -> Caller:
            if authorization:
                return original(self, authorization, organization_id)  # type: ignore[no-any-return]
            patch.slipped()
            row = self._state.row("SELECT * FROM keys WHERE role = 'chat' AND revoked = 0")
            assert row is not None
            return Caller("chat", row["namespace"], frozenset(row["scopes"].split()), row["key_hash"])

        return check

    patch.wrap(Authority, "check_key", make)


@plant("api-old-key-still-good", scenario="stream-over-rotation", law="rotated-key-is-dead")
def old_key_still_good(patch: Patch) -> None:
    """A stream goes on with the key that opened it, though that was rotated."""

    def make(original: Function) -> Function:
        def may_deliver(self: Authority, caller: Caller, run: Any) -> Refusal | None:
            refusal: Refusal | None = original(self, caller, run)
            if refusal is not None and refusal.why == "key rotated":
                patch.slipped()
                return None
            return refusal

        return may_deliver

    patch.wrap(Authority, "may_deliver", make)


@plant("api-session-cookie", scenario="partner-chat", law="answers-fit-contract")
def session_cookie(patch: Patch) -> None:
    """Every answer begins a session, as for a browser."""

    def make(original: Function) -> Function:
        def respond(told: Answer) -> Any:
            response = original(told)
            response.headers["Set-Cookie"] = "session=1; HttpOnly"
            patch.slipped()
            return response

        return respond

    patch.wrap(server, "_response", make)


# The envelope


@plant("api-run-without-envelope", scenario="partner-chat", law="answers-fit-contract")
def run_without_envelope(patch: Patch) -> None:
    """The polled run stands bare."""

    def bare(usual: Answer) -> Answer | None:
        assert isinstance(usual.body, dict)
        return replace(usual, body=usual.body["data"])

    patching.answer(patch, patching.RUN, bare)


@plant("api-error-as-text", scenario="changed-input", law="answers-fit-contract")
def error_as_text(patch: Patch) -> None:
    """An error is a text, and its code stands beside it."""

    def body(self: Refusal) -> dict[str, object]:
        patch.slipped()
        return {"success": False, "error": self.message, "code": str(self.code)}

    patch.set(Refusal, "body", body)


@plant(
    "api-html-for-unknown-routes",
    scenario="unknown-routes",
    law=None,
    why="an answer beside the contract, which has no schema to be judged by",
)
def html_for_unknown_routes(patch: Patch) -> None:
    """The web framework tells of unknown routes."""
    page = Answer(404, b"<html><body>404: Not Found</body></html>", {"Content-Type": "text/html"})
    patching.instead(patch, server.PartnerServer, "_answer_unknown", page)


def stamps(patch: Patch, write: Function) -> None:
    """Let `write` make another text of each timestamp."""
    for module in (turn_record, history, parts, runs, attachments):
        patching.changed(patch, module, "timestamp", write)


@plant("api-seconds-without-fraction", scenario="partner-chat", law="answers-fit-contract")
def seconds_without_fraction(patch: Patch) -> None:
    """Times are told to the second."""
    stamps(patch, lambda text: re.sub(r"\.\d+Z", "Z", text))


@plant("api-local-time", scenario="partner-chat", law="answers-fit-contract")
def local_time(patch: Patch) -> None:
    """Times have the offset of the server's place."""
    stamps(patch, lambda text: text.replace("Z", "+02:00"))


# Refusals


@plant("api-foreign-conversation-as-403", scenario="context-of-another", law="conversations-are-ones-own")
def foreign_conversation_as_403(patch: Patch) -> None:
    """A stranger learns that the conversation exists."""

    def make(original: Function) -> Function:
        def own(self: Authority, actor: Actor, conversation_id: str) -> Conversation:
            if self.find_conversation(conversation_id) is not None:
                try:
                    return original(self, actor, conversation_id)  # type: ignore[no-any-return]
                except Refusal:
                    patch.slipped()
                    raise refusals.execution_denied("another's") from None
            return original(self, actor, conversation_id)  # type: ignore[no-any-return]

        return own

    patch.wrap(Authority, "conversation_of", make)


@plant("api-quota-without-org-spend", scenario="budget-spent", law="answers-fit-contract")
def quota_without_org_spend(patch: Patch) -> None:
    """A spent budget is told by its code alone."""
    patching.other_refusal(patch, budget, "quota_exceeded", lambda: Refusal(Code.QUOTA_EXCEEDED))


@plant("api-quota-as-403", scenario="budget-spent", law="answers-fit-contract")
def quota_as_403(patch: Patch) -> None:
    """A spent budget is a denial as any other."""
    patching.other_refusal(
        patch,
        budget,
        "quota_exceeded",
        lambda: Refusal(Code.QUOTA_EXCEEDED, "", {"reason": ORG_SPEND}, status=403),
    )


@plant("api-quota-checked-in-the-run", scenario="budget-spent", law="spent-budget-refuses")
def quota_checked_in_the_run(patch: Patch) -> None:
    """A message is taken whatever was spent."""

    def make(original: Function) -> Function:
        def unasked(state: Any) -> None:
            if original(state) is not None:
                patch.slipped()

        return unasked

    patch.wrap(messages, "budget_refusal", make)


@plant("api-stray-field-ignored", scenario="malformed-calls", law="malformed-is-refused")
def stray_field_ignored(patch: Patch) -> None:
    """What nobody reads is no fault."""

    def done(self: shape.Fields) -> None:
        if any(name not in self._taken for name in self._given):
            patch.slipped()

    patch.set(shape.Fields, "done", done)


@plant("api-actor-query-optional", scenario="malformed-calls", law="malformed-is-refused")
def actor_query_optional(patch: Patch) -> None:
    """A read that names nobody is the owner's."""

    def make(original: Function) -> Function:
        def own(self: Parts, caller: Caller, request: ApiRequest) -> tuple[Actor, Conversation]:
            if "externalUserId" in request.query:
                return original(self, caller, request)  # type: ignore[no-any-return]
            patch.slipped()
            found = self.authority.find_conversation(request.path["conversationId"])
            assert found is not None
            return Actor(found.actor_id, found.team_id, 1, 1), found

        return own

    def named(request: ApiRequest) -> tuple[str, str]:
        return (request.parameter("externalUserId") or "", request.parameter("externalTeamId") or "")

    patch.wrap(Parts, "own_conversation", make)
    patch.set(history, "actor_query_untrusted", named)


@plant("api-lease-unchecked-on-reads", scenario="lapsed-reads", law="no-service-after-denial")
def lease_unchecked_on_reads(patch: Patch) -> None:
    """Whoever may not write may read all the same."""

    def make(original: Function) -> Function:
        def own(self: Parts, caller: Caller, request: ApiRequest) -> tuple[Actor, Conversation]:
            try:
                return original(self, caller, request)  # type: ignore[no-any-return]
            except Refusal as refusal:
                found = self.authority.find_conversation(request.path["conversationId"])
                if refusal.why != "lease lapsed" or found is None:
                    raise
            patch.slipped()
            return Actor(found.actor_id, found.team_id, 1, 1), found

        return own

    patch.wrap(Parts, "own_conversation", make)


@plant("api-configuration-as-500", scenario="no-candidate", law="error-codes-known")
def configuration_as_500(patch: Patch) -> None:
    """What goes wrong with the stores is nobody's error."""

    def internal(usual: Answer) -> Answer | None:
        if usual.code != Code.CHAT_CONFIGURATION:
            return None
        return Answer(500, {"success": False, "error": {"code": "INTERNAL", "message": "Oops."}}, code="INTERNAL")

    patching.refusals(patch, internal)


@plant("api-bind-conflict-as-chat-conflict", scenario="context-recovered", law="answers-fit-contract")
def bind_conflict_as_chat_conflict(patch: Patch) -> None:
    """All conflicts have one code."""
    patching.other_refusal(patch, context, "context_conflict", lambda: refusals.conflict("version"))


@plant(
    "api-error-repeats-input",
    scenario="malformed-calls",
    law=None,
    why="which texts the caller sent, in a refusal of its own",
)
def error_repeats_input(patch: Patch) -> None:
    """The error says which value it did not like."""

    def repeated(usual: Answer) -> Answer | None:
        body: Any = json.loads(json.dumps(usual.body))
        body["error"]["message"] += f" Seen: {seen[-1]}"
        return replace(usual, body=body)

    seen: list[str] = [""]

    def make(original: Function) -> Function:
        def parameter(self: ApiRequest, name: str) -> str | None:
            value: str | None = original(self, name)
            if value is not None:
                seen.append(value)
            return value

        return parameter

    patch.wrap(answers.ApiRequest, "parameter", make)
    patching.refusals(patch, repeated)


# What a provider said


def provider_text(patch: Patch, change: Any) -> None:
    """Let `change` put the provider's own text into the ending of a turn that it failed."""

    def make(original: Function) -> Function:
        def conclude(self: Turn, ending: Ending) -> Any:
            said = next((one.fails for one in self._script.iterations if one.fails), None)
            if ending.error == CHAT_EXECUTION_FAILED and said is not None:
                patch.slipped()
                return original(self, change(ending, said))
            return original(self, ending)

        return conclude

    patch.wrap(Turn, "_conclude", make)


@plant("api-provider-text-in-reason", scenario="provider-fails", law="stop-reason-table")
def provider_text_in_reason(patch: Patch) -> None:
    """The reason of a failed run is what the provider said."""
    provider_text(patch, lambda ending, said: replace(ending, reason=said))


@plant("api-provider-text-in-error-event", scenario="provider-fails", law="error-codes-known")
def provider_text_in_error_event(patch: Patch) -> None:
    """The error event holds what the provider said."""
    provider_text(patch, lambda ending, said: replace(ending, error=said))


# What was removed


@plant("api-removed-history-still-read", scenario="removed-conversation", law="removed-is-gone")
def removed_history_still_read(patch: Patch) -> None:
    """A removal takes the conversation off a list, and no more."""
    patching.instead(patch, controls, "remove", True)


@plant("api-removed-run-still-read", scenario="removed-conversation", law="removed-is-gone")
def removed_run_still_read(patch: Patch) -> None:
    """A removal forgets the runs, which are asked for by their own id."""
    erased = tuple(one for one in removal._ERASED if " runs " not in one and " conversations " not in one)
    patch.set(removal, "_ERASED", erased)
    patch.after(controls, "remove", lambda *_: patch.slipped())

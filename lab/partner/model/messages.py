"""Taking a message: from POST to an accepted run (MSG-*)."""

from __future__ import annotations

import re
import zoneinfo
from dataclasses import dataclass, field
from typing import Final

from lab.journal.events import digest
from lab.partner.model.answers import Answer, ApiRequest, success
from lab.partner.model.attachments import mark_sent, usable_file
from lab.partner.model.authority import Actor, Caller, Conversation
from lab.partner.model.budget import budget_refusal
from lab.partner.model.context import target_of, usable_grant
from lab.partner.model.history import add_user_item
from lab.partner.model.parts import Parts
from lab.partner.model.receipts import Receipt, input_hash
from lab.partner.model.refusals import (
    Refusal,
    conflict,
    file_not_found,
    files_not_allowed,
    invalid,
    nothing_to_say,
    too_many,
    unavailable,
)
from lab.partner.model.runs import Run, accept_run, active_run, find_run, tell_turn
from lab.partner.model.shape import Fields, idempotency_key_untrusted, read_object_untrusted
from lab.partner.model.words import (
    ATTACHMENTS_MAX,
    EXTERNAL_ID_CHARACTERS,
    ID_CHARACTERS,
    MESSAGE_CHARACTERS,
)

OPERATION: Final = "POST /conversations/{conversationId}/messages"
DEFAULT_ZONE: Final = "UTC"
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}", re.ASCII)
_NO_ZONES = ("localtime", "posixrules", "Factory")
"""What lies among the zones and names none."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message as it was asked for."""

    external_user_id: str
    external_team_id: str
    text: str = field(repr=False)
    files: tuple[str, ...]
    zone: str

    def identity(self, conversation_id: str) -> str:
        """What makes another message of it (MSG-029): absent, null and empty lists are equal, their order counts."""
        return input_hash(
            {
                "conversationId": conversation_id,
                "externalUserId": self.external_user_id,
                "externalTeamId": self.external_team_id,
                "message": self.text,
                "attachmentIds": list(self.files),
                "timezone": self.zone,
            }
        )


def post_message(parts: Parts, caller: Caller, request: ApiRequest) -> Answer:
    """POST messages: 202 with the run, before anything of it is executed (MSG-001, MSG-002, MSG-023)."""
    key = idempotency_key_untrusted(request)
    message = read_message_untrusted(parts, request)
    actor = parts.authority.actor_of(caller, message.external_user_id, message.external_team_id)
    conversation = parts.authority.conversation_of(actor, request.path["conversationId"])
    place = parts.place(caller, OPERATION, conversation.conversation_id)
    given = message.identity(conversation.conversation_id)
    with parts.state.transaction():
        # MSG-026: the receipt comes before the test for an active run
        receipt = parts.receipts.find(place, key, given)
        if receipt is not None:
            return _replay(parts, receipt)
        refusal = refuse(parts, conversation, message)
        if refusal is not None:
            # MSG-025, PA-051: no run, and the key stays unused
            raise refusal
        run = _accept(parts, caller, actor, conversation, message)
        parts.receipts.keep(place, key, given, Receipt(run.conversation_id, run.run_id, {}), parts.now_ms())
    facts = {"message": digest("message", message.text), "files": len(message.files)}
    tell_turn(parts, run, "accepted", status=run.status, facts=facts)
    parts.bell.ring()
    return _accepted(run, facts)


def read_message_untrusted(parts: Parts, request: ApiRequest) -> Message:
    """The fields of a message. Neither text nor a file is VALIDATION_ERROR (AT-030); all else is CHAT_INVALID."""
    fields = Fields(read_object_untrusted(request), parts.settings.strict_json)
    message = Message(
        fields.text("externalUserId", EXTERNAL_ID_CHARACTERS),
        fields.text("externalTeamId", EXTERNAL_ID_CHARACTERS),
        fields.optional_text("message", MESSAGE_CHARACTERS) or "",
        fields.optional_texts("attachmentIds", ID_CHARACTERS),
        _zone_untrusted(fields.optional_text("timezone", EXTERNAL_ID_CHARACTERS)),
    )
    fields.done()
    if len(set(message.files)) < len(message.files):
        # AT-036
        raise invalid("attachmentIds")
    if not message.text.strip() and not message.files:
        raise nothing_to_say("neither text nor file")
    return message


def refuse(parts: Parts, conversation: Conversation, message: Message) -> Refusal | None:
    """Why the state does not take the message now: attachments, context, active run, budget (PA-050)."""
    # AT-045: guest, too many, not found
    if message.files and conversation.guest:
        return files_not_allowed("guest")
    if len(message.files) > ATTACHMENTS_MAX:
        return too_many("attachmentIds")
    if any(usable_file(parts, conversation.conversation_id, file) is None for file in message.files):
        return file_not_found("attachmentIds")
    if target_of(conversation) is not None:
        # CX-025; a conversation without a store needs no grant (CV-008)
        grant = usable_grant(parts, conversation)
        if isinstance(grant, Refusal):
            return grant
    if active_run(parts.state, conversation.conversation_id) is not None:
        return conflict("active run")
    return budget_refusal(parts.state)


def _accept(parts: Parts, caller: Caller, actor: Actor, conversation: Conversation, message: Message) -> Run:
    run = accept_run(parts, caller, actor, conversation, message.text, message.files, message.zone)
    mark_sent(parts.state, message.files)
    add_user_item(parts, run)
    return run


def _replay(parts: Parts, receipt: Receipt) -> Answer:
    """MSG-005, MSG-027: the first run with its present status."""
    run = None if receipt.run_id is None else find_run(parts.state, receipt.run_id)
    if run is None:
        raise unavailable("removed run")
    return _accepted(run, {}, replay=True)


def _accepted(run: Run, facts: dict[str, object], *, replay: bool = False) -> Answer:
    told = {"status": str(run.status), "reason": run.reason, "turnId": run.turn_id, **facts}
    return success(
        202, run.to_json(), conversation_id=run.conversation_id, run_id=run.run_id, replay=replay, facts=told
    )


def _zone_untrusted(name: str | None) -> str:
    """An IANA zone, UTC when none was named (MSG-030)."""
    if name is None:
        return DEFAULT_ZONE
    if not _ZONE.fullmatch(name) or name in _NO_ZONES or name.startswith(("posix/", "right/")):
        raise invalid("timezone")
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise invalid("timezone") from None
    return name

"""Files: upload, content, and the end of those that no message used (AT-*)."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final

from lab.clock import timestamp
from lab.journal.events import digest
from lab.partner.model.answers import Answer, ApiRequest, Upload, success
from lab.partner.model.attachment_rules import KIND_OF_TYPE, UNSENT_LIFE_MS, clean_name, has_lapsed, mime_type
from lab.partner.model.authority import Caller
from lab.partner.model.parts import Parts
from lab.partner.model.refusals import (
    file_not_found,
    files_not_allowed,
    invalid,
    too_large,
    type_not_supported,
    unavailable,
)
from lab.partner.model.shape import actor_fields_untrusted
from lab.partner.model.state import State
from lab.partner.model.words import ATTACHMENT_BYTES, Scope

# AT-020, AT-021, AT-022
PROTECTION: Final = {
    "Cache-Control": "private, no-store",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
}
_COLUMNS = "attachment_id, conversation_id, kind, mime_type, name, size, sent, created_ms"


def post_attachment(parts: Parts, caller: Caller, request: ApiRequest) -> Answer:
    """POST attachments: 201 with the file's description (AT-001, AT-002)."""
    upload = request.body
    if not isinstance(upload, Upload) or upload.fault is not None:
        raise invalid("multipart" if not isinstance(upload, Upload) else str(upload.fault))
    user, team = actor_fields_untrusted(upload)
    part = upload.file
    if part is None or part.size == 0:
        # AT-039
        raise invalid("file")
    actor = parts.authority.actor_of(caller, user, team)
    conversation = parts.authority.conversation_of(actor, request.path["conversationId"])
    # AT-045: guest, size, type
    if conversation.guest:
        raise files_not_allowed("guest")
    if part.size > ATTACHMENT_BYTES:
        raise too_large("size")
    kind = mime_type(part.content_type)
    if kind is None:
        raise type_not_supported("type")
    attachment_id = parts.ids.uuid()
    parts.state.run(
        "INSERT INTO attachments (attachment_id, conversation_id, actor_id, kind, mime_type, name, size, content, "
        "created_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        attachment_id,
        conversation.conversation_id,
        actor.actor_id,
        KIND_OF_TYPE[kind],
        kind,
        clean_name(part.filename),
        part.size,
        part.content,
        parts.now_ms(),
    )
    # The bell sets the timer of the sweep.
    parts.bell.ring()
    (data,) = attachments_by_id(parts.state, [attachment_id])
    facts = {"id": attachment_id, "mimeType": kind, "file": digest("file", part.content)}
    return success(201, data, conversation_id=conversation.conversation_id, facts=facts)


def get_content(parts: Parts, caller: Caller, request: ApiRequest) -> Answer:
    """GET content: the bytes, with protective headers (AT-018…022). A Range is not looked at (AT-048)."""
    conversation_id = request.path["conversationId"]
    if Scope.CONVERSATION_READ in caller.scopes:
        # AT-034: any conversation of the organization, without an actor
        found = parts.authority.find_conversation(conversation_id)
        if found is None:
            raise unavailable("conversation")
    else:
        parts.own_conversation(caller, request)
    row = usable_file(parts, conversation_id, request.path["attachmentId"])
    if row is None:
        raise file_not_found("content")
    content = parts.state.row("SELECT content FROM attachments WHERE attachment_id = ?", row["attachment_id"])
    raw = b"" if content is None else bytes(content["content"])
    facts = {"id": row["attachment_id"], "mimeType": row["mime_type"], "file": digest("file", raw)}
    headers = {"Content-Type": row["mime_type"], **PROTECTION}
    return Answer(200, raw, headers, conversation_id=conversation_id, facts=facts)


def usable_file(parts: Parts, conversation_id: str, attachment_id: str) -> sqlite3.Row | None:
    """A file of this conversation that is not over its hour (AT-015, AT-016, AT-041); without its content."""
    row = parts.state.row(
        f"SELECT {_COLUMNS} FROM attachments WHERE attachment_id = ? AND conversation_id = ?",  # noqa: S608  own words
        attachment_id,
        conversation_id,
    )
    if row is None or (not row["sent"] and has_lapsed(row["created_ms"], parts.now_ms())):
        return None
    return row


def attachments_by_id(state: State, ids: Sequence[str]) -> list[dict[str, object]]:
    """`Attachment` of the contract for each id, in this order (AT-046)."""
    found = []
    for attachment_id in ids:
        row = state.row(
            f"SELECT {_COLUMNS} FROM attachments WHERE attachment_id = ?",  # noqa: S608  own words
            attachment_id,
        )
        if row is not None:
            found.append(_to_json(row))
    return found


def mark_sent(state: State, ids: Sequence[str]) -> None:
    """These files belong to a message now and stay (AT-010, AT-024)."""
    for attachment_id in ids:
        state.run("UPDATE attachments SET sent = 1 WHERE attachment_id = ?", attachment_id)


def sweep(parts: Parts) -> int:
    """Delete the files that no message used within their hour (AT-010); how many they were."""
    oldest = parts.now_ms() - UNSENT_LIFE_MS
    swept = parts.state.run("DELETE FROM attachments WHERE sent = 0 AND created_ms < ?", oldest)
    if swept:
        parts.state.forget_erased()
    return swept


def next_sweep_ms(state: State) -> int | None:
    """When the next file lapses, in epoch milliseconds of the model's clock; None without one."""
    row = state.row("SELECT MIN(created_ms) AS oldest FROM attachments WHERE sent = 0")
    return None if row is None or row["oldest"] is None else int(row["oldest"]) + UNSENT_LIFE_MS + 1


def _to_json(row: sqlite3.Row) -> dict[str, object]:
    return {
        "id": row["attachment_id"],
        "kind": row["kind"],
        "mimeType": row["mime_type"],
        "name": row["name"],
        "size": row["size"],
        "createdAt": timestamp(row["created_ms"]),
    }

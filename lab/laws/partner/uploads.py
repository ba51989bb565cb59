"""The laws of files: which are taken, what is told of them, and which a message may name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from lab.laws.partner.promise import Bench, promise
from lab.laws.partner.seen import CallAt, Conversation, key, sha_of
from lab.laws.partner.view import PartnerView
from lab.laws.partner.words import PARTNER_API

KINDS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("image/png", "image/jpeg", "image/gif", "image/webp"), "image"),
        **dict.fromkeys(("text/plain", "text/markdown", "text/csv", "application/json"), "text"),
    }
)
"""The kind of each type that is taken (AT-004, AT-006)."""

MOST_BYTES = 3 * 1024 * 1024
"""AT-008."""
MOST_FILES = 5
"""AT-009."""

TOO_LARGE = "CHAT_ATTACHMENT_TOO_LARGE"
NO_TYPE = "CHAT_ATTACHMENT_TYPE_NOT_SUPPORTED"
TOO_MANY = "CHAT_ATTACHMENT_TOO_MANY"
NOT_FOUND = "CHAT_ATTACHMENT_NOT_FOUND"


def _uploads(view: PartnerView, bench: Bench) -> None:
    for conversation in view.conversations.values():
        for call in conversation.of("upload"):
            size, media = call.sent.get("bytes"), call.sent.get("mimeType")
            if call.answered and isinstance(size, int) and isinstance(media, str):
                _judge_upload(bench, call, size, media.partition(";")[0].strip().lower())


def _judge_upload(bench: Bench, call: CallAt, size: int, media: str) -> None:
    seen = f"{call.event.status} {call.event.code or ''} for a file of {size} bytes as {media}"
    if size > MOST_BYTES:
        bench.case(not call.ok, seen, f"413 {TOO_LARGE}", call.n)
    elif size and media not in KINDS:
        bench.case(not call.ok, seen, f"415 {NO_TYPE}", call.n)
    elif size:
        bench.case(call.event.code not in (TOO_LARGE, NO_TYPE), seen, "201", call.n)
    if not call.ok:
        return
    told = {name: call.answer.get(name) for name in ("size", "kind", "mimeType")}
    due = {"size": size, "kind": KINDS.get(media), "mimeType": media}
    for name, value in told.items():
        bench.case(value == due[name], f"{name} {value} of a file", f"{due[name]}", call.n)
    named = sha_of(call.sent.get("name")), sha_of(call.answer.get("name"))
    if None not in named:
        # AT-038
        bench.case(named[0] == named[1], "another name than the file's own", "its base name", call.n)


def _named_files(view: PartnerView, bench: Bench) -> None:
    foreign = {key(one.answer.get("id")): one.event.conversation_id for one in view.of("upload") if one.ok}
    for conversation in view.conversations.values():
        for call in conversation.of("message"):
            ids = call.sent.get("attachmentIds")
            if call.answered and isinstance(ids, list | tuple) and ids:
                _judge_message(bench, conversation, call, list(ids), foreign)


def _judge_message(
    bench: Bench, conversation: Conversation, call: CallAt, ids: list[object], homes: Mapping[object, object]
) -> None:
    others = [one for one in ids if homes.get(key(one), conversation.conversation_id) != conversation.conversation_id]
    seen = f"{call.event.status} {call.event.code or ''} for a message"
    if len(ids) > MOST_FILES:
        fine = call.event.code in (TOO_MANY, "CHAT_UNAVAILABLE", "EXECUTION_DENIED", "CHAT_INVALID")
        bench.case(not call.ok and fine, f"{seen} with {len(ids)} files", f"400 {TOO_MANY}", call.n)
    elif others:
        fine = not call.ok and call.event.code not in ("CHAT_INVALID", "VALIDATION_ERROR")
        bench.case(fine, f"{seen} with a file of another conversation", f"404 {NOT_FOUND}", call.n)
    else:
        bench.case(call.event.code != TOO_MANY, f"{seen} with {len(ids)} files", "202", call.n)


LAWS = (
    promise(
        "uploads-judged",
        "A file is taken by its type and size, and told with its own size, kind and name",
        PARTNER_API,
        ("AT-002", "AT-004", "AT-006", "AT-008", "AT-026", "AT-027", "AT-038"),
        _uploads,
    ),
    promise(
        "named-files-known",
        "A message may name five files, and those of its own conversation alone",
        PARTNER_API,
        ("AT-009", "AT-013", "AT-015", "AT-016", "AT-028", "AT-029", "PRIV-011"),
        _named_files,
    ),
)

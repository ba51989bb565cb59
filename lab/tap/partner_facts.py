"""What of the partner API's answers may stand in a journal: ids, numbers and safe words; all content as digests.

The list of members is closed, and each is kept by its form, so that a text in the place of an id is never written down.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from lab.journal.events import digest
from lab.journal.partner_events import fingerprint
from lab.journal.redaction import digest_of

UNKNOWN = "*"
"""The member under which the digest of all unlisted members stands."""

MOST_LISTED = 1000
"""A longer list stands as one digest."""

Keep = Callable[[Any], Any]

_WORD = re.compile(r"[A-Za-z0-9._:+-]{1,128}", re.ASCII)
_URL = re.compile(r"https?://[A-Za-z0-9.:\[\]-]{1,255}(/[A-Za-z0-9._/-]{0,255})?", re.ASCII)
_TYPE = re.compile(r"[a-z0-9.+-]{1,64}/[a-z0-9.+-]{1,64}( *; *[a-z0-9-]{1,32}=[A-Za-z0-9\"._-]{1,64}){0,3}", re.ASCII)
_LARGEST = 2**53


def _form(pattern: re.Pattern[str]) -> Keep:
    def keep(value: Any) -> Any:
        if isinstance(value, str):
            return value if pattern.fullmatch(value) else digest("text", value)
        return value if value is None else digest_of("value", value)

    return keep


def _number(value: Any) -> Any:
    plain = value is None or isinstance(value, bool)
    if plain or (isinstance(value, int | float) and -_LARGEST <= value <= _LARGEST):
        return value
    return digest_of("number", value)


def _hidden(kind: str) -> Keep:
    return lambda value: None if value is None else digest_of(kind, value)


def _sealed(value: Any) -> Any:
    return fingerprint(value) if isinstance(value, str) else _hidden("secret")(value)


def _each(item: Keep) -> Keep:
    def keep(value: Any) -> Any:
        if not isinstance(value, list) or len(value) > MOST_LISTED:
            return value if value is None else digest_of("list", value)
        return tuple(item(one) for one in value)

    return keep


def _object(**members: Keep) -> Keep:
    def keep(value: Any) -> Any:
        if not isinstance(value, dict):
            return value if value is None else digest_of("value", value)
        kept = {name: rule(value[name]) for name, rule in members.items() if name in value}
        other = {name: member for name, member in value.items() if name not in members}
        if other:
            kept[UNKNOWN] = digest_of("unlisted", other)
        return kept

    return keep


_word, _url, media_type = _form(_WORD), _form(_URL), _form(_TYPE)
_text = _hidden("text")
_STAGES = (
    *("complete", "queuedMs", "admissionMs", "lockMs", "agentMs", "promptMs", "toolSetupMs", "workerMs"),
    *("classificationMs", "setupMs", "modelMs", "toolMs", "historyMs", "otherMs", "totalMs"),
)
_COUNTERS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")
_counters = dict.fromkeys(_COUNTERS, _number)
_iteration = _object(
    **dict.fromkeys(("wallMs", "modelMs", "firstTokenMs", "toolMs"), _number),
    tools=_each(_object(durationMs=_number)),
    usage=_object(**_counters, cacheWrite1hTokens=_number),
)
_timings = _object(**dict.fromkeys(_STAGES, _number), iterations=_each(_iteration))
_usage = _object(
    **_counters,
    model=_word,
    costUsd=_word,
    priceSide=_word,
    kinds=_each(_object(kind=_word, costUsd=_word)),
    models=_each(_object(**_counters, model=_word, costUsd=_word)),
)
_tool_errors = _each(_object(toolCallId=_word, name=_word, errorCode=_word))
_attachment = {
    **dict.fromkeys(("id", "kind", "createdAt"), _word),
    "mimeType": media_type,
    "size": _number,
    "name": _hidden("file-name"),
}


def _id_of(value: Any) -> Any:
    return _word(value.get("id")) if isinstance(value, dict) else digest_of("value", value)


_item = _object(
    **dict.fromkeys(("id", "turnId", "role", "createdAt"), _word),
    text=_text,
    attachments=_each(_id_of),
    parts=_each(_object(type=_word, text=_text, toolCallId=_word, name=_word, status=_word)),
)
_data = _object(
    **_attachment
    | dict.fromkeys(
        (
            *("actorId", "teamId", "agentId", "conversationId", "runId", "turnId"),
            *("role", "status", "reason", "validUntil", "expiresAt"),
        ),
        _word,
    )
    | dict.fromkeys(("sourceRevision", "subjectVersion", "membershipVersion", "version", "active"), _number),
    mcp=_object(serverId=_word, destination=_url),
    grant=_sealed,
    items=_each(_item),
    nextCursor=_sealed,
    toolErrors=_tool_errors,
    timings=_timings,
    usage=_usage,
)
_event = _object(
    **dict.fromkeys(("type", "turnId", "ts", "name", "toolCallId", "error", "stopReason", "status", "reason"), _word),
    code=_word,
    ok=_number,
    text=_text,
    detail=_hidden("detail"),
    toolErrors=_tool_errors,
    timings=_timings,
    usage=_usage,
)
_error = _object(
    code=_word,
    reason=_word,
    acceptedTypes=_each(media_type),
    maxBytes=_number,
    message=_hidden("message"),
)

_sent = _object(
    **dict.fromkeys(
        (
            *("externalUserId", "externalTeamId", "agentId", "serverId", "conversationId", "actorId", "teamId"),
            *("role", "validUntil", "expiresAt"),
        ),
        _word,
    )
    | dict.fromkeys(("sourceRevision", "active", "expectedVersion", "limit", "bytes"), _number),
    destination=_url,
    timezone=_form(re.compile(r"[A-Za-z0-9_+-]{1,32}(/[A-Za-z0-9_+-]{1,32}){0,2}", re.ASCII)),
    grant=_sealed,
    cursor=_sealed,
    message=_hidden("message"),
    attachmentIds=_each(_word),
    mimeType=media_type,
    sha256=_word,
    name=_hidden("file-name"),
)


def of_sent(members: Any) -> Mapping[str, Any]:
    """What a journal keeps of a request's body or query. Never raises."""
    return _members(_sent(members))


def of_data(data: Any) -> Mapping[str, Any]:
    """What a journal keeps of the `data` of an answer, or of the issuer's bare answer. Never raises."""
    return _members(_data(data))


def of_error(error: Any) -> Mapping[str, Any]:
    """What it keeps of the `error` of a refusal; the code stands elsewhere, the message nowhere."""
    kept = dict(_members(_error(error)))
    kept.pop("code", None)
    kept.pop("message", None)
    return kept


def of_event(data: Any) -> Mapping[str, Any]:
    """What it keeps of an event's data; the id of a tool call under the name that it has everywhere else."""
    if isinstance(data, dict) and "id" in data:
        data = {**{name: value for name, value in data.items() if name != "id"}, "toolCallId": data["id"]}
    kept = dict(_members(_event(data)))
    kept.pop("type", None)
    return kept


def _members(kept: Any) -> Mapping[str, Any]:
    if not isinstance(kept, dict):
        return {} if kept is None else {UNKNOWN: kept}
    # A digest in the place of an object is one as well.
    return {UNKNOWN: kept} if kept.keys() == {"kind", "bytes", "sha256"} else kept

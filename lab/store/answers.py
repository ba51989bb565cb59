"""From a message to what is written: JSON or SSE, whole or damaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lab.store.exchange import Delivery, Ending
from lab.store.misbehaviour import Misbehaviour, Wrong
from lab.store.rpc import JsonObject, encode
from lab.store.sessions import Session
from lab.store.settings import Form

Fields = tuple[tuple[str, str], ...]

_JSON: Fields = (("Content-Type", "application/json"), ("Cache-Control", "no-store"))
_SSE: Fields = (
    ("Content-Type", "text/event-stream"),
    ("Cache-Control", "no-store"),
    # No proxy on the way may hold events back.
    ("X-Accel-Buffering", "no"),
)

# Before this version a client need not know an event without data.
PRIMED_VERSION = "2025-11-25"
RETRY_MS = 250
"""After so long a client is asked to come back for the rest."""

_ID_SHIFT = 1_000_003


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer before it takes its form. On a stream `before` goes ahead of it, and `session` numbers its events."""

    status: int
    message: JsonObject | None = None
    headers: Fields = ()
    before: tuple[JsonObject, ...] = ()
    form: Form = Form.JSON
    session: Session | None = None


def deliver(reply: Reply, rule: Misbehaviour | None = None) -> Delivery:
    """What is written for it, damaged as `rule` says."""
    if rule is None:
        return _formed(reply)
    wrong = rule.wrong
    if wrong is Wrong.SLOW:
        return replace(_formed(reply), wait=rule.seconds)
    if wrong is Wrong.HANG:
        return Delivery(0, ending=Ending.NEVER)
    if wrong is Wrong.CUT:
        return Delivery(0, ending=Ending.CUT)
    if reply.message is None:
        return _formed(reply)
    if wrong in (Wrong.SSE_CUT, Wrong.SSE_CUT_WITH_ID):
        return _cut_stream(reply, wrong is Wrong.SSE_CUT_WITH_ID)
    if wrong is Wrong.EMPTY_ARRAY:
        return _body(reply, b"[]")
    if wrong is Wrong.TRUNCATED_JSON:
        return _body(reply, _half(encode(reply.message)))
    if wrong is Wrong.RESET:
        whole = encode(reply.message)
        return replace(_body(reply, _half(whole)), length=len(whole), ending=Ending.RESET)
    return _formed(replace(reply, message=_twisted(reply.message, rule)))


def listening(session: Session) -> Delivery:
    """The session's own stream, which stays open."""
    return Delivery(200, _SSE, streamed=True, listening=session)


def resumed(events: Sequence[tuple[str, bytes]]) -> Delivery:
    """The rest of a stream that was cut."""
    return Delivery(200, _SSE, tuple(_event(payload, event_id) for event_id, payload in events), streamed=True)


def _formed(reply: Reply) -> Delivery:
    if reply.message is None:
        return Delivery(reply.status, reply.headers)
    if reply.form is Form.JSON:
        return _body(reply, encode(reply.message))
    return Delivery(reply.status, _SSE + reply.headers, tuple(_events(reply)), streamed=True)


def _events(reply: Reply) -> list[bytes]:
    payloads = [encode(message) for message in (*reply.before, *([] if reply.message is None else [reply.message]))]
    session = reply.session
    if session is None:
        return [_event(payload) for payload in payloads]
    if session.version >= PRIMED_VERSION:
        # An id before there is anything to say, so that a client can come back for all of it.
        payloads.insert(0, b"")
    return [_event(payload, event_id) for event_id, payload in session.number(payloads)]


def _cut_stream(reply: Reply, with_id: bool) -> Delivery:
    """The head of a stream, and no answer. With an id the rest can be asked for; without one it is lost."""
    chunks = [b": working\n\n"]
    if with_id and reply.session is not None:
        payloads = [b"", *map(encode, reply.before), encode(reply.message or {})]
        event_id, _ = reply.session.number(payloads)[0]
        chunks = [b"id: %s\nretry: %d\ndata: \n\n" % (event_id.encode(), RETRY_MS)]
    return Delivery(reply.status, _SSE + reply.headers, tuple(chunks), streamed=True, ending=Ending.CUT)


def _body(reply: Reply, body: bytes) -> Delivery:
    return Delivery(reply.status, _JSON + reply.headers, (body,), length=len(body))


def _event(payload: bytes, event_id: str | None = None) -> bytes:
    number = b"" if event_id is None else f"id: {event_id}\n".encode()
    # What primes a stream is no message.
    name = b"event: message\n" if payload else b""
    return name + number + b"data: " + payload + b"\n\n"


def _half(body: bytes) -> bytes:
    return body[: len(body) // 2]


def _twisted(message: JsonObject, rule: Misbehaviour) -> JsonObject:
    if rule.wrong is Wrong.WRONG_ID:
        given = message.get("id")
        return {**message, "id": given + _ID_SHIFT if isinstance(given, int) else f"{given}-other"}
    if rule.wrong is Wrong.PROTOCOL_ERROR:
        return {"answer": message.get("result"), "id": message.get("id")}
    if rule.wrong is Wrong.HUGE_ANSWER and isinstance(result := message.get("result"), dict):
        content = [*result.get("content", ()), {"type": "text", "text": "x" * rule.size}]
        return {**message, "result": {**result, "content": content}}
    return message

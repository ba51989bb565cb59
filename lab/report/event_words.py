"""Events in words: a line of a timeline each. Only metadata that is known to be such is told (SEC-012)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lab.journal.events import (
    Agent2Frame,
    Agent2Job,
    Agent2Line,
    Agent2Request,
    Agent2Stream,
    BodyAnswered,
    CallFailed,
    Event,
    FaultFired,
    Frame,
    JobAssigned,
    LinkChanged,
    SessionChanged,
    SocketClosed,
    SocketOpened,
    SocketRefused,
    StepEnded,
    StepStarted,
    SutChanged,
    SutOutput,
    TextMessage,
    Undelivered,
)
from lab.report.numbers import plural
from lab.report.partner_words import partner_words

ARROWS = {"la-to-cp": "→", "cp-to-la": "←"}
LEGEND = "frames → from the agent   ← from the gateway   ▸ what the finding names"
PARTNER_LEGEND = "around it   ▸ what the finding names"
MESSAGE_ID_SHOWN = 8
"""Characters of a msgId that tell two messages of a run apart."""

_SIGNATURE_WRONGS = {
    "verified": "bad signature",
    "bound": "signature bound to something else",
    "equal": "paramsRaw differs from the payload",
}
_TOLD_MEMBERS = ("status", "ackSeq", "kind", "state", "outcome", "code", "errorCode")


@dataclass(frozen=True)
class Words:
    """What happened, and its details."""

    text: str
    note: str = ""


def words_of(event: Event, first: int | None = None) -> Words:
    """The words for an event, its kind where there are none. `first` is the entry that a frame repeats."""
    if isinstance(event, Frame):
        return _frame(event, first)
    words = _at_agent2(event) or _on_the_wire(event) or _of_the_run(event)
    if words is None:
        partner = partner_words(event)
        words = Words(event.kind) if partner is None else Words(*partner)
    return words


def _on_the_wire(event: Event) -> Words | None:
    match event:
        case BodyAnswered():
            held = "turn" if event.content == "chat.session" else "event"
            count = plural(len(event.facts.get(f"{held}s", ())), held)
            return Words(f"{event.content} body", f"{event.status} · {event.bytes} bytes · {count}")
        case SessionChanged():
            detail = " ".join(f"{name}={value}" for name, value in event.detail.items())
            return Words(f"session {event.state}", detail)
        case SocketOpened():
            return Words(f"socket {event.conn} opened", event.agent)
        case SocketClosed():
            how = "without a close frame" if event.code is None else f"code {event.code} by {event.by}"
            return Words(f"socket {event.conn} closed", how)
        case SocketRefused():
            return Words("socket refused", f"HTTP {event.status}")
        case TextMessage():
            return Words(f"{ARROWS.get(event.direction, '')} text {event.text}", f"{event.size} bytes")
        case LinkChanged():
            return Words(f"link {event.link} {event.change}", event.toxic)
        case Undelivered():
            return Words(f"{event.type} not delivered", event.code)
    return None


def _at_agent2(event: Event) -> Words | None:
    match event:
        case Agent2Request():
            return Words(f"{event.method} {event.route}", f"HTTP {event.status}")
        case Agent2Stream():
            return Words(f"agent2's {event.stream} {event.change}", f"reader {event.reader} · {event.sent} sent")
        case Agent2Job():
            return Words(f"job {event.state} at agent2", event.job_kind)
        case Agent2Line():
            return Words(f"agent2's line {event.i}", f"{event.chars} characters")
        case Agent2Frame():
            return Words(f"agent2's {event.type}", " · ".join([f"seq {event.seq}", *_members(event.payload)]))
    return None


def _of_the_run(event: Event) -> Words | None:
    match event:
        case FaultFired():
            return Words(f"⚡ {event.what} {event.target}")
        case StepStarted():
            return Words(event.title)
        case StepEnded():
            return Words(f"step {event.outcome}")
        case JobAssigned():
            return Words(f"job {event.label} assigned", event.job_kind)
        case CallFailed():
            return Words(f"call {event.call} failed", event.code)
        case SutChanged():
            return Words(f"program {event.change}", " ".join(f"{name}={value}" for name, value in event.detail.items()))
        case SutOutput():
            return Words(f"a line on its {event.stream}", " ".join(f"canary {canary}" for canary in event.canaries))
    return None


def _frame(frame: Frame, first: int | None) -> Words:
    numbers = _fate(frame)
    numbers += [f"{word} {value}" for word, value in (("seq", frame.seq or None), ("ack", frame.ack)) if value]
    if frame.msg_id is not None:
        numbers.append(f"msg {frame.msg_id[:MESSAGE_ID_SHOWN]}")
    if frame.chunk is not None:
        numbers.append(f"chunk {frame.chunk['index'] + 1}/{frame.chunk['total']}")
    numbers += _members(frame.payload)
    # A frame of v1 has no version, and breaks every rule of v2.
    numbers += _wrongs(frame.facts) if frame.version is not None or frame.type is None else ["without a version"]
    if first is not None:
        numbers.append(f"again, first at {first}")
    numbers.append(f"{frame.size} bytes")
    return Words(f"{ARROWS.get(frame.direction, '')} {frame.type or '(no frame)'}", " · ".join(numbers))


def _members(payload: Mapping[str, object]) -> list[str]:
    # Digests stand in the place of what is no identifier, and are not told.
    told = ((member, payload.get(member)) for member in _TOLD_MEMBERS)
    return [f"{member} {value}" for member, value in told if isinstance(value, str | int)]


def _fate(frame: Frame) -> list[str]:
    """What the lab did with a frame on purpose."""
    words = [] if frame.fate == "passed" else [frame.fate]
    words += [f"by {frame.fault}"] if frame.fault is not None else []
    return [" ".join(words)] if words else []


def _wrongs(facts: Mapping[str, object]) -> list[str]:
    """What the witness found wrong with a frame."""
    wrongs = [str(facts[name]) for name in ("size", "type", "tenant", "agent") if facts.get(name, "ok") != "ok"]
    wrongs += ["no JSON object"] if facts.get("parse", "ok") != "ok" else []
    wrongs += ["not for this side to send"] if facts.get("direction") is False else []
    schema = facts.get("schema", "ok")
    if isinstance(schema, Mapping):
        wrongs.append(f"schema_violation at {schema.get('path') or 'the frame'} ({schema.get('keyword')})")
    signature = facts.get("signature")
    if isinstance(signature, Mapping) and signature.get("present"):
        wrongs += [words for name, words in _SIGNATURE_WRONGS.items() if signature.get(name) is False]
    return wrongs

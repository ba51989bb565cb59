"""Events of the partner leg in words. Of what they hold only ids, codes and numbers are told (SEC-012)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lab.journal.events import Event
from lab.journal.partner_events import (
    IssuerRequest,
    PartnerAnswerText,
    PartnerCall,
    PartnerDelivery,
    PartnerEvent,
    PartnerRequest,
    PartnerStream,
    PartnerTurn,
    StoreRequest,
)
from lab.report.numbers import plural

LISTED = (PartnerCall, PartnerStream, PartnerEvent, StoreRequest, IssuerRequest)
"""What stands around a finding: all that the doubles around a partner API see."""

_TOLD = ("name", "ok", "stopReason", "status", "reason", "code")
"""Members of an event's data that are the contract's own words."""


def partner_words(event: Event) -> tuple[str, str] | None:
    """What happened and its details; None for an event of the other leg."""
    match event:
        case PartnerCall():
            return f"{event.route}", _joined(_answer(event), _again(event.attempt), *_faults(event.misses, event.leaks))
        case PartnerStream():
            after = "" if event.last_event_id is None else f"after {event.last_event_id}"
            told = str(event.code or event.status or "") if event.change == "refused" else ""
            return f"stream {event.stream} {event.change}", _joined(after, told, plural(event.events, "event"))
        case PartnerEvent():
            number = "without a number" if event.sequence is None else f"{event.sequence}"
            applied = "" if event.applied else "had already"
            told = _joined(*_members(event.facts), applied, *_faults(event.misses, event.leaks))
            return f"event {number} {event.type or event.name}", told
        case PartnerAnswerText():
            return "the answer joined", _joined(plural(event.events, "event"), f"{event.outcome} by {event.source}")
        case PartnerRequest():
            return f"model: {event.route}", _joined(str(event.status), event.code or "")
        case PartnerTurn():
            return f"turn {event.change}", _joined(event.status, event.reason or "", event.call_id or "")
        case PartnerDelivery():
            return f"delivery {event.stream} {event.change}", f"{event.sent} sent"
        case StoreRequest():
            return f"store: {event.tool or event.method or event.http}", _store(event)
        case IssuerRequest():
            return f"issuer: {event.route}", _joined(str(event.status), event.code or "")
    return None


def _answer(call: PartnerCall) -> str:
    return _joined(str(call.status), call.code or "") if call.error is None else f"no answer: {call.error}"


def _again(attempt: int) -> str:
    return "" if attempt == 1 else f"try {attempt}"


def _store(request: StoreRequest) -> str:
    did = "ran" if request.executed else "answered from the first result" if request.duplicate else ""
    refused = f"refused: {request.refused}" if request.refused else ""
    wrong = f"by order: {request.misbehaved}" if request.misbehaved else ""
    return _joined(str(request.status) if request.status else "torn", did, refused, wrong, request.call_id or "")


def _faults(misses: tuple[str, ...], leaks: tuple[str, ...]) -> tuple[str, ...]:
    return (*(f"misses {miss}" for miss in misses), *(f"holds {leak}" for leak in leaks))


def _members(facts: Mapping[str, Any]) -> list[str]:
    told = ((name, facts.get(name)) for name in _TOLD)
    return [
        f"{name} {str(value).lower() if isinstance(value, bool) else value}" for name, value in told if _is_word(value)
    ]


def _is_word(value: object) -> bool:
    return isinstance(value, str | int)


def _joined(*parts: str) -> str:
    return " · ".join(part for part in parts if part)

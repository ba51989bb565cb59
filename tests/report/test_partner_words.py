"""Events of the partner leg in words."""

from __future__ import annotations

import pytest

from lab.journal.events import Event, RunEnded, digest
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
from lab.report.partner_words import LISTED, partner_words
from tests.run.made import frame

CALL = ("driver-1", "PUT /memberships")
STORE = StoreRequest("POST", "2025", "tools/call", 200, tool="catalog_get", executed=True, call_id="r1:1")


@pytest.mark.parametrize(
    ("event", "text", "note"),
    [
        (PartnerCall(*CALL, 200), "PUT /memberships", "200"),
        (PartnerCall(*CALL, 409, code="CHAT_CONFLICT", attempt=2), "PUT /memberships", "409 · CHAT_CONFLICT · try 2"),
        (PartnerCall(*CALL, 0, error="reset"), "PUT /memberships", "no answer: reset"),
        (PartnerCall(*CALL, 200, misses=("a/b",), leaks=("chatKey",)), CALL[1], "200 · misses a/b · holds chatKey"),
        (STORE, "store: catalog_get", "200 · ran · r1:1"),
        (StoreRequest("GET", "2025", None, 0, misbehaved="reset"), "store: GET", "torn · by order: reset"),
        (
            StoreRequest("POST", "2026", "ping", 403, refused="session"),
            "store: ping",
            "403 · refused: session",
        ),
        (
            StoreRequest("POST", "2025", "tools/call", 200, tool="t", duplicate=True),
            "store: t",
            "200 · answered from the first result",
        ),
        (IssuerRequest("grants", 404, code="not_found"), "issuer: grants", "404 · not_found"),
        (PartnerRequest("GET", "GET /conversations", 200), "model: GET /conversations", "200"),
    ],
)
def test_an_exchange(event: Event, text: str, note: str) -> None:
    assert partner_words(event) == (text, note)


def test_an_event_tells_the_contracts_own_words_alone() -> None:
    """SEC-012: what else a member holds may be content."""
    facts = {"name": "catalog_get", "ok": False, "status": "failed", "text": "a secret", "reason": ["a secret"]}
    event = PartnerEvent(1, "r1", "r1:4", 4, "tool_ended", "tool_ended", "0" * 64, False, facts, ("x",))
    told = partner_words(event)
    assert told is not None
    assert told[0] == "event 4 tool_ended"
    assert told[1] == "name catalog_get · ok false · status failed · had already · misses x"


def test_what_is_of_the_other_leg_has_no_words_here() -> None:
    assert partner_words(frame(type="ack")) is None
    assert partner_words(RunEnded("completed")) is None


def test_every_listed_event_has_words() -> None:
    """Of a stream and its turn."""
    stream = partner_words(PartnerStream(2, "r1", "opened", last_event_id=4, events=1))
    assert stream == ("stream 2 opened", "after 4 · 1 event")
    refused = partner_words(PartnerStream(2, "r1", "refused", status=410, code="CHAT_GONE"))
    assert refused == ("stream 2 refused", "CHAT_GONE · 0 events")
    text = partner_words(PartnerAnswerText("r1", digest("text", "abc"), 3, "completed", "poll", ()))
    assert text == ("the answer joined", "3 events · completed by poll")
    turn = partner_words(PartnerTurn("r1", "c1", "t1", "ended", "failed", "CHAT_EXECUTION_FAILED", "t1:1"))
    assert turn == ("turn ended", "failed · CHAT_EXECUTION_FAILED · t1:1")
    assert partner_words(PartnerDelivery(2, "r1", "withheld", sent=7)) == ("delivery 2 withheld", "7 sent")
    assert {PartnerCall, PartnerStream, PartnerEvent, StoreRequest, IssuerRequest} == {*LISTED}

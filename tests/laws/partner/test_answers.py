"""Answers fit the contract, codes are known, and no secret stands anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from lab.journal.events import LinkChanged
from lab.journal.partner_events import PartnerAnswerText, PartnerStream
from lab.laws import Status
from lab.tap.partner import LEAK
from tests.laws.partner.journals import PartnerTale, ready, running, sha

FIT = "answers-fit-contract"
ISSUER_FIT = "issuer-answers-fit"
SECRETS = "no-secrets"
CODES = "error-codes-known"
FILES = "files-guarded"


@pytest.mark.req("PA-007", "PA-035")
def test_an_answer_that_misses_the_contract() -> None:
    t = ready()
    n = t.call("context", misses=("schema:required at data",))
    found = t.violation(FIT)
    assert (found.entries, "schema:required at data" in found.seen) == ((n,), True)


@pytest.mark.req("SSE-014", "SSE-021")
def test_an_event_or_a_head_that_misses_it() -> None:
    t = running()
    n = t.event(1, "turn", {"misses": ("schema:type at turnId",)})
    assert t.violation(FIT).entries == (n,)
    t = ready()
    n = t.add(PartnerStream(1, "run", "opened", "conv", 200, misses=("content-type",)))
    assert t.violation(FIT).entries == (n,)
    t = ready()
    n = t.add(PartnerStream(1, "run", "refused", "conv", 403, "EXECUTION_DENIED", misses=("content-type",)))
    assert t.violation(FIT).entries == (n,)


def test_no_answer_misses_nothing() -> None:
    t = PartnerTale()
    t.lost("context")
    assert t.status(FIT) is Status.NOTHING


@pytest.mark.req("GR-003")
def test_an_issuer_s_answer_that_misses_it_is_the_issuer_s_break() -> None:
    t = PartnerTale()
    n = t.call("grant", misses=("expiresAt",))
    assert t.violation(ISSUER_FIT).entries == (n,)
    assert t.status(FIT) is Status.NOTHING


@pytest.mark.req("CX-002", "PRIV-001", "PRIV-004", "SSE-010")
def test_a_secret_in_an_answer_or_an_event() -> None:
    t = ready()
    n = t.call("context", leaks=("grant g1",))
    assert (t.violation(SECRETS).entries, t.violation(SECRETS).due) == ((n,), "no secret")
    t = running()
    n = t.event(1, "turn", {"leaks": ("thinking",)})
    assert t.violation(SECRETS).entries == (n,)
    assert running().status(SECRETS) is Status.HELD
    t = running()
    n = t.close("broken", misses=("leak:grant g1",))
    assert (t.violation(SECRETS).entries, t.violation(SECRETS).seen) == ((n,), "grant g1 at the end of a stream")
    t = running()
    n = t.add(replace(PartnerAnswerText(t.made.run, {}, 1, "completed", "run_status"), leaks=("thinking",)))
    assert (t.violation(SECRETS).entries, t.violation(SECRETS).seen) == ((n,), "thinking in the joined text")


@pytest.mark.req("PRIV-001")
@pytest.mark.parametrize("change", ["opened", "refused", "broken"])
def test_a_secret_in_a_stream_s_head_or_in_its_refusal_is_no_miss_of_the_contract(change: str) -> None:
    t = ready()
    n = t.add(PartnerStream(1, "run", change, "conv", 200, "EXECUTION_DENIED", misses=(f"{LEAK}chat-key",)))
    assert t.violation(SECRETS).entries == (n,)
    assert t.violation(SECRETS).seen.startswith("chat-key in ")
    assert t.status(FIT) is not Status.BROKEN


@pytest.mark.req("PA-011", "PA-012", "PA-013", "PA-014", "PA-015", "PA-016", "PA-038")
@pytest.mark.parametrize(
    ("status", "code", "word"),
    [
        (401, "CREDENTIAL_REJECTED", Status.HELD),
        (403, "CREDENTIAL_REJECTED", Status.BROKEN),
        (404, "CHAT_UNAVAILABLE", Status.HELD),
        (403, "CHAT_UNAVAILABLE", Status.BROKEN),
        (409, "CHAT_CONFLICT", Status.HELD),
        (400, "CHAT_CONFLICT", Status.BROKEN),
        (409, "MCP_CONTEXT_CONFLICT", Status.HELD),
        (400, "CHAT_INVALID", Status.HELD),
        (422, "CHAT_INVALID", Status.BROKEN),
        (503, "CHAT_CONFIGURATION", Status.HELD),
        (500, "CHAT_CONFIGURATION", Status.BROKEN),
        (403, "EXECUTION_DENIED", Status.HELD),
        (401, "MCP_CONTEXT_DENIED", Status.BROKEN),
        (400, "SOMETHING", Status.BROKEN),
        (500, None, Status.BROKEN),
    ],
)
def test_a_code_and_its_status(status: int, code: str | None, word: Status) -> None:
    t = PartnerTale()
    t.call("context", status, code=code)
    assert t.status(CODES) is word


@pytest.mark.req("SSE-054")
def test_a_stream_that_is_refused_in_other_words() -> None:
    t = PartnerTale()
    n = t.add(PartnerStream(1, "run", "refused", "conv", 403, None))
    assert t.violation(CODES).entries == (n,)


@pytest.mark.req("PA-056")
@pytest.mark.parametrize("error", ["not-json", "not-envelope"])
def test_an_answer_that_is_no_envelope(error: str) -> None:
    t = PartnerTale()
    n = t.call("context", 500, error=error)
    assert t.violation(CODES).entries == (n,)


@pytest.mark.parametrize("excuse", ["gateway", "link"])
def test_what_stands_between_may_say_what_it_likes(excuse: str) -> None:
    t = PartnerTale()
    if excuse == "link":
        t.add(LinkChanged("l", "cut"), "link")
    t.call("context", 502 if excuse == "gateway" else 500, error="not-json")
    assert t.status(CODES) is Status.UNKNOWN


@pytest.mark.req("MSG-021", "SSE-017", "PRIV-013")
def test_an_end_for_a_reason_that_is_not_safe() -> None:
    t = running()
    n = t.event(1, "error", None, code="ECONNREFUSED 10.0.0.7")
    assert t.violation(CODES).entries == (n,)
    for status, reason in (("failed", None), ("failed", "boom"), ("completed", "TOOL_REFUSED"), ("cancelled", "x")):
        t = running()
        n = t.poll(status, reason=reason)
        assert t.violation(CODES).entries == (n,)


# Files

HEADERS: Mapping[str, Any] = {
    "cacheControl": "private, no-store",
    "contentTypeOptions": "nosniff",
    "contentSecurityPolicy": "default-src 'none'; sandbox",
}


def uploaded() -> PartnerTale:
    t = ready()
    t.call("upload", 201, {"mimeType": "text/csv", "sha256": sha("1,2")}, {"id": "f", "mimeType": "text/csv"})
    return t


def fetched(t: PartnerTale, **other: Any) -> int:
    return t.call("file", 200, {}, {"contentType": "text/csv", "sha256": sha("1,2"), **HEADERS, **other})


@pytest.mark.req("AT-019", "AT-020", "AT-021", "AT-022")
@pytest.mark.parametrize(
    "other",
    [
        *({name: "other"} for name in HEADERS),
        {"sha256": sha("3")},
        {"contentType": "text/html"},
    ],
    ids=str,
)
def test_a_file_that_is_not_guarded_or_another(other: Mapping[str, Any]) -> None:
    t = uploaded()
    n = fetched(t, **other)
    assert t.violation(FILES).entries[-1] == n


def test_a_file_as_it_came() -> None:
    t = uploaded()
    fetched(t)
    assert (t.status(FILES), t.judged(FILES).judgement.judged) == (Status.HELD, 4)


def test_a_file_whose_upload_had_no_answer() -> None:
    t = ready()
    t.lost("upload")
    fetched(t)
    assert t.judged(FILES).judgement.judged == 3

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.journal.partner_events import fingerprint
from lab.partner.api_schema import api_schema
from lab.tap.partner import PartnerTap
from tests.partner.samples import CONVERSATION, FILE, ITEM, MEMBERSHIP, NOW, RUN, failure, wrapped

JSON = {"Content-Type": "application/json; charset=utf-8"}
CREATE, MESSAGE, RUN_ROUTE = (
    "POST /conversations",
    "POST /conversations/{conversationId}/messages",
    "GET /conversations/{conversationId}/runs/{runId}",
)
CONTENT = "GET /conversations/{conversationId}/attachments/{attachmentId}/content"
PROTECTED = {
    "Content-Type": "text/csv",
    "Cache-Control": "private, no-store",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
}
SECRETS = {"chat-key": "chat-key-0001", "canary.tool": "canary-in-a-tool"}


@pytest.fixture
def tap() -> PartnerTap:
    return PartnerTap(api_schema(), SECRETS, {"canary.prompt": "canary-in-a-prompt"})


def raw(body: object) -> bytes:
    return json.dumps(body).encode()


GOOD: list[tuple[str, int, dict[str, Any]]] = [
    ("PUT /memberships", 200, wrapped(MEMBERSHIP)),
    (CREATE, 201, wrapped(CONVERSATION)),
    (MESSAGE, 202, wrapped(RUN)),
    (RUN_ROUTE, 200, wrapped(RUN)),
    ("POST /conversations/{conversationId}/attachments", 201, wrapped(FILE)),
    (
        "GET /conversations/{conversationId}/messages",
        200,
        wrapped({"items": [{**ITEM, "role": "user"}], "nextCursor": None}),
    ),
    (MESSAGE, 429, failure("QUOTA_EXCEEDED", reason="org_spend")),
    (CREATE, 503, failure("CHAT_CONFIGURATION")),
    (RUN_ROUTE, 404, failure("CHAT_UNAVAILABLE")),
]


@pytest.mark.parametrize(("route", "status", "body"), GOOD)
def test_what_keeps_the_contract_has_no_miss(tap: PartnerTap, route: str, status: int, body: dict[str, Any]) -> None:
    verdict = tap.answer(route, status, JSON, raw(body))
    assert (verdict.misses, verdict.leaks) == ((), ())
    assert verdict.code == body.get("error", {}).get("code")


@pytest.mark.parametrize(
    ("route", "status", "headers", "body", "misses"),
    [
        (CREATE, 200, JSON, wrapped(CONVERSATION), ("status:200",)),
        (CREATE, 429, JSON, failure("QUOTA_EXCEEDED", reason="org_spend"), ("status:429",)),
        (CREATE, 201, {"Content-Type": "text/html"}, wrapped(CONVERSATION), ("content-type",)),
        (CREATE, 201, {}, wrapped(CONVERSATION), ("content-type",)),
        (
            CREATE,
            201,
            {"content-type": "application/json; charset=latin-1"},
            wrapped(CONVERSATION),
            ("content-type:charset",),
        ),
        (CREATE, 201, {**JSON, "Set-Cookie": "a=b"}, wrapped(CONVERSATION), ("header:set-cookie",)),
        (CREATE, 201, JSON, wrapped({**CONVERSATION, "x": 1}), ("schema:additionalProperties at data",)),
        (CREATE, 201, JSON, wrapped({**CONVERSATION, "actorId": 5}), ("schema:type at data.actorId",)),
        (CREATE, 201, JSON, CONVERSATION, ("schema:required at .", "schema:additionalProperties at .")),
        (RUN_ROUTE, 200, JSON, wrapped({**RUN, "toolErrors": None}), ("schema:type at data.toolErrors",)),
        (RUN_ROUTE, 404, JSON, failure("CHAT_CONFLICT"), ("schema:const at error.code",)),
        (RUN_ROUTE, 404, JSON, failure("CHAT_UNAVAILABLE", extra=1), ("schema:additionalProperties at error",)),
    ],
)
def test_where_an_answer_misses_the_contract(
    tap: PartnerTap, route: str, status: int, headers: dict[str, str], body: object, misses: tuple[str, ...]
) -> None:
    assert tap.answer(route, status, headers, raw(body)).misses == misses


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"a":1,"a":2}', b"NaN", b"\xff", b"[" * 100_000, b"1e999"])
def test_what_is_no_json_is_told_and_never_raises(tap: PartnerTap, body: bytes) -> None:
    verdict = tap.answer(CREATE, 201, JSON, body)
    assert verdict.misses
    assert verdict.facts == {}


@given(st.binary(max_size=60), st.integers(100, 599))
def test_no_bytes_raise(body: bytes, status: int) -> None:
    tap = PartnerTap(api_schema(), SECRETS)
    for route in (CREATE, CONTENT):
        tap.answer(route, status, {}, body)
    tap.issuer(status, {}, body)
    tap.event("r", body)


def test_the_path_of_a_miss_holds_no_content(tap: PartnerTap) -> None:
    verdict = tap.answer(CREATE, 201, JSON, raw(wrapped({**CONVERSATION, "mcp": {"private words": 1}})))
    assert "private" not in str(verdict)


# Files


@pytest.mark.req("AT-019")
def test_a_file_needs_its_protective_headers(tap: PartnerTap) -> None:
    verdict = tap.answer(CONTENT, 200, PROTECTED, b"a;b")
    assert verdict.misses == ()
    assert verdict.facts["contentType"] == "text/csv"
    assert verdict.facts["contentSecurityPolicy"] == "default-src 'none'; sandbox"
    assert (verdict.facts["bytes"], verdict.facts["cacheControl"]) == (3, "private, no-store")
    for name in PROTECTED:
        headers = {other: value for other, value in PROTECTED.items() if other != name}
        due = "content-type" if name == "Content-Type" else f"header:{name.lower()}"
        assert tap.answer(CONTENT, 200, headers, b"").misses == (due,)
    assert tap.answer(CONTENT, 200, {**PROTECTED, "Content-Type": "text/html"}, b"").misses == ("content-type",)


# Secrets


@pytest.mark.parametrize(
    "text",
    [
        "x canary-in-a-tool x",
        "canary\\u002din-a-tool",
        "canary%2Din%2Da%2Dtool",
        base64.urlsafe_b64encode(b"--canary-in-a-tool--").decode(),
    ],
)
def test_a_canary_is_found_in_any_form_and_not_written_down(tap: PartnerTap, text: str) -> None:
    body = raw(wrapped({**CONVERSATION, "actorId": "PLACE"})).replace(b"PLACE", text.encode())
    verdict = tap.answer(CREATE, 201, JSON, body)
    assert verdict.leaks == ("canary.tool",)
    assert "canary-in-a-tool" not in repr(verdict)


def test_headers_are_searched_too(tap: PartnerTap) -> None:
    assert tap.answer(CREATE, 201, {**JSON, "X-Trace": "chat-key-0001"}, raw(wrapped(CONVERSATION))).leaks == (
        "chat-key",
    )


def test_an_error_must_not_repeat_what_was_sent(tap: PartnerTap) -> None:
    error = failure("CHAT_INVALID")
    error["error"]["message"] = "canary-in-a-prompt is no role"
    assert tap.answer(CREATE, 400, JSON, raw(error)).leaks == ("canary.prompt",)
    page = wrapped({"items": [{**ITEM, "role": "user", "text": "canary-in-a-prompt"}], "nextCursor": None})
    assert tap.answer("GET /conversations/{conversationId}/messages", 200, JSON, raw(page)).leaks == ()


def test_a_grant_is_looked_for_once_it_was_minted(tap: PartnerTap) -> None:
    body = raw({"grant": "tg1.the-grant", "expiresAt": NOW})
    minted = tap.issuer(200, JSON, body)
    assert (minted.misses, minted.leaks) == ((), ())
    assert minted.facts == {"grant": fingerprint("tg1.the-grant"), "expiresAt": NOW}
    assert tap.issuer(200, JSON, body).leaks == ()
    name = (f"grant.{fingerprint('tg1.the-grant')}",)
    context = wrapped({"version": 1, "expiresAt": NOW, "active": True, "grant": "tg1.the-grant"})
    assert tap.answer("GET /conversations/{conversationId}/context", 200, JSON, raw(context)).leaks == name
    assert tap.event("r", b'id: r:1\nevent: text\ndata: {"type":"text","text":"tg1.the-grant"}').leaks == name
    assert tap.rest(b"data: tg1.the-gr") == ()
    assert tap.rest(b"data: tg1.the-grant") == name


def test_the_issuers_answers(tap: PartnerTap) -> None:
    enveloped = tap.issuer(200, JSON, raw(wrapped({"grant": "g" * 9, "expiresAt": NOW})))
    assert enveloped.facts["grant"] == fingerprint("g" * 9)
    refused = tap.issuer(404, JSON, raw({"error": {"code": "not_found", "message": "m"}}))
    assert (refused.code, refused.misses) == ("not_found", ())
    assert tap.issuer(404, JSON, raw({})).misses == ("error",)
    assert tap.issuer(500, JSON, b"oops").misses == ("not-json: not JSON", "error")
    assert tap.issuer(403, JSON, raw({"error": {"code": "no", "message": "chat-key-0001"}})).leaks == ("chat-key",)


# Streams


def event(name: str | None, data: object, event_id: str | None = "r:7") -> bytes:
    lines = [] if event_id is None else [f"id: {event_id}"]
    lines += [] if name is None else [f"event: {name}"]
    return "\n".join([*lines, f"data: {json.dumps(data)}"]).encode()


TEXT = {"type": "text", "text": "private"}
STATUS: dict[str, Any] = {
    "type": "run_status",
    **{name: RUN[name] for name in ("status", "reason", "toolErrors", "timings", "usage")},
}


@pytest.mark.req("SSE-011", "SSE-013", "SSE-015", "SSE-016")
@pytest.mark.parametrize(
    "data",
    [
        {"type": "turn", "turnId": "t", "ts": NOW},
        TEXT,
        {"type": "tool_call", "name": "catalog_get", "id": "call_1"},
        {"type": "tool_result", "name": "catalog_get", "ok": False, "error": "TOOL_FAILED"},
        {"type": "done", "stopReason": "completed"},
        {"type": "error", "code": "CHAT_EXECUTION_FAILED"},
        STATUS,
    ],
)
def test_an_event_that_keeps_the_contract(tap: PartnerTap, data: dict[str, Any]) -> None:
    verdict = tap.event("r", event(data["type"], data))
    assert (verdict.sequence, verdict.event_id, verdict.name, verdict.type) == (7, "r:7", data["type"], data["type"])
    assert (verdict.misses, verdict.leaks) == ((), ())
    assert "private" not in repr(verdict)


@pytest.mark.req("SSE-003", "SSE-004", "SSE-014")
@pytest.mark.parametrize(
    ("raw_event", "misses"),
    [
        (event("text", TEXT, None), ("event-id",)),
        (event("text", TEXT, "x:7"), ("event-id",)),
        (event("text", TEXT, "r:07"), ("event-id",)),
        (event("text", TEXT, "r:-7"), ("event-id",)),
        (event("texts", TEXT), ("event-name:other-than-type",)),
        (event(None, TEXT), ("event-name:absent",)),
        (event("text", {**TEXT, "more": 1}), ("schema:additionalProperties at .",)),
        (event("thinking", {"type": "thinking", "text": "x"}), ("event-type:unknown",)),
        (
            event("tool_call", {"type": "tool_call", "name": "n", "id": "i", "detail": "d"}),
            ("schema:additionalProperties at .",),
        ),
        (event("tool_result", {"type": "tool_result", "name": "n", "ok": False}), ("schema:required at .",)),
        (
            event("tool_result", {"type": "tool_result", "name": "n", "ok": False, "error": "boom"}),
            ("schema:const at error",),
        ),
        (event("error", {"type": "error", "code": "boom"}), ("schema:enum at code",)),
        (event("run_status", {**STATUS, "status": "running"}), ("schema:enum at status",)),
        (b"id: r:7\nevent: text\ndata: {", ("not-json: not JSON", "event-name:other-than-type")),
        (b"id: r:7\nevent: text", ("not-json: not JSON", "event-name:other-than-type")),
    ],
)
def test_where_an_event_misses_the_contract(tap: PartnerTap, raw_event: bytes, misses: tuple[str, ...]) -> None:
    assert tap.event("r", raw_event).misses == misses


def test_comments_and_several_data_lines_are_read_as_the_format_says(tap: PartnerTap) -> None:
    verdict = tap.event("r", b': note\nid: r:7\nevent:text\ndata: {"type":"text",\ndata: "text":"x"}\nretry: 5')
    assert (verdict.misses, verdict.type, verdict.sequence) == ((), "text", 7)


def test_secrets_in_ids_and_names_are_not_written_down(tap: PartnerTap) -> None:
    verdict = tap.event("r", event("canary-in-a-tool", {"type": "canary-in-a-tool"}, "chat-key-0001:7"))
    assert verdict.leaks == ("chat-key", "canary.tool")
    assert (verdict.event_id, verdict.name, verdict.type) == ("*", "*", "*")


@pytest.mark.parametrize("text", ["\u554f\u984c\u7522\u54c1\u591a\u5c11\u9322", "x" * 301, "what it costs", "a\x7f"])
def test_what_is_no_word_stands_in_no_journal(tap: PartnerTap, text: str) -> None:
    """In the place of an id, a name or a type may be content, with or without spaces."""
    verdict = tap.event("r", event(text, {"type": text}, f"{text}:7"))
    assert (verdict.event_id, verdict.name, verdict.type) == ("*", "*", "*")
    assert text not in repr(verdict)


@pytest.mark.parametrize(
    ("status", "headers", "misses"),
    [
        (200, {}, ()),
        (200, {"content-type": "text/event-stream; charset=UTF-8"}, ()),
        (200, {"content-type": "text/plain"}, ("content-type",)),
        (200, {"cache-control": "public"}, ("header:cache-control",)),
        (200, {"x-accel-buffering": "yes"}, ("header:x-accel-buffering",)),
        (200, {"set-cookie": "a=b"}, ("header:set-cookie",)),
        (202, {}, ("status:202",)),
        (200, {"x-debug": "Bearer chat-key-0001"}, ("leak:chat-key",)),
        (202, {"x-debug": "chat-key-0001 chat-key-0001"}, ("status:202", "leak:chat-key")),
    ],
)
def test_the_head_of_a_stream(tap: PartnerTap, status: int, headers: dict[str, str], misses: tuple[str, ...]) -> None:
    usual = {"content-type": "text/event-stream", "cache-control": "no-store", "x-accel-buffering": "no"}
    assert tap.stream_head(status, usual | headers) == misses

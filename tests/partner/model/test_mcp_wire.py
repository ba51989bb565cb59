from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.partner.model.mcp_wire import (
    CallContext,
    Era,
    McpFault,
    SseReader,
    answers,
    body,
    headers_of,
    message_untrusted,
    result_untrusted,
    session_untrusted,
    succeeded_untrusted,
    tool_names_untrusted,
    version_untrusted,
)


def test_a_stateless_request_tells_its_version_in_body_and_headers() -> None:
    sent = json.loads(body(Era.STATELESS, 3, "tools/call", {"name": "catalog_get", "arguments": {"productId": 1}}))
    meta = sent["params"]["_meta"]
    assert meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert meta["io.modelcontextprotocol/clientCapabilities"] == {}
    assert sent["params"]["arguments"] == {"productId": 1}
    headers = headers_of(Era.STATELESS, "tools/call", "catalog_get", None, None)
    assert headers["MCP-Protocol-Version"] == "2026-07-28"
    assert (headers["Mcp-Method"], headers["Mcp-Name"]) == ("tools/call", "catalog_get")
    assert "Mcp-Name" not in headers_of(Era.STATELESS, "tools/list", None, None, None)


def test_a_request_with_a_session_bears_it_once_there_is_one() -> None:
    assert "params" not in json.loads(body(Era.SESSIONS, 1, "tools/list", {}))
    assert "id" not in json.loads(body(Era.SESSIONS, None, "notifications/initialized", {}))
    first = headers_of(Era.SESSIONS, "initialize", None, None, None)
    assert not {"Mcp-Session-Id", "MCP-Protocol-Version", "Mcp-Method"} & set(first)
    later = headers_of(Era.SESSIONS, "tools/list", None, "s1", "2025-06-18")
    assert (later["Mcp-Session-Id"], later["MCP-Protocol-Version"]) == ("s1", "2025-06-18")


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ({"jsonrpc": "2.0", "id": 2, "result": {}}, "shape"),
        ({"jsonrpc": "2.0", "id": "1", "result": {}}, "shape"),
        ({"jsonrpc": "2.0", "id": True, "result": {}}, "shape"),
        ({"id": 1, "result": {}}, "shape"),
        ({"jsonrpc": "2.0", "id": 1}, "shape"),
        ({"jsonrpc": "2.0", "id": 1, "result": []}, "shape"),
        ({"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "MARKER"}}, "rpc"),
        ([], "shape"),
        (None, "shape"),
    ],
)
def test_what_is_no_answer_is_a_fault_without_the_stores_text(message: object, fault: str) -> None:
    with pytest.raises(McpFault) as met:
        result_untrusted(message, 1)
    assert met.value.kind == fault
    assert str(met.value) == fault


def test_a_request_of_the_store_is_no_answer() -> None:
    assert not answers({"jsonrpc": "2.0", "id": 1, "method": "ping"}, 1)
    assert answers({"jsonrpc": "2.0", "id": 1, "result": {}}, 1)


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_json_is_a_fault(raw: bytes) -> None:
    with pytest.raises(McpFault, match="not-json"):
        message_untrusted(raw)


def test_versions_that_are_not_spoken_are_refused() -> None:
    assert version_untrusted(Era.SESSIONS, {"protocolVersion": "2025-03-26"}) == "2025-03-26"
    assert version_untrusted(Era.STATELESS, {"supportedVersions": ["2026-07-28"]}) == "2026-07-28"
    for era, result in ((Era.SESSIONS, {"protocolVersion": "2099-01-01"}), (Era.STATELESS, {"supportedVersions": []})):
        with pytest.raises(McpFault, match="version"):
            version_untrusted(era, result)


def test_a_session_id_is_visible_ascii() -> None:
    assert session_untrusted(None) is None
    assert session_untrusted("abc-1") == "abc-1"
    for header in ("", "a b", "é", "x" * 513):
        with pytest.raises(McpFault, match="session"):
            session_untrusted(header)


def test_a_page_of_tools_is_names_and_a_cursor() -> None:
    assert tool_names_untrusted({"tools": [{"name": "a"}], "nextCursor": "c"}) == (("a",), "c")
    longest = "x" * 128
    assert tool_names_untrusted({"tools": [{"name": longest}]}) == ((longest,), None)
    names = ("", longest + "x", "two words", "é", "a\n", 5)
    broken: list[dict[str, object]] = [{}, {"tools": [{}]}, {"tools": ["a"]}, {"tools": [], "nextCursor": 1}]
    broken += [{"tools": [{"name": name}]} for name in names]
    broken.append({"tools": [{"name": "a"}] * 1001})
    for result in broken:
        with pytest.raises(McpFault, match="shape"):
            tool_names_untrusted(result)


def test_a_result_says_whether_the_tool_did_it() -> None:
    assert succeeded_untrusted(Era.SESSIONS, {"content": []})
    assert not succeeded_untrusted(Era.SESSIONS, {"content": [], "isError": True})
    broken: tuple[dict[str, object], ...] = (
        {},
        {"content": [], "isError": "yes"},
        {"content": [], "resultType": "input_required"},
    )
    for result in broken:
        with pytest.raises(McpFault, match="shape"):
            succeeded_untrusted(Era.STATELESS, result)


@pytest.mark.req("PRIV-015")
def test_a_context_shows_no_grant() -> None:
    assert "s3cret" not in repr(CallContext("turn", "call", "conversation", "s3cret"))


@given(st.lists(st.integers(1, 7), max_size=60), st.sampled_from(["\n", "\r\n"]))
def test_events_come_out_whole_however_the_bytes_are_cut(sizes: list[int], end: str) -> None:
    lines = [
        ": comment",
        "",
        "id: 5",
        "data: ",
        "",
        "event: message",
        "id: 6",
        'data: {"é":',
        "data: 1}",
        "",
        "data: x",
    ]
    raw = (end.join(lines) + end).encode()
    reader, found, at = SseReader(), [], 0
    for size in [*sizes, len(raw)]:
        found += list(reader.feed(raw[at : at + size]))
        at += size
    assert found == ['{"é":\n1}']
    assert reader.last_id == "6"

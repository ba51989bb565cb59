"""The store against the official MCP clients: what they see of it, and what it sees of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from lab.journal.partner_events import StoreRequest, fingerprint
from lab.store.catalogue import FIXED_PRODUCT
from lab.store.misbehaviour import Misbehaviour, Wrong
from lab.store.settings import Form, Refusing, StoreSettings
from tests.interop.mcp_programs import CALL, LIST, PROGRAMS_2025, PROGRAMS_2026, SECONDS, Program, drive
from tests.store.bench import STATIC, Bench, running

TOOLS = ["catalog_get", "catalog_search", "store_status", "order_lookup", "price_update"]
VERSIONS = {"2025": "2025-11-25", "2026": "2026-07-28"}
BEGINNINGS = {"2025": ["initialize", "notifications/initialized"], "2026": ["server/discover"]}
SHORT = 1.0
"""Seconds after which a client gives up on an answer that never comes."""

pytestmark = pytest.mark.timeout(120)
on_2025 = pytest.mark.parametrize("program", PROGRAMS_2025, ids=str)
on_both = pytest.mark.parametrize("program", PROGRAMS_2025 + PROGRAMS_2026, ids=str)


@dataclass(frozen=True, slots=True)
class Error:
    """What a client throws. `late`: once its time is up. `ends`: nothing more can be done with the connection."""

    name: str
    code: int | str | None
    late: bool = False
    ends: bool = False


TIMEOUTS = {
    "python-1": Error("McpError", 408, late=True),
    "python-2": Error("MCPError", -32001, late=True),
    "typescript-1": Error("McpError", -32001, late=True),
    "typescript-2": Error("SdkError", "REQUEST_TIMEOUT", late=True),
}
PARSED = {
    "python-1": TIMEOUTS["python-1"],
    "python-2": Error("MCPError", -32700),
    "typescript-1": Error("SyntaxError", None),
    "typescript-2": Error("SyntaxError", None),
}


def of_status(status: int, code: int) -> Mapping[str, Error]:
    """What is made of an HTTP status with a JSON-RPC error in the body."""
    return {
        "python-1": Error("HTTPStatusError", None, ends=True),
        "python-2": Error("MCPError", code),
        "typescript-1": Error("StreamableHTTPError", status),
        "typescript-2": Error("SdkHttpError", "CLIENT_HTTP_NOT_IMPLEMENTED"),
    }


ON_CALLS = {
    "truncated-json": (Misbehaviour(Wrong.TRUNCATED_JSON, "tools/call"), PARSED),
    "empty-array": (
        Misbehaviour(Wrong.EMPTY_ARRAY, "tools/call"),
        {**TIMEOUTS, "python-2": PARSED["python-2"]},
    ),
    "wrong-id": (Misbehaviour(Wrong.WRONG_ID, "tools/call"), TIMEOUTS),
    "sse-cut": (
        Misbehaviour(Wrong.SSE_CUT, "tools/call"),
        {**TIMEOUTS, "python-2": Error("MCPError", -32000)},
    ),
    "401": (Misbehaviour(Wrong.HTTP_STATUS, "tools/call", status=401), of_status(401, -32603)),
    "500": (Misbehaviour(Wrong.HTTP_STATUS, "tools/call", status=500), of_status(500, -32603)),
}


def since(bench: Bench, start: int) -> list[StoreRequest]:
    """What the store saw from there on, without a client's asking for a stream of its own, which may come any time."""
    return [seen for seen in bench.seen[start:] if seen.http != "GET" or "resumed" in seen.facts]


def agree(heard: Mapping[str, object], error: Error) -> None:
    """The client threw what it should."""
    assert (heard["name"], heard["code"]) == (error.name, error.code)


@on_both
@pytest.mark.parametrize("form", list(Form), ids=str)
@pytest.mark.req("MCP-004", "MCP-010", "MCP-011", "MCP-012", "MCP-016", "MCP-018")
async def test_a_client_lists_the_tools_and_calls_one(program: Program, form: Form) -> None:
    async with running(StoreSettings(answers=form, own_streams=form is Form.SSE)) as bench:
        headers, start = await bench.granted(), len(bench.seen)
        heard = await drive(bench, program, LIST, CALL, headers=headers)
        assert (heard.version, heard.error) == (VERSIONS[program.era], None)
        listed, called = heard.steps
        assert listed["tools"] == TOOLS
        assert called["structured"] == FIXED_PRODUCT.to_json() == json.loads(called["content"][0]["text"])
        assert called["isError"] is False
        # A stream can tell of progress before the answer; JSON is one message.
        assert called["progress"] == ([100] if form is Form.SSE else [])
        seen = [one for one in since(bench, start) if one.http == "POST"]
        assert [one.method for one in seen] == [*BEGINNINGS[program.era], "tools/list", "tools/call"]
        assert {(str(one.era), one.refused) for one in seen} == {(program.era, None)}
        assert len({one.session for one in seen}) == 1
        assert (seen[-1].session is not None) == (program.era == "2025")
        assert [one.executed for one in seen] == [False] * (len(seen) - 1) + [True]
        assert (seen[-1].turn_id, seen[-1].call_id) == ("turn-1", "call-1")
        assert seen[-1].grant == fingerprint(headers["X-Store-Context-Grant"])
        own = [one.status for one in bench.seen[start:] if one.http == "GET"]
        assert own == ([] if program.era == "2026" else [200 if form is Form.SSE else 405])


@on_both
@pytest.mark.req("MCP-001", "MCP-014", "MCP-019")
@pytest.mark.parametrize("refusing", list(Refusing), ids=str)
async def test_without_a_grant_a_client_gets_the_list_and_no_call(program: Program, refusing: Refusing) -> None:
    async with running(StoreSettings(refusing=refusing)) as bench:
        heard = await drive(bench, program, LIST, CALL)
        assert heard.steps[0]["tools"] == TOOLS
        if refusing is Refusing.RESULT:
            assert heard.steps[1]["isError"] is True
        elif refusing is Refusing.HTTP:
            agree(heard.last_error, of_status(403, -32010)[program.client])
        else:
            assert heard.last_error["code"] == -32010
        (call,) = [seen for seen in bench.seen if seen.method == "tools/call"]
        assert (call.status, call.refused, call.executed) == (
            403 if refusing is Refusing.HTTP else 200,
            "grant-missing",
            False,
        )


@on_both
@pytest.mark.req("MCP-015")
async def test_without_the_credential_a_client_does_not_even_connect(program: Program) -> None:
    async with running() as bench:
        heard = await drive(bench, program, LIST, headers={"Authorization": f"Bearer {STATIC}-other"})
        assert heard.steps == []
        assert heard.error is not None
        assert {(seen.status, seen.refused) for seen in bench.seen} == {(401, "static")}


@on_both
@pytest.mark.req("MCP-022")
@pytest.mark.parametrize("wrong", ON_CALLS)
async def test_what_a_client_makes_of_a_misbehaviour(program: Program, wrong: str) -> None:
    rule, errors = ON_CALLS[wrong]
    error = errors[program.client]
    async with running() as bench:
        headers = await bench.granted()
        bench.server.misbehave([rule])
        heard = await drive(bench, program, CALL, headers=headers, seconds=SHORT if error.late else SECONDS)
        agree(heard.last_error, error)
        assert (heard.error is not None) == error.ends
        if not error.ends:
            took = heard.steps[-1]["seconds"]
            assert took > SHORT * 0.9 if error.late else took < SECONDS / 2
        (call,) = [seen for seen in bench.seen if seen.method == "tools/call"]
        assert call.misbehaved == rule.wrong
        assert call.executed == (rule.wrong is not Wrong.HTTP_STATUS)
        assert call.status == {"sse-cut": 0, "401": 401, "500": 500}.get(wrong, 200)


@on_2025
@pytest.mark.req("MCP-022")
async def test_a_client_resumes_a_stream_that_was_cut(program: Program) -> None:
    async with running(StoreSettings(own_streams=True)) as bench:
        headers, start = await bench.granted(), len(bench.seen)
        bench.server.misbehave([Misbehaviour(Wrong.SSE_CUT_WITH_ID, "tools/call")])
        heard = await drive(bench, program, CALL, headers=headers)
        assert heard.steps[0]["structured"] == FIXED_PRODUCT.to_json()
        assert heard.steps[0]["progress"] == [100]
        seen = since(bench, start)
        at = [one.method for one in seen].index("tools/call")
        assert (seen[at].status, seen[at + 1].http, seen[at + 1].facts["resumed"]) == (0, "GET", 2)
        assert seen[at + 1].session == seen[at].session
        assert sum(one.executed for one in seen) == 1


@on_2025
@pytest.mark.req("MCP-012", "MCP-022")
async def test_a_client_whose_session_is_lost_begins_no_other(program: Program) -> None:
    async with running() as bench:
        headers = await bench.granted()
        bench.server.misbehave([Misbehaviour(Wrong.LOST_SESSION, "tools/call", nth=1)])
        heard = await drive(bench, program, CALL, CALL, headers=headers)
        codes = {"python-1": 32600, "python-2": -32600, "typescript-1": 404}
        assert [step["error"]["code"] for step in heard.steps] == 2 * [
            codes.get(program.client, "CLIENT_HTTP_NOT_IMPLEMENTED")
        ]
        calls = [seen for seen in bench.seen if seen.method == "tools/call"]
        assert [(seen.status, seen.refused, seen.executed) for seen in calls] == 2 * [(404, "session", False)]
        assert [seen.method for seen in bench.seen].count("initialize") == 1

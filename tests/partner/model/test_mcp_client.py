from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from lab.partner.model.mcp_client import McpClient, McpLimits, open_http, transport_url
from lab.partner.model.mcp_wire import CallContext, Era, McpFault
from lab.sim.run import run_virtual
from tests.partner.model.standin import FAILURE, StandIn, answer, body, never, standing_in, status, stream

CREDENTIAL = "static-credential"
CONTEXT = CallContext("turn-1", "call-1", "conversation-1", "tg1.grant")
OK = b'data: {"jsonrpc":"2.0","id":{id},"result":{"content":[]}}\n\n'


@asynccontextmanager
async def client_of(
    stand_in: StandIn, era: Era = Era.SESSIONS, limits: McpLimits | None = None
) -> AsyncIterator[McpClient]:
    async with open_http() as http:
        yield McpClient(http, stand_in.url, CREDENTIAL, era, "turn-1", limits or McpLimits())


async def called(stand_in: StandIn, era: Era = Era.SESSIONS, limits: McpLimits | None = None) -> bool:
    """Whether a call after a discovery succeeded."""
    async with client_of(stand_in, era, limits) as client:
        await client.discover()
        return await client.call("catalog_get", {"productId": 9001}, lambda: CONTEXT)


@pytest.mark.req("MCP-003", "MCP-013")
@pytest.mark.parametrize("era", list(Era))
async def test_discovery_bears_the_static_credential_and_only_a_call_the_grant(era: Era) -> None:
    async with standing_in() as stand_in:
        async with client_of(stand_in, era) as client:
            assert await client.discover() == ("catalog_get", "store_status")
            assert await client.call("catalog_get", {"productId": 9001}, lambda: CONTEXT)
            await client.close()
        for seen in stand_in.seen:
            assert seen.headers["Authorization"] == f"Bearer {CREDENTIAL}"
            assert seen.headers["X-Agent-Turn-Id"] == "turn-1"
            assert ("X-Store-Context-Grant" in seen.headers) == (seen.method == "tools/call")
        (call,) = stand_in.of("tools/call")
        assert call.params["arguments"] == {"productId": 9001}
        assert call.headers["X-Store-Context-Grant"] == "tg1.grant"
        assert call.headers["X-Agent-Call-Id"] == "call-1"
        assert call.headers["X-Agent-Conversation-Id"] == "conversation-1"
        methods = [seen.method for seen in stand_in.seen]
        if era is Era.STATELESS:
            assert methods == ["server/discover", "tools/list", "tools/call"]
        else:
            assert methods == ["initialize", "notifications/initialized", "tools/list", "tools/call", "DELETE"]


async def test_all_pages_of_the_tools_are_read() -> None:
    async def first(request: web.Request, message: Any) -> web.StreamResponse:
        return answer(message, {"tools": [{"name": "on_page_one"}], "nextCursor": "more"})

    async with standing_in(instead={"tools/list": [first]}) as stand_in, client_of(stand_in) as client:
        assert await client.discover() == ("on_page_one", "catalog_get", "store_status")
        assert stand_in.of("tools/list")[1].params == {"cursor": "more"}


async def test_pages_without_an_end_are_a_fault() -> None:
    async def more(request: web.Request, message: Any) -> web.StreamResponse:
        return answer(message, {"tools": [], "nextCursor": "more"})

    async with standing_in(instead={"tools/list": [more] * 50}) as stand_in, client_of(stand_in) as client:
        with pytest.raises(McpFault, match="too-large"):
            await client.discover()


async def test_a_lost_session_is_begun_anew_and_the_call_is_made_in_it() -> None:
    async with standing_in() as stand_in, client_of(stand_in) as client:
        await client.discover()
        stand_in.sessions.clear()
        results = await asyncio.gather(*(client.call("catalog_get", {}, lambda: CONTEXT) for _ in range(2)))
        assert results == [True, True]
        assert len(stand_in.of("initialize")) == 2
        assert {call.headers["Mcp-Session-Id"] for call in stand_in.of("tools/call")[-2:]} == {"session-2"}


@pytest.mark.req("PA-021", "CX-029")
async def test_the_context_of_a_call_is_asked_for_before_each_sending() -> None:
    grants = iter(("tg1.old", "tg1.new"))
    async with standing_in() as stand_in, client_of(stand_in) as client:
        await client.discover()
        stand_in.sessions.clear()
        assert await client.call("catalog_get", {}, lambda: replace(CONTEXT, grant=next(grants)))
        sent = [call.headers["X-Store-Context-Grant"] for call in stand_in.of("tools/call")]
        assert sent == ["tg1.old", "tg1.new"]


async def test_a_session_that_is_lost_twice_is_given_up() -> None:
    async with standing_in(instead={"tools/call": [status(404), status(404)]}) as stand_in:
        with pytest.raises(McpFault, match="session"):
            await called(stand_in)


@pytest.mark.req("MCP-009")
@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (status(401), "status-401"),
        (status(500), "status-500"),
        (status(302, {"Location": "http://127.0.0.1:1/elsewhere"}), "status-302"),
        (status(202), "status-202"),
        (body(b"{"), "not-json"),
        (body(b"[]"), "shape"),
        (body(b'{"jsonrpc":"2.0","id":999,"result":{"content":[]}}'), "shape"),
        (body(b'{"jsonrpc":"2.0","id":3,"error":{"code":-32010,"message":"RPC-MARKER"}}'), "rpc"),
        (body(b"ok", "text/plain"), "shape"),
        (body(b"x" * 5000), "too-large"),
        (stream(b": nothing\n\n"), "cut"),
        (stream(b"data: {\n\n"), "not-json"),
        (stream(b": " + b"x" * 5000 + b"\n\n"), "too-large"),
        (stream(b'data: {"jsonrpc":"2.0","id":', cut=True), "cut"),
    ],
)
async def test_each_fault_of_the_store_is_one_plain_word(given: Any, fault: str) -> None:
    async with standing_in(instead={"tools/call": [given]}) as stand_in:
        with pytest.raises(McpFault) as met:
            await called(stand_in, limits=McpLimits(bytes=4000))
        assert met.value.kind == str(met.value) == fault
        assert met.value.__cause__ is None
        # A call that may have had its effect is never sent a second time.
        assert len(stand_in.of("tools/call")) == 1


async def test_an_answer_on_a_stream_may_come_behind_other_messages() -> None:
    notice = b'data: {"jsonrpc":"2.0","method":"notifications/progress"}\n\n'
    for era in Era:
        async with standing_in(instead={"tools/call": [stream(notice, OK)]}) as stand_in:
            assert await called(stand_in, era)


async def test_a_cut_stream_with_an_event_id_is_resumed_on_the_wire_with_sessions() -> None:
    cut = stream(b"id: e-1\ndata: \n\n", b'id: e-2\ndata: {"half', cut=True)
    again = stream(b'id: e-3\ndata: {"jsonrpc":"2.0","id":3,"result":{"content":[],"isError":true}}\n\n')
    async with standing_in(instead={"tools/call": [cut], "GET": [again]}) as stand_in:
        assert await called(stand_in) is False
        (get,) = stand_in.of("GET")
        assert get.headers["Last-Event-ID"] == "e-2"
        assert get.headers["Mcp-Session-Id"] == "session-1"
    async with standing_in(instead={"tools/call": [cut]}) as stand_in:
        with pytest.raises(McpFault, match="cut"):
            await called(stand_in, Era.STATELESS)
        assert not stand_in.of("GET")


async def test_a_stream_that_is_cut_again_and_again_is_given_up() -> None:
    cut = stream(b"id: e-1\ndata: \n\n", cut=True)
    async with standing_in(instead={"tools/call": [cut], "GET": [cut] * 9}) as stand_in:
        with pytest.raises(McpFault, match="cut"):
            await called(stand_in, limits=McpLimits(resumes=3))
        assert len(stand_in.of("GET")) == 3


async def test_a_tool_that_failed_says_so() -> None:
    async with standing_in(results={"catalog_get": FAILURE}) as stand_in:
        assert await called(stand_in) is False


async def test_nobody_there_is_a_fault() -> None:
    async with open_http() as http:
        client = McpClient(http, "http://127.0.0.1:1/mcp", CREDENTIAL, Era.SESSIONS, "turn-1", McpLimits())
        with pytest.raises(McpFault, match="unreachable"):
            await client.discover()


def test_a_store_that_never_answers_is_waited_for_so_long_and_no_longer() -> None:
    async def main() -> float:
        async with standing_in(instead={"tools/call": [never]}) as stand_in:
            loop = asyncio.get_running_loop()
            start = loop.time()
            with pytest.raises(McpFault, match="timeout"):
                await called(stand_in, limits=McpLimits(seconds=30))
            return loop.time() - start

    assert 30 <= run_virtual(main, 1) < 31


async def test_the_store_sets_no_cookie() -> None:
    async def cookie(request: web.Request, message: Any) -> web.StreamResponse:
        return answer(message, {"tools": []}, {"Set-Cookie": "a=b; Path=/"})

    async with standing_in(instead={"tools/list": [cookie]}) as stand_in:
        # Of an address no client takes a cookie, of a name it might.
        stand_in.url = stand_in.url.replace("127.0.0.1", "localhost")
        assert await called(stand_in)
        assert "Cookie" not in stand_in.of("tools/call")[0].headers


@pytest.mark.req("MCP-005")
def test_only_a_mapped_destination_has_a_transport() -> None:
    mapped = {"https://93.184.216.34/mcp": "http://127.0.0.1:3006/mcp"}
    assert transport_url(mapped, "https://93.184.216.34/mcp") == "http://127.0.0.1:3006/mcp"
    assert transport_url(mapped, "https://93.184.216.34/mcp/") is None

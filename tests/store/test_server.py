"""The store on a socket: both wires from the first request to a tool's result, and what is refused on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from io import BytesIO
from typing import Any

import aiohttp
import pytest

from lab.errors import EnvironmentFault, MisuseError
from lab.http_shell import BODY_SECONDS
from lab.journal.partner_events import IssuerRequest, fingerprint
from lab.store.catalogue import FIXED_PRODUCT
from lab.store.conformance_tools import conformance_tools
from lab.store.core import MAX_BODY_BYTES, StoreCore
from lab.store.headers import Era
from lab.store.server import KEEP_ALIVE_SECONDS, StoreServer
from lab.store.settings import Form, StoreSettings
from lab.store.tools import ToolSet
from tests.run.made import context
from tests.store.bench import (
    JSON,
    MARKER,
    META,
    PRODUCT,
    STATIC,
    VERSION_2025,
    VERSION_2026,
    running,
    virtually,
)

SSE = StoreSettings(answers=Form.SSE)
FORMS = pytest.mark.parametrize("settings", [StoreSettings(), SSE], ids=["json", "sse"])


# The wire of 2025


@FORMS
@pytest.mark.req("MCP-004", "MCP-010", "MCP-012", "MCP-016")
async def test_a_session_from_its_handshake_to_a_product(settings: StoreSettings) -> None:
    async with running(settings) as bench:
        begun = await bench.initialize()
        assert begun.status == 200
        result = begun.message["result"]
        assert result["protocolVersion"] == VERSION_2025
        assert result["capabilities"] == {"tools": {"listChanged": False}}
        assert begun.headers["Mcp-Session-Id"]
        session = await bench.session()
        listed = await bench.send(bench.call("tools/list"), session)
        assert {tool["name"] for tool in listed.message["result"]["tools"]} >= {"catalog_get", "store_status"}
        called = await bench.send(bench.call("tools/call", PRODUCT), session | await bench.granted())
        assert called.status == 200
        assert called.message["result"]["structuredContent"] == FIXED_PRODUCT.to_json()
        assert called.message["result"]["isError"] is False
        assert called.headers["Content-Type"].startswith(
            "text/event-stream" if settings.answers is Form.SSE else "application/json"
        )
        assert (await bench.send(bench.call("ping"), session)).message["result"] == {}
        assert (await bench.send(None, session, "DELETE")).status == 200
        assert (await bench.send(bench.call("ping"), session)).status == 404


@pytest.mark.req("MCP-011")
@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2025-11-25"),
        ("1900-01-01", "2025-11-25"),
    ],
)
async def test_a_version_is_negotiated(asked: str, answered: str) -> None:
    async with running() as bench:
        assert (await bench.initialize(asked)).message["result"]["protocolVersion"] == answered
        assert bench.last.facts["version"] == answered


@pytest.mark.req("MCP-012")
async def test_a_session_is_needed_and_known() -> None:
    async with running() as bench:
        session = await bench.session()
        listing = bench.call("tools/list")
        for headers, status in (
            ({}, 400),
            ({"Mcp-Session-Id": "another"}, 404),
            ({**session, "MCP-Protocol-Version": "1900-01-01"}, 400),
            ({"Mcp-Session-Id": session["Mcp-Session-Id"]}, 200),
        ):
            assert (await bench.send(listing, headers)).status == status
        assert [seen.refused for seen in bench.seen[-4:]] == ["session", "session", "shape", None]
        assert bench.last.session == fingerprint(session["Mcp-Session-Id"])
        assert (await bench.send(None, session, "GET")).status == 405
        assert (await bench.send(None, {}, "DELETE")).status == 400
        assert (await bench.send(None, session, "PUT")).status == 405


@pytest.mark.parametrize("params", [{}, {"protocolVersion": 1}, {"protocolVersion": VERSION_2025}])
async def test_a_handshake_of_another_shape_is_refused(params: dict[str, Any]) -> None:
    async with running() as bench:
        answer = await bench.send(bench.call("initialize", params))
        assert answer.message["error"]["code"] == -32602
        assert "Mcp-Session-Id" not in answer.headers


async def test_a_clients_answer_is_taken_in_a_session() -> None:
    async with running() as bench:
        returned = {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert (await bench.send(returned, await bench.session())).status == 202
        assert (await bench.send(returned)).status == 400


@pytest.mark.req("MCP-012")
async def test_a_sessions_own_stream_ends_with_it() -> None:
    async with running(StoreSettings(own_streams=True)) as bench:
        session = await bench.session()
        headers = {**bench.credential, **session, "Accept": "text/event-stream"}
        async with bench.http.get(bench.server.url, headers=headers) as response:
            assert (response.status, response.content_type) == (200, "text/event-stream")
            await bench.until(lambda: bench.last.http == "GET")
            assert (await bench.send(None, session, "GET")).status == 409, "there is one"
            assert bench.server.lose_sessions() == 1
            assert await response.read() == b""


def test_of_two_that_open_a_sessions_stream_at_once_one_gets_it() -> None:
    async def main() -> list[int]:
        async with running(StoreSettings(own_streams=True)) as bench:
            headers = {**bench.credential, **await bench.session(), "Accept": "text/event-stream"}
            again = asyncio.Barrier(2)

            async def opened() -> int:
                await again.wait()
                async with bench.http.get(bench.server.url, headers=headers) as response:
                    await again.wait()
                    return response.status

            statuses = sorted(await asyncio.gather(opened(), opened()))
            # The one that was torn leaves its place to the next.
            async with bench.http.get(bench.server.url, headers=headers) as response:
                return [*statuses, response.status]

    assert virtually(main) == [200, 409, 200]


def test_a_busy_store_sends_its_signs_of_life_all_the_same() -> None:
    async def main() -> float:
        async with running(StoreSettings(own_streams=True)) as bench:
            loop = asyncio.get_running_loop()
            session = await bench.session()
            headers = {**bench.credential, **session, "Accept": "text/event-stream"}

            async def keep_busy() -> None:
                while True:
                    await asyncio.sleep(KEEP_ALIVE_SECONDS / 2)
                    await bench.send(bench.call("ping"), session)

            async with bench.http.get(bench.server.url, headers=headers) as response:
                start = loop.time()
                busy = asyncio.create_task(keep_busy())
                for _ in range(3):
                    assert await response.content.readuntil(b"\n\n") == b": keep-alive\n\n"
                busy.cancel()
                return loop.time() - start

    assert virtually(main) == pytest.approx(3 * KEEP_ALIVE_SECONDS, abs=1)


async def test_a_stream_must_be_accepted() -> None:
    async with running(StoreSettings(own_streams=True)) as bench:
        assert (await bench.send(None, {**await bench.session(), "Accept": "text/html"}, "GET")).status == 406


async def test_events_have_ids_in_a_session_and_can_be_had_again() -> None:
    async with running(SSE) as bench:
        session = await bench.session()
        first = await bench.send(bench.call("tools/list"), session)
        primed, answered = first.events
        assert primed["data"] is None
        for last, due in ((primed["id"], [answered]), (answered["id"], [])):
            assert (await bench.send(None, {**session, "Last-Event-ID": last}, "GET")).events == due
        for wrong in ("9-9", "x", ""):
            assert (await bench.send(None, {**session, "Last-Event-ID": wrong}, "GET")).status == 400
        other = await bench.session()
        assert (await bench.send(None, {**other, "Last-Event-ID": answered["id"]}, "GET")).status == 400


async def test_an_older_client_gets_no_event_without_data() -> None:
    async with running(SSE) as bench:
        answer = await bench.send(bench.call("ping"), await bench.session("2025-06-18"))
        assert [event["data"]["result"] for event in answer.events] == [{}]


# The wire of 2026


@FORMS
@pytest.mark.req("MCP-004", "MCP-010", "MCP-016")
async def test_a_product_without_a_session(settings: StoreSettings) -> None:
    async with running(settings) as bench:
        found = await bench.stateless("server/discover")
        assert found.message["result"]["supportedVersions"] == [VERSION_2026]
        listed = await bench.stateless("tools/list")
        for answer in (found, listed):
            result = answer.message["result"]
            assert (result["resultType"], result["cacheScope"]) == ("complete", "private")
            assert result["ttlMs"] > 0
        called = await bench.stateless("tools/call", PRODUCT, await bench.granted())
        assert called.message["result"]["structuredContent"] == FIXED_PRODUCT.to_json()
        assert called.message["result"]["resultType"] == "complete"
        assert "ttlMs" not in called.message["result"]
        assert "Mcp-Session-Id" not in called.headers
        assert b"\nid:" not in b"\n" + called.raw, "events of this wire have no ids"
        assert {seen.era for seen in bench.seen} == {"2026"}


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"MCP-Protocol-Version": None}, -32020),
        ({"MCP-Protocol-Version": VERSION_2025}, -32020),
        ({"Mcp-Method": None}, -32020),
        ({"Mcp-Method": "tools/list"}, -32020),
        ({"Mcp-Name": None}, -32020),
        ({"Mcp-Name": "store_status"}, -32020),
        ({"Mcp-Name": "=?base64?x?="}, -32020),
    ],
)
async def test_headers_must_say_what_the_body_says(headers: dict[str, str | None], code: int) -> None:
    async with running() as bench:
        answer = await bench.stateless("tools/call", PRODUCT, await bench.granted() | headers)
        assert (answer.status, answer.json["error"]["code"]) == (400, code)
        assert (bench.last.executed, bench.last.rpc_error) == (False, code)


async def test_a_name_may_come_encoded_and_a_session_id_is_ignored() -> None:
    async with running() as bench:
        headers = await bench.granted() | {"Mcp-Name": "=?base64?Y2F0YWxvZ19nZXQ=?=", "Mcp-Session-Id": "stale"}
        assert (await bench.stateless("tools/call", PRODUCT, headers)).status == 200


@pytest.mark.parametrize(
    ("meta", "version", "status", "code"),
    [
        ({}, VERSION_2026, 400, -32602),
        ({"io.modelcontextprotocol/protocolVersion": VERSION_2026}, VERSION_2026, 400, -32602),
        ({**META, "io.modelcontextprotocol/protocolVersion": 5}, VERSION_2026, 400, -32602),
        ({**META, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}, "2099-01-01", 400, -32022),
    ],
)
async def test_a_request_carries_a_version_that_is_served(
    meta: dict[str, Any], version: str, status: int, code: int
) -> None:
    async with running() as bench:
        headers = {"MCP-Protocol-Version": version, "Mcp-Method": "tools/list"}
        answer = await bench.send(bench.call("tools/list", {"_meta": meta}), headers)
        assert (answer.status, answer.json["error"]["code"]) == (status, code)
        if code == -32022:
            assert answer.json["error"]["data"] == {"supported": [VERSION_2026], "requested": "2099-01-01"}


@FORMS
@pytest.mark.parametrize("method", ["initialize", "ping", "resources/list", "subscriptions/listen"])
async def test_a_method_that_is_not_served_is_not_found(method: str, settings: StoreSettings) -> None:
    async with running(settings) as bench:
        answer = await bench.stateless(method)
        assert (answer.status, answer.json["error"]["code"]) == (404, -32601)


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"MCP-Protocol-Version": VERSION_2026, "Mcp-Session-Id": "stale"}, -32602),
        ({"Mcp-Method": "tools/list"}, -32020),
        ({"MCP-Protocol-Version": "2099-01-01"}, -32602),
    ],
)
async def test_who_speaks_half_of_the_wire_of_2026_is_told_so(headers: dict[str, str], code: int) -> None:
    """And not asked for a session."""
    async with running() as bench:
        answer = await bench.send(bench.call("tools/list"), headers)
        assert (answer.status, answer.json["error"]["code"], bench.last.era) == (400, code, "2026")


# What both have in common


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"\xff", -32700),
        (b"[" * 100_000, -32700),
        (b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', -32700),
        (b"[]", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        (b"5", -32600),
        (b'{"id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32600),
    ],
)
async def test_what_is_no_message_is_refused(body: bytes, code: int) -> None:
    async with running() as bench:
        answer = await bench.send(body, await bench.session())
        assert (answer.status, answer.json["error"]["code"], answer.json["id"]) == (400, code, None)
        assert bench.last.refused == "shape"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": None}, 415),
        ({"Content-Type": "application/json; charset=utf-8"}, 202),
        ({"Accept": "application/json"}, 406),
        ({"Accept": "text/event-stream"}, 406),
        ({"Accept": "application/*;q=0.5, text/*"}, 202),
        ({"Accept": "*/*"}, 202),
    ],
)
async def test_media_types_are_negotiated(headers: dict[str, str | None], status: int) -> None:
    async with running() as bench:
        notice = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await bench.send(notice, {**await bench.session(), **headers})).status == status


async def test_a_body_that_is_too_long_is_refused() -> None:
    async with running() as bench:
        headers = {**bench.credential, **JSON}
        data = BytesIO(b" " * (MAX_BODY_BYTES + 1))
        async with bench.http.post(bench.server.url, data=data, headers=headers) as response:
            assert response.status == 413
        assert bench.last.status == 413


@pytest.mark.parametrize("depth", [200, 976, 977, 990, 5000])
async def test_a_call_nested_too_deep_is_refused_and_told(depth: int) -> None:
    async with running() as bench:
        headers = await bench.session() | await bench.granted()
        value = "[" * depth + "]" * depth
        call = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"x","arguments":{{"a":{value}}}}}}}'
        answer = await bench.send(call.encode(), headers)
        assert (answer.status, answer.json["error"]["code"]) == (400, -32700)
        assert (bench.last.status, bench.last.refused) == (400, "shape")


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_body_whose_compression_is_broken_is_refused_and_told(coding: str) -> None:
    async with running() as bench:
        for credential, status in (({}, 401), (bench.credential, 413)):
            headers = {**credential, **JSON, "Content-Encoding": coding}
            async with bench.http.post(bench.server.url, data=b"no such stream", headers=headers) as response:
                assert response.status == status
            assert bench.last.status == status


def test_a_body_that_does_not_end_is_waited_for_so_long_and_no_longer() -> None:
    async def main() -> bool:
        async with running() as bench:
            loop = asyncio.get_running_loop()
            start = loop.time()

            async def endless() -> AsyncIterator[bytes]:
                yield b"{"
                await loop.create_future()

            async with bench.http.post(bench.server.url, data=endless(), headers=bench.credential | JSON) as response:
                assert response.status == 413
            return BODY_SECONDS <= loop.time() - start < BODY_SECONDS + 1

    assert virtually(main)


@pytest.mark.req("MCP-024")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1.evil.example"}, 403),
        ({"Origin": "http://127.0.0.1@evil.example"}, 403),
        ({"Origin": "file://127.0.0.1"}, 403),
        ({"Origin": "http://user@127.0.0.1"}, 403),
        ({"Origin": "http://127.0.0.1?x"}, 403),
        ({"Origin": "http://127.0.0.1/x"}, 403),
        ({"Origin": "http://localhost:5173"}, 200),
        ({"Origin": "https://[::1]:8443"}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": "evil.example:80"}, 403),
        ({"Host": "127.0.0.1:x"}, 403),
        ({"Host": "localhost:1"}, 200),
    ],
)
async def test_only_this_machine_is_served(headers: dict[str, str], status: int) -> None:
    async with running() as bench:
        assert (await bench.stateless("tools/list", headers=headers)).status == status


@pytest.mark.parametrize("eras", [(Era.SESSIONS,), (Era.STATELESS,)])
async def test_a_store_can_speak_one_wire_only(eras: tuple[Era, ...]) -> None:
    async with running(StoreSettings(eras=eras)) as bench:
        statuses = ((await bench.initialize()).status, (await bench.stateless("tools/list")).status)
        assert statuses == ((200, 400) if eras == (Era.SESSIONS,) else (400, 200))
        assert (await bench.send(None, method="GET")).status == (400 if eras == (Era.SESSIONS,) else 405)


@pytest.mark.req("MCP-019")
async def test_the_list_is_the_same_with_a_grant_and_without() -> None:
    async with running() as bench:
        bare = await bench.stateless("tools/list")
        assert (await bench.stateless("tools/list", headers=await bench.granted())).json["result"] == bare.json[
            "result"
        ]
        refused = await bench.stateless("tools/list", {"cursor": "x"})
        assert (refused.status, refused.json["error"]["code"]) == (400, -32602)


@pytest.mark.req("MCP-020", "PRIV-015")
async def test_a_call_is_journalled_without_its_secrets() -> None:
    async with running() as bench:
        headers = await bench.granted("call-7", "turn-3", **{"X-Agent-Conversation-Id": "c-1"})
        await bench.stateless("tools/call", PRODUCT, headers)
        seen = bench.last
        grant = headers["X-Store-Context-Grant"]
        assert (seen.tool, seen.call_id, seen.turn_id, seen.conversation_header) == (
            "catalog_get",
            "call-7",
            "turn-3",
            "c-1",
        )
        assert (seen.grant, seen.executed, seen.refused, seen.status) == (fingerprint(grant), True, None, 200)
        assert seen.binding is not None
        assert seen.binding["actorId"] == "actor-1"
        journal = repr(bench.ctx.journal.entries)
        assert not [secret for secret in (grant, STATIC, MARKER) if secret in journal]
        entry = bench.ctx.journal.entries[-1]
        assert (entry.by, entry.t >= 0) == ("store", True)


async def test_what_no_id_can_be_is_not_written_down() -> None:
    async with running() as bench:
        words = {"X-Agent-Turn-Id": "pass word", "X-Agent-Call-Id": "x" * 300}
        await bench.stateless("tools/call", PRODUCT, await bench.granted() | words)
        assert (bench.last.turn_id, bench.last.call_id, bench.last.refused) == (None, None, "shape")
        await bench.stateless("a secret method")
        assert bench.last.method is None


@pytest.mark.parametrize("name", ["unknown", "", 5])
async def test_a_tool_that_is_not_listed_is_an_error_of_the_protocol(name: object) -> None:
    async with running() as bench:
        call = bench.call("tools/call", {"name": name, "arguments": {}})
        answer = await bench.send(call, await bench.session() | await bench.granted())
        assert (answer.status, answer.json["error"]["code"]) == (200, -32602)


@pytest.mark.req("MCP-005")
async def test_the_store_knows_itself_by_its_canonical_destination() -> None:
    """The grant names the canonical URL; the request came to the loopback one."""
    async with running() as bench:
        assert bench.server.url.startswith("http://127.0.0.1:")
        assert (await bench.stateless("tools/call", PRODUCT, await bench.granted())).status == 200
        assert bench.last.binding is not None
        assert bench.last.binding["destination"] == "https://93.184.216.34/mcp"


async def test_progress_is_told_on_a_stream_when_asked_for() -> None:
    async with running(SSE) as bench:
        params = {**PRODUCT, "_meta": {**META, "progressToken": "p1"}}
        headers = {"MCP-Protocol-Version": VERSION_2026, "Mcp-Method": "tools/call", "Mcp-Name": "catalog_get"}
        answer = await bench.send(bench.call("tools/call", params), headers | await bench.granted())
        told = [event["data"].get("method") for event in answer.events]
        assert told == ["notifications/progress", None]
        assert answer.events[0]["data"]["params"] == {"progressToken": "p1", "progress": 100, "total": 100}


# Sockets


@pytest.mark.req("GR-018")
async def test_the_issuer_shares_the_port() -> None:
    async with running() as bench:
        await bench.grant()
        assert {entry.by for entry in bench.ctx.journal.entries} == {"issuer"}
        assert all(isinstance(entry.event, IssuerRequest) for entry in bench.ctx.journal.entries)


@pytest.mark.req("PRIV-018")
async def test_it_listens_on_loopback_and_comes_back_where_it_was() -> None:
    ctx = context(asyncio.get_running_loop().time)
    core = StoreCore(
        StoreSettings(),
        ToolSet(()),
        static_credential=None,
        seal=None,
        is_revoked=lambda _: False,
        session_ids=ctx.draws("store", "sessions").token,
    )
    server = StoreServer(ctx, "store", core)
    with pytest.raises(MisuseError):
        _ = server.url
    await server.start()
    url = server.url
    assert url.startswith("http://127.0.0.1:")
    assert url.endswith("/mcp")
    with pytest.raises(EnvironmentFault, match="store cannot listen on"):
        await StoreServer(ctx, "store", core, port=int(server.base.rpartition(":")[2])).start()
    await server.close()
    await server.close()
    await server.start()
    assert server.url == url
    await server.close()


async def test_a_close_tears_what_is_open() -> None:
    async with running(replace(SSE, own_streams=True)) as bench:
        headers = {**bench.credential, **await bench.session(), "Accept": "text/event-stream"}
        async with bench.http.get(bench.server.url, headers=headers) as response:
            await bench.server.close()
            with pytest.raises(aiohttp.ClientError):
                await response.read()


async def test_the_open_profile_asks_nothing() -> None:
    """As the MCP conformance runner meets the store, with the tools that it looks for."""
    async with running(static=None, more_tools=conformance_tools()) as bench:
        bench.credential = {}
        assert len((await bench.stateless("tools/list")).json["result"]["tools"]) == 15
        said = await bench.stateless("tools/call", {"name": "test_simple_text"})
        assert said.json["result"]["isError"] is False
        assert MARKER in (await bench.stateless("tools/call", PRODUCT)).raw.decode()
        assert (bench.last.executed, bench.last.refused) == (True, None)

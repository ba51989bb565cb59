"""What the store does wrong on purpose, as a caller meets it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import aiohttp
import pytest

from lab.errors import UsageError
from lab.store.headers import Era
from lab.store.misbehaviour import STATUSES, Misbehaviour, Misbehaviours, Wrong
from lab.store.settings import Form, Refusing, StoreSettings
from tests.store.bench import JSON, MARKER, PRODUCT, Answer, Bench, running, virtually

ERAS = pytest.mark.parametrize("era", list(Era), ids=str)
CALLS = "tools/call"


async def begin(bench: Bench, era: Era) -> dict[str, str]:
    return await bench.session() if era is Era.SESSIONS else {}


async def call(bench: Bench, era: Era, session: Mapping[str, str], call_id: str = "call-1") -> Answer:
    """The proven call."""
    headers = {**session, **await bench.granted(call_id)}
    if era is Era.SESSIONS:
        return await bench.send(bench.call(CALLS, PRODUCT), headers)
    return await bench.stateless(CALLS, PRODUCT, headers)


async def met(era: Era, *rules: Misbehaviour, settings: StoreSettings | None = None) -> tuple[Answer, Bench]:
    """The answer to a call under these rules, and the bench with its journal."""
    async with running(settings) as bench:
        session = await begin(bench, era)
        bench.server.misbehave(rules)
        return await call(bench, era, session), bench


@ERAS
@pytest.mark.req("MCP-022")
@pytest.mark.parametrize("status", STATUSES)
async def test_an_http_status(era: Era, status: int) -> None:
    answer, bench = await met(era, Misbehaviour(Wrong.HTTP_STATUS, CALLS, status=status, text="m4rker"))
    assert answer.status == status
    assert answer.json["error"]["message"] == "m4rker"
    assert ("WWW-Authenticate" in answer.headers) == (status == 401)
    assert ("Retry-After" in answer.headers) == (status in (429, 503))
    assert (bench.last.status, bench.last.misbehaved, bench.last.executed) == (status, "http-status", False)


@ERAS
async def test_a_redirect_is_one_that_stays_here(era: Era) -> None:
    answer, bench = await met(era, Misbehaviour(Wrong.REDIRECT, CALLS, location="/elsewhere"))
    assert (answer.status, answer.headers["Location"], answer.raw) == (307, "/elsewhere", b"")
    assert (bench.last.status, bench.last.misbehaved) == (307, "redirect")


@ERAS
@pytest.mark.req("MCP-009", "MCP-022")
async def test_errors_of_three_kinds(era: Era) -> None:
    answer, bench = await met(era, Misbehaviour(Wrong.JSONRPC_ERROR, text="m4rker"))
    assert (answer.status, answer.json["error"]) == (200, {"code": -32603, "message": "m4rker"})
    assert (bench.last.rpc_error, bench.last.executed) == (-32603, False)
    answer, bench = await met(era, Misbehaviour(Wrong.IS_ERROR, text="m4rker"))
    assert answer.json["result"]["content"] == [{"type": "text", "text": "m4rker"}]
    assert (bench.last.is_error, bench.last.executed) == (True, False)
    answer, bench = await met(era, Misbehaviour(Wrong.REFUSAL, text="m4rker"))
    assert (answer.status, answer.json["error"]["message"]) == (403, "m4rker")
    assert (bench.last.refused, bench.last.executed) == ("ordered", False)


async def test_a_refusal_has_the_stores_form() -> None:
    settings = StoreSettings(refusing=Refusing.RESULT)
    answer, _ = await met(Era.STATELESS, Misbehaviour(Wrong.REFUSAL), settings=settings)
    assert answer.json["result"]["isError"] is True


@ERAS
@pytest.mark.req("MCP-022")
async def test_a_message_that_is_none(era: Era) -> None:
    answer, bench = await met(era, Misbehaviour(Wrong.PROTOCOL_ERROR))
    assert not {"jsonrpc", "result", "error"} & set(answer.json)
    assert bench.last.executed, "the tool has run"
    answer, _ = await met(era, Misbehaviour(Wrong.WRONG_ID))
    assert (answer.json["id"] > 1000, "result" in answer.json) == (True, True)
    answer, _ = await met(era, Misbehaviour(Wrong.EMPTY_ARRAY))
    assert answer.json == []
    answer, bench = await met(era, Misbehaviour(Wrong.TRUNCATED_JSON))
    assert answer.raw.startswith(b'{"jsonrpc":"2.0"')
    with pytest.raises(json.JSONDecodeError):
        _ = answer.json
    assert (bench.last.status, bench.last.executed) == (200, True)


async def test_a_wrong_id_of_a_text_is_one() -> None:
    async with running() as bench:
        bench.server.misbehave([Misbehaviour(Wrong.WRONG_ID)])
        session = await bench.initialize()
        ping = {"jsonrpc": "2.0", "id": "a", "method": "ping"}
        answer = await bench.send(ping, {"Mcp-Session-Id": session.headers["Mcp-Session-Id"]})
        assert answer.json["id"] not in ("a", None)


@ERAS
@pytest.mark.parametrize("settings", [StoreSettings(), StoreSettings(answers=Form.SSE)], ids=["json", "sse"])
async def test_a_huge_answer_is_one_message(era: Era, settings: StoreSettings) -> None:
    answer, bench = await met(era, Misbehaviour(Wrong.HUGE_ANSWER, size=3_000_000), settings=settings)
    assert len(answer.raw) > 3_000_000
    assert answer.message["result"]["structuredContent"]["productId"] == 9001
    assert bench.last.executed


@ERAS
@pytest.mark.req("MCP-022")
@pytest.mark.parametrize("wrong", [Wrong.CUT, Wrong.RESET, Wrong.SSE_CUT])
async def test_a_torn_connection(era: Era, wrong: Wrong) -> None:
    async with running() as bench:
        session = await begin(bench, era)
        bench.server.misbehave([Misbehaviour(wrong, CALLS, nth=1)])
        with pytest.raises((aiohttp.ClientError, ConnectionError)):
            await call(bench, era, session)
        assert (bench.last.status, bench.last.misbehaved, bench.last.executed) == (0, str(wrong), True)
        again = await call(bench, era, session)
        assert (again.status, bench.last.duplicate) == (200, True), "the tool had run"


@pytest.mark.parametrize("wrong", [Wrong.CUT, Wrong.RESET])
async def test_how_a_connection_ends(wrong: Wrong) -> None:
    """A cut is an end of the stream before the first byte, a reset comes behind half of what was announced."""
    async with running() as bench:
        bench.server.misbehave([Misbehaviour(wrong, "server/discover")])
        port = int(bench.server.base.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        body = (
            b'{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":'
            b'{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}'
        )
        own = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "server/discover", "Content-Length": str(len(body))}
        headers = {"Host": "localhost", **bench.credential, **JSON, **own}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body)
        if wrong is Wrong.CUT:
            assert await reader.read() == b""
        else:
            answer = await reader.readuntil(b"\r\n\r\n")
            announced = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            assert announced > 50
            with pytest.raises(ConnectionResetError):
                await reader.readexactly(announced)
        writer.close()


@pytest.mark.req("MCP-022")
async def test_a_stream_that_is_cut_with_an_id_can_be_taken_up_again() -> None:
    async with running() as bench:
        session = await bench.session()
        bench.server.misbehave([Misbehaviour(Wrong.SSE_CUT_WITH_ID, CALLS, nth=1)])
        headers = {**bench.credential, **JSON, **session, **await bench.granted()}
        async with bench.http.post(bench.server.url, json=bench.call(CALLS, PRODUCT), headers=headers) as response:
            first = (await response.content.readuntil(b"\n\n")).decode()
            with pytest.raises(aiohttp.ClientError):
                await response.content.read()
        lines = {name: value for name, _, value in (line.partition(":") for line in first.strip().split("\n"))}
        assert list(lines) == ["id", "retry", "data"]
        assert lines["data"].strip() == ""
        rest = await bench.send(None, {**session, "Last-Event-ID": lines["id"].strip()}, "GET")
        assert MARKER in str(rest.message["result"])
        assert (bench.last.http, bench.last.facts["resumed"]) == ("GET", 1)


@pytest.mark.req("MCP-022", "MCP-026")
async def test_a_session_is_lost_within_a_call() -> None:
    async with running() as bench:
        session = await bench.session()
        bench.server.misbehave([Misbehaviour(Wrong.LOST_SESSION, CALLS, nth=1)])
        lost = await call(bench, Era.SESSIONS, session)
        assert (lost.status, bench.last.refused, bench.last.misbehaved) == (404, "session", "lost-session")
        assert not bench.last.executed
        assert (await bench.send(bench.call("ping"), session)).status == 404, "it stays lost"
        assert MARKER in str((await call(bench, Era.SESSIONS, await bench.session())).json)


@pytest.mark.req("MCP-026")
async def test_all_sessions_are_lost_at_run_time() -> None:
    async with running() as bench:
        sessions = [await bench.session() for _ in range(3)]
        assert bench.server.lose_sessions() == 3
        for session in sessions:
            assert (await bench.send(bench.call("ping"), session)).status == 404
        assert (await bench.send(bench.call("ping"), await bench.session())).status == 200


@ERAS
@pytest.mark.req("MCP-022")
def test_a_slow_answer_takes_its_time(era: Era) -> None:
    async def main() -> list[object]:
        async with running() as bench:
            session = await begin(bench, era)
            bench.server.misbehave([Misbehaviour(Wrong.SLOW, CALLS, seconds=90.0)])
            before = bench.ctx.now()
            answer = await call(bench, era, session)
            return [answer.status, round(bench.ctx.now() - before), bench.last.misbehaved, MARKER in str(answer.json)]

    assert virtually(main) == [200, 90, "slow", True]


@ERAS
def test_a_hung_call_has_no_answer(era: Era) -> None:
    async def main() -> list[object]:
        async with running() as bench:
            session = await begin(bench, era)
            bench.server.misbehave([Misbehaviour(Wrong.HANG, CALLS)])
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(3600):
                    await call(bench, era, session)
            return [bench.last.status, bench.last.misbehaved, bench.last.executed, round(bench.ctx.now())]

    assert virtually(main) == [0, "hang", True, 3600]


def test_a_hung_call_does_not_hold_the_stop() -> None:
    async def main() -> float:
        async with running() as bench:
            bench.server.misbehave([Misbehaviour(Wrong.HANG)])
            hung = asyncio.ensure_future(bench.stateless("tools/list"))
            await bench.until(lambda: bool(bench.seen))
            await bench.server.close()
            with pytest.raises(aiohttp.ClientError):
                await hung
            return bench.ctx.now()

    seconds = virtually(main)
    assert isinstance(seconds, float)
    assert seconds < 1


def test_a_sessions_own_stream_is_kept_alive() -> None:
    async def main() -> bytes:
        async with running(StoreSettings(own_streams=True)) as bench:
            headers = {**bench.credential, **await bench.session(), "Accept": "text/event-stream"}
            async with bench.http.get(bench.server.url, headers=headers) as response:
                await asyncio.sleep(40)
                bench.server.lose_sessions()
                return await response.read()

    assert virtually(main) == b": keep-alive\n\n" * 2


# Which requests meet a rule


@pytest.mark.parametrize("method", ["initialize", "notifications/initialized", "tools/list"])
async def test_any_method_can_misbehave(method: str) -> None:
    async with running() as bench:
        bench.server.misbehave([Misbehaviour(Wrong.HTTP_STATUS, method, status=503)])
        begun = await bench.initialize()
        if method == "initialize":
            assert begun.status == 503
            return
        session = {"Mcp-Session-Id": begun.headers["Mcp-Session-Id"]}
        notice = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        statuses = [
            (await bench.send(notice, session)).status,
            (await bench.send(bench.call("tools/list"), session)).status,
        ]
        assert statuses == ([503, 200] if method.startswith("notifications") else [202, 503])


async def test_only_what_would_be_served_counts() -> None:
    async with running() as bench:
        bench.server.misbehave([Misbehaviour(Wrong.HTTP_STATUS, CALLS, nth=1)])
        assert (await bench.stateless(CALLS, PRODUCT)).status == 403
        assert bench.last.misbehaved is None
        assert (await call(bench, Era.STATELESS, {})).status == 500


async def test_rules_are_changed_at_run_time() -> None:
    async with running() as bench:
        rule = Misbehaviour(Wrong.HTTP_STATUS, "tools/list", nth=1)
        bench.server.misbehave([rule])
        statuses = [(await bench.stateless("tools/list")).status, (await bench.stateless("tools/list")).status]
        bench.server.misbehave([rule], also=True)
        statuses.append((await bench.stateless("tools/list")).status)
        bench.server.misbehave([])
        statuses.append((await bench.stateless("tools/list")).status)
        assert statuses == [500, 200, 500, 200]


def strikes(*rules: Misbehaviour, asked: list[tuple[Era, str, str | None]]) -> list[str | None]:
    book = Misbehaviours()
    book.set(rules)
    return [None if rule is None else rule.text for rule in (book.meet(*one) for one in asked)]


def rule(text: str, wrong: Wrong = Wrong.HTTP_STATUS, **members: Any) -> Misbehaviour:
    return Misbehaviour(wrong, text=text, **members)


def test_a_rule_counts_what_fits_it() -> None:
    first, second = (Era.SESSIONS, CALLS, "a"), (Era.STATELESS, CALLS, "b")
    listing = (Era.STATELESS, "tools/list", None)
    asked = [first, second, listing, first, second]
    assert strikes(rule("x"), asked=asked) == ["x"] * 5
    assert strikes(rule("x", nth=2), asked=asked) == [None, "x", None, None, None]
    assert strikes(rule("x", tool="a", nth=2), asked=asked) == [None, None, None, "x", None]
    assert strikes(rule("x", method=CALLS, nth=3), asked=asked) == [None, None, None, "x", None]
    assert strikes(rule("x", era=Era.SESSIONS), asked=asked) == ["x", None, None, "x", None]
    assert strikes(rule("x", Wrong.IS_ERROR), asked=asked) == ["x", "x", None, "x", "x"]
    assert strikes(rule("x", Wrong.LOST_SESSION), asked=asked) == ["x", None, None, "x", None]
    # The first of them strikes, and all of them count.
    assert strikes(rule("x", nth=1), rule("y", nth=2), rule("z"), asked=asked) == ["x", "y", "z", "z", "z"]


def test_what_a_request_cannot_suffer_does_not_strike_it() -> None:
    notice, begin_ = (Era.SESSIONS, "notifications/initialized", None), (Era.SESSIONS, "initialize", None)
    assert strikes(rule("x", Wrong.TRUNCATED_JSON), asked=[notice, begin_]) == [None, "x"]
    assert strikes(rule("x", Wrong.LOST_SESSION), asked=[notice, begin_]) == ["x", None]


@pytest.mark.parametrize(
    ("wrong", "members", "said"),
    [
        (Wrong.LOST_SESSION, {"era": Era.STATELESS}, "wire of 2025 only"),
        (Wrong.SSE_CUT_WITH_ID, {"era": Era.STATELESS}, "wire of 2025 only"),
        (Wrong.LOST_SESSION, {"method": "initialize"}, "needs a session"),
        (Wrong.IS_ERROR, {"method": "tools/list"}, "results of tools"),
        (Wrong.WRONG_ID, {"method": "notifications/initialized"}, "needs an answer"),
        (Wrong.SLOW, {"method": "tools/list", "tool": "a"}, "`tool` goes with"),
        (Wrong.SLOW, {"nth": 0}, "counts from 1"),
        (Wrong.SLOW, {"seconds": -1.0}, "`seconds` is 0 to"),
        (Wrong.HTTP_STATUS, {"status": 200}, "401, 403, 404, 429, 500, 503"),
        (Wrong.HUGE_ANSWER, {"size": 1 << 30}, "`size` is 0 to"),
        (Wrong.REDIRECT, {"location": "https://93.184.216.34/mcp"}, "loopback"),
        (Wrong.REDIRECT, {"location": "//evil.example/"}, "loopback"),
        (Wrong.REDIRECT, {"location": "/\\evil.example"}, "loopback"),
        (Wrong.REDIRECT, {"location": "elsewhere"}, "loopback"),
        (Wrong.REDIRECT, {"location": "/a\r\nX: y"}, "loopback"),
        (Wrong.REDIRECT, {"location": "http://[::1"}, "loopback"),
    ],
)
def test_a_rule_that_cannot_be_is_refused(wrong: Wrong, members: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Misbehaviour(wrong, **members)


@pytest.mark.parametrize(
    "location", ["/", "/elsewhere", "http://127.0.0.1:1/mcp", "https://[::1]:2/", "http://localhost/"]
)
def test_a_redirect_may_stay_on_this_machine(location: str) -> None:
    assert Misbehaviour(Wrong.REDIRECT, location=location).location == location

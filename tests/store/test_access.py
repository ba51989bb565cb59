"""Who gets what from the store: the static credential, the grant, and the forms of a refusal."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from multidict import CIMultiDict

from lab.store.headers import HeaderNames
from lab.store.settings import Refusing, StoreSettings
from tests.grants.made import CONTROL_KEY
from tests.store.bench import JSON, MARKER, PRODUCT, STATIC, Answer, Bench, running, virtually


async def call(bench: Bench, headers: Mapping[str, str | None]) -> Answer:
    return await bench.stateless("tools/call", PRODUCT, headers)


@pytest.mark.req("MCP-001")
async def test_the_static_credential_alone_gets_no_data() -> None:
    async with running() as bench:
        session = await bench.session()
        for answer in (
            await bench.initialize(),
            await bench.send(bench.call("tools/list"), session),
            await bench.send(bench.call("ping"), session),
            await bench.stateless("server/discover"),
            await bench.stateless("tools/list"),
        ):
            assert answer.status == 200
            assert MARKER not in answer.raw.decode()
        refused = await call(bench, {"X-Agent-Turn-Id": "t", "X-Agent-Call-Id": "c"})
        assert refused.status == 403
        assert MARKER not in refused.raw.decode()
        assert (bench.last.refused, bench.last.executed) == ("grant-missing", False)


@pytest.mark.req("MCP-015")
@pytest.mark.parametrize(
    "header", [None, "", STATIC, f"bearer {STATIC}x", f"Bearer {STATIC}x", "Bearer x", f"Basic {STATIC}"]
)
async def test_every_method_needs_the_static_credential(header: str | None) -> None:
    async with running() as bench:
        grant = await bench.granted()
        session = await bench.session()
        bench.credential = {} if header is None else {"Authorization": header}
        answers = [
            await bench.initialize(),
            await bench.send(bench.call("tools/list"), session),
            await bench.send(None, session, "GET"),
            await bench.send(None, session, "DELETE"),
            await bench.stateless("server/discover"),
            await call(bench, grant),
        ]
        for answer in answers:
            assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, 'Bearer realm="store"')
            assert answer.json["error"]["code"] == -32010
        assert [seen.refused for seen in bench.seen[-6:]] == ["static"] * 6


@pytest.mark.req("CX-017", "GR-010", "MCP-002", "MCP-014")
@pytest.mark.parametrize(
    ("body", "headers", "reason"),
    [
        ({"claims": {"destination": "https://93.184.216.34/mcp/"}}, {}, "grant-destination"),
        ({"claims": {"destination": "https://93.184.216.35/mcp"}}, {}, "grant-destination"),
        ({"claims": {"organizationId": "org-2"}}, {}, "grant-organization"),
        ({"claims": {"environment": "live"}}, {}, "grant-environment"),
        ({"ttlMs": 0}, {}, "grant-expired"),
        ({"claims": {"conversationId": "c-2"}}, {"X-Agent-Conversation-Id": "c-1"}, "grant-conversation"),
        ({}, {"X-Agent-Conversation-Id": "c-2"}, "grant-conversation"),
        ({}, {"X-Agent-Conversation-Id": ""}, "grant-conversation"),
    ],
)
async def test_a_grant_that_is_not_for_this_gets_no_data(
    body: dict[str, Any], headers: dict[str, str], reason: str
) -> None:
    async with running() as bench:
        grant = await bench.wrong_grant(**body)
        refused = await call(bench, {**await bench.granted(), "X-Store-Context-Grant": grant, **headers})
        assert (refused.status, refused.json["error"]["code"]) == (403, -32010)
        assert MARKER not in refused.raw.decode()
        assert (bench.last.refused, bench.last.executed, bench.last.rpc_error) == (reason, False, -32010)
        assert bench.last.binding is not None, "it opened"


@pytest.mark.req("MCP-013", "MCP-014")
@pytest.mark.parametrize("headers", [{}, {"X-Agent-Conversation-Id": "c-1"}], ids=["without", "with"])
async def test_the_conversation_may_be_named(headers: dict[str, str]) -> None:
    async with running() as bench:
        assert MARKER in (await call(bench, await bench.granted(**headers))).raw.decode()


@pytest.mark.req("MCP-002")
@pytest.mark.parametrize("word", ["teamId", "actorId", "agentId"])
async def test_what_the_store_cannot_judge_is_told_in_the_journal(word: str) -> None:
    """Whom a conversation belongs to, only its API knows; a law joins the two."""
    async with running() as bench:
        grant = await bench.wrong_grant(claims={word: "another"})
        served = await call(bench, {**await bench.granted(), "X-Store-Context-Grant": grant})
        assert served.status == 200
        assert bench.last.binding is not None
        assert bench.last.binding[word] == "another"


@pytest.mark.req("MCP-014")
@pytest.mark.parametrize("grant", ["", "x", "tg1.", "tg1.AAAA"])
async def test_a_grant_that_is_none_gets_no_data(grant: str) -> None:
    async with running() as bench:
        refused = await call(bench, {**await bench.granted(), "X-Store-Context-Grant": grant})
        assert (refused.status, bench.last.refused, bench.last.binding) == (403, "grant-unknown", None)


@pytest.mark.req("MCP-014")
async def test_two_grants_are_none() -> None:
    async with running() as bench:
        headers = CIMultiDict({**bench.credential, **JSON, **await bench.granted(), **await bench.session()})
        headers.add("X-Store-Context-Grant", await bench.grant())
        body = bench.call("tools/call", PRODUCT)
        async with bench.http.post(bench.server.url, json=body, headers=headers) as response:
            assert response.status == 403
        assert bench.last.refused == "grant-unknown"


@pytest.mark.req("GR-011", "MCP-014")
def test_a_grant_has_ended_at_its_end() -> None:
    """On the virtual clock the call comes in the millisecond in which the grant was minted."""

    async def main() -> list[object]:
        async with running() as bench:
            grant = await bench.wrong_grant(ttlMs=0)
            answer = await call(bench, {**await bench.granted(), "X-Store-Context-Grant": grant})
            return [answer.status, bench.last.refused, bench.ctx.wall_ms() - bench.ctx.clock.epoch_ms]

    assert virtually(main) == [403, "grant-expired", 0]


@pytest.mark.req("GR-010", "GR-016")
async def test_a_grant_of_an_earlier_start_or_an_altered_one_gets_no_data() -> None:
    async with running(seal_key=b"l" * 32) as bench:
        assert (await call(bench, await bench.granted())).status == 403
        assert bench.last.refused == "grant-unknown"
    async with running() as bench:
        good = await bench.granted()
        grant = good["X-Store-Context-Grant"]
        flipped = grant[:20] + ("A" if grant[20] != "A" else "B") + grant[21:]
        assert (await call(bench, {**good, "X-Store-Context-Grant": flipped})).status == 403
        assert (await call(bench, good)).status == 200


@pytest.mark.req("GR-014", "MCP-014")
async def test_a_revoked_grant_gets_no_data_and_another_does() -> None:
    async with running() as bench:
        one, other = await bench.granted("call-1"), await bench.granted("call-2")
        assert one != other
        assert (await call(bench, one)).status == (await call(bench, other)).status == 200
        await bench.issuer("/__lab/revocations", {"grant": one["X-Store-Context-Grant"]}, CONTROL_KEY)
        assert (await call(bench, one)).status == 403
        assert bench.last.refused == "grant-revoked"
        assert (await call(bench, other)).status == 200


@pytest.mark.req("GR-011", "MCP-014")
def test_a_grant_lives_five_minutes() -> None:
    async def main() -> list[object]:
        async with running() as bench:
            headers = await bench.granted()
            seen: list[object] = []
            for pause in (299.0, 2.0):
                await asyncio.sleep(pause)
                answer = await call(bench, {**headers, "X-Agent-Call-Id": f"after-{pause:.0f}"})
                seen += [answer.status, bench.last.refused]
            return seen

    assert virtually(main) == [200, None, 403, "grant-expired"]


@pytest.mark.req("MCP-003", "MCP-013")
@pytest.mark.parametrize("name", ["X-Agent-Turn-Id", "X-Agent-Call-Id"])
@pytest.mark.parametrize("value", [None, "", "two words", "x" * 257])
async def test_a_call_names_its_turn_and_itself(name: str, value: str | None) -> None:
    async with running() as bench:
        refused = await call(bench, {**await bench.granted(), name: value})
        assert (refused.status, refused.json["error"]["code"]) == (400, -32010)
        assert (bench.last.refused, bench.last.executed) == ("shape", False)


@pytest.mark.req("MCP-013")
async def test_the_names_of_the_headers_are_settings() -> None:
    names = HeaderNames("X-Grant", "X-Turn", "X-Call", "X-Conversation")
    async with running(StoreSettings(headers=names)) as bench:
        grant = await bench.grant()
        own = {"X-Grant": grant, "X-Turn": "t", "X-Call": "c", "X-Conversation": "c-1"}
        assert (await call(bench, own)).status == 200
        assert (bench.last.turn_id, bench.last.call_id, bench.last.conversation_header) == ("t", "c", "c-1")
        assert (await call(bench, await bench.granted())).status == 403
        assert (await call(bench, {**own, "X-Conversation": "c-2"})).status == 403


@pytest.mark.req("MCP-014")
@pytest.mark.parametrize("stateless", [False, True], ids=["2025", "2026"])
@pytest.mark.parametrize(
    ("style", "status", "member"),
    [(Refusing.HTTP, 403, "error"), (Refusing.ERROR, 200, "error"), (Refusing.RESULT, 200, "result")],
)
async def test_a_refusal_has_the_form_that_is_set(style: Refusing, status: int, member: str, stateless: bool) -> None:
    async with running(replace(StoreSettings(), refusing=style)) as bench:
        if stateless:
            refused = await call(bench, {})
        else:
            refused = await bench.send(bench.call("tools/call", PRODUCT), await bench.session())
        assert (refused.status, set(refused.json) - {"jsonrpc", "id"}) == (status, {member})
        if member == "result":
            assert refused.json["result"]["isError"] is True
            assert ("resultType" in refused.json["result"]) is stateless
        assert (bench.last.refused, bench.last.is_error) == ("grant-missing", member == "result")


@pytest.mark.req("CX-034")
async def test_a_destination_is_compared_as_it_stands() -> None:
    async with running(StoreSettings(destination="https://93.184.216.34/MCP")) as bench:
        assert (await call(bench, await bench.granted())).status == 403
        assert bench.last.refused == "grant-destination"


@pytest.mark.req("MCP-021")
async def test_a_call_id_that_comes_again_is_answered_from_its_first_result() -> None:
    async with running() as bench:
        headers = await bench.granted("call-1")
        first = await call(bench, headers)
        again = await bench.stateless("tools/call", {"name": "store_status", "arguments": {}}, headers)
        assert again.json["result"] == first.json["result"], "whatever it asks for"
        assert [(seen.executed, seen.duplicate) for seen in bench.seen] == [(True, False), (False, True)]
        fresh = await call(bench, await bench.granted("call-2"))
        assert fresh.json["result"] == first.json["result"]
        assert (bench.last.executed, bench.last.duplicate) == (True, False)


@pytest.mark.req("MCP-021")
async def test_a_first_result_is_its_own_conversations() -> None:
    async with running() as bench:
        await call(bench, await bench.granted("call-1"))
        grant = await bench.wrong_grant(claims={"conversationId": "c-2"})
        await call(bench, {**await bench.granted("call-1"), "X-Store-Context-Grant": grant})
        assert (bench.last.executed, bench.last.duplicate) == (True, False)


@pytest.mark.req("MCP-017")
async def test_the_writing_tool_never_runs() -> None:
    async with running() as bench:
        writing = {"name": "price_update", "arguments": {"productId": 9001, "priceCents": 1}}
        refused = await bench.stateless("tools/call", writing, await bench.granted())
        assert refused.json["result"]["isError"] is True
        assert (bench.last.executed, bench.last.is_error) == (False, True)
        assert '"priceCents":12950' in (await call(bench, await bench.granted("call-2"))).raw.decode()

from dataclasses import replace

import pytest

from lab.partner.client.asking import Departure
from lab.partner.client.context import Contested
from lab.partner.client.outcomes import ApiRefusal, Done, TransportError
from lab.partner.client.settings import DriverSettings
from tests.partner.client.scripted_api import LOST, QUICK, Bench, Reply, answer, bad, bench, good, iso, virtually
from tests.partner.samples import CONVERSATION, DESTINATION

READ, BIND, MINT = "GET /conversations/c/context", "PUT /conversations/c/context", "POST /grants"
CONFLICT = bad(409, "MCP_CONTEXT_CONFLICT")


def context(version: int, active: bool = True) -> Reply:
    return good({"version": version, "expiresAt": iso(300), "active": active})


def trace(bed: Bench) -> list[str]:
    """The calls about the context, binds with what they carried."""
    words = []
    for request in bed.api.requests:
        if request.line == BIND:
            words.append(f"bind {request.json['grant'].removeprefix('tg1.')} at {request.json['expectedVersion']}")
        elif request.line in (READ, MINT):
            words.append({READ: "read", MINT: "mint"}[request.line])
    return words


@pytest.mark.req("CX-003", "CX-004", "CX-030", "CV-009", "CV-003", "GR-006", "CX-034")
async def test_a_new_conversation_is_bound_at_zero() -> None:
    async with bench() as bed:
        await bed.with_conversation()
        outcome = await bed.driver.bind("c")
        await bed.driver.message("c", "r", "hello")
        assert isinstance(outcome, Done)
        assert outcome.value == 1
        below = [line for line in bed.api.lines() if line != "PUT /memberships"]
        # The second POST is the registration with the issuer.
        assert below == ["POST /conversations", "POST /conversations", MINT, BIND, "POST /conversations/c/messages"]
        assert bed.api.of(MINT)[0].json == {"conversationId": "c", "agentId": "agent", "destination": DESTINATION}
        sent = bed.api.of(BIND)[0].json
        assert sent == {
            "externalUserId": bed.driver.member("anna").external_user_id,
            "externalTeamId": "team-1",
            "serverId": "server",
            "destination": DESTINATION,
            "grant": "tg1.grant-1",
            "expiresAt": iso(300),
            "expectedVersion": 0,
        }


@pytest.mark.req("CX-008", "CX-009", "CX-011", "GR-007")
async def test_after_a_lost_answer_the_version_is_read_before_a_fresh_grant_is_bound() -> None:
    async with bench() as bed:
        await bed.with_conversation()
        bed.api.on(BIND, LOST, good({"version": 2}))
        bed.api.on(READ, context(1))
        assert await bed.driver.bind("c") == Done(2, 200)
        assert trace(bed) == ["mint", "bind grant-1 at 0", "read", "mint", "bind grant-2 at 1"]


@pytest.mark.req("CX-010", "CX-011")
async def test_after_a_conflict_the_version_is_read_again() -> None:
    async with bench() as bed:
        await bed.with_conversation()
        bed.api.on(BIND, CONFLICT, CONFLICT, good({"version": 9}))
        bed.api.on(READ, context(7), context(8))
        assert await bed.driver.bind("c") == Done(9, 200)
        assert trace(bed) == [
            *("mint", "bind grant-1 at 0"),
            *("read", "mint", "bind grant-2 at 7"),
            *("read", "mint", "bind grant-3 at 8"),
        ]
        bed.api.on(BIND, good({"version": 10}))
        await bed.driver.grant("c")
        await bed.driver.bind("c")
        assert trace(bed)[-2:] == ["mint", "bind grant-4 at 9"]


@pytest.mark.req("CX-031")
async def test_recovery_ends_after_five_rounds() -> None:
    async with bench() as bed:
        await bed.with_conversation()
        bed.api.on(BIND, CONFLICT)
        outcome = await bed.driver.recover_context("c")
        assert outcome == Contested(5, ApiRefusal("MCP_CONTEXT_CONFLICT", 409))
        assert trace(bed) == [word for k in range(1, 6) for word in ("read", "mint", f"bind grant-{k} at 3")]


@pytest.mark.req("CX-011")
async def test_a_version_that_nobody_knows_is_read_first() -> None:
    async with bench() as bed:
        await bed.with_conversation()
        bed.api.on(BIND, LOST, good({"version": 4}))
        assert await bed.driver.bind("c", recover=False) == TransportError("reset")
        assert bed.driver.conversations["c"].version is None
        assert await bed.driver.bind("c", recover=False) == Done(4, 200)
        assert trace(bed) == ["mint", "bind grant-1 at 0", "read", "bind grant-1 at 3"]


@pytest.mark.req("CX-012")
def test_an_expired_grant_is_not_sent_again() -> None:
    async def main() -> list[str]:
        async with bench(DriverSettings(renews_leases=False)) as bed:
            await bed.with_conversation()
            bed.api.on(MINT, *(answer(200, {"grant": f"tg1.grant-{k}", "expiresAt": iso(5)}) for k in (1, 2)))
            await bed.driver.grant("c")
            bed.api.on(READ, LOST)
            await bed.driver.context("c")
            assert bed.ctx.now() > 5
            bed.api.on(BIND, good({"version": 1}))
            await bed.driver.bind("c")
            return trace(bed)

    assert [word for word in virtually(main) if word != "read"] == ["mint", "mint", "bind grant-2 at 0"]


@pytest.mark.parametrize("code", ["MCP_CONTEXT_DENIED", "EXECUTION_DENIED"])
async def test_other_refusals_end_it(code: str) -> None:
    async with bench() as bed:
        await bed.with_conversation()
        bed.api.on(BIND, bad(403, code))
        assert await bed.driver.bind("c") == ApiRefusal(code, 403)
        assert await bed.driver.recover_context("c") == ApiRefusal(code, 403)
        bed.api.on(READ, bad(404, "CHAT_UNAVAILABLE"))
        assert await bed.driver.recover_context("c") == ApiRefusal("CHAT_UNAVAILABLE", 404)
        bed.api.on(READ, context(1))
        bed.api.on(MINT, answer(404, {"error": {"code": "not_found", "message": "m"}}))
        assert await bed.driver.recover_context("c") == ApiRefusal("not_found", 404)


async def test_what_the_scenario_chose_is_sent_once_and_marked() -> None:
    async with bench() as bed:
        await bed.with_conversation()
        bed.api.on(BIND, CONFLICT)
        minted = await bed.driver.grant("c")
        assert isinstance(minted, Done)
        assert await bed.driver.bind("c", expected_version=5) == ApiRefusal("MCP_CONTEXT_CONFLICT", 409)
        odd = Departure(members={"destination": f"{DESTINATION}/"})
        assert isinstance(await bed.driver.bind("c", grant=minted.value, departure=odd), ApiRefusal)
        binds = [call for call in bed.calls if call.route.startswith("PUT") and call.route.endswith("context")]
        assert [call.facts["byOrder"] for call in binds] == [True, True]
        assert bed.api.of(BIND)[1].json["destination"] == f"{DESTINATION}/"


@pytest.mark.req("CV-008", "CX-014", "CX-015")
async def test_a_conversation_without_a_target_needs_no_grant() -> None:
    async with bench() as bed:
        created = good({**CONVERSATION, "mcp": None}, 201)
        bed.api.on("POST /conversations", created)
        await bed.with_run()
        assert bed.api.lines() == ["PUT /memberships", "POST /conversations", "POST /conversations/c/messages"]
        bed.api.on(READ, good({"version": 0, "expiresAt": None, "active": False}))
        told = await bed.driver.context("c")
        assert isinstance(told, Done)
        assert not told.value.active
        bed.api.on(BIND, bad(403, "MCP_CONTEXT_DENIED"))
        assert await bed.driver.bind("c") == ApiRefusal("MCP_CONTEXT_DENIED", 403)
        assert not bed.api.of(MINT)


async def test_another_employee_may_try() -> None:
    async with bench() as bed:
        await bed.with_conversation()
        bed.api.on(BIND, bad(404, "CHAT_UNAVAILABLE"))
        await bed.driver.bind("c", who="bert")
        assert bed.api.of(BIND)[0].json["externalUserId"] == bed.driver.member("bert").external_user_id


async def test_a_bound_on_rounds_can_be_set() -> None:
    async with bench(replace(QUICK, most_context_rounds=2)) as bed:
        await bed.with_conversation()
        bed.api.on(BIND, CONFLICT)
        assert await bed.driver.recover_context("c") == Contested(2, ApiRefusal("MCP_CONTEXT_CONFLICT", 409))

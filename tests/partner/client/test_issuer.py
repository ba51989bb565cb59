import pytest

from lab.errors import UsageError
from lab.partner.client.asking import Departure
from lab.partner.client.issuer import IssuerTarget
from lab.partner.client.outcomes import ApiRefusal, Done
from tests.partner.client.scripted_api import EPOCH_MS, KEYS, Reply, answer, bench, good, iso
from tests.partner.samples import CONVERSATION, DESTINATION


@pytest.mark.req("GR-001", "GR-002", "GR-009")
async def test_a_grant_is_asked_for_at_the_url_as_it_stands() -> None:
    async with bench() as bed:
        await bed.with_conversation()
        issuer = IssuerTarget(f"{bed.api.url}/some/where?x=1", KEYS["issuer-key"])
        await bed.driver.use_target(bed.driver.target, issuer, same_instance=True)
        bed.api.on("POST /some/where", answer(200, {"grant": "tg1.x", "expiresAt": iso(60)}))
        assert isinstance(await bed.driver.grant("c"), Done)
        request = bed.api.requests[-1]
        assert request.target == "/some/where?x=1"
        assert request.headers["authorization"] == f"Bearer {KEYS['issuer-key']}"
        assert request.json == {"conversationId": "c", "agentId": "agent", "destination": DESTINATION}
        assert bed.calls[-1].route == "POST grants"
        assert bed.calls[-1].misses == ()


@pytest.mark.req("GR-003", "GR-008", "GR-019")
@pytest.mark.parametrize(
    "reply",
    [
        answer(200, {"grant": "tg1.x", "expiresAt": iso(60)}),
        answer(201, {"grant": "tg1.x", "expiresAt": EPOCH_MS + 60_000}),
        good({"grant": "tg1.x", "expiresAt": iso(60)}),
    ],
)
async def test_three_forms_of_answer(reply: Reply) -> None:
    async with bench() as bed:
        await bed.with_conversation()
        bed.api.on("POST /grants", reply)
        outcome = await bed.driver.grant("c")
        assert isinstance(outcome, Done)
        assert (outcome.value.text, outcome.value.expires_at.ms) == ("tg1.x", EPOCH_MS + 60_000)


@pytest.mark.req("GR-007")
async def test_each_grant_is_a_fresh_one() -> None:
    async with bench() as bed:
        await bed.with_conversation()
        await bed.driver.grant("c")
        await bed.driver.grant("c")
        assert [grant.text for grant in bed.driver.conversations["c"].grants] == ["tg1.grant-1", "tg1.grant-2"]


@pytest.mark.req("GR-012")
async def test_a_created_conversation_is_registered_with_its_own_key() -> None:
    async with bench() as bed:
        await bed.with_conversation()
        request = bed.api.requests[-1]
        assert request.target == "/conversations"
        assert request.headers["authorization"] == f"Bearer {KEYS['register-key']}"
        assert request.json == {
            "conversationId": "c",
            "actorId": "actor",
            "teamId": "team",
            "agentId": "agent",
            "destination": DESTINATION,
        }
        assert bed.calls[-1].route == "POST conversations"


async def test_a_grant_can_be_asked_for_wrongly_on_purpose() -> None:
    async with bench() as bed:
        await bed.with_conversation()
        await bed.driver.grant("c", departure=Departure(members={"extra": 1}, key="other"))
        assert bed.api.requests[-1].json["extra"] == 1
        assert bed.api.requests[-1].headers["authorization"] == "Bearer other"
        assert bed.calls[-1].facts["byOrder"] is True


async def test_a_conversation_can_be_left_unregistered() -> None:
    async with bench() as bed:
        await bed.driver.membership("anna")
        await bed.driver.conversation("c", "anna", register=False)
        assert len(bed.api.requests) == 2


async def test_an_issuer_that_takes_no_registrations_gets_none() -> None:
    async with bench() as bed:
        issuer = IssuerTarget(f"{bed.api.url}/grants", KEYS["issuer-key"])
        await bed.driver.use_target(bed.driver.target, issuer, same_instance=True)
        await bed.with_conversation()
        assert len(bed.api.requests) == 2
        await bed.driver.use_target(bed.driver.target, None, same_instance=True)
        with pytest.raises(UsageError, match="no grant issuer"):
            await bed.driver.grant("c")


async def test_a_registration_that_fails_is_told() -> None:
    async with bench() as bed:
        await bed.driver.membership("anna")
        refused = answer(401, {"error": {"code": "unauthorized", "message": "m"}})
        created = good(CONVERSATION, 201)
        bed.api.on("POST /conversations", lambda one: refused if one.target == "/conversations" else created)
        assert await bed.driver.conversation("c", "anna") == ApiRefusal("unauthorized", 401)
        assert bed.driver.conversations["c"].told.conversation_id == "c"


@pytest.mark.parametrize(("status", "code"), [(400, "bad_request"), (401, "unauthorized"), (403, "denied")])
async def test_a_refusal_of_the_issuer_is_final(status: int, code: str) -> None:
    async with bench() as bed:
        await bed.with_conversation()
        bed.api.on("POST /grants", answer(status, {"error": {"code": code, "message": "m"}}))
        assert await bed.driver.grant("c") == ApiRefusal(code, status)
        assert len(bed.api.of("POST /grants")) == 1
        assert bed.calls[-1].code == code

import json
from dataclasses import replace

import pytest

from lab.errors import MisuseError, UsageError
from lab.partner.api_schema import api_schema
from lab.partner.client.asking import ABSENT, Departure
from lab.partner.client.ground import NotThere
from lab.partner.client.outcomes import ApiRefusal, Done
from lab.partner.client.settings import Target
from lab.partner.client.shapes import run_untrusted
from tests.partner.client.scripted_api import KEYS, LOST, QUICK, Reply, Request, bad, bench, good, plain, usual
from tests.partner.client.test_shapes import RUN_WITH_EXACT_NUMBERS
from tests.partner.samples import CONVERSATION, FILE, ITEM, MEMBERSHIP, RUN

UPLOADS = "POST /conversations/c/attachments"
HISTORY = "GET /conversations/c/messages"
MESSAGES = "POST /conversations/c/messages"


# Members


@pytest.mark.req("MB-001", "MB-019", "MB-021")
@pytest.mark.parametrize("status", [200, 201])
async def test_a_confirmation_has_its_six_members(status: int) -> None:
    async with bench() as bed:
        bed.api.on("PUT /memberships", good(MEMBERSHIP, status))
        outcome = await bed.driver.membership("anna", role="admin")
        assert isinstance(outcome, Done)
        assert bed.driver.members["anna"].stored == outcome.value
        assert bed.api.requests[0].json == {
            "externalUserId": bed.driver.member("anna").external_user_id,
            "externalTeamId": "team-1",
            "sourceRevision": 1,
            "role": "admin",
            "active": True,
            "validUntil": bed.api.requests[0].json["validUntil"],
        }
        await bed.driver.membership("anna", active=False)
        assert bed.api.requests[1].json["validUntil"] is None
        assert bed.api.requests[1].json["sourceRevision"] == 2
        assert bed.api.requests[1].json["role"] == "admin"
        assert {call.misses for call in bed.calls} == {() if status == 200 else ("status:201",)}


async def test_a_revision_can_be_chosen_and_the_next_one_is_above_all() -> None:
    async with bench() as bed:
        await bed.driver.membership("anna", revision=10)
        await bed.driver.membership("anna", revision=3)
        await bed.driver.membership("anna")
        assert [request.json["sourceRevision"] for request in bed.api.requests] == [10, 3, 11]
        assert ["byOrder" in call.facts for call in bed.calls] == [True, True, False]


async def test_employees_have_fresh_ids_of_the_runs_own_dice() -> None:
    async with bench() as bed:
        ids = [bed.driver.member(who).external_user_id for who in ("anna", "bert", "anna")]
        assert ids[0] == ids[2] != ids[1]
        chosen = bed.driver.member("carl", team="team-2", external_user_id="Carl")
        assert (chosen.external_user_id, chosen.external_team_id) == ("Carl", "team-2")
    async with bench() as again:
        assert again.driver.member("anna").external_user_id == ids[0]


async def test_the_apis_clock_may_have_been_moved() -> None:
    async with bench() as bed:
        bed.driver.clock_offset_ms = 3_600_000
        await bed.driver.membership("anna", lease_s=60)
        assert bed.api.requests[0].json["validUntil"].startswith("2026-01-01T01:01:0")


@pytest.mark.req("MB-006")
async def test_only_the_membership_step_confirms() -> None:
    async with bench() as bed:
        bed.api.on("POST /conversations", bad(403, "EXECUTION_DENIED"))
        assert await bed.driver.conversation("c", "anna") == ApiRefusal("EXECUTION_DENIED", 403)
        assert bed.api.lines() == ["POST /conversations"]


# Conversations


@pytest.mark.req("CV-001", "CV-010", "CV-015", "CV-019", "CV-024", "CV-027")
@pytest.mark.parametrize("status", [200, 201])
async def test_a_creation_is_repeated_with_its_key_until_it_is_answered(status: int) -> None:
    async with bench() as bed:
        await bed.driver.membership("anna")
        bed.api.on("POST /conversations", LOST, LOST, good({**CONVERSATION, "mcp": None}, status))
        outcome = await bed.driver.conversation("c", "anna")
        assert isinstance(outcome, Done)
        assert outcome.value.agent_id == bed.api.requests[-1].json["agentId"] == "agent"
        again = await bed.driver.conversation("c", "anna")
        assert isinstance(again, Done)
        sent = bed.api.of("POST /conversations")
        assert len(sent) == 4
        assert len({(request.body, request.headers["idempotency-key"]) for request in sent}) == 1
        assert set(sent[0].json) == {"externalUserId", "externalTeamId", "agentId"}


async def test_intentions_have_keys_of_their_own() -> None:
    async with bench() as bed:
        await bed.with_conversation()
        await bed.driver.conversation("d", "anna")
        await bed.driver.conversation("e", "anna", agent="other", intent="conversation c")
        created = [one for one in bed.api.of("POST /conversations") if one.target != "/conversations"]
        keys = [request.headers["idempotency-key"] for request in created]
        assert keys[0] == keys[2] != keys[1]
        assert created[2].json["agentId"] == "other"


@pytest.mark.req("PA-052")
async def test_without_an_agent_or_a_team_it_says_so_early() -> None:
    async with bench(agent=None) as bed:
        with pytest.raises(UsageError, match="agentId"):
            await bed.driver.conversation("c", "anna")
        await bed.driver.use_target(Target(bed.api.url, "org", KEYS["chat-key"]), None, same_instance=False)
        with pytest.raises(UsageError, match="externalTeamId"):
            await bed.driver.membership("anna")
        assert bed.api.requests == []


# Messages


@pytest.mark.req("MSG-001", "MSG-002", "MSG-005", "MSG-032")
async def test_a_message_and_its_repetition() -> None:
    async with bench() as bed:
        await bed.with_run()
        await bed.driver.message("c", "r", "hello")
        await bed.driver.message("c", "s", "hello", timezone="Europe/Berlin")
        await bed.driver.message("c", "t", "other", intent="message r")
        sent = bed.api.of(MESSAGES)
        keys = [request.headers["idempotency-key"] for request in sent]
        assert keys[0] == keys[1] == keys[3] != keys[2]
        assert set(sent[0].json) == {"externalUserId", "externalTeamId", "message"}
        assert sent[2].json["timezone"] == "Europe/Berlin"
        assert bed.driver.run("r").told.status == "accepted"
        hashes = [call.request for call in bed.calls if call.route.endswith("messages")]
        assert hashes[0] == hashes[1]
        assert len(set(hashes)) == 3


@pytest.mark.req("MSG-003", "MSG-004")
async def test_a_run_is_read_in_the_actors_name() -> None:
    async with bench() as bed:
        await bed.with_run()
        told = await bed.driver.get_run("r")
        assert isinstance(told, Done)
        assert told.value == bed.driver.run("r").told
        target = bed.api.requests[-1].target
        assert f"externalUserId={bed.driver.member('anna').external_user_id}" in target
        assert "externalTeamId=team-1" in target


@pytest.mark.req("MSG-019")
@pytest.mark.parametrize(("strict", "successful"), [(False, True), (True, False)])
async def test_failed_tools_count_only_for_a_strict_driver(strict: bool, successful: bool) -> None:
    run = run_untrusted(RUN_WITH_EXACT_NUMBERS)
    async with bench(replace(QUICK, strict_tools=strict)) as bed:
        assert bed.driver.successful(run) is successful
        assert bed.driver.successful(replace(run, tool_errors=()))
        assert not bed.driver.successful(replace(run, status="limited", tool_errors=()))


@pytest.mark.req("MSG-034")
async def test_an_interrupted_run_is_told_and_not_asked_for_again() -> None:
    async with bench() as bed:
        await bed.with_run()
        bed.api.on("GET /conversations/c/runs/r", good({**RUN, "status": "interrupted", "usage": None}))
        outcome = await bed.driver.poll("r")
        assert isinstance(outcome, Done)
        assert outcome.value.status == "interrupted"
        assert len(bed.api.of(MESSAGES)) == 1


# Files


@pytest.mark.req("AT-001", "AT-002", "AT-011", "AT-012", "AT-040")
async def test_files_are_uploaded_one_by_one_and_then_named() -> None:
    async with bench() as bed:
        await bed.with_conversation()
        bed.api.on(UPLOADS, LOST, good({**FILE, "id": "second"}, 201), good({**FILE, "id": "b"}, 201))
        await bed.driver.attach("c", "one", b"abc")
        await bed.driver.attach("c", "two", b"xyz", name="x.png", mime_type="image/png")
        await bed.driver.message("c", "r", files=("two", "one"))
        assert bed.api.lines()[-4:] == [UPLOADS, UPLOADS, UPLOADS, MESSAGES]
        sent = bed.api.requests[-1].json
        assert sent["attachmentIds"] == ["b", "second"]
        assert "message" not in sent
        assert "idempotency-key" not in bed.api.of(UPLOADS)[0].headers
        assert b"image/png" in bed.api.of(UPLOADS)[2].body
        assert bed.calls[-2].facts["sent"]["bytes"] == 3


@pytest.mark.req("AT-026", "AT-027", "AT-031")
async def test_a_refused_file_says_what_is_accepted() -> None:
    async with bench() as bed:
        await bed.with_conversation()
        types = api_schema().component("MimeType")["enum"]
        bed.api.on(UPLOADS, bad(415, "CHAT_ATTACHMENT_TYPE_NOT_SUPPORTED", acceptedTypes=types))
        refused = await bed.driver.attach("c", "one", b"%PDF", mime_type="application/pdf")
        assert isinstance(refused, ApiRefusal)
        assert refused.accepted_types == tuple(types)
        bed.api.on(UPLOADS, bad(413, "CHAT_ATTACHMENT_TOO_LARGE", maxBytes=3145728))
        refused = await bed.driver.attach("c", "one", b"x")
        assert isinstance(refused, ApiRefusal)
        assert refused.max_bytes == 3145728
        assert [call.misses for call in bed.calls[-2:]] == [(), ()]
        with pytest.raises(NotThere, match="one"):
            bed.driver.file("one")


def content(body: bytes, **headers: str) -> Reply:
    protective = {
        "cache-control": "private, no-store",
        "x-content-type-options": "nosniff",
        "content-security-policy": "default-src 'none'; sandbox",
    }
    return plain(200, body, "text/plain", **(protective | headers))


@pytest.mark.req("AT-018", "AT-019", "PA-044")
async def test_a_file_is_read_with_and_without_the_actor() -> None:
    async with bench() as bed:
        await bed.with_conversation()
        bed.api.on(UPLOADS, good(FILE, 201))
        await bed.driver.attach("c", "one", b"abc")
        line = "GET /conversations/c/attachments/f/content"
        bed.api.on(line, content(b"abc"), content(b"abc", **{"x-content-type-options": "sniff"}))
        told = await bed.driver.content("one")
        assert isinstance(told, Done)
        assert (told.value.content, told.value.mime_type) == (b"abc", "text/plain")
        await bed.driver.content("one", as_actor=False)
        with_actor, without = bed.api.of(line)
        assert "externalUserId=" in with_actor.target
        assert "?" not in without.target
        assert [call.misses for call in bed.calls[-2:]] == [(), ("header:x-content-type-options",)]
        assert bed.calls[-2].facts["answer"]["bytes"] == 3
        bed.api.on(line, bad(404, "CHAT_ATTACHMENT_NOT_FOUND"))
        assert await bed.driver.content("one") == ApiRefusal("CHAT_ATTACHMENT_NOT_FOUND", 404)


# History


def pages(request: Request) -> Reply:
    """Two items a page, by cursors that say nothing."""
    at = {"": 0, "zzz": 2, "%%/?": 4}
    query = dict(part.split("=") for part in request.target.partition("?")[2].split("&"))
    start = at[query.get("cursor", "").replace("%25", "%").replace("%2F", "/").replace("%3F", "?")]
    items = [{**ITEM, "id": f"i{number}", "role": "user"} for number in range(start, min(start + 2, 5))]
    return good({"items": items, "nextCursor": {0: "zzz", 2: "%%/?", 4: None}[start]})


@pytest.mark.req("HIS-001", "HIS-005", "HIS-036")
async def test_a_walk_hands_cursors_back_unread() -> None:
    async with bench() as bed:
        await bed.with_conversation()
        bed.api.on(HISTORY, pages)
        outcome = await bed.driver.history("c", limit=2)
        assert isinstance(outcome, Done)
        assert [item.id for item in outcome.value.items] == ["i0", "i1", "i2", "i3", "i4"]
        assert all("limit=2" in request.target for request in bed.api.of(HISTORY))
        assert [call.facts["page"] for call in bed.calls[-3:]] == [1, 2, 3]
        assert "byOrder" not in bed.calls[-1].facts


async def test_a_walk_ends_at_a_refusal_and_at_its_limit() -> None:
    async with bench() as bed:
        await bed.with_conversation()
        bed.api.on(HISTORY, pages)
        limited = await bed.driver.history("c", most_pages=2)
        assert isinstance(limited, Done)
        assert limited.value.end == "page-limit"
        bed.api.on(HISTORY, bad(400, "CHAT_INVALID"))
        assert await bed.driver.page("c", cursor="mine", limit=0) == ApiRefusal("CHAT_INVALID", 400)
        assert bed.calls[-1].facts["byOrder"] is True
        assert await bed.driver.history("c") == ApiRefusal("CHAT_INVALID", 400)


# Labels, keys and restarts


async def test_a_thing_that_no_step_got_is_named() -> None:
    async with bench() as bed:
        bed.api.on("POST /conversations", bad(404, "CHAT_UNAVAILABLE"))
        await bed.with_conversation()
        for step in (bed.driver.bind("c"), bed.driver.message("c", "r", "x"), bed.driver.history("c")):
            with pytest.raises(NotThere, match="conversation c"):
                await step
        with pytest.raises(NotThere, match="run r"):
            await bed.driver.poll("r")


@pytest.mark.req("FX-026", "FX-027")
async def test_a_new_instance_ends_all_that_was_known() -> None:
    async with bench() as bed:
        await bed.with_run()
        driver = bed.driver
        rotated = replace(driver.target, chat_key="chat-key-0002")
        await driver.use_target(rotated, None, same_instance=True)
        assert driver.run("r").told.run_id == "r"
        before = driver.key_of("message r")
        await driver.use_target(rotated, None, same_instance=False)
        assert [driver.members, driver.conversations, driver.files, driver.runs] == [{}, {}, {}, {}]
        assert driver.key_of("message r") != before
        usual(bed.api)
        await driver.membership("anna")
        assert bed.api.requests[-1].headers["authorization"] == "Bearer chat-key-0002"


async def test_a_rotated_key_is_used_from_then_on() -> None:
    async with bench() as bed:
        await bed.driver.membership("anna")
        bed.driver.use_key("chat-key-0002")
        await bed.driver.membership("anna")
        assert [one.headers["authorization"][-4:] for one in bed.api.requests] == ["0001", "0002"]


async def test_steps_need_a_started_driver() -> None:
    async with bench() as bed:
        await bed.driver.close()
        with pytest.raises(MisuseError, match="start"):
            await bed.driver.membership("anna")
        await bed.driver.close()


@pytest.mark.req("PA-061")
async def test_bodies_are_json_unless_the_scenario_says_otherwise() -> None:
    async with bench() as bed:
        await bed.driver.membership("anna")
        odd = Departure(body=b"<x/>", content_type="text/plain", members={"role": ABSENT})
        await bed.driver.membership("anna", departure=odd)
        first, second = bed.api.requests
        assert (first.headers["content-type"], second.headers["content-type"]) == ("application/json", "text/plain")
        assert second.body == b"<x/>"
        assert json.loads(first.body)


def test_a_target_hides_its_key() -> None:
    target = Target("http://h/", "org", "chat-key-0001")
    assert "chat-key-0001" not in repr(target)
    assert "chat-key-0001" not in repr(target.site)
    assert target.site.base == "http://h/v1/orgs/org/chat"

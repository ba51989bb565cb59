from dataclasses import replace
from itertools import pairwise

import pytest

from lab.journal.partner_events import fingerprint
from lab.partner.client.asking import ABSENT, Departure
from lab.partner.client.outcomes import ApiRefusal, Done, TransportError
from lab.partner.client.settings import DriverSettings, Target
from tests.partner.client.scripted_api import (
    KEYS,
    LOST,
    QUICK,
    SILENT,
    Bench,
    Reply,
    answer,
    bad,
    bench,
    good,
    plain,
    virtually,
)
from tests.partner.samples import CONVERSATION, RUN, wrapped
from tests.refused_port import refused_port

MESSAGES = "POST /conversations/c/messages"
HTML = plain(502, b"<html>Bad gateway</html>", "text/html")
CUT = Reply((b"HTTP/1.1 202 X\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{",))


@pytest.mark.req("PA-005", "PA-004", "PA-057", "PA-031")
async def test_a_call_bears_the_key_and_no_cookie() -> None:
    async with bench() as bed:
        bed.api.on("PUT /memberships", plain(502, b"", "text/html", **{"set-cookie": "a=b"}), HTML)
        await bed.driver.membership("anna")
        assert {request.headers["authorization"] for request in bed.api.requests} == {f"Bearer {KEYS['chat-key']}"}
        assert not [request for request in bed.api.requests if "cookie" in request.headers]
        assert bed.calls[0].misses[0] == "header:set-cookie"


@pytest.mark.req("PA-043", "MSG-032", "MSG-033", "PA-057")
@pytest.mark.parametrize(
    ("reply", "status", "error"),
    [
        (LOST, 0, "reset"),
        (CUT, 0, "cut"),
        (SILENT, 0, "timeout"),
        (HTML, 502, "not-json"),
        (bad(503, "NEW"), 503, None),
    ],
)
async def test_what_got_no_answer_is_sent_again_to_the_byte(reply: Reply, status: int, error: str | None) -> None:
    async with bench() as bed:
        await bed.with_conversation()
        bed.api.on(MESSAGES, reply, reply, good({**RUN, "status": "running"}, 202))
        outcome = await bed.driver.message("c", "r", "hello")
        assert isinstance(outcome, Done)
        assert outcome.attempts == 3
        sent = bed.api.of(MESSAGES)
        assert len({(one.body, one.headers["idempotency-key"]) for one in sent}) == 1
        tries = [call for call in bed.calls if call.route.startswith("POST") and call.route.endswith("messages")]
        assert [(call.attempt, call.status, call.error) for call in tries] == [
            (1, status, error),
            (2, status, error),
            (3, 202, None),
        ]
        assert len({call.call for call in tries}) == 1


@pytest.mark.req("PA-043", "PA-037", "PA-020")
@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "CHAT_INVALID"),
        (401, "CREDENTIAL_REJECTED"),
        (403, "EXECUTION_DENIED"),
        (404, "CHAT_UNAVAILABLE"),
        (409, "CHAT_CONFLICT"),
        (413, "CHAT_ATTACHMENT_TOO_LARGE"),
        (429, "QUOTA_EXCEEDED"),
        (503, "CHAT_CONFIGURATION"),
        (500, "SOMETHING"),
        (418, "SOMETHING"),
    ],
)
async def test_a_refusal_is_final(status: int, code: str) -> None:
    async with bench() as bed:
        await bed.with_conversation()
        bed.api.on(MESSAGES, bad(status, code))
        assert await bed.driver.message("c", "r", "hello") == ApiRefusal(code, status)
        assert len(bed.api.of(MESSAGES)) == 1


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (plain(202, b"<html>", "text/html"), TransportError("not-json", 202)),
        (answer(500, {}), TransportError("not-envelope", 500)),
        (good({"runId": "r"}, 202), TransportError("not-envelope", 202)),
        (plain(302, b"", **{"location": "/elsewhere"}), TransportError("not-json", 302)),
    ],
)
async def test_an_answer_of_no_known_form_is_final_too(reply: Reply, expected: TransportError) -> None:
    async with bench() as bed:
        await bed.with_conversation()
        bed.api.on(MESSAGES, reply)
        assert await bed.driver.message("c", "r", "hello") == expected
        assert len(bed.api.of(MESSAGES)) == 1
        assert "GET /elsewhere" not in bed.api.lines()


async def test_it_gives_up_after_its_tries() -> None:
    async with bench() as bed:
        bed.api.on("PUT /memberships", LOST)
        assert await bed.driver.membership("anna") == TransportError("reset", attempts=4)


async def test_a_lost_request_is_not_sent_again_behind_the_drivers_back() -> None:
    async with bench() as bed:
        bed.api.on("PUT /memberships", LOST)
        await bed.driver.membership("anna")
        assert len(bed.api.requests) == len(bed.calls) == 4


async def test_nobody_listens() -> None:
    async with bench() as bed:
        with refused_port() as port:
            await bed.driver.use_target(_elsewhere(bed, port), None, same_instance=True)
            assert await bed.driver.membership("anna") == TransportError("refused", attempts=4)


def _elsewhere(bed: Bench, port: int) -> Target:
    return replace(bed.driver.target, url=f"http://127.0.0.1:{port}")


async def test_an_answer_has_a_bound() -> None:
    settings = replace(QUICK, calls=replace(QUICK.calls, most_bytes=1000))
    async with bench(settings) as bed:
        bed.api.on("PUT /memberships", plain(200, b"x" * 1001))
        assert await bed.driver.membership("anna") == TransportError("too-long", 200)


@pytest.mark.req("PA-043")
def test_waits_double_up_to_two_seconds() -> None:
    async def main() -> list[float]:
        async with bench(DriverSettings(renews_leases=False)) as bed:
            bed.api.on("PUT /memberships", HTML)
            await bed.driver.membership("anna")
            entries = bed.ctx.journal.entries
            return [round(b.t - a.t, 2) for a, b in pairwise(entries)]

    assert virtually(main) == [0.25, 0.5, 1.0, 2.0, 2.0, 2.0, 2.0]


def test_a_silent_api_is_left_after_ten_seconds() -> None:
    async def main() -> list[float]:
        async with bench(DriverSettings(renews_leases=False)) as bed:
            bed.api.on("PUT /memberships", SILENT, good({}))
            await bed.driver.membership("anna")
            return [round(call.seconds, 3) for call in bed.calls]

    assert virtually(main)[0] == 10.0


@pytest.mark.req("PRIV-015")
async def test_the_journal_has_fingerprints_in_place_of_secrets() -> None:
    async with bench() as bed:
        await bed.with_conversation()
        await bed.driver.bind("c")
        await bed.driver.message("c", "r", "something private")
        text = repr([entry.event for entry in bed.ctx.journal.entries])
        for secret in (*KEYS.values(), "tg1.grant-1", "something private"):
            assert secret not in text
        bind = next(call for call in bed.calls if call.route.startswith("PUT") and call.route.endswith("context"))
        assert bind.key == fingerprint(KEYS["chat-key"])
        assert bind.facts["sent"]["grant"] == fingerprint("tg1.grant-1")
        assert bind.facts["answer"] == {"version": 1}
        message = bed.calls[-1]
        key = bed.api.of(MESSAGES)[0].headers["idempotency-key"]
        assert (message.idempotency_key, message.conversation_id) == (fingerprint(key), "c")
        assert message.facts["answer"]["runId"] == "r"
        assert message.began is not None


@pytest.mark.req("PRIV-020", "GR-002", "FX-045")
async def test_each_key_goes_to_its_own_routes_alone() -> None:
    async with bench() as bed:
        await bed.with_conversation()
        await bed.driver.bind("c")
        await bed.driver.message("c", "r", "hello")
        used = {
            (one.headers["authorization"].removeprefix("Bearer "), one.target.split("?")[0]) for one in bed.api.requests
        }
        by_key = {name: sorted(path for key, path in used if key == KEYS[name]) for name in KEYS}
        assert by_key["issuer-key"] == ["/grants"]
        assert by_key["register-key"] == ["/conversations"]
        assert all(path.startswith("/v1/orgs/org/chat/") for path in by_key["chat-key"])


@pytest.mark.req("CX-018")
async def test_a_departure_is_sent_and_marked() -> None:
    async with bench() as bed:
        await bed.with_conversation()
        odd = Departure(headers={"X-Agent-Turn-Id": "mine"}, key=ABSENT, idempotency_key="again")
        await bed.driver.message("c", "r", "hello", departure=odd)
        request = bed.api.of(MESSAGES)[0]
        assert request.headers["x-agent-turn-id"] == "mine"
        assert request.headers["idempotency-key"] == "again"
        assert "authorization" not in request.headers
        assert bed.calls[-1].facts["byOrder"] is True
        assert bed.calls[-1].key is None


async def test_what_the_tap_finds_stands_in_the_journal() -> None:
    async with bench(secrets={"canary.tool": "canary-in-a-tool"}) as bed:
        body = wrapped({**CONVERSATION, "actorId": "canary-in-a-tool", "stray": 1})
        bed.api.on("POST /conversations", lambda _: answer(201, body))
        await bed.with_conversation()
        call = next(one for one in bed.calls if one.route == "POST /conversations")
        assert call.leaks == ("canary.tool",)
        assert call.misses == ("schema:additionalProperties at data",)
        assert "canary-in-a-tool" not in repr(call)

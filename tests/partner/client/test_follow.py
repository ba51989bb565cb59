import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from lab.partner.client.asking import Departure
from lab.partner.client.outcomes import ApiRefusal, Done, GaveUp, TransportError
from lab.partner.client.run_steps import Followed
from lab.partner.client.settings import DriverSettings
from tests.partner.client.scripted_api import (
    LOST,
    SILENT,
    STREAM_HEAD,
    Bench,
    Reply,
    Request,
    bad,
    bench,
    good,
    plain,
    stream,
    virtually,
)
from tests.partner.samples import NOW, RUN

EVENTS = "GET /conversations/c/runs/r/events"
POLL = "GET /conversations/c/runs/r"
DATA: list[dict[str, Any]] = [
    {"type": "turn", "turnId": "t", "ts": NOW},
    {"type": "text", "text": "Look "},
    {"type": "tool_call", "name": "catalog_get", "id": "call_1"},
    {"type": "tool_result", "name": "catalog_get", "ok": True},
    {"type": "text", "text": "bl\u00fc."},
    {"type": "done", "stopReason": "completed"},
    {"type": "run_status", **{name: RUN[name] for name in ("status", "reason", "toolErrors", "timings", "usage")}},
]


def wire(sequence: int, data: dict[str, Any], end: str = "\n") -> bytes:
    text = json.dumps(data, ensure_ascii=False)
    return end.join((f"id: r:{sequence}", f"event: {data['type']}", f"data: {text}", "", "")).encode()


ALL = [wire(number, data) for number, data in enumerate(DATA, 1)]


def after(request: Request) -> int:
    return int(request.headers.get("last-event-id", "r:0").rpartition(":")[2])


def rest(request: Request) -> Reply:
    """What a right API sends behind the event that the driver names."""
    return stream(*ALL[after(request) :])


async def followed(bed: Bench, **options: Any) -> Followed:
    outcome = await bed.driver.follow("r", **options)
    assert isinstance(outcome, Done), outcome
    return outcome.value


def whole(told: Followed) -> None:
    """What the uncut run gives."""
    assert (told.events.text, told.events.segments) == ("Look blü.", ("Look ", "blü."))
    assert told.events.types == [data["type"] for data in DATA]
    assert (told.status, told.reason, told.source, told.complete) == ("completed", None, "run_status", True)


@pytest.mark.req("SSE-001", "SSE-006", "SSE-024", "SSE-025")
async def test_a_run_is_followed_to_its_end() -> None:
    async with bench() as bed:
        await bed.with_run()
        bed.api.on(EVENTS, rest)
        told = await followed(bed)
        whole(told)
        assert told.streams == 1
        request = bed.api.of(EVENTS)[0]
        assert "last-event-id" not in request.headers
        assert "externalUserId=employee-" in request.target
        assert request.target.endswith("&externalTeamId=team-1")
        assert [one.change for one in bed.streams] == ["opened", "ended"]
        assert [(one.sequence, one.name, one.type, one.applied, one.misses) for one in bed.events] == [
            (number, data["type"], data["type"], True, ()) for number, data in enumerate(DATA, 1)
        ]
        assert bed.events[-1].facts["usage"]["costUsd"] == RUN["usage"]["costUsd"]
        assert bed.events[2].facts == {"name": "catalog_get", "toolCallId": "call_1"}
        assert bed.texts[0].outcome == "completed"
        assert bed.texts[0].text["bytes"] == len("Look blü.".encode())
        assert not bed.api.of(POLL)


@pytest.mark.req("SSE-047", "SSE-005", "SSE-048", "PA-032")
@pytest.mark.parametrize("cut", range(len(ALL)))
@pytest.mark.parametrize("more", [0, 1, 0.5])
async def test_a_cut_after_or_inside_any_event_changes_nothing(cut: int, more: float) -> None:
    """`more` is how much of the event behind the cut came: none, all but its empty line, or half of its data."""
    torn = ALL[cut][: -1 if more == 1 else int(len(ALL[cut]) * more)]
    async with bench() as bed:
        await bed.with_run()
        bed.api.on(EVENTS, stream(*ALL[:cut], torn, end="cut"), rest)
        told = await followed(bed)
        whole(told)
        assert told.streams == 2
        asked = [request.headers.get("last-event-id") for request in bed.api.of(EVENTS)]
        assert asked == [None, f"r:{cut}" if cut else None]
        assert bed.streams[1].change == "broken"
        assert [one.sequence for one in bed.events] == list(range(1, len(ALL) + 1))


async def test_cuts_after_each_event_of_one_run() -> None:
    async with bench() as bed:
        await bed.with_run()
        bed.api.on(EVENTS, *(stream(event, end="cut") for event in ALL))
        whole(await followed(bed))


@pytest.mark.req("SSE-049")
async def test_one_byte_at_a_time() -> None:
    async with bench() as bed:
        await bed.with_run()
        raw = b"".join(ALL)
        bed.api.on(EVENTS, stream(*(raw[at : at + 1] for at in range(len(raw)))))
        whole(await followed(bed))


@pytest.mark.req("SSE-002", "SSE-039", "SSE-049")
async def test_other_line_ends_and_comments_are_noted_and_taken() -> None:
    async with bench() as bed:
        await bed.with_run()
        pieces = [wire(number, data, "\r\n") for number, data in enumerate(DATA, 1)]
        bed.api.on(EVENTS, stream(b": keep-alive\n\n", *pieces))
        whole(await followed(bed))
        assert {one.notes for one in bed.events} == {("crlf",)}
        assert {one.misses for one in bed.events} == {()}


@pytest.mark.req("SSE-046")
async def test_a_repeated_event_is_not_applied_again() -> None:
    async with bench() as bed:
        await bed.with_run()
        bed.api.on(EVENTS, stream(*ALL[:2], ALL[1], *ALL[2:5], *ALL[3:]))
        whole(await followed(bed))
        assert [one.sequence for one in bed.events if not one.applied] == [2, 4, 5]


@pytest.mark.req("SSE-018", "SSE-036", "US-001")
@pytest.mark.parametrize("code", ["CHAT_EXECUTION_FAILED", "EXECUTION_DENIED", "QUOTA_EXCEEDED", "MCP_CONTEXT_DENIED"])
async def test_after_an_error_event_the_run_is_read(code: str) -> None:
    failed = {**RUN, "status": "failed", "reason": code, "usage": None}
    async with bench() as bed:
        await bed.with_run()
        bed.api.on(EVENTS, stream(*ALL[:3], wire(4, {"type": "error", "code": code})))
        bed.api.on(POLL, good({**failed, "status": "running", "reason": None}), good(failed))
        told = await followed(bed)
        assert (told.status, told.reason, told.source, told.complete) == ("failed", code, "poll", True)
        assert told.run is not None
        assert [line for line in bed.api.lines() if line in (EVENTS, POLL)] == [EVENTS, POLL, POLL]
        assert [call.facts["poll"] for call in bed.calls if call.route.endswith("{runId}")] == [1, 2]


@pytest.mark.req("SSE-036")
async def test_a_status_after_an_error_event_is_taken_too() -> None:
    async with bench() as bed:
        await bed.with_run()
        error = wire(4, {"type": "error", "code": "CHAT_EXECUTION_FAILED"})
        bed.api.on(EVENTS, stream(error, wire(5, {"type": "run_status", "status": "failed"})))
        told = await followed(bed)
        assert (told.status, told.source) == ("failed", "run_status")


@pytest.mark.req("SSE-050", "MSG-015")
async def test_a_close_without_a_status_leads_to_polling() -> None:
    async with bench() as bed:
        await bed.with_run()
        bed.api.on(EVENTS, stream(*ALL[:-1]))
        bed.api.on(POLL, good({**RUN, "status": "failed", "reason": "TOOL_REFUSED"}))
        told = await followed(bed)
        assert (told.status, told.reason, told.source, told.complete) == ("failed", "TOOL_REFUSED", "poll", False)


@pytest.mark.req("SSE-034")
async def test_resuming_at_the_last_event_gives_nothing_and_a_poll() -> None:
    async with bench() as bed:
        await bed.with_run()
        bed.api.on(EVENTS, rest)
        told = await followed(bed, last_event_id="r:7")
        assert (told.events.applied, told.source) == (0, "poll")
        assert len(bed.api.of(POLL)) == 1
        assert bed.streams[0].last_event_id == 7
        assert bed.streams[0].facts["byOrder"] is True
        assert bed.streams[0].facts["sentLastEventId"] == "r:7"


@pytest.mark.req("SSE-007", "SSE-008")
@pytest.mark.parametrize(("start", "header"), [("first", None), ("zero", "r:0")])
async def test_a_run_is_read_anew(start: str, header: str | None) -> None:
    async with bench() as bed:
        await bed.with_run()
        bed.api.on(EVENTS, rest)
        first = await followed(bed)
        again = await followed(bed, start=start)
        whole(again)
        assert again.events is not first.events
        assert bed.api.of(EVENTS)[1].headers.get("last-event-id") == header
        assert [one.sha256 for one in bed.events[:7]] == [one.sha256 for one in bed.events[7:]]


@pytest.mark.req("SSE-037")
async def test_following_goes_on_after_authority_came_back() -> None:
    async with bench() as bed:
        await bed.with_run()
        bed.api.on(EVENTS, stream(*ALL[:2]), rest)
        bed.api.on(POLL, bad(403, "EXECUTION_DENIED"))
        assert await bed.driver.follow("r") == ApiRefusal("EXECUTION_DENIED", 403)
        whole(await followed(bed))
        assert bed.api.of(EVENTS)[1].headers["last-event-id"] == "r:2"


@pytest.mark.parametrize("header", ["abc", "x:1", "r:", "r:-1", "r:01"])
async def test_a_refused_stream_is_told_and_final(header: str) -> None:
    async with bench() as bed:
        await bed.with_run()
        bed.api.on(EVENTS, bad(400, "CHAT_INVALID", hint="chat-key-0001"))
        assert await bed.driver.follow("r", last_event_id=header) == ApiRefusal("CHAT_INVALID", 400)
        refused = bed.streams[0]
        assert (refused.change, refused.status, refused.code) == ("refused", 400, "CHAT_INVALID")
        assert refused.facts["sentLastEventId"] == header
        assert refused.misses == ("schema:additionalProperties at error", "leak:chat-key")
        assert bed.api.of(EVENTS)[0].headers["last-event-id"] == header


@pytest.mark.req("SSE-047", "PA-043")
@pytest.mark.parametrize("reply", [LOST, plain(502, b"<html>", "text/html"), bad(503, "NEW"), stream(end="cut")])
async def test_it_reconnects_five_times_and_then_polls(reply: Reply) -> None:
    async with bench() as bed:
        await bed.with_run()
        bed.api.on(EVENTS, reply)
        told = await followed(bed)
        assert (told.source, told.complete, told.streams) == ("poll", False, 6)
        assert len(bed.api.of(EVENTS)) == 6


async def test_an_answer_that_is_no_stream_is_final() -> None:
    async with bench() as bed:
        await bed.with_run()
        bed.api.on(EVENTS, plain(204, b""))
        assert await bed.driver.follow("r") == TransportError("not-json", 204)


@pytest.mark.req("SSE-004", "SSE-051")
async def test_oddities_are_told_in_the_journal() -> None:
    async with bench(secrets={"canary.tool": "canary-in-a-tool"}) as bed:
        await bed.with_run()
        odd = b'id: r:2\nevent: text\ndata: {"type":"texture","text":"x"}\n\n'
        leak = wire(3, {"type": "tool_call", "name": "catalog_get", "id": "canary-in-a-tool"})
        tail = b": canary-in-a-tool"
        bed.api.on(EVENTS, stream(ALL[0], odd, leak, *ALL[3:], tail))
        await followed(bed)
        assert bed.events[1].misses == ("event-name:other-than-type", "event-type:unknown")
        assert bed.events[2].leaks == ("canary.tool",)
        assert bed.streams[-1].misses == ("leak:canary.tool",)
        assert "canary-in-a-tool" not in repr([entry.event for entry in bed.ctx.journal.entries])


def moments(entries: Sequence[Any]) -> list[float]:
    return [round(entry.t, 2) for entry in entries if entry.event.kind == "partner.stream"]


@pytest.mark.req("SSE-047")
def test_waits_between_streams_double() -> None:
    async def main() -> list[float]:
        async with bench(DriverSettings(renews_leases=False)) as bed:
            await bed.with_run()
            bed.api.on(EVENTS, LOST)
            await followed(bed)
            times = moments(bed.ctx.journal.entries)
            return [round(later - times[0], 2) for later in times]

    assert virtually(main) == [0.0, 0.25, 0.75, 1.75, 3.75, 5.75]


@pytest.mark.req("SSE-039")
def test_a_silent_stream_is_left_and_a_commented_one_is_not() -> None:
    async def main() -> list[tuple[str, float]]:
        async with bench(DriverSettings(renews_leases=False)) as bed:
            await bed.with_run()
            start = bed.ctx.now()
            bed.api.on(EVENTS, stream(ALL[0], end="keep"), rest)
            whole(await followed(bed))
            streams = [entry for entry in bed.ctx.journal.entries if entry.event.kind == "partner.stream"]
            return [(bed.streams[at].change, round(entry.t - start, 2)) for at, entry in enumerate(streams)]

    assert virtually(main) == [("opened", 0.0), ("broken", 60.0), ("opened", 60.25), ("ended", 60.25)]


@pytest.mark.req("SSE-039")
def test_comments_keep_a_quiet_stream_open() -> None:
    async def main() -> tuple[list[str], float]:
        async with bench(DriverSettings(renews_leases=False)) as bed:
            await bed.with_run()
            start = bed.ctx.now()
            bed.api.on(EVENTS, replace(stream(ALL[0], *[b": keep-alive\n\n"] * 10, *ALL[1:]), pause_s=15))
            whole(await followed(bed))
            return [one.change for one in bed.streams if one.change == "opened"], round(bed.ctx.now() - start)

    # The last event is the eighteenth piece; its close is not waited for.
    assert virtually(main) == (["opened"], 17 * 15 + 2)


def test_comments_after_the_status_do_not_hold_the_driver() -> None:
    async def main() -> float:
        async with bench(DriverSettings(renews_leases=False)) as bed:
            await bed.with_run()
            start = bed.ctx.now()
            bed.api.on(EVENTS, replace(stream(b"".join(ALL), *[b": keep-alive\n\n"] * 10, end="keep"), pause_s=0.9))
            whole(await followed(bed))
            return round(bed.ctx.now() - start, 1)

    assert virtually(main) == 2.9


def test_an_api_that_does_not_close_after_the_status_is_not_waited_for() -> None:
    async def main() -> tuple[str, float]:
        async with bench(DriverSettings(renews_leases=False)) as bed:
            await bed.with_run()
            start = bed.ctx.now()
            bed.api.on(EVENTS, stream(*ALL, end="keep"))
            whole(await followed(bed))
            return bed.streams[-1].change, round(bed.ctx.now() - start, 2)

    assert virtually(main) == ("broken", 2.0)


def test_following_ends_at_its_deadline() -> None:
    async def main() -> tuple[object, float]:
        async with bench(DriverSettings(renews_leases=False)) as bed:
            await bed.with_run()
            start = bed.ctx.now()
            bed.api.on(EVENTS, stream(ALL[0], end="keep"), SILENT)
            outcome = await bed.driver.follow("r", deadline_s=100)
            return outcome, round(bed.ctx.now() - start, 1)

    assert virtually(main) == (GaveUp("accepted", 0), 100.0)


@pytest.mark.parametrize("at", [1, 5, 12])
async def test_a_secret_in_pieces_is_found_in_the_joined_text(at: int) -> None:
    secret = "a-secret-text"
    events = [{"type": "text", "text": "It is " + secret[:at]}, {"type": "text", "text": secret[at:] + "."}, *DATA[-2:]]
    async with bench(secrets={"canary.text": secret}) as bed:
        await bed.with_run()
        bed.api.on(EVENTS, stream(*(wire(number, data) for number, data in enumerate(events, 1))))
        await followed(bed)
        assert [one.leaks for one in bed.events] == [()] * 4
        assert bed.texts[0].leaks == ("canary.text",)
        assert secret not in repr(bed.ctx.journal.entries)


@pytest.mark.req("PRIV-015")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("content-type", "text/{secret}"),
        ("content-type", "text/event-stream; a={secret}"),
        ("content-type", "what the employee asked"),
        ("cache-control", "no-store, {secret}"),
        ("cache-control", "what the employee asked?"),
    ],
)
async def test_the_head_of_a_stream_brings_no_secret_and_no_content_into_the_journal(name: str, value: str) -> None:
    async with bench(secrets={"canary.head": "a-secret-in-a-head"}) as bed:
        await bed.with_run()
        lines = [line for line in STREAM_HEAD.split(b"\r\n") if not line.startswith(name.encode())]
        head = b"\r\n".join((lines[0], f"{name}: {value}".format(secret="a-secret-in-a-head").encode(), *lines[1:]))
        right = stream(*ALL)
        bed.api.on(EVENTS, Reply((head, *right.pieces[1:]), "close"))
        await bed.driver.follow("r")
        journal = repr(bed.ctx.journal.entries)
        assert not [told for told in ("a-secret-in-a-head", "what the employee asked") if told in journal]
        opened = bed.streams[0]
        assert opened.change == "opened"
        assert ("leak:canary.head" in opened.misses) == ("{secret}" in value)


def test_no_stream_is_opened_behind_the_deadline() -> None:
    async def main() -> tuple[object, int, float]:
        async with bench(DriverSettings(renews_leases=False)) as bed:
            await bed.with_run()
            start = bed.ctx.now()
            bed.api.on(EVENTS, LOST)
            outcome = await bed.driver.follow("r", deadline_s=0.3)
            return outcome, len(bed.api.of(EVENTS)), round(bed.ctx.now() - start, 2)

    assert virtually(main) == (GaveUp("accepted", 0), 2, 0.25)


async def test_a_stream_in_another_name() -> None:
    async with bench() as bed:
        await bed.with_run()
        bed.api.on(EVENTS, rest)
        await followed(bed, who="bert", departure=Departure(members={"externalTeamId": "other"}))
        target = bed.api.of(EVENTS)[0].target
        assert bed.driver.member("bert").external_user_id in target
        assert "externalTeamId=other" in target

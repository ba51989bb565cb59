from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest

from lab.journal.partner_events import PartnerDelivery
from lab.partner.model.runs import append_event
from tests.partner.model.calls import Json, actor
from tests.partner.model.played import FIXTURES, SAYS, SLOW, USAGE, Play, iterations, parsed, playing, virtually

WAITS = iterations('- model: m\n  steps: [ { text: "a" }, { wait: 100s }, { text: "b" } ]\n' + USAGE)


def deliveries(play: Play) -> list[tuple[int, str, int]]:
    return [(seen.stream, seen.change, seen.sent) for seen in play.seen(PartnerDelivery)]


@pytest.mark.req("SSE-005", "SSE-006", "SSE-007", "SSE-008", "SSE-034", "SSE-045", "SSE-030", "SSE-003")
def test_a_stream_continues_behind_any_event_with_the_same_bytes(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, FIXTURES / "product-9001.yaml") as play:
            run_id = await play.accepted()
            live, beside = await asyncio.gather(play.raw(run_id), play.raw(run_id))
            events = parsed(live)
            assert hashlib.sha256(live).digest() == hashlib.sha256(beside).digest()
            assert await play.raw(run_id) == live == await play.raw(run_id, f"{run_id}:0")
            for sequence in range(1, len(events) + 1):
                rest = await play.raw(run_id, f"{run_id}:{sequence}")
                assert rest == b"".join(event.raw for event in events[sequence:])
            assert rest == b""

    virtually(main)


@pytest.mark.req("SSE-038")
def test_the_headers_of_a_stream(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, FIXTURES / "hello.yaml", agent="agent-plain") as play:
            run_id = await play.accepted()
            async with play.stream(run_id) as response:
                assert response.status == 200
                assert response.headers["Content-Type"] == "text/event-stream; charset=utf-8"
                assert response.headers["Cache-Control"] == "no-store"
                assert response.headers["X-Accel-Buffering"] == "no"
                await response.read()

    virtually(main)


@pytest.mark.req("SSE-031", "SSE-032", "SSE-033", "SSE-054", "MSG-040")
def test_what_does_not_open_a_stream_is_answered_in_json(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, FIXTURES / "hello.yaml", agent="agent-plain") as play:
            first, second = (await play.played())[0]["runId"], (await play.played())[0]["runId"]
            last = len(await play.events(second))
            for header in ("", "abc", "x:1", f"{second}:", f"{second}:01", f"{first}:1", f"{second}:{last + 1}"):
                reply = await play.api.call(
                    "GET", f"{play.path}/runs/{second}/events", query=actor(), headers={"Last-Event-ID": header}
                )
                assert reply.refusal == (400, "CHAT_INVALID"), header
            for path, query, due in (
                (f"{play.path}/runs/unknown/events", actor(), (404, "CHAT_UNAVAILABLE")),
                (f"/conversations/other/runs/{second}/events", actor(), (404, "CHAT_UNAVAILABLE")),
                (f"{play.path}/runs/{second}/events", actor("employee-2"), (403, "EXECUTION_DENIED")),
                (f"{play.path}/runs/{second}/events", {}, (400, "CHAT_INVALID")),
            ):
                assert (await play.api.call("GET", path, query=query)).refusal == due

    virtually(main)


@pytest.mark.req("SSE-033")
def test_a_sequence_that_is_not_there_yet_is_refused_on_an_active_run_too(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, SLOW) as play:
            run_id = await play.accepted()
            async with play.stream(run_id, f"{run_id}:99") as response:
                assert response.status == 400

    virtually(main)


@pytest.mark.req("SSE-056", "SSE-040")
def test_the_stream_of_a_run_that_waits_opens_at_once_and_then_waits(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, FIXTURES / "hello.yaml", agent="agent-plain", keep_alive_seconds=5.0) as play:
            play.api.server.controls.hold_queue(True)
            run_id = await play.accepted()
            async with play.stream(run_id) as response:
                assert response.status == 200
                assert await response.content.readuntil(b"\n\n") == b": keep-alive\n\n"
                play.api.server.controls.hold_queue(False)
                events = parsed(await response.read())
                assert events[0].data["turnId"] == (await play.run(run_id))["turnId"]

    virtually(main)


@pytest.mark.req("SSE-039")
def test_an_idle_stream_is_kept_alive_every_fifteen_seconds(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, WAITS) as play:
            raw = await play.raw(await play.accepted())
            assert raw.count(b": keep-alive\n\n") == 6
            assert raw.endswith(b"\n\n")
            assert [event.name for event in parsed(raw)] == ["turn", "text", "text", "done", "run_status"]

    virtually(main)


@pytest.mark.req("SSE-026", "SSE-037")
@pytest.mark.parametrize("how", ["revoke", "rotate", "lapse", "key"])
def test_a_stream_stops_at_once_when_authority_is_lost(tmp_path: Path, how: str) -> None:
    async def main() -> None:
        script = iterations('- model: m\n  steps: [ { text: "a" }, { wait: 600s } ]\n' + USAGE)
        async with playing(tmp_path, script, keep_alive_seconds=1000.0) as play:
            run_id = await play.accepted()
            loop = asyncio.get_running_loop()
            async with play.stream(run_id) as response:
                await response.content.readuntil(b'"text":"a"}\n\n')
                start, controls = loop.time(), play.api.server.controls
                if how == "revoke":
                    await play.api.member(active=False, seconds=None)
                elif how == "rotate":
                    controls.rotate_key("chat")
                elif how == "key":
                    controls.revoke_key("chat")
                rest = await response.read()
            assert not parsed(rest)
            lapse = 240 if how == "lapse" else 0
            assert lapse - 1 < loop.time() - start < lapse + 1
            assert deliveries(play)[-1] == (1, "withheld", 2)

    virtually(main)


@pytest.mark.req("SSE-026", "SSE-037")
def test_an_event_that_comes_with_the_loss_is_not_delivered(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, WAITS) as play:
            run_id = await play.accepted()
            async with play.stream(run_id) as response:
                await response.content.readuntil(b'"text":"a"}\n\n')
                play.api.server.controls.rotate_key("chat")
                parts = play.api.server.core.parts
                assert append_event(parts.state, run_id, "text", {"text": "late"}) == 3
                parts.bell.ring()
                assert await response.read() == b""

    virtually(main)


@pytest.mark.req("SSE-037", "MB-035")
def test_what_was_produced_meanwhile_is_delivered_to_a_later_reader(tmp_path: Path) -> None:
    script = iterations('- model: m\n  steps: [ { text: "a" }, { wait: 300s }, { text: "b" } ]\n' + USAGE)

    async def main() -> None:
        async with playing(tmp_path, script) as play:
            run_id = await play.accepted()
            before = await play.events(run_id)
            assert [event.name for event in before] == ["turn", "text"]
            async with play.stream(run_id, before[-1].id) as response:
                assert response.status == 403
                assert (await response.json())["error"]["code"] == "EXECUTION_DENIED"
            await play.until(lambda: "ended" in play.changes(run_id))
            await play.api.member()
            after = await play.events(run_id, before[-1].id)
            assert [event.name for event in after] == ["text", "done", "run_status"]

    virtually(main)


@pytest.mark.req("MSG-009")
def test_a_reader_that_goes_away_does_not_end_the_turn(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, SLOW) as play:
            run_id = await play.accepted()
            async with play.stream(run_id) as response:
                await response.content.readuntil(b'"text":"a"}\n\n')
            await play.until(lambda: "broken" in [change for _, change, _ in deliveries(play)])
            await play.until(lambda: "ended" in play.changes(run_id))
            assert (await play.run(run_id))["status"] == "completed"

    virtually(main)


@pytest.mark.req("SSE-035")
def test_a_stream_ends_with_the_run(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, iterations(SAYS)) as play:
            run_id = await play.accepted()
            events = await play.events(run_id)
            assert deliveries(play) == [(1, "opened", 0), (1, "ended", len(events))]
            assert (await play.run(run_id))["status"] == "completed"

    virtually(main)


@pytest.mark.req("SSE-055")
def test_nobody_sees_a_terminal_run_without_its_last_event(tmp_path: Path) -> None:
    script = iterations('- model: m\n  steps: [ { repeat: { count: 30, every: 1ms, text: "{n} " } } ]\n' + USAGE)

    async def main() -> None:
        async with playing(tmp_path, script) as play:
            run_id = await play.accepted()
            seen: list[Json] = []
            while not seen or seen[-1]["status"] in ("accepted", "running"):
                seen.append(await play.run(run_id))
                if seen[-1]["status"] == "completed":
                    assert (await play.events(run_id))[-1].data["status"] == "completed"
                else:
                    assert (seen[-1]["usage"], seen[-1]["timings"]["complete"]) == (None, False)
            assert len(seen) > 1

    virtually(main)


@pytest.mark.req("SSE-057")
def test_a_run_can_be_replayed_days_later_and_not_after_its_removal(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, iterations(SAYS)) as play:
            run_id = await play.accepted()
            raw = await play.raw(run_id)
            play.api.server.controls.move_clock(2 * 86_400_000)
            await play.api.member()
            assert await play.raw(run_id) == raw
            play.api.server.controls.remove("thread", play.conversation)
            reply = await play.api.call("GET", f"{play.path}/runs/{run_id}/events", query=actor())
            assert reply.refusal == (404, "CHAT_UNAVAILABLE")

    virtually(main)


@pytest.mark.req("PA-026")
def test_a_stream_of_a_removed_conversation_closes(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, SLOW) as play:
            run_id = await play.accepted()
            async with play.stream(run_id) as response:
                await response.content.readuntil(b'"text":"a"}\n\n')
                play.api.server.controls.remove("thread", play.conversation)
                assert not parsed(await response.read())
            reply = await play.api.call("GET", f"{play.path}/runs/{run_id}/events", query=actor())
            assert reply.refusal == (404, "CHAT_UNAVAILABLE")
            assert not play.api.ctx.defects
            assert play.api.server.controls.counts()["activeTurns"] == 0

    virtually(main)

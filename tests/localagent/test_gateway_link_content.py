"""Content answers on their way through the reference agent's link, over drops and lost sessions."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.localagent.doubles import JOB, WORKSPACE
from tests.localagent.hand_gateway import ShiftedClock
from tests.localagent.link_bench import CANARY, Bench, Gate, linked, quick

__all__ = ["quick"]


def body_of(frames: list[dict[str, Any]]) -> bytes:
    return b"".join(base64.b64decode(frame["payload"]["data"]) for frame in frames)


@pytest.mark.req("CH-007", "CH-002", "CH-015", "SEC-020")
async def test_a_body_leaves_in_chunks_no_faster_than_the_window() -> None:
    async with linked(max_in_flight=2) as bench:
        line = await bench.ready(chunkRawBytes=4)
        request = await line.ask("job.stream", JOB)
        bench.link.send_content(request, WORKSPACE, "text/plain", b"0123456789ab")
        first, second = await line.frame("content.response"), await line.frame("content.response")
        await line.send("ping")
        assert await line.next() == "pong"
        assert first["payload"] == {
            "status": "ok",
            "contentType": "text/plain",
            "encoding": "base64",
            "data": base64.b64encode(b"0123").decode(),
            "byteLength": 4,
            "totalBytes": 12,
        }
        await line.ack(second)
        chunks = [first, second, await line.frame("content.response")]
        assert body_of(chunks) == b"0123456789ab"
        assert [chunk["chunk"]["last"] for chunk in chunks] == [False, False, True]


@pytest.mark.req("CH-013", "CH-010", "CH-011", "WS-056")
async def test_a_body_that_is_too_large_becomes_a_failure() -> None:
    async with linked() as bench:
        line = await bench.ready()
        request = await line.ask("job.stream", JOB)
        bench.link.send_content(request, WORKSPACE, "text/plain", bytes(2 * 1024 * 1024 + 1))
        frame = await line.frame("content.response")
        assert frame["payload"] == {
            "status": "error",
            "errorCode": "payload_too_large",
            "encoding": "base64",
            "data": "",
            "byteLength": 0,
        }
        assert (frame["requestId"], frame["chunk"]) == (request, {"index": 0, "total": 1, "last": True})


async def cut_with_request(bench: Bench, count: int = 1) -> list[str]:
    """Requests that were asked on a connection which is gone again."""
    line = await bench.ready()
    requests = [await line.ask("job.stream", JOB, number + 1) for number in range(count)]
    line.cut()
    return requests


@pytest.mark.req("RS-015")
async def test_answers_that_were_done_without_a_connection_leave_after_a_resume(quick: None) -> None:
    async with linked() as bench:
        requests = await cut_with_request(bench, 3)
        again = await bench.gateway.line()
        again.cut()
        # The agent has no connection now, or one that is not ready.
        bench.link.send_content(requests[0], WORKSPACE, "text/plain", b"body")
        bench.link.send_failure(requests[1], WORKSPACE, "not_found", "internal")
        bench.link.send_content(requests[2], WORKSPACE, "text/plain", bytes(2 * 1024 * 1024 + 1))
        line = await bench.gateway.line()
        await line.handshake(resumed=True)
        frames = {frame["requestId"]: frame["payload"] for frame in [await line.frame() for _ in range(3)]}
        assert [frames[request]["status"] for request in requests] == ["ok", "not_found", "error"]
        assert frames[requests[2]]["errorCode"] == "payload_too_large"


@pytest.mark.req("RS-015")
async def test_an_answer_is_kept_while_there_is_no_connection_at_all() -> None:
    async with linked() as bench:
        gate = Gate(bench)
        requests = await cut_with_request(bench, 3)
        await gate.entered.wait()
        bench.link.send_content(requests[0], WORKSPACE, "text/plain", b"body")
        bench.link.send_failure(requests[1], WORKSPACE, "not_found", "internal")
        bench.link.send_content(requests[2], WORKSPACE, "text/plain", bytes(2 * 1024 * 1024 + 1))
        gate.release.set()
        line = await bench.gateway.line()
        await line.handshake(resumed=True)
        frames = {frame["requestId"]: frame["payload"] for frame in [await line.frame() for _ in range(3)]}
        assert [frames[request]["status"] for request in requests] == ["ok", "not_found", "error"]
        assert frames[requests[2]]["errorCode"] == "payload_too_large"


@pytest.mark.req("RS-014")
async def test_answers_of_a_lost_session_are_not_sent_in_the_next() -> None:
    async with linked() as bench:
        gate = Gate(bench)
        requests = await cut_with_request(bench, 2)
        await gate.entered.wait()
        bench.link.send_content(requests[0], WORKSPACE, "text/plain", b"body")
        bench.link.send_failure(requests[1], WORKSPACE, "not_found", "internal")
        gate.release.set()
        line = await bench.ready()
        bench.send("heartbeat", {})
        assert ((await line.frame())["type"]) == "heartbeat"


@pytest.mark.req("RS-014", "RS-008")
async def test_a_failure_that_waited_for_more_than_120_seconds_is_not_sent() -> None:
    clock = ShiftedClock()
    async with linked(clock) as bench:
        gate = Gate(bench)
        (request,) = await cut_with_request(bench)
        await gate.entered.wait()
        bench.link.send_failure(request, WORKSPACE, "not_found", "internal")
        clock.ahead = 121
        gate.release.set()
        line = await bench.ready()
        bench.send("heartbeat", {})
        assert (await line.frame())["type"] == "heartbeat"


@pytest.mark.req("RS-015", "RS-014")
@pytest.mark.parametrize("resumed", [True, False])
async def test_a_body_on_its_way_goes_on_after_a_resume_only(quick: None, resumed: bool) -> None:
    async with linked(max_in_flight=1) as bench:
        line = await bench.ready(chunkRawBytes=4)
        request = await line.ask("job.stream", JOB)
        bench.link.send_content(request, WORKSPACE, "text/plain", b"0123456789ab")
        first = await line.frame("content.response")
        line.cut()
        again = await bench.gateway.line()
        # RS-015: the series goes on as it began, whatever is offered now.
        await again.handshake(resumed=resumed, chunkRawBytes=8)
        if not resumed:
            bench.send("heartbeat", {})
            assert (await again.frame())["type"] == "heartbeat"
            return
        chunks = []
        for _ in range(3):
            chunks.append(await again.frame("content.response"))
            await again.ack(chunks[-1])
        assert chunks[0] == first
        assert body_of(chunks) == b"0123456789ab"
        assert [chunk["seq"] for chunk in chunks] == [1, 2, 3]


async def test_a_request_that_is_answered_twice_breaks_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with linked() as bench:
        line = await bench.ready()
        request = await line.ask("job.stream", JOB)
        bench.link.send_content(request, WORKSPACE, "text/plain", CANARY.encode())
        bench.link.send_content(request, WORKSPACE, "text/plain", CANARY.encode())
        bench.link.send_failure(request, WORKSPACE, "error", "internal")
        bench.send("heartbeat", {})
        assert [(await line.frame())["type"] for _ in range(2)] == ["content.response", "heartbeat"]
        assert "content.response was not sent: chunk_out_of_order" in caplog.text
        assert CANARY not in caplog.text

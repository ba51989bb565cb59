"""The reference agent's socket side against a gateway written by hand, over real loopback sockets."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime

import pytest

from lab.protocol.frames import Frame
from tests.localagent.doubles import EPOCH_MS, JOB, WORKSPACE
from tests.localagent.hand_gateway import (
    SESSION,
    TOKEN,
    ShiftedClock,
)
from tests.localagent.link_bench import AUDIT, CANARY, EVENT, PATH, RESULT, Bench, linked, quick

__all__ = ["quick"]


# The handshake


@pytest.mark.req("HS-003", "HS-004", "HS-007", "HS-009", "HS-033", "HS-041", "HS-043", "SEC-006", "V1-008")
async def test_register_and_hello_come_first_and_say_no_path() -> None:
    async with linked() as bench:
        line = await bench.gateway.line()
        assert line.authorization == f"Bearer {TOKEN}"
        register, hello = await line.frame("register"), await line.frame("hello")
        assert register["payload"] == {
            "protocol": 2,
            "version": "9.9.9",
            "capabilities": ["job.assign"],
            "signatureMode": "enforce",
            "workspaces": [{"workspaceId": WORKSPACE, "pathSha256": "5e" * 32}],
        }
        assert hello["payload"] == {"signatureMode": "enforce", "capabilities": ["job.assign"], "queue": {"depth": 0}}
        assert PATH not in json.dumps([register, hello])
        assert (register["seq"], hello["seq"]) == (0, 0)


@pytest.mark.req("HS-012")
@pytest.mark.parametrize(("ahead", "refuses"), [(0.0, False), (90.0, True)])
async def test_a_clock_that_is_ahead_is_so_in_all_that_the_gateway_hears(ahead: float, refuses: bool) -> None:
    """In what the agent writes, and in how it judges the times of signatures."""
    async with linked(clock_ahead=ahead) as bench:
        line = await bench.gateway.line()
        register = await line.frame("register")
        told = datetime.fromisoformat(register["ts"]).timestamp() - EPOCH_MS / 1000 - ahead
        assert 0 <= told < 60
        await line.frame("hello")
        await line.ready()
        if refuses:
            assert (await line.frame("error"))["payload"]["code"] == "unauthorized"
        else:
            bench.send("heartbeat", {})
            assert (await line.frame("heartbeat"))["seq"] == 1


@pytest.mark.req("HS-017", "SQ-001")
async def test_what_was_said_before_leaves_behind_ready_in_order() -> None:
    async with linked(start=False) as bench:
        bench.send("job.event", EVENT)
        bench.send("job.result", RESULT)
        bench.link.start()
        line = await bench.ready()
        bench.send("heartbeat", {})
        frames = [await line.frame() for _ in range(3)]
        assert [(frame["type"], frame["seq"]) for frame in frames] == [
            ("job.event", 1),
            ("job.result", 2),
            ("heartbeat", 3),
        ]


@pytest.mark.req("HS-013")
async def test_a_ready_that_is_not_signed_by_a_trusted_key_makes_no_session() -> None:
    async with linked(trusted_keys={}) as bench:
        line = await bench.ready()
        assert (await line.frame("error"))["payload"]["code"] == "unauthorized"
        assert await line.end() == 4418


@pytest.mark.req("SQ-028", "HS-027", "TY-006")
async def test_a_heartbeat_is_sent_every_heartbeat_seconds() -> None:
    async with linked() as bench:
        bench.link.heartbeat = lambda: {"state": "busy", "queueDepth": 3}
        line = await bench.ready(heartbeatSeconds=1)
        beats = [await line.frame("heartbeat") for _ in range(2)]
        assert [beat["payload"] for beat in beats] == [{"state": "busy", "queueDepth": 3}] * 2
        assert [beat["seq"] for beat in beats] == [1, 2]


@pytest.mark.req("WS-024", "WS-051")
async def test_text_pings_go_on_beside_the_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.protocol.agent_side.PING_SECONDS", 0.02)
    async with linked() as bench:
        line = await bench.ready()
        assert [await line.next() for _ in range(3)] == ["ping"] * 3
        await line.send("ping")
        while await line.next() != "pong":
            pass


# Frames in


@pytest.mark.req("SQ-007", "SQ-009")
async def test_a_frame_is_acked_as_its_handler_says() -> None:
    async with linked() as bench:
        line = await bench.ready()
        codes = iter([None, "rate_limited"])
        bench.answer = lambda _frame: next(codes)
        for _ in range(2):
            await line.say("job.cancel", {"jobId": JOB})
        acks = [(await line.frame("ack"))["payload"] for _ in range(2)]
        assert [(ack["status"], ack.get("errorCode")) for ack in acks] == [
            ("accepted", None),
            ("rejected", "rate_limited"),
        ]
        assert [frame.type for frame in bench.handed] == ["job.cancel"] * 2


@pytest.mark.req("SQ-015", "SQ-025")
async def test_an_ack_comes_before_what_its_frame_brings_and_a_copy_brings_nothing() -> None:
    async with linked() as bench:
        line = await bench.ready()

        def tell(_frame: Frame) -> None:
            bench.send("job.event", EVENT)

        bench.answer = tell
        frame = await line.say("job.cancel", {"jobId": JOB})
        assert [(await line.frame())["type"] for _ in range(2)] == ["ack", "job.event"]
        await line.send(frame)
        assert (await line.frame("ack"))["payload"]["status"] == "duplicate"
        assert len(bench.handed) == 1


async def test_a_defect_of_a_handler_is_told_and_costs_its_frame_alone() -> None:
    async with linked() as bench:
        line = await bench.ready()

        def broken(_frame: Frame) -> None:
            raise OSError(CANARY)

        bench.answer = broken
        await line.say("job.cancel", {"jobId": JOB})
        ack = (await line.frame("ack"))["payload"]
        assert (ack["status"], ack["errorCode"]) == ("rejected", "internal")
        bench.answer = lambda _frame: None
        await line.say("job.cancel", {"jobId": JOB})
        assert (await line.frame("ack"))["payload"]["status"] == "accepted"
        assert [type(defect) for defect in bench.ctx.defects] == [OSError]
        bench.ctx.defects.clear()


async def test_junk_of_the_gateway_ends_the_connection_and_not_the_agent(quick: None) -> None:
    async with linked() as bench:
        line = await bench.ready()
        await line.send("no json")
        assert (await line.frame("error"))["payload"]["code"] == "bad_frame"
        assert await line.end() == 4400
        again = await bench.gateway.line()
        register, _ = await again.handshake(resumed=True)
        assert register["resume"] == {"sessionId": SESSION, "lastRecvSeq": 0}


# Sessions over drops


@pytest.mark.req("RS-001", "RS-002", "RS-003", "SQ-019", "HS-040")
async def test_after_a_resume_the_unacked_frames_come_again_byte_by_byte(quick: None) -> None:
    async with linked() as bench:
        line = await bench.ready()
        for iteration in range(3):
            bench.send("job.event", {**EVENT, "iteration": iteration})
        first = [await line.frame("job.event") for _ in range(3)]
        await line.say("job.cancel", {"jobId": JOB})
        await line.until("ack")
        line.cut()
        again = await bench.gateway.line()
        register, _ = await again.handshake(resumed=True, peer_last_seq=2)
        assert register["resume"] == {"sessionId": SESSION, "lastRecvSeq": 1}
        assert await again.frame() == first[2]
        bench.send("job.event", EVENT)
        assert (await again.frame())["seq"] == 4


@pytest.mark.req("RS-005", "RS-006", "RS-014")
async def test_a_lost_session_renews_results_and_audits_once_and_nothing_else(quick: None) -> None:
    async with linked() as bench:
        line = await bench.ready()
        for type_name, payload in (("job.event", EVENT), ("job.result", RESULT), ("audit.event", AUDIT)):
            bench.send(type_name, payload)
        before = [await line.frame() for _ in range(3)]
        line.cut()
        again = await bench.ready()
        after = [await again.frame(), await again.frame()]
        bench.send("heartbeat", {})
        after.append(await again.frame())
        assert [(frame["type"], frame["seq"]) for frame in after] == [
            ("job.result", 1),
            ("audit.event", 2),
            ("heartbeat", 3),
        ]
        assert [frame["payload"] for frame in after[:2]] == [RESULT, AUDIT]
        assert not {frame["msgId"] for frame in before} & {frame["msgId"] for frame in after}


@pytest.mark.req("RS-008", "RS-006")
async def test_after_120_seconds_there_is_nothing_to_resume_and_a_result_is_said_once(quick: None) -> None:
    clock = ShiftedClock()
    async with linked(clock) as bench:
        line = await bench.ready()
        bench.send("job.result", RESULT)
        await line.frame("job.result")
        line.cut()
        # A connection that never gets ready does not start the time anew.
        between = await bench.gateway.line()
        assert "resume" in (await between.frame("register"))["payload"]
        clock.ahead = 121
        between.cut()
        again = await bench.gateway.line()
        register, _ = await again.handshake()
        assert "resume" not in register
        bench.send("heartbeat", {})
        frames = [await again.frame() for _ in range(2)]
        assert [(frame["type"], frame["seq"]) for frame in frames] == [("job.result", 1), ("heartbeat", 2)]


@pytest.mark.req("RS-006")
async def test_a_result_survives_two_lost_sessions(quick: None) -> None:
    async with linked() as bench:
        line = await bench.ready()
        bench.send("job.result", RESULT)
        for _ in range(2):
            assert (await line.frame("job.result"))["seq"] == 1
            line.cut()
            line = await bench.ready()
        await line.ack(await line.frame("job.result"))
        bench.send("heartbeat", {})
        assert (await line.frame())["type"] == "heartbeat"


async def test_after_five_fatal_ends_without_progress_the_agent_starts_afresh(quick: None) -> None:
    async with linked() as bench:
        line = await bench.ready()
        bench.send("job.result", RESULT)
        await line.frame("job.result")
        asked = []
        for _ in range(5):
            await line.refuse("schema_violation")
            assert await line.end() == 1000
            line = await bench.gateway.line()
            asked.append("resume" in (await line.frame("register"))["payload"])
            await line.frame("hello")
            if asked[-1]:
                await line.ready(resumed=True)
                await line.frame("job.result")
        assert asked == [True] * 4 + [False]
        await line.ready()
        assert (await line.frame("job.result"))["seq"] == 1


# Audits


async def settled(bench: Bench) -> bool:
    """Whether `settled` returns within a few turns of the loop."""
    waiter = asyncio.create_task(bench.link.settled())
    for _ in range(5):
        await asyncio.sleep(0)
    done = waiter.done()
    waiter.cancel()
    await asyncio.gather(waiter, return_exceptions=True)
    return done


@pytest.mark.req("LA-026")
@pytest.mark.parametrize("code", [None, "protocol_unsupported"])
async def test_audits_are_settled_once_all_are_answered(code: str | None) -> None:
    async with linked() as bench:
        line = await bench.ready()
        assert await settled(bench)
        bench.send("audit.event", AUDIT)
        bench.send("audit.event", {**AUDIT, "code": "second"})
        first, second = await line.frame("audit.event"), await line.frame("audit.event")
        await line.ack(first, code)
        bench.send("heartbeat", {})
        await line.ack(await line.frame("heartbeat"))
        assert not await settled(bench)
        await line.ack(second)
        async with asyncio.timeout(20):
            await bench.link.settled()


@pytest.mark.req("LA-026")
async def test_an_audit_that_may_not_leave_is_waited_for_by_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async with linked(start=False) as bench:
        bench.send("audit.event", {**AUDIT, "summary": CANARY})
        assert await settled(bench)
        assert "audit.event was not sent: schema_violation" in caplog.text
        assert CANARY not in caplog.text
        # SQ-018: so is one that the full queue refuses.
        for _ in range(256):
            bench.send("heartbeat", {})
        bench.send("audit.event", AUDIT)
        assert await settled(bench)
        assert "audit.event was not sent: rate_limited" in caplog.text


@pytest.mark.req("LA-026", "RS-006")
async def test_an_audit_whose_session_was_lost_is_waited_for_under_its_new_number(quick: None) -> None:
    async with linked() as bench:
        line = await bench.ready()
        bench.send("audit.event", AUDIT)
        await line.frame("audit.event")
        line.cut()
        again = await bench.ready()
        renewed = await again.frame("audit.event")
        assert not await settled(bench)
        await again.ack(renewed)
        async with asyncio.timeout(20):
            await bench.link.settled()

"""Faults at the gateway's socket: frames that get lost, doubled or late, and links that break behind one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lab.faults.plan import Fault, FrameAnchor
from lab.gateway.jobs import CallRefused, Order
from lab.journal.events import BodyAnswered, FaultFired, Frame, JobMoved, LinkChanged, SocketClosed
from tests.gateway.server_bench import Peer, RawClient, ServerBench, serving, until

JOB = "0b0b0b0b-0000-4000-8000-00000000000b"
AGENT, GATEWAY = "one", "gateway"
SIZES = pytest.mark.parametrize("size", [1, 4_000, 16_000])


def job(number: int) -> str:
    return f"0b0b0b0b-0000-4000-8000-{number:012x}"


def arm(bench: ServerBench, kind: str, type_name: str, sender: str, **anchor: Any) -> Fault:
    link = "gateway" if kind in ("cut", "reset") else None
    seconds = 0.05 if kind == "hold" else None
    fault = Fault(f"{kind}-1", kind, link, FrameAnchor(type_name, sender, **anchor), seconds)
    bench.server.faults.watch.arm(fault)
    return fault


def fates(bench: ServerBench, type_name: str) -> list[tuple[str, str | None]]:
    return [(event.fate, event.fault) for event in bench.events(Frame) if event.type == type_name]


def order(number: int, size: int = 1) -> Order:
    return Order(job(number), "chat", ("x" * size,), llm="default")


# Frames towards the gateway


@pytest.mark.req("SQ-008")
async def test_a_dropped_frame_of_the_agent_is_not_acked_and_its_copy_is_fresh() -> None:
    async with serving() as bench:
        peer = await bench.peer()
        arm(bench, "drop", "heartbeat", AGENT)
        beat = peer.hand.heartbeat()
        await peer.send(beat)
        await peer.send(beat)
        ack = await peer.next_frame()
        assert (ack["payload"]["status"], ack["payload"]["ackMsgId"]) == ("accepted", beat["msgId"])
        assert fates(bench, "heartbeat") == [("dropped", "drop-1"), ("passed", None)]
        (fired,) = bench.events(FaultFired)
        dropped = next(entry for entry in bench.ctx.journal.entries if getattr(entry.event, "fate", "") == "dropped")
        assert (fired.fault, fired.what, fired.detail) == ("drop-1", "drop", {"frame": dropped.n})


@pytest.mark.req("SQ-002", "SQ-008")
async def test_a_doubled_frame_of_the_agent_is_acked_twice_and_acted_on_once() -> None:
    async with serving() as bench:
        peer = await bench.peer()
        bench.assign(order(1))
        await peer.next_frame()
        arm(bench, "duplicate", "job.result", AGENT)
        await peer.send(peer.hand.data("job.result", {"jobId": job(1), "outcome": "no_change"}))
        statuses = [(await peer.next_frame())["payload"]["status"] for _ in range(2)]
        assert statuses == ["accepted", "duplicate"]
        assert bench.core.jobs[job(1)].results == 1
        assert fates(bench, "job.result") == [("passed", "duplicate-1"), ("copied", "duplicate-1")]


async def test_a_held_frame_of_the_agent_arrives_after_those_behind_it() -> None:
    async with serving() as bench:
        peer = await bench.peer()
        bench.assign(order(1))
        bench.assign(order(2))
        frames = [await peer.next_frame(), await peer.next_frame()]
        arm(bench, "hold", "ack", AGENT, of="job.assign")
        for frame in frames:
            await peer.send(peer.hand.ack(frame, "rate_limited"))
        await until(lambda: len(bench.events(JobMoved)) == 2)
        assert [event.job_id for event in bench.events(JobMoved)] == [job(2), job(1)]
        assert fates(bench, "ack") == [("delayed", "hold-1"), ("passed", None), ("released", "hold-1")]


async def test_a_frame_whose_socket_went_while_it_was_held_is_lost() -> None:
    async with serving() as bench:
        gone, other = await bench.peer(name="one"), await bench.peer(name="two")
        arm(bench, "hold", "heartbeat", "one")
        await gone.send(gone.hand.heartbeat())
        await until(lambda: fates(bench, "heartbeat") == [("delayed", "hold-1")])
        await gone.client.close()
        arm(bench, "hold", "heartbeat", "two")
        await other.send(other.hand.heartbeat())
        # Held later and as long: when it arrives the first has had its time.
        assert (await other.next_frame())["payload"]["status"] == "accepted"
        assert len(bench.events(FaultFired)) == 2
        assert [frame for frame in bench.events(Frame) if frame.type == "ack" and frame.conn == "c1"] == []
        assert fates(bench, "heartbeat") == [("delayed", "hold-1"), ("delayed", "hold-1"), ("released", "hold-1")]


async def test_a_lost_chunk_counts_for_nothing_until_its_copy_comes() -> None:
    async with serving() as bench:
        peer = await bench.peer()
        arm(bench, "drop", "content.response", AGENT, content="job.stream", chunk=1)
        answer = asyncio.create_task(bench.server.content(bench.agent_id(), "job.stream", JOB))
        request = (await peer.next_frame())["requestId"]
        first, second = (peer.hand.chunk(request, data, index, 2) for index, data in enumerate((b"ab", b"cd")))
        await peer.send(first)
        await peer.send(second)
        await peer.send(first)
        assert [(await peer.next_frame())["payload"]["status"] for _ in range(2)] == ["accepted", "duplicate"]
        assert bench.events(BodyAnswered) == []
        await peer.send(second)
        assert (await answer).body == b"abcd"
        assert [body.bytes for body in bench.events(BodyAnswered)] == [4]


async def test_a_held_chunk_completes_its_body_when_it_is_let_go() -> None:
    """The gateway takes it there, and its witness with it."""
    async with serving() as bench:
        peer = await bench.peer()
        arm(bench, "hold", "content.response", AGENT, content="job.stream", chunk=0)
        answer = asyncio.create_task(bench.server.content(bench.agent_id(), "job.stream", JOB))
        request = (await peer.next_frame())["requestId"]
        await peer.send(peer.hand.chunk(request, b"all", 0, 1))
        assert (await answer).body == b"all"
        (body,) = (entry for entry in bench.ctx.journal.entries if isinstance(entry.event, BodyAnswered))
        released = next(entry for entry in bench.ctx.journal.entries if getattr(entry.event, "fate", "") == "released")
        assert body.cause == released.n


# Frames towards the agent


@pytest.mark.req("SQ-022", "SQ-023")
async def test_a_dropped_frame_of_the_gateway_comes_by_its_retransmission() -> None:
    async with serving(limits={"ackTimeoutMs": 60}) as bench:
        peer = await bench.peer()
        arm(bench, "drop", "job.assign", GATEWAY)
        bench.assign(order(1))
        assign = await peer.next_frame()
        await peer.send(peer.hand.ack(assign))
        assert assign["seq"] == 1
        assert fates(bench, "job.assign")[:2] == [("dropped", "drop-1"), ("passed", None)]


async def test_a_doubled_frame_of_the_gateway_comes_twice_as_it_is() -> None:
    async with serving() as bench:
        peer = await bench.peer()
        arm(bench, "duplicate", "job.assign", GATEWAY)
        bench.assign(order(1))
        first, second = await peer.next_frame(), await peer.next_frame()
        assert first == second
        assert fates(bench, "job.assign") == [("passed", "duplicate-1"), ("copied", "duplicate-1")]


async def test_a_held_frame_of_the_gateway_comes_after_those_behind_it() -> None:
    async with serving() as bench:
        peer = await bench.peer()
        arm(bench, "hold", "ack", GATEWAY, of="heartbeat")
        for _ in range(2):
            await peer.send(peer.hand.heartbeat())
        acks = [await peer.next_frame(), await peer.next_frame()]
        assert [ack["payload"]["ackSeq"] for ack in acks] == [2, 1]
        assert fates(bench, "ack") == [("delayed", "hold-1"), ("passed", None), ("released", "hold-1")]


async def test_a_held_frame_of_the_gateway_does_not_reach_the_next_socket() -> None:
    async with serving() as bench:
        gone, other = await bench.peer(), await bench.peer(name="two")
        arm(bench, "hold", "ack", GATEWAY, of="heartbeat")
        await gone.send(gone.hand.heartbeat())
        await until(lambda: fates(bench, "ack") == [("delayed", "hold-1")])
        await gone.client.close()
        again = await bench.peer()
        arm(bench, "hold", "ack", GATEWAY, of="heartbeat")
        await other.send(other.hand.heartbeat())
        assert (await other.next_frame())["payload"]["ackSeq"] == 1
        await again.client.send("ping")
        assert await again.next() == "pong"


@pytest.mark.req("SG-002", "SQ-023")
async def test_a_tampered_frame_is_judged_and_written_as_it_is_then() -> None:
    """The witness sees that its signature does not verify; the copy that follows is sound."""
    async with serving(limits={"ackTimeoutMs": 60}) as bench:
        peer = await bench.peer()
        arm(bench, "tamper", "job.assign", GATEWAY)
        bench.assign(order(1))
        first, second = await peer.next_frame(), await peer.next_frame()
        await peer.send(peer.hand.ack(second))
        assert (first["msgId"], first["payload"]) == (second["msgId"], second["payload"])
        facts = [event.facts["signature"] for event in bench.events(Frame) if event.type == "job.assign"][:2]
        assert [fact["verified"] for fact in facts] == [False, True]
        assert [fact["equal"] and fact["bound"] for fact in facts] == [True, True]
        assert fates(bench, "job.assign")[:2] == [("passed", "tamper-1"), ("passed", None)]


@pytest.mark.parametrize("message", ["this is no JSON", b"\x00\x01"])
async def test_an_injected_message_goes_to_the_agent_as_it_stands(message: str | bytes) -> None:
    """It is in the journal as any frame is, with the fault that ordered it."""
    async with serving() as bench:
        peer = await bench.peer()
        injected = Fault("inject.1", "inject", socket=AGENT)
        bench.server.inject(bench.agent_id(), message, injected)
        assert await peer.client.receive() == str(message)
        (event,) = [event for event in bench.events(Frame) if event.fault == "inject.1"]
        assert (event.direction, event.fate, event.size) == ("cp-to-la", "passed", len(message))
        assert [fired.target for fired in bench.events(FaultFired)] == [AGENT]


async def test_nothing_can_be_injected_without_a_connection() -> None:
    async with serving() as bench:
        with pytest.raises(CallRefused) as caught:
            bench.server.inject(bench.agent_id(), "x", Fault("inject.1", "inject", socket=AGENT))
        assert caught.value.code == "AGENT_OFFLINE"


# A caller that reads chunk by chunk


@pytest.mark.req("CH-026", "CH-028")
async def test_a_slow_caller_loses_its_request_and_the_session_goes_on() -> None:
    """The chunks behind it are acked all the same, and another request gets its answer."""
    async with serving() as bench:
        peer = await bench.peer()
        reading = bench.server.open_content(bench.agent_id(), "job.stream", JOB)
        request = (await peer.next_frame())["requestId"]
        for index in range(20):
            await peer.send(peer.hand.chunk(request, b"x", index, 20))
            assert (await peer.next_frame())["payload"]["status"] == "accepted"
        assert (await reading.answer).code == "rate_limited"
        assert reading.read() is None
        other = bench.server.open_content(bench.agent_id(), "job.stream", JOB)
        await peer.send(peer.hand.chunk((await peer.next_frame())["requestId"], b"all", 0, 1))
        await peer.next_frame()
        assert other.read() == b"all"
        assert (await other.answer).status == "ok"


# Links that break behind a frame


async def linked(bench: ServerBench) -> tuple[Peer, RawClient]:
    await bench.link()
    peer = await bench.peer("raw")
    assert isinstance(peer.client, RawClient)
    return peer, peer.client


@SIZES
async def test_a_link_is_cut_exact_to_the_byte_behind_a_frame_of_the_gateway(size: int) -> None:
    async with serving() as bench:
        peer, raw = await linked(bench)
        arm(bench, "cut", "job.assign", GATEWAY, nth=2)
        for number in (1, 2, 3):
            bench.assign(order(number, size))
        assert [(await peer.next_frame())["payload"]["jobId"] for _ in range(2)] == [job(1), job(2)]
        await raw.gone()
        assert raw.unread == b""
        assert [event.change for event in bench.events(LinkChanged)] == ["cut"]
        assert [event.fault for event in bench.events(FaultFired)] == ["cut-1"]
        await until(lambda: bool(bench.events(SocketClosed)))
        assert bench.events(SocketClosed)[0].by == "none"


async def test_a_cut_behind_a_doubled_frame_lets_one_copy_through() -> None:
    async with serving() as bench:
        peer, raw = await linked(bench)
        arm(bench, "duplicate", "job.assign", GATEWAY)
        arm(bench, "cut", "job.assign", GATEWAY)
        bench.assign(order(1))
        assert (await peer.next_frame())["type"] == "job.assign"
        await raw.gone()
        assert raw.unread == b""


async def test_a_cut_behind_a_dropped_frame_strikes_where_it_would_have_ended() -> None:
    async with serving() as bench:
        peer, raw = await linked(bench)
        arm(bench, "drop", "job.assign", GATEWAY, nth=2)
        arm(bench, "cut", "job.assign", GATEWAY, nth=2)
        for number in (1, 2, 3):
            bench.assign(order(number, 4_000))
        assert (await peer.next_frame())["payload"]["jobId"] == job(1)
        await raw.gone()
        assert raw.unread == b""
        assert {event.fault for event in bench.events(FaultFired)} == {"drop-1", "cut-1"}


async def test_a_cut_behind_a_held_frame_strikes_when_it_is_let_go() -> None:
    async with serving() as bench:
        peer, raw = await linked(bench)
        arm(bench, "hold", "job.assign", GATEWAY)
        arm(bench, "cut", "job.assign", GATEWAY)
        bench.assign(order(1))
        bench.assign(order(2))
        assert [(await peer.next_frame())["payload"]["jobId"] for _ in range(2)] == [job(2), job(1)]
        await raw.gone()
        assert raw.unread == b""


async def test_a_control_frame_of_the_websocket_layer_does_not_move_the_cut() -> None:
    async with serving() as bench:
        peer, raw = await linked(bench)
        arm(bench, "cut", "job.assign", GATEWAY)
        await raw.send_frame(9, b"are you there")
        await peer.client.send("ping")
        assert await raw.receive() == "are you there"
        assert await raw.receive() == "pong"
        bench.assign(order(1, 16_000))
        bench.assign(order(2))
        assert (await peer.next_frame())["payload"]["jobId"] == job(1)
        await raw.gone()
        assert raw.unread == b""


async def test_a_link_breaks_behind_a_frame_of_the_agent_once_that_was_taken() -> None:
    async with serving() as bench:
        peer, raw = await linked(bench)
        arm(bench, "reset", "job.result", AGENT)
        bench.assign(order(1))
        await peer.next_frame()
        await peer.send(peer.hand.data("job.result", {"jobId": job(1), "outcome": "no_change"}))
        await raw.gone()
        assert bench.core.jobs[job(1)].results == 1
        assert [event.change for event in bench.events(LinkChanged)] == ["reset"]


async def test_a_strike_that_fails_is_a_defect_and_harms_no_frame() -> None:
    async with serving() as bench:
        peer = await bench.peer()

        def broken(*_: object) -> None:
            raise KeyError("gateway")

        bench.server.strike_link = broken
        arm(bench, "cut", "job.assign", GATEWAY)
        bench.assign(order(1))
        bench.assign(order(2))
        assert [(await peer.next_frame())["seq"] for _ in range(2)] == [1, 2]
        assert [type(defect) for defect in bench.ctx.defects] == [KeyError]
        bench.ctx.defects.clear()

"""How the gateway's shell ends, what it does about peers that do not read, and what its logs say."""

from __future__ import annotations

import asyncio
import logging
import socket

import pytest

from lab.errors import EnvironmentFault
from lab.faults.plan import Fault, FrameAnchor
from lab.gateway import server as server_module
from lab.gateway.jobs import CallRefused, Order
from lab.gateway.socket import CountingConnection
from lab.journal.events import (
    CallFailed,
    Frame,
    SessionChanged,
    SocketClosed,
)
from tests.gateway.server_bench import Peer, RawClient, ServerBench, WebsocketsClient, serving, until

JOB = "0b0b0b0b-0000-4000-8000-00000000000b"
CANARY = "canary-in-a-prompt"
CLIENTS = pytest.mark.parametrize("kind", ["websockets", "aiohttp", "raw"])


def chat(text: str = "why?", job: str = JOB) -> Order:
    return Order(job, "chat", (text,), llm="default")


# Peers that do not read


def small_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the server's sockets hold little, so that a peer that does not read is felt soon."""
    made = CountingConnection.connection_made

    def connection_made(self: CountingConnection, transport: asyncio.BaseTransport) -> None:
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        made(self, transport)

    monkeypatch.setattr(CountingConnection, "connection_made", connection_made)


async def deaf_peer(bench: ServerBench) -> Peer:
    """An agent that is READY, reads no more, and whose stream is full."""
    raw = await RawClient.open(bench.server.address, bench.token(), receive_buffer=4096)
    bench.keep(raw)
    peer = Peer(bench.hand(), raw)
    await peer.handshake()
    for number in range(8):
        bench.assign(chat("x" * 16_000, f"{JOB[:-1]}{number}"))
    return peer


async def test_a_peer_that_does_not_read_is_aborted_when_too_much_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    small_buffers(monkeypatch)
    monkeypatch.setattr("lab.gateway.socket.MAX_QUEUED", 12)
    async with serving() as bench:
        peer = await deaf_peer(bench)
        while not bench.events(SocketClosed):
            try:
                await peer.client.send("ping")
            except ConnectionError:
                break
            # A send that does not block would leave the gateway no turn.
            await asyncio.sleep(0)
        await until(lambda: bool(bench.events(SocketClosed)))
        assert bench.events(SocketClosed) == [SocketClosed("c1", None, "none")]


async def test_a_peer_that_does_not_read_is_aborted_behind_a_close(monkeypatch: pytest.MonkeyPatch) -> None:
    small_buffers(monkeypatch)
    monkeypatch.setattr("lab.gateway.socket.PARTING_SECONDS", 0.05)
    async with serving() as bench:
        peer = await deaf_peer(bench)
        await peer.client.send(b"binary")
        await until(lambda: bool(bench.events(SocketClosed)))
        assert not bench.core.is_ready(bench.agent_id())


@pytest.mark.req("WS-042")
async def test_a_peer_that_names_a_fatal_error_has_time_to_close_with_its_number() -> None:
    async with serving() as bench:
        peer = await bench.peer()
        await peer.send(peer.hand.frame("error", {"code": "bad_frame", "retryable": False}))
        await until(lambda: any(event.state == "ended" for event in bench.events(SessionChanged)))
        for _ in range(20):
            await asyncio.sleep(0)
        assert isinstance(peer.client, WebsocketsClient)
        await peer.client.close(4400)
        await until(lambda: bool(bench.events(SocketClosed)))
        assert bench.events(SocketClosed) == [SocketClosed("c1", 4400, "remote")]


@pytest.mark.req("WS-042")
async def test_a_peer_that_names_a_fatal_error_and_stays_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.gateway.socket.PEER_CLOSES_SECONDS", 0.02)
    async with serving() as bench:
        peer = await bench.peer()
        await peer.send(peer.hand.frame("error", {"code": "bad_frame", "retryable": False}))
        assert await peer.next() == 1000


async def test_a_peer_that_does_not_read_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    small_buffers(monkeypatch)
    monkeypatch.setattr(server_module, "PARTING_SECONDS", 0.05)
    async with serving() as bench:
        await deaf_peer(bench)
        async with asyncio.timeout(5):
            await bench.server.close()
        assert bench.events(SocketClosed)[0].by == "none"


async def test_an_upgrade_that_never_ends_does_not_hold_up_the_end() -> None:
    async with serving() as bench:
        reader, writer = await asyncio.open_connection(*bench.server.address)
        writer.write(b"GET /agent HTTP/1.1\r\nHost: x\r\n")
        await bench.peer()
        async with asyncio.timeout(5):
            await bench.server.close()
            assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()


# The end


async def test_the_end_answers_who_waits_and_can_be_said_twice() -> None:
    async with serving() as bench:
        peer = await bench.peer()
        asked = asyncio.create_task(bench.server.content(bench.agent_id(), "job.stream", JOB))
        await peer.next_frame()
        await peer.send(peer.hand.heartbeat())
        await asyncio.gather(bench.server.close(), bench.server.close())
        assert (await asked).code == "agent_offline"
        assert await peer.end() == 1001
        await bench.server.close()
        with pytest.raises(CallRefused, match="AGENT_OFFLINE"):
            await bench.server.content(bench.agent_id(), "job.stream", JOB)
        assert bench.events(SocketClosed) == [SocketClosed("c1", 1001, "local")]


async def test_the_end_leaves_no_timer_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    handles: list[asyncio.TimerHandle] = []
    call_at = loop.call_at

    def noting(*args: object, **more: object) -> asyncio.TimerHandle:
        handles.append(call_at(*args, **more))  # type: ignore[arg-type]
        return handles[-1]

    monkeypatch.setattr(loop, "call_at", noting)
    async with serving() as bench:
        peer = await bench.peer()
        hold = Fault("hold", "hold", None, FrameAnchor("heartbeat", "one"), seconds=60)
        bench.server.faults.watch.arm(hold)
        await peer.send(peer.hand.heartbeat())
        asked = asyncio.create_task(bench.server.content(bench.agent_id(), "job.stream", JOB))
        await until(lambda: {"content.request", "heartbeat"} <= {event.type for event in bench.events(Frame)})
        await bench.server.close()
        now = loop.time()
        assert [handle for handle in handles if not handle.cancelled() and handle.when() > now + 3] == []
        await asked


async def test_a_server_that_was_never_started_can_be_closed() -> None:
    bench = ServerBench()
    with pytest.raises(EnvironmentFault, match="gateway is not started"):
        _ = bench.server.address
    await bench.server.close()


async def test_a_taken_port_is_an_environment_fault() -> None:
    async with serving() as bench:
        port = bench.server.address[1]
        other = ServerBench(port=port)
        with pytest.raises(EnvironmentFault, match=f"cannot listen on 127.0.0.1:{port}: .*--port"):
            await other.server.start()
        await other.server.close()


async def test_a_caller_that_gives_up_leaves_the_gateway_sound() -> None:
    async with serving() as bench:
        peer = await bench.peer()
        asked = asyncio.create_task(bench.server.content(bench.agent_id(), "job.stream", JOB))
        request = await peer.next_frame()
        asked.cancel()
        await peer.send(peer.hand.chunk(request["requestId"], b"late"))
        assert (await peer.next_frame())["payload"]["status"] == "accepted"


async def test_a_failed_request_is_journalled_by_its_code() -> None:
    async with serving() as bench:
        peer = await bench.peer()
        asked = asyncio.create_task(bench.server.content(bench.agent_id(), "chat.session", JOB))
        request = await peer.next_frame()
        await peer.send(peer.hand.failure(request["requestId"], "not_found"))
        assert (await asked).status == "not_found"
        assert bench.events(CallFailed) == [CallFailed("content", "internal", request_id=request["requestId"])]


# Logs and defects


@pytest.mark.req("SEC-001", "SEC-002", "SEC-004", "SEC-015")
async def test_no_log_says_a_token_or_content(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for name in ("lab.gateway", "asyncio"):
        caplog.set_level(logging.DEBUG, name)
    async with serving() as bench:
        peer = await bench.peer("aiohttp")
        bench.assign(chat(CANARY))
        await peer.next_frame()
        asked = asyncio.create_task(bench.server.content(bench.agent_id(), "job.stream", JOB))
        request = await peer.next_frame()
        await peer.send(peer.hand.chunk(request["requestId"], CANARY.encode()))
        await asked
        await peer.client.send(CANARY)
        await peer.end()
        assert CANARY not in caplog.text
        assert bench.token() not in caplog.text


async def test_a_defect_while_writing_is_told_and_ends_its_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as bench:
        peer = await bench.peer()

        async def broken(*_: object) -> None:
            raise RuntimeError(CANARY)

        monkeypatch.setattr(CountingConnection, "send", broken)
        bench.assign(chat())
        assert await peer.next() == 1006
        assert [type(defect) for defect in bench.ctx.defects] == [RuntimeError]
        assert CANARY not in bench.journal_text()
        bench.ctx.defects.clear()


async def test_a_defect_is_told_by_its_name_alone_and_the_socket_lives_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as bench:
        peer = await bench.peer()
        receive = bench.core.receive_untrusted

        def broken(conn: str, message: str | bytes, now: float) -> None:
            monkeypatch.setattr(bench.core, "receive_untrusted", receive)
            raise ValueError(CANARY)

        monkeypatch.setattr(bench.core, "receive_untrusted", broken)
        beat = peer.hand.heartbeat()
        await peer.send(beat)
        await peer.send(beat)
        assert (await peer.next_frame())["payload"]["status"] == "accepted"
        assert [type(defect) for defect in bench.ctx.defects] == [ValueError]
        assert CANARY not in bench.journal_text()
        bench.ctx.defects.clear()

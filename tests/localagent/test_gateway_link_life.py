"""How the reference agent's link falls back to v1, connects again, and ends."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import logging
import socket
from dataclasses import replace
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection

from lab.localagent import gateway_link
from lab.localagent.gateway_link import FIRST_WAIT, V1_SECONDS
from lab.protocol.contract import Contract, default_contract_folder
from tests.localagent.doubles import JOB, WORKSPACE
from tests.localagent.hand_gateway import (
    LIMITS,
    TOKEN,
    Line,
    ShiftedClock,
    until,
)
from tests.localagent.link_bench import CANARY, EVENT, V1_REGISTER, Gate, linked, quick

__all__ = ["quick"]

WRITE_LIMIT = 1 << 15
"""Bytes beyond which the WebSocket library waits for its peer."""


# v1


async def v1_message(line: Line) -> Any:
    message = await line.next()
    assert isinstance(message, str)
    return json.loads(message)


@pytest.mark.req("HS-020", "HS-024", "HS-021", "V1-001", "V1-010", "V1-012")
async def test_a_mute_gateway_gets_a_v1_register_on_the_same_connection_and_v2_again_after_ten_minutes(
    quick: None,
) -> None:
    clock = ShiftedClock()
    async with linked(clock, handshake_ms=50) as bench:
        line = await bench.gateway.line()
        assert [(await line.frame())["type"] for _ in range(2)] == ["register", "hello"]
        assert await v1_message(line) == V1_REGISTER
        # V1-012: nothing of v2 on a v1 connection.
        bench.send("job.event", EVENT)
        await line.send("ping")
        assert await line.next() == "pong"
        clock.ahead = V1_SECONDS - 30
        line.cut()
        second = await bench.gateway.line()
        assert await v1_message(second) == V1_REGISTER
        await second.send("ping")
        assert await second.next() == "pong"
        # The second fallback does not lengthen the ten minutes of the first.
        clock.ahead = V1_SECONDS + 1
        second.cut()
        third = await bench.gateway.line()
        await third.handshake()
        assert (await third.frame("job.event"))["seq"] == 1


@pytest.mark.req("HS-020", "HS-025")
async def test_protocol_unsupported_falls_back_at_once_and_the_v1_connection_pings(
    quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lab.protocol.agent_side.PING_SECONDS", 0.02)
    async with linked() as bench:
        line = await bench.gateway.line()
        await line.frame("hello" if (await line.frame())["type"] == "register" else None)
        await line.refuse("protocol_unsupported")
        while (message := await line.next()) == "ping":
            pass
        assert json.loads(str(message)) == V1_REGISTER
        # WS-024: pings of every state, on this connection and on one that began in v1.
        assert [await line.next() for _ in range(2)] == ["ping"] * 2
        line.cut()
        second = await bench.gateway.line()
        assert await v1_message(second) == V1_REGISTER
        assert [await second.next() for _ in range(2)] == ["ping"] * 2


@pytest.mark.req("HS-019", "HS-023")
@pytest.mark.parametrize(
    "code", ["clock_skew", "signature_mode_insufficient", "internal", "rate_limited", "unauthorized"]
)
async def test_any_other_refusal_ends_plainly_and_v2_is_offered_again(quick: None, code: str) -> None:
    async with linked() as bench:
        line = await bench.gateway.line()
        await line.frame("register")
        await line.frame("hello")
        await line.refuse(code)
        assert await line.next() == 1000
        again = await bench.gateway.line()
        await again.handshake()
        bench.send("heartbeat", {})
        await again.frame("heartbeat")


async def test_a_v1_connection_that_is_silent_is_given_up(quick: None) -> None:
    contract = Contract.load(default_contract_folder())
    contract.limits = replace(contract.limits, session_ttl_seconds=1)
    async with linked(contract=contract, handshake_ms=20) as bench:
        line = await bench.gateway.line()
        await line.frame("register")
        await line.frame("hello")
        await v1_message(line)
        assert await line.end() == 4420
        assert await v1_message(await bench.gateway.line()) == V1_REGISTER


# Connecting


@pytest.mark.req("SQ-029", "WS-042")
async def test_a_silent_gateway_is_given_up_and_asked_again(quick: None) -> None:
    contract = Contract.load(default_contract_folder())
    contract.limits = replace(contract.limits, session_ttl_seconds=1)
    async with linked(contract=contract) as bench:
        line = await bench.ready()
        assert (await line.until("error"))["payload"]["code"] == "timeout"
        assert await line.end() == 4420
        again = await bench.gateway.line()
        assert "resume" in (await again.frame("register"))["payload"]


def small_buffers(monkeypatch: pytest.MonkeyPatch) -> list[asyncio.WriteTransport]:
    """Make the agent's sockets hold little, so that a gateway that does not read is felt soon; gives its transports."""
    transports: list[asyncio.WriteTransport] = []
    made = ClientConnection.connection_made

    def connection_made(self: ClientConnection, transport: asyncio.BaseTransport) -> None:
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        assert isinstance(transport, asyncio.WriteTransport)
        transports.append(transport)
        made(self, transport)

    monkeypatch.setattr(ClientConnection, "connection_made", connection_made)
    return transports


async def test_a_deaf_gateway_is_given_up(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    small_buffers(monkeypatch)
    monkeypatch.setattr(gateway_link, "PARTING_SECONDS", 0.05)
    contract = Contract.load(default_contract_folder())
    contract.limits = replace(contract.limits, session_ttl_seconds=1)
    async with linked(contract=contract, max_in_flight=64) as bench:
        line = await bench.ready(ackTimeoutMs=5000)
        await line.send("ping")
        assert await line.next() == "pong"
        line.stop_reading()
        for number in range(1, 8):
            bench.link.send_content(f"4e4e4e4e-0000-4000-8000-{number:012x}", WORKSPACE, "text/plain", bytes(1_900_000))
        assert "resume" in (await (await bench.gateway.line()).frame("register"))["payload"]


async def test_connecting_again_does_not_spin() -> None:
    async with linked() as bench:
        opened = []
        for _ in range(4):
            line = await bench.gateway.line()
            opened.append(line.opened_at)
            line.cut()
        gaps = [later - earlier for earlier, later in itertools.pairwise(opened)]
        # Decision 27: the wait doubles, and jitter takes at most half of it.
        assert [gap >= FIRST_WAIT * factor / 2 for gap, factor in zip(gaps, (1, 2, 4), strict=True)] == [True] * 3


async def test_agent2_is_asked_before_each_further_connection(quick: None) -> None:
    async with linked(start=False) as bench:
        asked = []

        async def ask() -> None:
            asked.append(len(opened))

        opened: list[Line] = []
        bench.link.before_connect = ask
        bench.link.start()
        for _ in range(3):
            line = await bench.gateway.line()
            opened.append(line)
            line.cut()
        assert asked[:2] == [1, 2]


async def test_defects_between_connections_are_told_and_the_agent_goes_on(quick: None) -> None:
    async with linked(start=False) as bench:
        sound = bench.registration
        asked = 0

        async def ask() -> None:
            nonlocal asked
            asked += 1
            bench.registration = sound
            if asked == 1:
                raise KeyError(CANARY)

        bench.link.before_connect = ask
        bench.registration = None  # type: ignore[assignment]
        bench.link.start()
        await (await bench.gateway.line()).end()
        await (await bench.gateway.line()).handshake()
        assert [type(defect) for defect in bench.ctx.defects] == [AttributeError, KeyError]
        bench.ctx.defects.clear()


async def test_a_defect_at_a_timer_is_told_and_the_timers_go_on() -> None:
    async with linked() as bench:
        line = await bench.ready(heartbeatSeconds=1)
        await line.send("ping")
        assert await line.next() == "pong"

        def broken() -> dict[str, object]:
            bench.link.heartbeat = dict
            raise KeyError(CANARY)

        bench.link.heartbeat = broken
        await line.frame("heartbeat")
        assert [type(defect) for defect in bench.ctx.defects] == [KeyError]
        bench.ctx.defects.clear()


async def test_a_defect_while_writing_is_told_and_the_agent_connects_again(
    quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = ClientConnection.send

    async def broken(*_: object) -> None:
        monkeypatch.setattr(ClientConnection, "send", send)
        raise RuntimeError(CANARY)

    monkeypatch.setattr(ClientConnection, "send", broken)
    async with linked() as bench:
        assert await (await bench.gateway.line()).end() == 1006
        await (await bench.gateway.line()).handshake()
        assert [type(defect) for defect in bench.ctx.defects] == [RuntimeError]
        bench.ctx.defects.clear()


async def test_a_gateway_that_refuses_the_credential_is_asked_again(quick: None) -> None:
    answered = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answered.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    async with linked(url=f"ws://{host}:{port}/agent"):
        await until(lambda: len(answered) >= 3)
    server.close()
    await server.wait_closed()


# The end


@pytest.mark.parametrize("phase", ["never started", "refused", "waiting", "mute server", "handshake", "ready"])
async def test_the_end_comes_in_every_phase_and_can_be_said_twice(phase: str) -> None:
    held: list[asyncio.StreamWriter] = []

    async def mute(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)

    server = await asyncio.start_server(mute, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    url = {"refused": "ws://127.0.0.1:1/", "mute server": f"ws://127.0.0.1:{port}/"}.get(phase)
    async with linked(url=url, start=phase != "never started") as bench:
        if phase == "mute server":
            await until(lambda: bool(held))
        elif phase in ("handshake", "ready", "waiting"):
            line = await bench.gateway.line()
            await line.frame("register")
            await line.frame("hello")
            if phase == "ready":
                await line.ready()
            elif phase == "waiting":
                gate = Gate(bench)
                line.cut()
                await gate.entered.wait()
        async with asyncio.timeout(5):
            await bench.link.close()
            await bench.link.close()
        if phase in ("handshake", "ready"):
            assert await line.end() == 1000
    for writer in held:
        writer.close()
        await writer.wait_closed()
    server.close()
    await server.wait_closed()


async def test_a_deaf_gateway_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    transports = small_buffers(monkeypatch)
    monkeypatch.setattr(gateway_link, "PARTING_SECONDS", 0.05)
    async with linked(max_in_flight=64) as bench:
        line = await bench.ready()
        await line.send("ping")
        assert await line.next() == "pong"
        line.stop_reading()
        for number in range(1, 8):
            bench.link.send_content(f"4e4e4e4e-0000-4000-8000-{number:012x}", WORKSPACE, "text/plain", bytes(1_900_000))
        await until(lambda: transports[-1].get_write_buffer_size() > WRITE_LIMIT)
        async with asyncio.timeout(10):
            await bench.link.close()


@pytest.mark.req("SEC-015", "SEC-005")
async def test_no_log_says_a_token_or_content(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for name in ("lab.localagent", "websockets.client", "asyncio"):
        caplog.set_level(logging.DEBUG, name)
    async with linked() as bench:
        # The gateway of the test logs what it likes; only the agent is looked at.
        line = await bench.ready()
        request = await line.ask("job.stream", JOB)
        bench.link.send_content(request, WORKSPACE, "text/plain", CANARY.encode())
        await line.frame("content.response")
        await line.say("job.cancel", {"jobId": JOB, CANARY: CANARY})
        await line.end()
    records = [record for record in caplog.records if not record.name.startswith("websockets.server")]
    said = "\n".join(record.getMessage() for record in records)
    assert TOKEN not in said
    assert CANARY not in said
    assert base64.b64encode(CANARY.encode()).decode() not in said


def test_the_figures_of_the_hand_written_gateway_are_those_of_the_contract() -> None:
    limits = Contract.load(default_contract_folder()).limits
    assert limits.max_frame_bytes == LIMITS["maxFrameBytes"]
    assert limits.ack_timeout_ms == LIMITS["ackTimeoutMs"]

"""The gateway's shell over real loopback sockets, with clients that nobody here wrote and an agent made of dicts."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from lab.gateway.jobs import Order
from lab.gateway.relay import Answer
from lab.gateway.server import MAX_MESSAGE_BYTES
from lab.journal.events import (
    BodyAnswered,
    Frame,
    JobMoved,
    LoopLag,
    SessionChanged,
    SocketClosed,
    SocketOpened,
    SocketRefused,
    TextMessage,
    Undelivered,
)
from tests.gateway.by_hand import holds
from tests.gateway.server_bench import Peer, RawClient, serving, until

JOB = "0b0b0b0b-0000-4000-8000-00000000000b"
CANARY = "canary-in-a-prompt"
CLIENTS = pytest.mark.parametrize("kind", ["websockets", "aiohttp", "raw"])


def chat(text: str = "why?", job: str = JOB) -> Order:
    return Order(job, "chat", (text,), llm="default")


# Interop


@CLIENTS
@pytest.mark.req("HS-013", "HS-014", "SG-002", "SG-003", "SG-004", "SG-016", "CP-014", "SEC-001")
async def test_a_client_of_another_hand_chats_from_the_handshake_to_the_answer(kind: str) -> None:
    async with serving() as bench:
        key = bench.identity.signing_keys["gateway"].verify_key
        peer = Peer(bench.hand(), await bench.client(kind))
        ready = await peer.handshake()
        assert holds(ready, key)
        assert ready["seq"] == 0
        assert bench.core.is_ready(bench.agent_id())

        bench.assign(chat(CANARY))
        assign = await peer.next_frame()
        assert holds(assign, key)
        assert (assign["type"], assign["seq"]) == ("job.assign", 1)
        await peer.send(peer.hand.ack(assign))

        answer = asyncio.create_task(bench.server.content(bench.agent_id(), "job.stream", JOB))
        request = await peer.next_frame()
        assert holds(request, key)
        assert request["payload"] == {"kind": "job.stream", "ref": JOB}
        await peer.send(peer.hand.ack(request))
        page = json.dumps({"events": [{"i": 0, "e": CANARY}], "nextRef": "n" * 43, "done": True}).encode()
        await peer.send(peer.hand.chunk(request["requestId"], page[:10], 0, 2, totalBytes=len(page)))
        await peer.send(peer.hand.chunk(request["requestId"], page[10:], 1, 2, totalBytes=len(page)))
        assert await answer == Answer(request["requestId"], "ok", page)

        acks = [await peer.next_frame(), await peer.next_frame()]
        assert [(ack["type"], "sig" in ack, ack["payload"]["status"]) for ack in acks] == [
            ("ack", False, "accepted")
        ] * 2
        await peer.send(peer.hand.data("job.result", {"jobId": JOB, "outcome": "no_change"}))
        assert (await peer.next_frame())["payload"]["ackSeq"] == 3
        assert [event.state for event in bench.events(JobMoved)] == ["accepted", "ended"]
        (body,) = bench.events(BodyAnswered)
        assert (body.bytes, body.job_id, body.status) == (len(page), JOB, "ok")
        assert CANARY not in bench.journal_text()


@CLIENTS
@pytest.mark.req("WS-051")
async def test_text_pings_are_answered_in_every_state_and_are_no_frames(kind: str) -> None:
    async with serving() as bench:
        peer = Peer(bench.hand(), await bench.client(kind))
        await peer.client.send("ping")
        assert await peer.next() == "pong"
        await peer.handshake()
        await peer.client.send("ping")
        assert await peer.next() == "pong"
        texts = [(event.direction, event.text) for event in bench.events(TextMessage)]
        assert texts == [("la-to-cp", "ping"), ("cp-to-la", "pong")] * 2
        assert all(event.type for event in bench.events(Frame))


async def test_the_life_of_a_socket_is_journalled_in_order() -> None:
    async with serving() as bench:
        peer = await bench.peer()
        await peer.client.close()
        await until(lambda: len(bench.events(SessionChanged)) == 2)
        kinds = (SocketOpened, SessionChanged, SocketClosed)
        story = [entry.event for entry in bench.ctx.journal.entries if isinstance(entry.event, kinds)]
        assert [type(event) for event in story] == [SocketOpened, SessionChanged, SocketClosed, SessionChanged]
        assert story[0] == SocketOpened("c1", "/agent", "one", credential="ok")
        assert story[2] == SocketClosed("c1", 1000, "remote")
        assert [event.state for event in bench.events(SessionChanged)] == ["ready", "ended"]
        assert not bench.core.is_ready(bench.agent_id())


@pytest.mark.req("RS-001", "HS-040", "RS-017")
async def test_a_session_goes_on_over_another_socket() -> None:
    async with serving() as bench:
        first = await bench.peer()
        session = bench.events(SessionChanged)[0].session_id or ""
        beat = first.hand.heartbeat()
        await first.send(beat)
        assert (await first.next_frame())["payload"]["status"] == "accepted"
        await first.client.close()
        await until(lambda: not bench.core.is_ready(bench.agent_id()))
        second = Peer(first.hand, await bench.client("aiohttp"))
        ready = await second.handshake((session, 0))
        assert (ready["payload"]["resumed"], ready["payload"]["peerLastSeq"]) == (True, 1)
        await second.send(beat)
        assert (await second.next_frame())["payload"]["status"] == "duplicate"


# The upgrade


@pytest.mark.req("HS-002", "WS-054", "SEC-015")
@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ([], "no credential"),
        ([("Authorization", "Bearer not-the-token")], "an unknown credential"),
        ([("Authorization", "Basic {token}")], "an unknown credential"),
        ([("Authorization", "{token}")], "an unknown credential"),
        ([("Authorization", "Bearer {token}x")], "an unknown credential"),
        ([("Authorization", "Bearer \xe9\xff")], "an unknown credential"),
        ([("Authorization", "Bearer {token}"), ("Authorization", "Bearer {token}")], "an unknown credential"),
    ],
)
async def test_an_upgrade_without_its_credential_gets_401(headers: list[tuple[str, str]], reason: str) -> None:
    async with serving() as bench:
        host, port = bench.server.address
        token = bench.token()
        lines = [
            f"GET /agent HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n",
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n",
            *(f"{name}: {value.replace('{token}', token)}\r\n" for name, value in headers),
            "\r\n",
        ]
        reader, writer = await asyncio.open_connection(host, port)
        writer.write("".join(lines).encode("latin-1"))
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        assert answer.startswith(b"HTTP/1.1 401 ")
        assert bench.events(SocketRefused) == [SocketRefused(401, reason)]
        assert bench.events(SocketOpened) == []
        assert token not in bench.journal_text()


async def test_a_client_of_another_hand_understands_the_401() -> None:
    async with serving() as bench:
        host, port = bench.server.address
        with pytest.raises(InvalidStatus) as caught:
            await connect(f"ws://{host}:{port}/", additional_headers={"Authorization": "Bearer no"}, proxy=None)
        assert caught.value.response.status_code == 401


async def test_any_path_is_taken_and_noted_without_its_query() -> None:
    async with serving() as bench:
        for path in ("/a", "/b/c?token=hush"):
            await bench.client(path=path)
        assert [event.path for event in bench.events(SocketOpened)] == ["/a", "/b/c"]
        assert "hush" not in bench.journal_text()


# Junk


@CLIENTS
@pytest.mark.req("WS-036", "WS-042", "SEC-009")
async def test_a_binary_message_is_told_bad_frame_before_the_close(kind: str) -> None:
    async with serving() as bench:
        peer = await bench.peer(kind)
        await peer.client.send(CANARY.encode())
        error = await peer.next_frame()
        assert (error["type"], error["payload"]["code"]) == ("error", "bad_frame")
        assert await peer.next() == 4400
        await until(lambda: bool(bench.events(SocketClosed)))
        assert bench.events(SocketClosed) == [SocketClosed("c1", 4400, "local")]
        assert CANARY not in bench.journal_text()


@pytest.mark.req("WS-019", "WS-020")
async def test_a_message_above_the_frame_limit_is_answered_by_its_code() -> None:
    async with serving() as bench:
        peer = await bench.peer()
        await peer.client.send("é" * 24_577)
        assert (await peer.next_frame())["payload"]["code"] == "frame_too_large"
        assert await peer.next() == 4403


async def test_a_message_above_the_bound_of_the_shell_is_not_read() -> None:
    async with serving() as bench:
        peer = await bench.peer()
        await peer.client.send("x" * (MAX_MESSAGE_BYTES + 1))
        assert await peer.end() == 1009
        await until(lambda: bool(bench.events(SocketClosed)))
        assert bench.events(Frame)[-1].type == "ready"


async def test_text_that_is_no_utf8_ends_the_socket() -> None:
    async with serving() as bench:
        raw = await RawClient.open(bench.server.address, bench.token())
        bench.keep(raw)
        await raw.send_frame(1, b"\xff\xfe")
        assert await raw.receive() == 1007


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\n\r\n",
        b"POST /agent HTTP/1.1\r\n\r\n",
        b"\n" * 9000,
    ],
)
async def test_what_is_no_upgrade_is_turned_away_and_the_next_client_is_served(data: bytes) -> None:
    async with serving() as bench:
        reader, writer = await asyncio.open_connection(*bench.server.address)
        writer.write(data)
        writer.write_eof()
        async with asyncio.timeout(20):
            assert b" 101 " not in await reader.read()
        writer.close()
        await writer.wait_closed()
        assert bench.events(SocketOpened) == []
        await bench.peer()


async def test_a_peer_that_vanishes_without_a_word_is_noted_as_cut() -> None:
    async with serving() as bench:
        peer = await bench.peer("raw")
        await peer.client.close()
        await until(lambda: bool(bench.events(SocketClosed)))
        assert bench.events(SocketClosed) == [SocketClosed("c1", None, "none")]


async def test_messages_after_the_core_ended_the_connection_are_not_acted_on() -> None:
    async with serving() as bench:
        peer = await bench.peer("raw")
        await peer.client.send(b"binary")
        for _ in range(20):
            await peer.send(peer.hand.heartbeat())
        frames = []
        while isinstance(message := await peer.next(), dict):
            frames.append(message["type"])
        assert (frames, message) == (["error"], 4400)


@pytest.mark.req("RS-021")
async def test_the_older_of_two_sockets_is_closed_plainly() -> None:
    async with serving() as bench:
        older = await bench.peer()
        newer = await bench.peer("aiohttp")
        assert await older.end() == 1000
        await until(lambda: bool(bench.events(SocketClosed)))
        assert bench.events(SocketClosed) == [SocketClosed("c1", 1000, "local")]
        assert bench.core.is_ready(bench.agent_id())
        bench.assign(chat())
        assert (await newer.next_frame())["type"] == "job.assign"


async def test_two_agents_are_told_apart_by_their_credentials() -> None:
    async with serving() as bench:
        one, two = await bench.peer(name="one"), await bench.peer(name="two")
        bench.assign(chat(), "two")
        assert (await two.next_frame())["agentId"] == bench.agent_id("two")
        # WS-009: what one sends under the other's id is refused.
        await one.send(two.hand.heartbeat())
        assert (await one.next_frame())["payload"]["code"] == "agent_mismatch"


# Time


@pytest.mark.req("SQ-022")
async def test_an_unacked_frame_is_written_again_and_ends_the_socket() -> None:
    async with serving(limits={"ackTimeoutMs": 50}) as bench:
        peer = await bench.peer()
        bench.assign(chat())
        copies = [await peer.next_frame() for _ in range(4)]
        assert {(copy["type"], copy["seq"], copy["msgId"]) for copy in copies} == {
            ("job.assign", 1, copies[0]["msgId"])
        }
        assert len({copy["sig"]["nonce"] for copy in copies}) == 4
        error = await peer.next_frame()
        assert error["payload"]["code"] == "timeout"
        assert await peer.next() == 4420
        assert [(event.type, event.code) for event in bench.events(Undelivered)] == [("job.assign", "timeout")]


async def test_a_loop_that_was_held_up_is_noted() -> None:
    async with serving(limits={"ackTimeoutMs": 50}) as bench:
        await bench.peer()
        bench.assign(chat())
        time.sleep(0.15)  # noqa: ASYNC251  holding the loop up is what is tested
        await until(lambda: bool(bench.events(LoopLag)))
        assert bench.events(LoopLag)[0].seconds > 0.05

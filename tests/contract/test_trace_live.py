"""Live grading of gateways over real sockets: the double passes, and those that are wrong on purpose are told so."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve

from lab.contract.trace_filling import LiveIdentity
from lab.contract.trace_grades import CaseResult, Grade
from lab.contract.trace_line import Gateway, Unreachable
from lab.contract.trace_live import LivePeer, play_live
from lab.contract.trace_peers import reference_gateway
from lab.contract.trace_run import for_peer, new_context
from lab.contract.traces import Side
from lab.protocol import gateway_side
from lab.protocol.connection import Connection
from lab.protocol.contract import contract_of
from lab.protocol.errors import CloseCodes
from lab.protocol.frames import Draft
from lab.protocol.reliability import Inbound
from tests.contract.test_trace_core import Patch, forget_pairs, mute, replaced, swap
from tests.contract.test_traces import BY_NAME, FOLDER

PATIENCE = 10.0
SHORT, MUTE = 0.5, 0.1
"""For a peer that answers something, and for one that answers nothing."""
TENANT, AGENT = "tenant-live", "1a1a0000-0000-4000-8000-00000000000a"
Members = dict[str, Any]


async def with_gateway(name: str, patience: float = PATIENCE, **changes: Any) -> CaseResult:
    async with reference_gateway(new_context(), FOLDER, "2.3", patience) as peer:
        return await play_live(BY_NAME[name], replace(peer, **changes))


@pytest.mark.parametrize("name", [trace.name for trace in for_peer(list(BY_NAME.values()), Side.CP)])
async def test_the_gateway_double_passes(name: str) -> None:
    result = await with_gateway(name)
    assert (result.grade, result.close_as_due) == (Grade.PASS, True), result


@pytest.mark.parametrize("revision", ["2.0", "2.2"])
async def test_a_gateway_of_an_earlier_revision_passes_what_counts_for_it(revision: str) -> None:
    for name in ("invalid-seq-repeated", "valid-content-chunks-in-order"):
        async with reference_gateway(new_context(), FOLDER, revision, PATIENCE) as peer:
            result = await play_live(BY_NAME[name], peer)
        assert result.grade is Grade.PASS, result


# Gateways that are wrong


def silent_error(patch: pytest.MonkeyPatch) -> None:
    """It closes with the code's number, without the error frame before it."""
    right = Connection.write_control

    def write(self: Connection, draft: Draft, now: float, ack: bool = True) -> None:
        if draft.type != "error":
            right(self, draft, now, ack)

    patch.setattr(Connection, "write_control", write)


def closing_plainly(self: Connection, _code: str, *_rest: object) -> None:
    self.end(None, "local")


def staying(self: Connection, code: str, now: float, *_rest: object) -> None:
    self.write_control(Draft("error", {"code": code, "retryable": False}, self.workspace_id), now)


def rejecting(code: str | None) -> Callable[..., None]:
    def refuse(self: Connection, members: Mapping[str, Any], due: str, now: float) -> None:
        self._write_ack(now, members["seq"], members["msgId"], self.workspace_id, "rejected", code or due)

    return refuse


WRONG: list[tuple[str, Patch, Grade, str, str]] = [
    ("invalid-tenant-mismatch", mute("tenant_mismatch"), Grade.FAIL, "acked accepted", "1000 by lab"),
    ("invalid-seq-repeated", mute("seq_replayed"), Grade.FAIL, "acked accepted", "1000 by lab"),
    (
        "invalid-signature-warn-with-enforce-required",
        replaced(gateway_side, "STRICT_TENANT_MODES", ()),
        Grade.FAIL,
        "answered ready",
        "1000 by lab",
    ),
    (
        "invalid-tenant-mismatch",
        replaced(Connection, "_refuse", lambda *_: None),
        Grade.FAIL,
        "went on as if nothing had been wrong",
        "1000 by lab",
    ),
    ("invalid-seq-repeated", swap("seq_replayed", "bad_frame"), Grade.FAIL, "refused with bad_frame", "4400 by peer"),
    ("invalid-seq-repeated", swap("seq_replayed", "seq_gap"), Grade.NON_STRICT, "refused with seq_gap", "4408 by peer"),
    (
        "invalid-tenant-mismatch",
        replaced(Connection, "_refuse", rejecting(None)),
        Grade.NON_STRICT,
        "acked rejected with tenant_mismatch, and went on",
        "1000 by lab",
    ),
    (
        "invalid-tenant-mismatch",
        replaced(Connection, "_refuse", rejecting("internal")),
        Grade.FAIL,
        "acked rejected with internal, and went on",
        "1000 by lab",
    ),
    (
        "invalid-tenant-mismatch",
        silent_error,
        Grade.NON_STRICT,
        "closed without an error frame, with the number of tenant_mismatch",
        "4412 by peer",
    ),
    (
        "invalid-tenant-mismatch",
        replaced(Connection, "fail", closing_plainly),
        Grade.FAIL,
        "closed without an error frame",
        "1000 by peer, due is 4412",
    ),
    ("valid-retransmit-is-idempotent", replaced(Inbound, "judge", forget_pairs), Grade.FAIL, "refused with", "4409"),
    ("valid-content-chunks-in-order", mute("none"), Grade.PASS, "went well", "1000 by lab"),
]


@pytest.mark.parametrize(
    ("name", "wrong", "grade", "seen", "close"),
    WRONG,
    ids=[f"{name}-{place}" for place, (name, *_) in enumerate(WRONG)],
)
async def test_a_gateway_that_is_wrong_is_told_so(
    name: str, wrong: Patch, grade: Grade, seen: str, close: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong(monkeypatch)
    result = await with_gateway(name, SHORT if "went on as" in seen else PATIENCE)
    assert (result.grade, result.seen.startswith(seen), result.close.startswith(close)) == (grade, True, True), result


@pytest.mark.parametrize(
    ("wrong", "close"),
    [
        (replaced(CloseCodes, "of", lambda *_: 1000), "1000 by peer, due is 4412"),
        (replaced(Connection, "fail", staying), "left open"),
    ],
)
async def test_a_bad_close_is_told_apart_from_a_right_refusal(
    wrong: Patch, close: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with reference_gateway(new_context(), FOLDER, "2.3", PATIENCE) as peer:
        with monkeypatch.context() as patch:
            right = CloseCodes.of
            wrong(patch)
            if "due is" in close:
                # The gateway alone has forgotten the numbers.
                patch.setattr(CloseCodes, "of", right)
                patch.setattr(Connection, "end", plain_end)
            result = await play_live(BY_NAME["invalid-tenant-mismatch"], replace(peer, patience=SHORT))
    assert (result.grade, result.seen) == (Grade.PASS, "refused with tenant_mismatch")
    assert (result.close, result.close_as_due) == (close, False)


_right_end = Connection.end


def plain_end(self: Connection, _code: str | None, by: str) -> None:
    _right_end(self, None, by)


# Gateways written by hand

Serving = Callable[[ServerConnection], Awaitable[object]]


@contextlib.asynccontextmanager
async def by_hand(serving: Serving, patience: float = SHORT) -> AsyncIterator[LivePeer]:
    async def take(websocket: ServerConnection) -> None:
        await serving(websocket)
        await websocket.wait_closed()

    async with serve(take, "127.0.0.1", 0, compression=None, ping_interval=None, close_timeout=1) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        ctx = new_context()
        yield LivePeer(
            side=Side.CP,
            place=Gateway(f"ws://127.0.0.1:{port}/", "a-token", patience),
            identity=LiveIdentity(TENANT, AGENT, "ws-live"),
            contract=contract_of(FOLDER, "2.3"),
            wall_ms=ctx.wall_ms,
            fresh=ctx.draws("test", "ids").uuid,
            patience=patience,
        )


async def says_nothing(_websocket: ServerConnection) -> None:
    pass


async def reads_nothing(websocket: ServerConnection) -> None:
    websocket.transport.pause_reading()


def says(*texts: str | bytes) -> Serving:
    async def serving(websocket: ServerConnection) -> None:
        for text in texts:
            await websocket.send(text)

    return serving


async def cuts(websocket: ServerConnection) -> None:
    await websocket.recv()
    websocket.transport.abort()


async def closes_without_a_code(websocket: ServerConnection) -> None:
    await websocket.recv()
    websocket.protocol.send_close()
    websocket.transport.write(b"".join(websocket.protocol.data_to_send()))


async def answers_pings_alone(websocket: ServerConnection) -> None:
    async for message in websocket:
        if message == "ping":
            await websocket.send("pong")


async def sends_no_utf8(websocket: ServerConnection) -> None:
    websocket.protocol.send_text(b"\xff")
    websocket.transport.write(b"".join(websocket.protocol.data_to_send()))


def frame(type_name: str, payload: Members) -> str:
    members = {"schemaVersion": 2, "type": type_name, "msgId": AGENT, "seq": 0, "tenantId": TENANT, "agentId": AGENT}
    return json.dumps({**members, "workspaceId": "w", "ts": "2026-11-04T10:00:00Z", "payload": payload})


REFUSAL = frame("error", {"code": "unauthorized", "retryable": False})


@pytest.mark.parametrize(
    ("name", "serving", "grade", "seen", "close"),
    [
        (
            "valid-resume-continues-seq",
            says_nothing,
            Grade.UNKNOWN,
            "no ready came: the peer never answers",
            "1000 by lab",
        ),
        (
            "invalid-tenant-mismatch",
            says_nothing,
            Grade.UNKNOWN,
            "no ready came: the peer never answers",
            "1000 by lab",
        ),
        ("invalid-first-frame-not-register", says_nothing, Grade.UNKNOWN, "the peer never answers", "1000 by lab"),
        ("invalid-first-frame-not-register", reads_nothing, Grade.UNKNOWN, "the peer never answers", "not answered"),
        ("valid-resume-continues-seq", answers_pings_alone, Grade.FAIL, "no ready came, though the peer answers", ""),
        ("invalid-seq-repeated", answers_pings_alone, Grade.UNKNOWN, "no ready came, though the peer answers", ""),
        ("valid-handshake-and-job", cuts, Grade.FAIL, "the connection ended: cut without a close frame", "cut"),
        ("invalid-tenant-mismatch", cuts, Grade.UNKNOWN, "the connection ended: cut without a close frame", "cut"),
        (
            "valid-handshake-and-job",
            closes_without_a_code,
            Grade.FAIL,
            "the connection ended: no code by peer",
            "no code",
        ),
        ("valid-handshake-and-job", says("{"), Grade.FAIL, "a message that is no frame of the contract", ""),
        ("valid-handshake-and-job", says(b"\x00"), Grade.FAIL, "a message that is no frame of the contract", ""),
        ("valid-handshake-and-job", says("[" * 60_000), Grade.FAIL, "a message that is no frame of the contract", ""),
        ("valid-handshake-and-job", sends_no_utf8, Grade.FAIL, "a message that is no frame of the contract", ""),
        ("valid-handshake-and-job", says("[]"), Grade.FAIL, "a message that is no frame of the contract", ""),
        ("valid-handshake-and-job", says(frame("ready", {})), Grade.FAIL, "its ready breaks required at /", ""),
        ("valid-handshake-and-job", says("pong", "ping", REFUSAL), Grade.FAIL, "refused with unauthorized", ""),
        (
            "invalid-seq-repeated",
            says(REFUSAL),
            Grade.UNKNOWN,
            "refused with unauthorized, before the frame at fault was sent",
            "",
        ),
    ],
)
async def test_what_a_gateway_does_is_told(name: str, serving: Serving, grade: Grade, seen: str, close: str) -> None:
    async with by_hand(serving, MUTE if serving in (says_nothing, reads_nothing) else SHORT) as peer:
        result = await play_live(BY_NAME[name], peer)
    assert (result.grade, result.seen) == (grade, seen)
    assert close in result.close


async def test_a_gateway_that_lets_nobody_in_leaves_it_unknown() -> None:
    async with reference_gateway(new_context(), FOLDER, "2.3", PATIENCE) as peer:
        assert isinstance(peer.place, Gateway)
        foreign = replace(peer, place=Gateway(peer.place._url, "not-the-token", PATIENCE))
        refused = await play_live(BY_NAME["invalid-seq-repeated"], foreign)
    gone = await play_live(BY_NAME["invalid-seq-repeated"], peer)
    assert (refused.grade, refused.seen) == (Grade.UNKNOWN, "the upgrade was refused with HTTP 401")
    address = peer.place._url.split("/")[2]
    assert (gone.grade, gone.seen) == (Grade.UNKNOWN, f"no connection: nobody listens at {address}")


Accepting = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def talks_otherwise(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"220 mail.example ESMTP\r\n")


async def hangs_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readline()
    writer.transport.abort()


async def keeps_silent(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    await reader.read()


@pytest.mark.parametrize(
    ("accepting", "scheme", "seen"),
    [
        (talks_otherwise, "ws", "what listens at {address} does not speak WebSocket"),
        (hangs_up, "ws", "what listens at {address} does not speak WebSocket"),
        (keeps_silent, "ws", "no answer within 0.1 s"),
        (talks_otherwise, "wss", "no TLS with {address}: "),
    ],
)
async def test_why_no_connection_came_about_is_told_in_words(accepting: Accepting, scheme: str, seen: str) -> None:
    served = asyncio.Event()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await accepting(reader, writer)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        served.set()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        with pytest.raises(Unreachable) as told:
            await Gateway(f"{scheme}://{address}/", "a-token", MUTE if "within" in seen else PATIENCE).open()
        await served.wait()
    assert str(told.value).startswith(f"no connection: {seen.format(address=address)}")


async def test_a_peer_cannot_be_judged_by_a_rule_it_would_have_to_break_itself() -> None:
    async with by_hand(says_nothing) as peer:
        result = await play_live(BY_NAME["invalid-seq-gap"], peer)
    assert (result.grade, result.close) == (Grade.UNKNOWN, "")


# A gateway whose application is out of reach


async def test_a_job_that_nobody_assigns_leaves_it_unknown() -> None:
    result = await with_gateway("valid-handshake-and-job", SHORT, prompt=None)
    assert (result.grade, result.seen) == (
        Grade.UNKNOWN,
        "no job.assign came, and nothing here can make the peer send one",
    )


async def test_a_chunk_that_nobody_asked_for_is_judged_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "invalid-chunk-last-flag"
    assert (await with_gateway(name, SHORT, prompt=None)).grade is Grade.PASS
    mute("chunk_inconsistent")(monkeypatch)
    taken = await with_gateway(name, SHORT, prompt=None)
    assert (taken.grade, taken.seen) == (Grade.UNKNOWN, "acked accepted, but no content.request came")


async def test_an_application_that_does_not_send_what_it_was_asked_for_has_failed() -> None:
    async def deaf(_type: str, _payload: Mapping[str, Any]) -> bool:
        return True

    result = await with_gateway("valid-handshake-and-job", SHORT, prompt=deaf)
    assert (result.grade, result.seen) == (Grade.FAIL, "no job.assign came, though the peer answers")


async def test_nothing_is_left_running() -> None:
    before = asyncio.all_tasks()
    await with_gateway("invalid-seq-repeated")
    assert asyncio.all_tasks() == before

"""What both sides share: codes, refusals that come again, liveness, and how a connection ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from lab.errors import MisuseError
from lab.protocol.connection import Connection
from lab.protocol.events import Close, Ended, PeerError, Received, Repeated, Settled, V1Message
from lab.protocol.gateway_side import SessionStore
from lab.protocol.handshake import State
from tests.protocol.sides import (
    AGENT,
    SESSION,
    ack,
    cancel_draft,
    error,
    event_draft,
    heartbeat,
    hello,
    new_agent,
    new_gateway,
    outputs,
    ready,
    ready_agent,
    ready_gateway,
    refusal,
    register,
    resumed_agent,
    signed_cancel,
    take,
    text,
    texts,
    uuid,
    written,
)

CANARY = "canary-0123456789"

# Each code where it is due

GATEWAY_CODES = [
    ("{", "bad_frame", 4400),
    ("[]", "bad_frame", 4400),
    (b"{}", "bad_frame", 4400),
    (heartbeat(1, type=None), "unknown_type", 4401),
    (heartbeat(1, type=5), "unknown_type", 4401),
    (heartbeat(1, type=["ack"]), "unknown_type", 4401),
    (heartbeat(1, type="mcp.execute-command"), "unknown_type", 4401),
    (heartbeat(1, schemaVersion=3), "schema_violation", 4402),
    (heartbeat(1, schemaVersion="2"), "schema_violation", 4402),
    (heartbeat(1, msgId="DEADBEEF-0000-4000-8000-000000000001"), "schema_violation", 4402),
    (heartbeat(0), "schema_violation", 4402),
    (text({**json.loads(register()), "seq": 1}), "schema_violation", 4402),
    (heartbeat(1, tenantId="tenant-2"), "tenant_mismatch", 4412),
    (heartbeat(1, agentId=uuid(5)), "agent_mismatch", 4413),
    (heartbeat(1, agentId=None), "agent_mismatch", 4413),
    (signed_cancel(1), "wrong_direction", 4405),
]


@pytest.mark.req("WS-008", "WS-009", "WS-035", "WS-036", "WS-037", "WS-038", "WS-050", "WS-059", "WS-060", "WS-061")
@pytest.mark.req("WS-011", "WS-064", "WS-071", "WS-072", "HS-015")
@pytest.mark.parametrize(("message", "code", "close"), GATEWAY_CODES)
def test_codes_at_the_gateway(message: str | bytes, code: str, close: int) -> None:
    assert refusal(ready_gateway(), message) == (code, close)


@pytest.mark.req("WS-042", "WS-045", "TY-043")
def test_error_frame_names_the_code_and_the_msg_id_alone() -> None:
    gateway = ready_gateway()
    gateway.receive_untrusted(heartbeat(1, extra=CANARY), 0)
    (frame,) = written(gateway)
    assert frame["payload"] == {"code": "schema_violation", "retryable": False, "refMsgId": uuid(1)}
    assert frame["agentId"] == AGENT


@pytest.mark.req("WS-045")
@pytest.mark.parametrize("msg_id", [CANARY, 5, None, {"a": CANARY}, uuid(1).upper()])
def test_msg_id_without_its_form_is_not_repeated(msg_id: object) -> None:
    gateway = ready_gateway()
    gateway.receive_untrusted(text({**json.loads(heartbeat(1)), "msgId": msg_id}), 0)
    (frame,) = written(gateway)
    assert "refMsgId" not in frame["payload"]
    assert CANARY not in text(frame)


def test_error_before_register_is_a_frame_of_the_contract() -> None:
    gateway = new_gateway()
    gateway.receive_untrusted("{", 0)
    (frame,) = written(gateway)
    assert gateway.contract.check_frame("error", frame) is None
    assert frame["workspaceId"] == "unknown"


@pytest.mark.req("WS-013")
def test_gateway_repeats_the_workspace_of_the_agent() -> None:
    gateway = new_gateway()
    gateway.receive_untrusted(register(workspaceId="other:1"), 0)
    gateway.receive_untrusted(hello(workspaceId="other:1"), 0)
    take(gateway, heartbeat(1, workspaceId="third"))
    gateway.fail("internal", 0)
    assert [frame["workspaceId"] for frame in written(gateway)] == ["other:1", "third", "other:1"]


# A frame that was refused and comes again


def resumed_gateway(store: SessionStore, session_id: str | None) -> Connection:
    again = new_gateway(store=store, now=1)
    again.receive_untrusted(register(payload={"resume": {"sessionId": session_id, "lastRecvSeq": 0}}), 1)
    again.receive_untrusted(hello(), 1)
    (frame, *_) = written(again)
    assert frame["payload"]["resumed"] is True
    return again


@pytest.mark.req("SQ-033", "CP-034", "WS-043")
@pytest.mark.parametrize(
    "bad", [heartbeat(1, extra=1), heartbeat(1, tenantId="tenant-2"), heartbeat(1, x=1).replace('"seq":1', '"seq":1.0')]
)
def test_refused_frame_that_comes_again_is_used_up_without_a_second_close(bad: str) -> None:
    store = SessionStore(90)
    gateway: Connection = ready_gateway(store=store)
    code = refusal(gateway, bad)
    assert code is not None
    gateway.closed(0)
    again = resumed_gateway(store, gateway.session.session_id)
    # Twice, as its ack may be lost.
    for _ in range(2):
        assert again.receive_untrusted(bad, 1) == []
        frames, close = outputs(again)
        due = {"status": "rejected", "ackSeq": 1, "ackMsgId": uuid(1), "errorCode": code[0]}
        assert [(frame["type"], frame["payload"], frame["ack"]) for frame in frames] == [("ack", due, 1)]
        assert close is None
    assert [type(event) for event in take(again, heartbeat(2))] == [Received]
    again.receive_untrusted(bad, 1)
    assert [type(event) for event in take(again, heartbeat(3))] == [Received]


@pytest.mark.req("SQ-033")
def test_sound_copy_of_a_refused_frame_is_taken() -> None:
    store = SessionStore(90)
    gateway: Connection = ready_gateway(store=store)
    refusal(gateway, heartbeat(1, extra=1))
    gateway.closed(0)
    again = resumed_gateway(store, gateway.session.session_id)
    assert [type(event) for event in take(again, heartbeat(1))] == [Received]
    assert [type(event) for event in take(again, heartbeat(1))] == [Repeated]
    assert [frame["payload"]["status"] for frame in written(again)] == ["accepted", "duplicate"]
    # It is settled as accepted: a spoilt copy of it does not turn that into a rejection.
    assert refusal(again, heartbeat(1, extra=1), 1) == ("schema_violation", 4402)


@pytest.mark.req("SQ-033", "SQ-031")
def test_another_frame_in_the_place_of_a_refused_one_is_judged_anew() -> None:
    store = SessionStore(90)
    gateway: Connection = ready_gateway(store=store)
    take(gateway, heartbeat(1))
    assert refusal(gateway, heartbeat(3)) == ("seq_gap", 4408)
    gateway.closed(0)
    again = new_gateway(store=store, now=1)
    resume = {"sessionId": gateway.session.session_id, "lastRecvSeq": 0}
    again.receive_untrusted(register(payload={"resume": resume}), 1)
    again.receive_untrusted(hello(), 1)
    assert written(again)[0]["payload"]["peerLastSeq"] == 1
    assert [type(event) for event in take(again, heartbeat(2, 22))] == [Received]


def test_frame_whose_seq_is_no_number_has_no_place_to_use_up() -> None:
    store = SessionStore(90)
    gateway: Connection = ready_gateway(store=store)
    odd = heartbeat(1).replace('"seq":1', '"seq":true')
    assert refusal(gateway, odd) == ("schema_violation", 4402)
    gateway.closed(0)
    again = resumed_gateway(store, gateway.session.session_id)
    assert refusal(again, odd, 1) == ("schema_violation", 4402)


@pytest.mark.req("SQ-004", "SQ-031")
def test_gap_stays_a_gap_after_a_resume() -> None:
    """The frame may be sound: only a refused frame that was due is given up."""
    store = SessionStore(90)
    gateway: Connection = ready_gateway(store=store)
    assert refusal(gateway, heartbeat(2)) == ("seq_gap", 4408)
    gateway.closed(0)
    again = resumed_gateway(store, gateway.session.session_id)
    assert refusal(again, heartbeat(2), 1) == ("seq_gap", 4408)


@pytest.mark.req("SQ-033")
def test_agent_registers_without_resume_after_five_fatal_ends() -> None:
    agent = ready_agent()
    outbox = agent.outbox
    outcomes = []
    for turn in range(6):
        agent.receive_untrusted("{", turn)
        agent.closed(turn)
        agent = new_agent(outbox)
        agent.start(turn, {})
        outcomes.append("resume" in written(agent)[0]["payload"])
        if turn < 5 and outcomes[-1]:
            number = 3000 + turn
            agent.receive_untrusted(ready(number, ready_ms(turn), sessionId=SESSION, resumed=True), turn)
    assert outcomes[:5] == [True, True, True, True, False]


def ready_ms(turn: int) -> int:
    return 1793786400000 + turn * 1000


@pytest.mark.req("SQ-033")
def test_a_session_begins_with_no_fatal_end() -> None:
    for connection in (ready_gateway(), ready_agent()):
        assert connection.session.fatal_ends == 0
        connection.fail("bad_frame", 0)
        assert connection.session.fatal_ends == 1


@pytest.mark.req("SQ-033")
def test_progress_starts_the_count_of_fatal_ends_again() -> None:
    agent = ready_agent()
    agent.session.fatal_ends = 4
    take(agent, signed_cancel(1))
    assert agent.session.fatal_ends == 0
    agent.session.fatal_ends = 4
    delivery = agent.send(event_draft(1), 0)
    take(agent, ack(1, written(agent)[-1]["msgId"]))
    assert delivery.state == "delivered"
    assert agent.session.fatal_ends == 0


@pytest.mark.req("SQ-033")
def test_gateway_too_gives_up_a_session_after_five_fatal_ends() -> None:
    for ends, resumed in ((4, True), (5, False)):
        store = SessionStore(90)
        gateway = ready_gateway(store=store)
        gateway.closed(0)
        gateway.session.fatal_ends = ends
        again = new_gateway(store=store, now=1)
        resume = {"sessionId": gateway.session.session_id, "lastRecvSeq": 0}
        again.receive_untrusted(register(payload={"resume": resume}), 1)
        again.receive_untrusted(hello(), 1)
        assert written(again)[0]["payload"]["resumed"] is resumed


# Malformed acks and errors


@pytest.mark.req("WS-085", "WS-011")
@pytest.mark.parametrize("make", [lambda more: ack(1, uuid(1), **more), lambda more: error("internal", **more)])
@pytest.mark.parametrize("more", [{"agentId": None}, {"extra": 1}, {"seq": 4}, {"tenantId": "tenant-2"}])
def test_third_malformed_ack_or_error_closes(make: Callable[[Mapping[str, Any]], str], more: dict[str, Any]) -> None:
    message = make({})
    frame = {name: value for name, value in {**json.loads(message), **more}.items() if value is not None}
    for connection in (ready_gateway(), ready_agent()):
        for _ in range(2):
            assert connection.receive_untrusted(text(frame), 0) == []
            assert outputs(connection) == ([], None)
        assert refusal(connection, text(frame)) == ("schema_violation", 4402)


@pytest.mark.req("WS-085")
def test_a_sound_frame_between_starts_the_count_again() -> None:
    gateway = ready_gateway()
    for seq in (1, 2, 3):
        for _ in range(2):
            gateway.receive_untrusted(ack(1, uuid(1), extra=1), 0)
        take(gateway, heartbeat(seq))
    assert outputs(gateway)[1] is None


# Liveness


@pytest.mark.req("WS-051", "WS-052")
@pytest.mark.parametrize(
    ("message", "pong"),
    [("ping", True), ('{"type":"ping"}', True), ("pong", False), ('{"type":"pong"}', False)],
)
def test_text_ping_in_every_state(message: str, pong: bool) -> None:
    waiting = new_agent()
    waiting.start(0, {})
    v1 = new_gateway()
    v1.receive_untrusted('{"type":"register","tenantId":"t","port":1,"workspacePath":"/a"}', 0)
    for connection in (new_gateway(), ready_gateway(), ready_agent(), waiting, v1):
        connection.take_output()
        assert connection.receive_untrusted(message, 1) == []
        assert texts(connection) == (["pong"] if pong else [])


@pytest.mark.req("SQ-029", "SQ-030", "WS-024", "WS-079")
def test_ninety_seconds_of_silence_end_a_connection() -> None:
    gateway = ready_gateway()
    gateway.receive_untrusted("ping", 50)
    texts(gateway)
    assert gateway.next_timeout() == 140
    assert gateway.handle_timeout(139.9) == []
    assert gateway.handle_timeout(140) == [Ended("timeout", "local")]
    frames, close = outputs(gateway)
    assert ([frame["payload"]["code"] for frame in frames], close) == (["timeout"], 4420)


@pytest.mark.req("SQ-030", "WS-052")
@pytest.mark.parametrize("message", ["ping", "pong", '{"type":"pong"}', '{"type":"x"}', heartbeat(1), ack(9, uuid(9))])
def test_any_message_is_a_sign_of_life(message: str) -> None:
    gateway = ready_gateway()
    take(gateway, message, 60)
    assert gateway.next_timeout() == 150


@pytest.mark.req("SQ-029", "WS-024")
def test_agent_pings_every_thirty_seconds_and_gives_up_a_silent_gateway() -> None:
    agent = ready_agent(limits={"chunkRawBytes": 32768, "maxChunks": 64, "ackTimeoutMs": 5000, "heartbeatSeconds": 30})
    sent = []
    for moment in (30, 60):
        assert agent.next_timeout() == moment
        agent.handle_timeout(moment)
        sent += texts(agent)
    assert sent == ["ping", "ping"]
    assert Ended("timeout", "local") in agent.handle_timeout(90)


# Ends


def test_an_ended_connection_says_and_takes_nothing_more() -> None:
    gateway = ready_gateway()
    refusal(gateway, "{")
    ends = gateway.session.fatal_ends
    assert gateway.receive_untrusted(heartbeat(1), 1) == []
    gateway.fail("internal", 1)
    gateway.fail("bad_frame", 1)
    gateway.end(None, "local")
    gateway.send(cancel_draft(), 1)
    assert gateway.handle_timeout(500) == []
    assert gateway.next_timeout() is None
    assert gateway.take_output() == []
    assert gateway.session.fatal_ends == ends
    assert gateway.closed(2) == []


def test_cut_is_told_once() -> None:
    gateway = ready_gateway()
    assert gateway.closed(1) == [Ended(None, "remote")]
    assert gateway.closed(2) == []
    assert gateway.session.dropped_at == 1
    assert gateway.state is State.ENDED


def test_frame_is_answered_once() -> None:
    agent = ready_agent()
    (event,) = agent.receive_untrusted(signed_cancel(1), 0)
    assert isinstance(event, Received)
    agent.accept(event.frame, 0)
    with pytest.raises(MisuseError):
        agent.accept(event.frame, 0)
    with pytest.raises(MisuseError):
        agent.reject(event.frame, "internal", 0)
    agent.closed(1)
    agent.accept(event.frame, 1)


@pytest.mark.req("WS-042")
def test_the_close_behind_an_error_of_the_peer_waits_for_its_own() -> None:
    agent = ready_agent()
    agent.take_output()
    agent.receive_untrusted(error("seq_gap"), 1)
    assert agent.take_output() == [Close(1000, awaits_peer=True)]


@pytest.mark.req("WS-042")
@pytest.mark.parametrize(("code", "number"), [("bad_frame", 4400), (None, 1000)])
def test_a_close_of_its_own_waits_for_nobody(code: str | None, number: int) -> None:
    agent = ready_agent()
    agent.take_output()
    agent.end(code, "local")
    assert agent.take_output() == [Close(number, awaits_peer=False)]


@pytest.mark.req("WS-085")
def test_fatal_error_of_the_peer_ends_plainly_and_keeps_the_session() -> None:
    agent = ready_agent()
    delivery = agent.send(event_draft(1), 0)
    written(agent)
    assert agent.receive_untrusted(error("seq_gap"), 1) == [PeerError("seq_gap"), Ended("seq_gap", "remote")]
    assert outputs(agent) == ([], 1000)
    agent.closed(1)
    again = resumed_agent(agent.outbox, 2, 1)
    assert delivery.state == "delivered"
    assert written(again) == []


@pytest.mark.req("RS-021")
def test_a_session_serves_its_newest_connection_alone() -> None:
    store = SessionStore(90)
    older: Connection = ready_gateway(store=store)
    older.send(cancel_draft(), 0)
    written(older)
    newer = new_gateway(store=store, now=1)
    resume = {"sessionId": older.session.session_id, "lastRecvSeq": 0}
    newer.receive_untrusted(register(payload={"resume": resume}), 1)
    newer.receive_untrusted(hello(), 1)
    assert outputs(older) == ([], 1000)
    assert [frame["type"] for frame in written(newer)] == ["ready", "job.cancel"]
    older.closed(2)
    assert newer.session.owner is newer
    assert newer.session.dropped_at is None


def test_ack_after_an_overdue_frame_settles_it() -> None:
    agent = ready_agent()
    delivery = agent.send(event_draft(1), 0)
    (frame,) = written(agent)
    for moment in (5, 10, 15, 20):
        agent.handle_timeout(moment)
    agent.closed(20)
    again = resumed_agent(agent.outbox, 21, 0)
    assert again.receive_untrusted(ack(1, frame["msgId"]), 21) == [Settled(delivery)]


# v1 beside v2


@pytest.mark.req("V1-003", "V1-009")
def test_message_without_schema_version_is_for_the_v1_handler_and_counts_nothing() -> None:
    for connection in (ready_gateway(), ready_agent()):
        command = {"type": "mcp.execute-command", "requestId": "r1"}
        assert connection.receive_untrusted(text(command), 0) == [V1Message(command)]
        assert outputs(connection) == ([], None)
        assert connection.session.inbound.last_seq == 0


@pytest.mark.req("V1-012")
@pytest.mark.parametrize("message", ["{", b"\x00", "[]", heartbeat(1), register(), error("bad_frame"), "x" * 50_000])
def test_v1_connection_says_no_v2_word(message: str | bytes) -> None:
    agent = new_agent()
    agent.start_v1(0)
    gateway = new_gateway()
    gateway.receive_untrusted('{"type":"register","tenantId":"t","port":1,"workspacePath":"/a"}', 0)
    for connection in (agent, gateway):
        connection.take_output()
        assert connection.receive_untrusted(message, 1) == []
        assert connection.take_output() == []
        assert connection.state is State.V1
        connection.handle_timeout(91)
        assert outputs(connection) == ([], 4420)

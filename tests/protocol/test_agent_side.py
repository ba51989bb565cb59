"""A connection as a Local Agent sees it."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from lab.protocol.agent_side import ContentSource
from lab.protocol.contract import Contract, default_contract_folder
from lab.protocol.events import (
    BecameReady,
    ContentFailed,
    Ended,
    HeartbeatDue,
    PeerError,
    Received,
    Settled,
    TurnedV1,
    V1Message,
)
from lab.protocol.frames import RefusedDraft
from lab.protocol.handshake import State
from lab.protocol.signing import SignatureMode
from tests.protocol.sides import (
    CAPABILITIES,
    DIGEST,
    EPOCH_MS,
    LIMITS,
    SESSION,
    WORKSPACE,
    ack,
    agent_outbox,
    error,
    event_draft,
    members,
    new_agent,
    nonce_of,
    outputs,
    ready,
    ready_agent,
    refusal,
    resumed_agent,
    sign,
    signed_cancel,
    take,
    text,
    texts,
    uuid,
    written,
)
from tests.protocol.test_errors import NOT_FATAL, ORDER

V1_REGISTER = {"type": "register", "tenantId": "tenant-1", "port": 4711, "workspacePath": "/home/dev/shop"}


@pytest.mark.req("HS-003", "HS-004", "HS-006", "HS-007", "HS-009", "HS-014", "HS-033", "HS-041", "HS-043")
@pytest.mark.parametrize("mode", list(SignatureMode))
def test_register_and_hello_open_the_connection(mode: SignatureMode) -> None:
    agent = new_agent(mode=mode)
    agent.start(0, {"queue": {"depth": 2}})
    first, second = written(agent)
    assert first["payload"] == {
        "protocol": 2,
        "version": "1.4.0",
        "capabilities": list(CAPABILITIES),
        "signatureMode": mode.value,
        "workspaces": [{"workspaceId": WORKSPACE, "pathSha256": DIGEST}],
    }
    hello = {"signatureMode": mode.value, "capabilities": list(CAPABILITIES), "queue": {"depth": 2}}
    assert second["payload"] == hello
    assert [(frame["type"], frame["seq"]) for frame in (first, second)] == [("register", 0), ("hello", 0)]
    assert "/home/dev/shop" not in text(first) + text(second)
    assert agent.state is State.AWAIT_READY


def test_ready_makes_it_ready() -> None:
    agent = new_agent()
    agent.start(0, {})
    events = agent.receive_untrusted(ready(capabilities=["job.chat"]), 1)
    assert events == [BecameReady(False, SESSION, ("job.chat",))]
    assert agent.session.owner is agent


# Falling back


@pytest.mark.req("HS-020", "HS-024", "WS-023", "V1-001", "V1-006")
@pytest.mark.parametrize("seconds", [10, 2])
def test_no_ready_in_time_falls_back_on_the_same_connection(seconds: int) -> None:
    agent = new_agent(handshake_seconds=seconds)
    agent.start(0, {})
    texts(agent)
    assert agent.next_timeout() == seconds
    assert agent.handle_timeout(seconds - 0.01) == []
    assert agent.handle_timeout(seconds) == [TurnedV1()]
    assert [json.loads(one) for one in texts(agent)] == [V1_REGISTER]
    assert agent.state is State.V1
    assert agent.receive_untrusted(ready(), 11) == []
    agent.handle_timeout(31)
    assert texts(agent) == ["ping"]


@pytest.mark.req("HS-019", "HS-020", "HS-023")
@pytest.mark.parametrize("code", ORDER)
def test_only_protocol_unsupported_falls_back(code: str) -> None:
    agent = new_agent()
    agent.start(0, {})
    texts(agent)
    events = agent.receive_untrusted(error(code), 1)
    assert events[0] == PeerError(code)
    if code == "protocol_unsupported":
        assert events[1:] == [TurnedV1()]
        assert [json.loads(one) for one in texts(agent)] == [V1_REGISTER]
    else:
        assert events[1:] == [Ended(code, "remote")]
        assert outputs(agent) == ([], 1000)


@pytest.mark.parametrize("code", sorted(NOT_FATAL))
def test_error_that_is_not_fatal_changes_nothing_when_ready(code: str) -> None:
    agent = ready_agent()
    assert agent.receive_untrusted(error(code), 1) == [PeerError(code)]
    assert agent.state is State.READY


@pytest.mark.req("V1-001")
def test_v1_from_the_first_message_on() -> None:
    agent = new_agent()
    assert agent.start_v1(0) == [TurnedV1()]
    assert [json.loads(one) for one in texts(agent)] == [V1_REGISTER]
    agent.handle_timeout(30)
    assert texts(agent) == ["ping"]


@pytest.mark.req("SG-020", "V1-011")
@pytest.mark.parametrize("mode", [SignatureMode.OFF, SignatureMode.WARN])
def test_v1_command_needs_no_signature_and_is_handed_on_as_it_is(mode: SignatureMode) -> None:
    agent = new_agent(mode=mode)
    agent.start_v1(0)
    texts(agent)
    command = {"type": "command", "requestId": "r-1", "command": "git.status", "seq": "not v2's"}
    assert agent.receive_untrusted(json.dumps(command), 1) == [V1Message(command)]
    assert outputs(agent) == ([], None)


@pytest.mark.req("WS-024")
def test_peer_that_never_says_a_word_is_given_up() -> None:
    agent = new_agent()
    agent.start_v1(0)
    agent.handle_timeout(89)
    assert agent.state is State.V1
    assert agent.handle_timeout(90) == [Ended("timeout", "local")]


# Resume


@pytest.mark.req("RS-006")
def test_ack_that_rides_on_ready_settles_nothing_of_a_lost_session() -> None:
    agent = ready_agent()
    delivery = agent.send(event_draft(1), 0)
    agent.closed(1)
    again = new_agent(agent.outbox)
    again.start(2, {})
    body = {"sessionId": uuid(8), "resumed": False, "peerLastSeq": 0, "limits": LIMITS}
    again.receive_untrusted(text(sign(members("ready", body, 0, ack=1), nonce_of(1), EPOCH_MS + 2000)), 2)
    assert (delivery.state, delivery.code) == ("failed", "agent_offline")


@pytest.mark.req("RS-001", "RS-008", "RS-011", "HS-006", "HS-040")
@pytest.mark.parametrize(("after", "asks"), [(5, True), (100, True), (120, True), (120.1, False), (500, False)])
def test_session_is_kept_for_120_seconds(after: float, asks: bool) -> None:
    agent = ready_agent()
    take(agent, signed_cancel(1))
    delivery = agent.send(event_draft(1), 3)
    agent.closed(10)
    again = new_agent(agent.outbox)
    events = again.start(10 + after, {})
    payload = written(again)[0]["payload"]
    assert payload.get("resume") == ({"sessionId": SESSION, "lastRecvSeq": 1} if asks else None)
    assert (Settled(delivery) in events) is not asks
    assert delivery.code == (None if asks else "agent_offline")


@pytest.mark.req("RS-002", "RS-003", "SQ-035")
def test_resume_repeats_the_same_bytes_above_peer_last_seq() -> None:
    agent = ready_agent()
    deliveries = [agent.send(event_draft(number), 0) for number in range(3)]
    first = texts(agent)
    agent.closed(1)
    again = resumed_agent(agent.outbox, 86, 1)
    assert texts(again) == first[1:]
    assert [delivery.state for delivery in deliveries] == ["delivered", "sent", "sent"]
    again.send(event_draft(9), 86)
    assert written(again)[0]["seq"] == 4


@pytest.mark.req("RS-017")
def test_frame_handled_before_the_drop_is_a_duplicate_after_the_resume() -> None:
    agent = ready_agent()
    take(agent, signed_cancel(1))
    agent.closed(1)
    again = resumed_agent(agent.outbox, 2, 0)
    assert not [event for event in take(again, signed_cancel(1, nonce=60), 2) if isinstance(event, Received)]
    assert written(again)[0]["payload"]["status"] == "duplicate"


@pytest.mark.req("HS-039", "RS-020")
@pytest.mark.parametrize(
    ("payload", "possible"),
    [
        ({"resumed": True, "peerLastSeq": 2}, True),
        ({"resumed": True, "peerLastSeq": 3}, True),
        ({"resumed": True, "peerLastSeq": 4}, False),
        ({"resumed": True, "peerLastSeq": 1}, False),
        ({"resumed": True, "peerLastSeq": 3, "sessionId": uuid(5)}, False),
        ({"resumed": False, "peerLastSeq": 0, "sessionId": uuid(5)}, True),
    ],
)
def test_impossible_ready_drops_the_session(payload: dict[str, Any], possible: bool) -> None:
    agent = ready_agent()
    deliveries = [agent.send(event_draft(number), 0) for number in range(3)]
    take(agent, ack(2, written(agent)[1]["msgId"]))
    agent.closed(1)
    again = new_agent(agent.outbox)
    again.start(2, {})
    written(again)
    again.receive_untrusted(ready(950, EPOCH_MS + 2000, **payload), 2)
    if possible:
        assert again.state is State.READY
        return
    frames, close = outputs(again)
    assert ([frame["payload"]["code"] for frame in frames], close) == (["handshake_violation"], 4406)
    assert agent.session.session_id is None
    assert [delivery.state for delivery in deliveries] == ["failed", "delivered", "failed"]


def test_ready_resumed_though_not_asked_is_impossible() -> None:
    agent = new_agent()
    agent.start(0, {})
    written(agent)
    agent.receive_untrusted(ready(resumed=True), 0)
    assert outputs(agent)[1] == 4406


# Limits


@pytest.mark.req("HS-027", "SQ-028")
def test_limits_of_ready_are_taken() -> None:
    limits = {"chunkRawBytes": 10, "maxChunks": 3, "ackTimeoutMs": 1000, "heartbeatSeconds": 5}
    agent = ready_agent(limits=limits)
    assert agent.next_timeout() == 5
    assert HeartbeatDue() in agent.handle_timeout(5)
    agent.send(event_draft(1), 5)
    assert agent.next_timeout() == 6
    written(agent)
    agent.send_content(uuid(5), WORKSPACE, "text/plain", b"x" * 25, 5)
    assert [frame["payload"]["byteLength"] for frame in written(agent)] == [10, 10, 5]
    with pytest.raises(RefusedDraft, match="payload_too_large"):
        agent.send_content(uuid(6), WORKSPACE, "text/plain", b"x" * 31, 5)


@pytest.mark.req("HS-027")
@pytest.mark.parametrize(("name", "offered", "taken"), [("ackTimeoutMs", 1, 0.05), ("ackTimeoutMs", 60_000, 5.0)])
def test_ack_timeout_is_clamped(name: str, offered: int, taken: float) -> None:
    agent = ready_agent(limits={**LIMITS, name: offered})
    assert agent.ack_timeout == taken


@pytest.mark.req("HS-027")
def test_other_limits_are_clamped_to_the_contract() -> None:
    agent = ready_agent(limits={**LIMITS, "chunkRawBytes": 99_999, "maxChunks": 999, "heartbeatSeconds": 999})
    assert agent.next_timeout() == 30
    agent.send_content(uuid(5), WORKSPACE, "text/plain", bytes(40_000), 0)
    assert written(agent)[0]["payload"]["byteLength"] == 32768
    with pytest.raises(RefusedDraft, match="payload_too_large"):
        agent.send_content(uuid(6), WORKSPACE, "text/plain", bytes(2097153), 0)


@pytest.mark.req("SQ-028", "WS-024")
def test_heartbeat_and_ping_go_on_beside_each_other() -> None:
    agent = ready_agent()
    beats = pings = 0
    for moment in (30, 60):
        agent.receive_untrusted("pong", moment - 1)
        beats += sum(isinstance(event, HeartbeatDue) for event in agent.handle_timeout(moment))
        pings += texts(agent).count("ping")
    assert (beats, pings) == (2, 2)


# Content


@pytest.mark.req("CH-001", "CH-007", "CH-014", "CH-018")
def test_body_goes_out_as_a_series() -> None:
    agent = ready_agent()
    body = bytes(range(256)) * 300
    agent.send_content(uuid(5), WORKSPACE, "application/json", body, 0)
    frames = written(agent)
    assert [frame["chunk"] for frame in frames] == [
        {"index": 0, "total": 3, "last": False},
        {"index": 1, "total": 3, "last": False},
        {"index": 2, "total": 3, "last": True},
    ]
    assert b"".join(base64.b64decode(frame["payload"]["data"]) for frame in frames) == body
    assert {frame["payload"]["totalBytes"] for frame in frames} == {len(body)}
    assert {frame["requestId"] for frame in frames} == {uuid(5)}
    assert not any("sha256" in frame["payload"] for frame in frames)


@pytest.mark.req("CH-002", "CH-013")
@pytest.mark.parametrize(("size", "chunks"), [(0, 1), (1, 1), (32768, 1), (32769, 2), (2097152, 64)])
def test_number_of_chunks_on_the_wire(size: int, chunks: int) -> None:
    agent = ready_agent()
    agent.send_content(uuid(5), WORKSPACE, "text/plain", bytes(size), 0)
    count = 0
    while frames := written(agent):
        count += len(frames)
        agent.receive_untrusted(ack(1, uuid(0), ack=count), 0)
    assert count == chunks


@pytest.mark.req("CH-015", "SQ-017")
def test_next_chunk_is_cut_when_a_place_is_free() -> None:
    agent = ready_agent()
    agent.send_content(uuid(5), WORKSPACE, "text/plain", bytes(20 * 32768), 0)
    assert len(written(agent)) == 8
    (source,) = agent.unfinished_content()
    assert source.next_chunk == 8
    assert agent.session.outbound.queued == 0
    agent.receive_untrusted(ack(1, uuid(0), ack=2), 0)
    assert [frame["chunk"]["index"] for frame in written(agent)] == [8, 9]


def test_bodies_take_turns() -> None:
    agent = ready_agent()
    for number in range(9):
        agent.send(event_draft(number), 0)
    agent.send_content(uuid(6), WORKSPACE, "text/plain", bytes(4 * 32768), 0)
    agent.send_content(uuid(5), WORKSPACE, "text/plain", b"", 0)
    written(agent)
    agent.receive_untrusted(ack(1, uuid(0), ack=8), 0)
    order = [frame["requestId"] for frame in written(agent) if frame["type"] == "content.response"]
    assert order == [uuid(6), uuid(5), uuid(6), uuid(6), uuid(6)]


@pytest.mark.req("CH-010", "CH-011", "CH-012")
@pytest.mark.parametrize("status", ["error", "not_found", "forbidden"])
def test_failure_is_one_empty_chunk(status: str) -> None:
    agent = ready_agent()
    agent.send_content_failure(uuid(5), WORKSPACE, status, "internal", 0)
    (frame,) = written(agent)
    assert frame["chunk"] == {"index": 0, "total": 1, "last": True}
    payload = {"status": status, "errorCode": "internal", "encoding": "base64", "data": "", "byteLength": 0}
    assert frame["payload"] == payload


@pytest.mark.req("CH-008", "CH-013", "CH-025", "WS-056", "WS-063")
@pytest.mark.parametrize(
    ("request_id", "content_type", "body", "code"),
    [
        (uuid(9), "text/plain", bytes(2097153), "payload_too_large"),
        (uuid(9), "text/html", b"", "schema_violation"),
        ("no uuid", "text/plain", b"", "schema_violation"),
        (uuid(5), "text/plain", b"", "chunk_out_of_order"),
        (uuid(6), "text/plain", b"", "chunk_out_of_order"),
    ],
)
def test_body_that_may_not_leave_is_refused_before_any_chunk(
    request_id: str, content_type: str, body: bytes, code: str
) -> None:
    agent = ready_agent()
    agent.send_content(uuid(5), WORKSPACE, "text/plain", b"", 0)
    agent.send_content(uuid(6), WORKSPACE, "text/plain", bytes(20 * 32768), 0)
    written(agent)
    with pytest.raises(RefusedDraft) as refused:
        agent.send_content(request_id, WORKSPACE, content_type, body, 0)
    assert refused.value.code == code
    assert written(agent) == []
    assert len(agent.unfinished_content()) == 1


def test_number_of_bodies_on_their_way_is_bounded() -> None:
    agent = new_agent()
    for number in range(256):
        agent.send_content(uuid(number), WORKSPACE, "text/plain", b"", 0)
    with pytest.raises(RefusedDraft, match="rate_limited"):
        agent.send_content(uuid(256), WORKSPACE, "text/plain", b"", 0)


def test_chunked_webhook_is_no_series_of_content() -> None:
    agent = ready_agent()
    payload = {"bodyB64": "", "transient": True}
    place = {"index": 0, "total": 2, "last": False}
    frame = members("webhook.forward", payload, 1, requestId=uuid(5), chunk=place)
    take(agent, text(sign(frame, nonce_of(1))))
    written(agent)
    agent.send_content(uuid(5), WORKSPACE, "text/plain", b"x", 0)
    assert [frame["type"] for frame in written(agent)] == ["content.response"]


@pytest.mark.req("RS-015", "CH-014")
@pytest.mark.parametrize("offered", [32768, 100])
def test_body_goes_on_after_a_resume_as_it_began(offered: int) -> None:
    agent = ready_agent()
    body = bytes(range(256)) * 1280
    agent.send_content(uuid(5), WORKSPACE, "text/plain", body, 0)
    first = written(agent)
    agent.closed(1)
    again = new_agent(agent.outbox)
    again.go_on_with(agent.unfinished_content())
    again.start(2, {})
    written(again)
    limits = {**LIMITS, "chunkRawBytes": offered}
    again.receive_untrusted(ready(950, EPOCH_MS + 2000, resumed=True, peerLastSeq=3, limits=limits), 2)
    second = written(again)
    assert [frame["chunk"]["index"] for frame in first] == list(range(8))
    assert [frame["chunk"]["index"] for frame in second] == [3, 4, 5, 6, 7, 8, 9]
    assert {frame["chunk"]["total"] for frame in second} == {10}
    parts = {frame["chunk"]["index"]: base64.b64decode(frame["payload"]["data"]) for frame in first + second}
    assert b"".join(parts[index] for index in sorted(parts)) == body


@pytest.mark.req("RS-006", "RS-014", "CH-017")
def test_body_does_not_go_on_after_a_reset_and_is_told() -> None:
    agent = ready_agent()
    agent.send_content(uuid(5), WORKSPACE, "text/plain", bytes(20 * 32768), 0)
    deliveries = [frame.delivery for frame in agent.session.outbound.unacked()]
    agent.closed(1)
    again = new_agent(agent.outbox)
    again.go_on_with(agent.unfinished_content())
    again.start(2, {})
    written(again)
    events = again.receive_untrusted(ready(950, EPOCH_MS + 2000, sessionId=uuid(8)), 2)
    assert ContentFailed(uuid(5), "agent_offline") in events
    assert [event.delivery for event in events if isinstance(event, Settled)] == deliveries
    assert {delivery.code for delivery in deliveries} == {"agent_offline"}
    assert written(again) == []
    assert again.unfinished_content() == ()


@pytest.mark.req("RS-008", "RS-014")
def test_body_whose_session_is_too_old_is_told_at_the_start() -> None:
    agent = new_agent()
    agent.go_on_with([ContentSource(uuid(5), WORKSPACE, "text/plain", b"x")])
    assert agent.start(0, {}) == [ContentFailed(uuid(5), "agent_offline")]


def test_body_answered_without_a_connection_goes_out_after_the_resume() -> None:
    agent = ready_agent()
    agent.closed(1)
    again = new_agent(agent.outbox)
    again.go_on_with([ContentSource(uuid(5), WORKSPACE, "text/plain", b"x")])
    again.go_on_with([ContentSource(uuid(6), WORKSPACE, "text/plain", bytes(2097153))])
    again.go_on_with([ContentSource(uuid(4), WORKSPACE, "text/plain", b"y")])
    again.start(2, {})
    written(again)
    events = again.receive_untrusted(ready(950, EPOCH_MS + 2000, resumed=True), 2)
    assert [frame["requestId"] for frame in written(again)] == [uuid(5), uuid(4)]
    assert [event for event in events if isinstance(event, ContentFailed)] == [
        ContentFailed(uuid(6), "payload_too_large")
    ]


@pytest.mark.req("HS-030", "HS-032")
def test_older_contract_has_no_capabilities_in_ready() -> None:
    older = Contract.load(default_contract_folder(), "2.0")
    agent = new_agent(contract=older, outbox=agent_outbox(contract=older), capabilities=())
    agent.start(0, {})
    assert agent.receive_untrusted(ready(), 0) == [BecameReady(False, SESSION, ())]


@pytest.mark.req("CP-020")
@pytest.mark.parametrize("length", [4096, 4097])
def test_older_contract_has_no_inline_above_4096(length: int) -> None:
    older = Contract.load(default_contract_folder(), "2.2")
    agent = new_agent(contract=older, outbox=agent_outbox(contract=older))
    agent.start(0, {})
    agent.receive_untrusted(ready(), 0)
    inputs = [{"inline": "a" * length, "transient": True}]
    assign = members("job.assign", {"jobId": uuid(7), "kind": "fix", "inputs": inputs, "llm": {"alias": "default"}}, 1)
    due = None if length == 4096 else ("schema_violation", 4402)
    assert refusal(agent, text(sign(assign, nonce_of(1)))) == due


def test_fault_before_ready_is_told_and_closes() -> None:
    agent = new_agent()
    agent.start(0, {})
    written(agent)
    agent.receive_untrusted("{", 0)
    frames, close = outputs(agent)
    assert ([frame["payload"]["code"] for frame in frames], close) == (["bad_frame"], 4400)
    assert agent.contract.check_frame("error", frames[0]) is None

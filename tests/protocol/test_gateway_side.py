"""A connection as the gateway sees it."""

from __future__ import annotations

from typing import Any

import pytest

from lab.errors import MisuseError
from lab.protocol.contract import Contract, default_contract_folder
from lab.protocol.events import BecameReady, Ended, Settled, TurnedV1, V1Message
from lab.protocol.gateway_side import GatewayConnection, GatewayPolicy, SessionStore
from lab.protocol.handshake import State
from tests.protocol.sides import (
    AGENT,
    TENANT,
    cancel_draft,
    gateway_outbox,
    heartbeat,
    hello,
    new_gateway,
    numbered,
    outputs,
    ready_gateway,
    refusal,
    register,
    take,
    uuid,
    written,
)

V1_REGISTER = '{"type":"register","tenantId":"tenant-1","port":1,"workspacePath":"/a"}'


def answer(gateway: GatewayConnection, *messages: str, now: float = 0) -> tuple[str, int | None]:
    """The type of the last frame, or the code of an error, and the close code."""
    for message in messages:
        gateway.receive_untrusted(message, now)
    frames, close = outputs(gateway)
    last = frames[-1]
    return (last["payload"]["code"] if last["type"] == "error" else last["type"]), close


@pytest.mark.req("HS-001", "HS-010", "HS-038", "HS-039", "RS-020", "HS-014", "HS-027", "HS-028")
def test_ready_answers_hello() -> None:
    gateway = new_gateway()
    assert gateway.receive_untrusted(register(), 0) == []
    assert written(gateway) == []
    (event,) = gateway.receive_untrusted(hello(), 0)
    (frame,) = written(gateway)
    assert isinstance(event, BecameReady)
    assert frame["seq"] == 0
    assert frame["payload"] == {
        "sessionId": event.session_id,
        "resumed": False,
        "peerLastSeq": 0,
        "limits": {
            "maxFrameBytes": 49152,
            "chunkRawBytes": 32768,
            "maxChunks": 64,
            "ackTimeoutMs": 5000,
            "maxRetransmissions": 3,
            "heartbeatSeconds": 30,
        },
        "capabilities": ["job.assign", "job.options", "job.chat"],
    }
    assert gateway.contract.check_frame("ready", frame) is None


@pytest.mark.req("HS-027")
def test_policy_offers_other_limits_and_goes_by_them() -> None:
    gateway = ready_gateway(GatewayPolicy(offered={"ackTimeoutMs": 1000}))
    gateway.send(cancel_draft(), 0)
    assert gateway.next_timeout() == 1


@pytest.mark.req("HS-010", "HS-011", "HS-012", "HS-045", "SG-012", "WS-025", "WS-074", "WS-075")
@pytest.mark.parametrize(
    ("messages", "due"),
    [
        ([register(tenantId="tenant-2")], ("tenant_mismatch", 4412)),
        ([register(agentId=uuid(4))], ("agent_mismatch", 4413)),
        ([register(), hello(tenantId="tenant-2")], ("tenant_mismatch", 4412)),
        ([register(), hello(ts="2026-11-04T10:01:00.999Z")], ("clock_skew", 4416)),
        ([register(), hello(ts="2026-11-04T09:58:59Z")], ("clock_skew", 4416)),
        ([register(ts="2026-11-04T10:01:01Z"), hello()], ("clock_skew", 4416)),
        ([register(), hello(payload={"clock": {"utc": "2026-11-04T10:01:01Z"}})], ("clock_skew", 4416)),
        ([register(), hello(ts="2026-13-04T10:00:00Z")], ("clock_skew", 4416)),
        ([register(), hello(ts="2026-11-04T10:00:59.999999999Z")], ("ready", None)),
        ([register(), hello(ts="2026-11-04T10:01:00Z")], ("ready", None)),
        ([register(), hello(ts="2026-11-04T09:59:00Z")], ("ready", None)),
        ([register(), hello(payload={"clock": {"utc": "2026-11-04T10:00:59Z"}})], ("ready", None)),
        ([register(), hello(payload={"signatureMode": "warn"})], ("signature_mode_insufficient", 4415)),
        ([register(), hello(payload={"signatureMode": "off"})], ("signature_mode_insufficient", 4415)),
        (
            [register(), hello(ts="2026-11-04T10:01:01Z", payload={"signatureMode": "warn"})],
            ("clock_skew", 4416),
        ),
    ],
)
def test_refusals_of_the_handshake_in_their_order(messages: list[str], due: tuple[str, int | None]) -> None:
    assert answer(new_gateway(), *messages) == due


@pytest.mark.req("SG-012", "SG-013", "HS-044")
@pytest.mark.parametrize(("mode", "strict"), [("client", True), ("hybrid", True), ("hosted", False)])
@pytest.mark.parametrize("said", ["off", "warn", "enforce"])
def test_tenant_mode_and_the_mode_that_hello_says(mode: str, strict: bool, said: str) -> None:
    gateway = new_gateway(GatewayPolicy(tenant_mode=mode))
    due = "signature_mode_insufficient" if strict and said != "enforce" else "ready"
    registered = register(payload={"signatureMode": "off" if said == "enforce" else "enforce"})
    assert answer(gateway, registered, hello(payload={"signatureMode": said}))[0] == due


@pytest.mark.req("HS-030", "HS-031", "HS-032", "HS-034")
@pytest.mark.parametrize(
    ("in_register", "in_hello", "common"),
    [
        (["job.chat"], ["job.assign", "policy.check"], ["job.assign"]),
        (["job.chat", "job.assign"], None, ["job.assign", "job.chat"]),
        (["job.chat"], [], []),
        ([], ["job.inline.16k", "other"], ["job.inline.16k"]),
    ],
)
def test_capabilities_are_what_both_can_and_hello_wins(
    in_register: list[str], in_hello: list[str] | None, common: list[str]
) -> None:
    gateway = new_gateway()
    gateway.receive_untrusted(register(payload={"capabilities": in_register}), 0)
    gateway.receive_untrusted(hello(payload={} if in_hello is None else {"capabilities": in_hello}), 0)
    assert written(gateway)[0]["payload"]["capabilities"] == common
    assert list(gateway.capabilities) == common
    assert list(gateway.announced) == (in_register if in_hello is None else in_hello)


@pytest.mark.req("HS-030")
@pytest.mark.parametrize(("revision", "has"), [("2.0", False), ("2.1", True)])
def test_capabilities_stand_in_ready_from_2_1_on(revision: str, has: bool) -> None:
    older = Contract.load(default_contract_folder(), revision)
    gateway = new_gateway(contract=older)
    for message in (register(payload={"capabilities": ["job.assign"]}), hello()):
        gateway.receive_untrusted(message, 0)
    assert ("capabilities" in written(gateway)[-1]["payload"]) is has


@pytest.mark.req("CP-018")
@pytest.mark.parametrize("in_hello", [{}, {"capabilities": []}])
def test_ready_lists_nothing_for_who_announced_nothing(in_hello: dict[str, list[str]]) -> None:
    """An agent of 2.0 has no place for a list, not even for an empty one."""
    gateway = new_gateway()
    gateway.receive_untrusted(register(payload={"capabilities": []}), 0)
    gateway.receive_untrusted(hello(payload=in_hello), 0)
    ready = written(gateway)[-1]
    assert "capabilities" not in ready["payload"]
    assert Contract.load(default_contract_folder(), "2.0").check_frame("ready", ready) is None


@pytest.mark.req("HS-032")
@pytest.mark.parametrize(
    ("revision", "listed"),
    [
        ("2.1", ["job.assign", "job.options"]),
        ("2.2", ["job.assign", "job.options"]),
        ("2.3", ["job.assign", "job.options", "job.chat", "job.inline.16k"]),
    ],
)
def test_a_gateway_lists_no_capability_of_a_later_revision(revision: str, listed: list[str]) -> None:
    gateway = new_gateway(contract=Contract.load(default_contract_folder(), revision))
    names = ["job.assign", "job.options", "job.chat", "job.inline.16k"]
    gateway.receive_untrusted(register(payload={"capabilities": names}), 0)
    gateway.receive_untrusted(hello(), 0)
    assert written(gateway)[-1]["payload"]["capabilities"] == listed


@pytest.mark.req("HS-022", "WS-023")
@pytest.mark.parametrize(("messages", "asked"), [([], 0), ([register()], 4)])
def test_handshake_step_has_ten_seconds_and_a_grace_of_two(messages: list[str], asked: float) -> None:
    gateway = new_gateway()
    for message in messages:
        gateway.receive_untrusted(message, asked)
    assert gateway.next_timeout() == asked + 12
    assert gateway.handle_timeout(asked + 11.9) == []
    assert gateway.handle_timeout(asked + 12) == [Ended("timeout", "local")]
    assert outputs(gateway)[1] == 4420


@pytest.mark.req("HS-022", "HS-025", "SG-019", "V1-010", "WS-076")
def test_gateway_without_a_key_refuses_v2_and_takes_the_fall_back() -> None:
    gateway = new_gateway(GatewayPolicy(signs=False))
    assert answer(gateway, register()) == ("protocol_unsupported", None)
    gateway.receive_untrusted(hello(), 0)
    assert written(gateway) == []
    assert gateway.receive_untrusted(V1_REGISTER, 1) == [TurnedV1()]
    assert gateway.state is State.V1
    assert gateway.handle_timeout(20) == []


@pytest.mark.req("HS-025", "HS-026", "HS-037")
@pytest.mark.parametrize("signs", [True, False])
def test_gateway_from_before_v2_leaves_a_register_unanswered_and_takes_the_fall_back(signs: bool) -> None:
    gateway = new_gateway(GatewayPolicy(knows_v2=False, signs=signs))
    gateway.receive_untrusted(register(), 0)
    gateway.receive_untrusted(hello(), 0)
    gateway.handle_timeout(10)
    assert outputs(gateway) == ([], None)
    assert gateway.receive_untrusted(V1_REGISTER, 10) == [TurnedV1()]
    assert gateway.state is State.V1


@pytest.mark.req("V1-002", "V1-010", "V1-011")
@pytest.mark.parametrize("before", [[], [register()]])
def test_v1_register_turns_the_connection_before_ready(before: list[str]) -> None:
    gateway = new_gateway()
    for message in before:
        gateway.receive_untrusted(message, 0)
    assert gateway.receive_untrusted('{"type":"status"}', 0) == [V1Message({"type": "status"})]
    assert gateway.receive_untrusted(V1_REGISTER, 0) == [TurnedV1()]
    assert gateway.receive_untrusted('{"type":"x","requestId":"r"}', 0) == [V1Message({"type": "x", "requestId": "r"})]
    assert written(gateway) == []


@pytest.mark.req("V1-009")
def test_v1_register_on_a_ready_session_is_a_v1_message() -> None:
    gateway = ready_gateway()
    assert [type(event) for event in gateway.receive_untrusted(V1_REGISTER, 0)] == [V1Message]
    assert gateway.state is State.READY


# Resume


def come_back(
    store: SessionStore, resume: dict[str, Any] | None, now: float, tenant: str = TENANT, agent: str = AGENT
) -> GatewayConnection:
    """A further connection whose agent asks to resume; its output is not taken."""
    ts = f"2026-11-04T10:{int(now) // 60:02d}:{int(now) % 60:02d}Z"
    ids = numbered("d")
    gateway = new_gateway(store=store, now=now, tenant=tenant, agent=agent, fresh=lambda: gateway_outbox(ids=ids))
    body = {} if resume is None else {"resume": resume}
    gateway.receive_untrusted(register(ts=ts, payload=body, tenantId=tenant, agentId=agent), now)
    gateway.receive_untrusted(hello(ts=ts, tenantId=tenant, agentId=agent), now)
    return gateway


@pytest.mark.req("RS-001", "RS-009", "RS-010", "RS-011", "RS-020", "HS-039")
@pytest.mark.parametrize(("after", "resumed"), [(5, True), (90, True), (90.5, False), (100, False)])
def test_session_is_kept_for_ninety_seconds(after: float, resumed: bool) -> None:
    store = SessionStore(90)
    gateway = ready_gateway(store=store)
    take(gateway, heartbeat(1))
    gateway.closed(10)
    session_id = gateway.session.session_id
    again = come_back(store, {"sessionId": session_id, "lastRecvSeq": 0}, 10 + after)
    payload = written(again)[0]["payload"]
    assert (payload["resumed"], payload["peerLastSeq"]) == (resumed, 1 if resumed else 0)
    assert (payload["sessionId"] == session_id) is resumed


@pytest.mark.req("RS-010", "RS-018")
def test_what_is_no_session_of_this_agent_here_is_a_fresh_start() -> None:
    store = SessionStore(90)
    gateway = ready_gateway(store=store)
    gateway.closed(0)
    resume = {"sessionId": gateway.session.session_id, "lastRecvSeq": 0}
    for again in (
        come_back(store, {"sessionId": uuid(9), "lastRecvSeq": 10**6}, 1),
        come_back(store, resume, 1, agent=uuid(3)),
        come_back(store, resume, 1, agent="00000000-0000-4000-8000-000000000001"),
        come_back(store, resume, 1, tenant="tenant-2"),
        come_back(store, resume, 1, tenant="tenant-0"),
        come_back(SessionStore(90), resume, 1),
        come_back(store, None, 1),
    ):
        assert written(again)[0]["payload"]["resumed"] is False
        assert again.state is State.READY
    assert written(come_back(store, resume, 1))[0]["payload"]["resumed"] is True


@pytest.mark.req("RS-004")
def test_last_recv_seq_is_an_ack_and_the_rest_is_sent_again() -> None:
    store = SessionStore(90)
    gateway = ready_gateway(store=store)
    deliveries = [gateway.send(cancel_draft(), 0) for _ in range(3)]
    written(gateway)
    gateway.closed(1)
    ts = "2026-11-04T10:00:02Z"
    again = new_gateway(store=store, now=2)
    resume = {"sessionId": gateway.session.session_id, "lastRecvSeq": 2}
    again.receive_untrusted(register(ts=ts, payload={"resume": resume}), 2)
    events = again.receive_untrusted(hello(ts=ts), 2)
    assert [(frame["type"], frame["seq"]) for frame in written(again)] == [("ready", 0), ("job.cancel", 3)]
    (ready,) = [event for event in events if isinstance(event, BecameReady)]
    assert (ready.resumed, ready.sent_again) == (True, 1)
    assert [event.delivery for event in events if isinstance(event, Settled)] == deliveries[:2]


@pytest.mark.req("RS-019")
@pytest.mark.parametrize(("number", "possible"), [(0, False), (1, True), (2, True), (3, False), (10**6, False)])
def test_impossible_last_recv_seq_drops_the_session(number: int, possible: bool) -> None:
    store = SessionStore(90)
    gateway = ready_gateway(store=store)
    for _ in range(2):
        gateway.send(cancel_draft(), 0)
    take(gateway, heartbeat(1, ack=1))
    gateway.closed(1)
    resume = {"sessionId": gateway.session.session_id, "lastRecvSeq": number}
    again = come_back(store, resume, 2)
    frames, close = outputs(again)
    if possible:
        assert frames[0]["payload"]["resumed"] is True
        return
    assert (frames[0]["payload"]["code"], close) == ("handshake_violation", 4406)
    third = come_back(store, {**resume, "lastRecvSeq": 1}, 3)
    assert written(third)[0]["payload"]["resumed"] is False


@pytest.mark.req("RS-012", "RS-013")
def test_starting_at_one_again_after_a_resume_is_seq_replayed() -> None:
    store = SessionStore(90)
    gateway = ready_gateway(store=store)
    take(gateway, heartbeat(1))
    gateway.closed(1)
    again = come_back(store, {"sessionId": gateway.session.session_id, "lastRecvSeq": 0}, 2)
    assert refusal(again, heartbeat(1, 50), 2) == ("seq_replayed", 4409)


@pytest.mark.req("HS-012", "SQ-035")
def test_data_frames_are_not_judged_by_their_ts() -> None:
    gateway = ready_gateway()
    assert refusal(gateway, heartbeat(1, ts="2026-11-04T09:58:30Z"), 0) is None


def test_no_frame_is_taken_before_it_is_open_which_session_serves() -> None:
    for messages in ([], [register()]):
        gateway = new_gateway()
        for message in messages:
            gateway.receive_untrusted(message, 0)
        with pytest.raises(MisuseError):
            gateway.send(cancel_draft(), 0)


@pytest.mark.req("HS-038")
def test_queued_before_ready_goes_out_after_it() -> None:
    outbox = gateway_outbox()
    outbox.enqueue(cancel_draft(), 0)
    gateway = new_gateway(fresh=lambda: outbox)
    gateway.receive_untrusted(register(), 0)
    gateway.receive_untrusted(hello(), 0)
    assert [frame["type"] for frame in written(gateway)] == ["ready", "job.cancel"]

"""VH-AGENT-SIG-V1: a golden frame, and the verdict of an agent on what does not hold, in the three modes."""

from __future__ import annotations

import json

import pytest
from nacl.signing import SigningKey

from lab.protocol.events import Received, Repeated, SignatureWarning
from lab.protocol.signing import NONCE_MEMORY, SignatureMode, canonical_text, params_equal
from tests.protocol.sides import (
    EPOCH_MS,
    JOB,
    KEY,
    SESSION,
    Members,
    cancel,
    cancel_draft,
    heartbeat,
    new_agent,
    nonce_of,
    outputs,
    ready,
    ready_agent,
    ready_gateway,
    refusal,
    sign,
    signed_cancel,
    signer,
    take,
    text,
    uuid,
    verifier,
    written,
)

GOLDEN_TEXT = (
    b"VH-AGENT-SIG-V1\nWS\njob.cancel\ntenant-1\nws-1\n1793786400000\nnonce-0000000000000001\n"
    b"abe56ac4a00fb240ce6170110b14f7c4c459642f0b2fbb9ec875c6b4611cfd38"
)
GOLDEN_SIGNATURE = "IJEipOqEZ-Ae8RwQXGKWI2Y9bRw6yYbHPA_FpHK7WyQ8p2PEqTe5DPSIPxrJGgDLgEGnVUUc-QhKZgXiRQPCAg"
RAW = '{"jobId":"0b0b0b0b-0000-4000-8000-00000000000b"}'


@pytest.mark.req("SG-001", "SG-002", "SG-003")
def test_golden_text() -> None:
    made = canonical_text("job.cancel", "tenant-1", "ws-1", 1793786400000, "nonce-0000000000000001", RAW)
    assert made == GOLDEN_TEXT


@pytest.mark.req("SG-001", "SG-003", "SG-004")
def test_golden_signature() -> None:
    sig = signer().sign("job.cancel", "tenant-1", "ws-1", RAW, 1793786400000)
    assert sig == {
        "alg": "Ed25519",
        "keyId": "key-1",
        "tenantId": "tenant-1",
        "workspaceId": "ws-1",
        "timestamp": 1793786400000,
        "nonce": "nonce-0000000000000001",
        "signature": GOLDEN_SIGNATURE,
    }


@pytest.mark.req("SG-001")
def test_golden_frame_is_written_and_read() -> None:
    gateway, agent = ready_gateway(), ready_agent()
    gateway.send(cancel_draft(), 0)
    (frame,) = written(gateway)
    assert frame["paramsRaw"] == RAW
    assert json.loads(frame["paramsRaw"]) == frame["payload"]
    assert [type(event) for event in take(agent, text(frame))] == [Received]
    assert [type(event) for event in take(agent, signed_cancel(2))] == [Received]


@pytest.mark.req("SG-001", "SG-002", "SG-005", "SG-008")
@pytest.mark.parametrize("member", ["type", "workspaceId", "paramsRaw", "timestamp", "nonce", "keyId", "signature"])
def test_one_altered_character_is_refused(member: str) -> None:
    frame = sign(cancel(1), nonce_of(1))
    if member == "type":
        # SG-002: the path of another type.
        payload = {"approvalId": "a", "jobId": JOB, "decision": "deny", "token": "vhapr1.a.b"}
        frame = {**sign({**cancel(1), "payload": payload}, nonce_of(1)), "type": "approval.decision"}
    elif member == "workspaceId":
        frame["sig"]["workspaceId"] = "ws-2"
    elif member == "paramsRaw":
        frame["paramsRaw"] += " "
    elif member == "timestamp":
        frame["sig"]["timestamp"] += 1
    else:
        value = frame["sig"][member]
        frame["sig"][member] = ("B" if value[0] == "A" else "A") + value[1:]
    assert refusal(ready_agent(), text(frame)) == ("unauthorized", 4418)


def case(seq: int = 1) -> dict[str, Members]:
    good = cancel(seq)
    other = {"jobId": uuid(3)}
    return {
        "params differ": {**sign(good, nonce_of(1)), "payload": other},
        "params with a duplicate key": sign({**good, "paramsRaw": RAW[:-1] + "," + RAW[1:]}, nonce_of(1)),
        "params not an object": sign({**good, "paramsRaw": "[]"}, nonce_of(1)),
        "params not JSON": sign({**good, "paramsRaw": "{]"}, nonce_of(1)),
        "params with huge digits": sign({**good, "paramsRaw": '{"a":' + "1" * 5000 + "}"}, nonce_of(1)),
        "bound to another tenant": sign(good, nonce_of(1), tenantId="tenant-2"),
        "bound to another workspace": sign(good, nonce_of(1), workspaceId="ws-2"),
        "unknown key": sign(good, nonce_of(1), key=SigningKey(bytes(32)), keyId="key-2"),
        "another key of the same name": sign(good, nonce_of(1), key=SigningKey(bytes(32))),
        "too old": sign(good, nonce_of(1), EPOCH_MS - 60_001),
        "too new": sign(good, nonce_of(1), EPOCH_MS + 60_001),
    }


DUE = {
    "params differ": "params_mismatch",
    "params with a duplicate key": "params_mismatch",
    "params not an object": "params_mismatch",
    "params not JSON": "params_mismatch",
    "params with huge digits": "params_mismatch",
    "bound to another tenant": "tenant_mismatch",
    "bound to another workspace": "unauthorized",
    "unknown key": "unauthorized",
    "another key of the same name": "unauthorized",
    "too old": "unauthorized",
    "too new": "unauthorized",
}


@pytest.mark.req("SG-005", "SG-007", "SG-008", "SG-009", "SG-010", "SG-014", "WS-034", "WS-073", "WS-077")
@pytest.mark.parametrize("name", DUE)
def test_enforce_refuses(name: str) -> None:
    agent = ready_agent()
    code = refusal(agent, text(case()[name]))
    assert code is not None
    assert code[0] == DUE[name]
    assert agent.session.inbound.last_seq == 0


@pytest.mark.req("SG-010", "SG-011")
@pytest.mark.parametrize("name", DUE)
def test_warn_tells_and_carries_on(name: str) -> None:
    agent = ready_agent(mode=SignatureMode.WARN)
    warning, received = take(agent, text(case()[name]))
    assert warning == SignatureWarning(DUE[name], "job.cancel")
    assert isinstance(received, Received)


@pytest.mark.req("SG-010", "SG-011")
@pytest.mark.parametrize("name", DUE)
def test_off_compares_nothing(name: str) -> None:
    agent = ready_agent(mode=SignatureMode.OFF)
    assert [type(event) for event in take(agent, text(case()[name]))] == [Received]


@pytest.mark.req("SG-014")
@pytest.mark.parametrize("moment", [EPOCH_MS - 60_000, EPOCH_MS + 60_000, str(EPOCH_MS), EPOCH_MS])
def test_timestamp_within_a_minute_in_both_forms(moment: int | str) -> None:
    assert refusal(ready_agent(), text(sign(cancel(1), nonce_of(1), moment))) is None


def test_timestamp_written_with_a_point_is_the_same_integer() -> None:
    frame = text(sign(cancel(1), nonce_of(1))).replace(f'"timestamp":{EPOCH_MS}', f'"timestamp":{EPOCH_MS}.0')
    assert refusal(ready_agent(), frame) is None


@pytest.mark.req("SG-006")
@pytest.mark.parametrize(
    ("raw", "payload", "equal"),
    [
        ('{"a":1,"b":2}', {"b": 2, "a": 1}, True),
        ('{"a":1.0}', {"a": 1}, True),
        ('{"a":1e2}', {"a": 100}, True),
        ('{ "a" : [1, {"b": null}] }', {"a": [1, {"b": None}]}, True),
        ('{"a":"\\u00e9"}', {"a": "é"}, True),
        ('{"a":1}', {"a": 2}, False),
        ('{"a":1}', {"a": "1"}, False),
        ('{"a":1}', {"a": True}, False),
        ('{"a":true}', {"a": 1}, False),
        ('{"a":false}', {"a": 0}, False),
        ('{"a":null}', {"a": False}, False),
        ('{"a":null}', {}, False),
        ('{"a":[1,2]}', {"a": [2, 1]}, False),
        ('{"a":[1]}', {"a": [1, 1]}, False),
        ('{"a":[1,1]}', {"a": [1]}, False),
        ('{"a":1}', {"a": 1, "b": 1}, False),
        ('{"a":{}}', {"a": []}, False),
        ('{"a":1,"a":1}', {"a": 1}, False),
    ],
)
def test_equality_is_by_value(raw: str, payload: Members, equal: bool) -> None:
    assert params_equal(raw, payload) is equal


@pytest.mark.req("SG-008", "SG-014", "SG-015")
@pytest.mark.parametrize("between", [0, 1000])
def test_nonce_counts_once(between: int) -> None:
    agent = ready_agent()
    for seq in range(1, between + 2):
        assert refusal(agent, signed_cancel(seq)) is None
    assert refusal(agent, signed_cancel(between + 2, nonce=1)) == ("unauthorized", 4418)


@pytest.mark.req("SG-015")
def test_memory_of_nonces_is_bounded() -> None:
    judge = verifier()
    for number in range(NONCE_MEMORY + 1):
        assert judge.refusal(sign(cancel(1), nonce_of(number)), EPOCH_MS) is None
    assert NONCE_MEMORY == 4096
    assert judge.refusal(sign(cancel(1), nonce_of(1)), EPOCH_MS) == "unauthorized"
    assert judge.refusal(sign(cancel(1), nonce_of(0)), EPOCH_MS) is None


def test_a_frame_that_does_not_hold_uses_up_no_nonce() -> None:
    judge = verifier()
    bad = sign(cancel(1), nonce_of(1), key=SigningKey(bytes(32)))
    assert judge.refusal(bad, EPOCH_MS) == "unauthorized"
    assert judge.refusal(sign(cancel(1), nonce_of(1)), EPOCH_MS) is None


@pytest.mark.req("SG-014", "WS-033")
def test_byte_true_copy_is_a_duplicate_before_its_nonce_is_judged() -> None:
    agent = ready_agent()
    copy = signed_cancel(1)
    assert [type(event) for event in take(agent, copy)] == [Received]
    assert [type(event) for event in take(agent, copy)] == [Repeated]


@pytest.mark.req("WS-033")
def test_badly_signed_frame_leaves_its_seq_to_the_good_one() -> None:
    agent = ready_agent()
    assert refusal(agent, text(case()["unknown key"])) == ("unauthorized", 4418)
    agent.closed(1)
    again = new_agent(agent.outbox)
    again.start(2, {})
    again.receive_untrusted(ready(999, EPOCH_MS + 2000, sessionId=SESSION, resumed=True), 2)
    written(again)
    assert [type(event) for event in take(again, signed_cancel(1, nonce=40), 2)] == [Received]
    assert written(again)[0]["payload"]["status"] == "accepted"


@pytest.mark.req("SG-017", "WS-018")
@pytest.mark.parametrize("mode", list(SignatureMode))
@pytest.mark.parametrize("member", ["sig", "paramsRaw"])
def test_unsigned_frame_of_a_signed_type_breaks_the_schema_in_every_mode(mode: SignatureMode, member: str) -> None:
    frame = sign(cancel(1), nonce_of(1))
    del frame[member]
    assert refusal(ready_agent(mode=mode), text(frame)) == ("schema_violation", 4402)


@pytest.mark.req("HS-013")
def test_ready_is_verified_too() -> None:
    agent = new_agent()
    agent.start(0, {})
    written(agent)
    frame = json.loads(ready())
    frame["sig"]["signature"] = "A" * 86
    agent.receive_untrusted(text(frame), 0)
    frames, close = outputs(agent)
    assert (frames[0]["payload"]["code"], close) == ("unauthorized", 4418)


@pytest.mark.req("SG-016", "WS-018")
def test_gateway_signs_ready_and_data_but_no_ack_or_error() -> None:
    gateway = ready_gateway()
    gateway.send(cancel_draft(), 0)
    gateway.fail("internal", 0)
    take(gateway, heartbeat(1))
    signed = {frame["type"]: ("sig" in frame, "paramsRaw" in frame) for frame in written(gateway)}
    assert signed == {"job.cancel": (True, True), "error": (False, False), "ack": (False, False)}
    assert bytes(KEY.verify_key) == signer().public_key

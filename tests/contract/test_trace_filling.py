"""A trace's frames filled for a live conversation."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest
from nacl.signing import SigningKey

from lab.contract.trace_filling import Filling, LiveIdentity
from lab.contract.traces import Side, Step, Trace
from lab.protocol.signing import Verifier
from tests.contract.test_traces import BY_NAME
from tests.protocol.sides import numbered

KEY = SigningKey(b"l" * 32)
LIVE = LiveIdentity("tenant-live", "1a1a0000-0000-4000-8000-00000000000a", "ws-live", ("live-key", KEY))
LATER = 60_000
Members = dict[str, Any]


def filling(name: str) -> tuple[Trace, Filling]:
    trace = BY_NAME[name]
    return trace, Filling(trace, LIVE, numbered("f"))


def step(trace: Trace, type_name: str, place: int = 0, side: Side | None = None) -> Step:
    found = [one for one in trace.steps if one.type == type_name and side in (None, one.side)]
    return found[place]


def filled(trace: Trace, made: Filling, one: Step, received: int = 0) -> Members:
    members: Members = json.loads(made.text(one, trace.start_ms + LATER, received))
    return members


def test_the_live_tenant_agent_and_workspace_stand_in_the_traces_place() -> None:
    trace, made = filling("invalid-seq-repeated")
    members = filled(trace, made, step(trace, "register"))
    assert (members["tenantId"], members["agentId"], members["workspaceId"]) == (LIVE.tenant, LIVE.agent, "ws-live")
    assert members["payload"]["workspaces"][0]["workspaceId"] == "ws-live"


def test_a_fault_stays_a_fault() -> None:
    trace, made = filling("invalid-tenant-mismatch")
    assert filled(trace, made, step(trace, "heartbeat"))["tenantId"] == "tenant-other"
    trace, made = filling("invalid-agent-mismatch")
    assert filled(trace, made, step(trace, "heartbeat"))["agentId"] not in (LIVE.agent, trace.agent)
    trace, made = filling("invalid-seq-repeated")
    beats = [filled(trace, made, step(trace, "heartbeat", place)) for place in (0, 1)]
    assert [beat["seq"] for beat in beats] == [1, 1]
    assert beats[0]["msgId"] != beats[1]["msgId"]


def test_times_are_as_far_off_as_in_the_trace() -> None:
    trace, made = filling("invalid-clock-skew")
    register, hello = filled(trace, made, step(trace, "register")), filled(trace, made, step(trace, "hello"))
    assert register["ts"] == "2026-11-04T10:01:00.000Z"
    assert hello["ts"] == hello["payload"]["clock"]["utc"] == "2026-11-04T10:02:01.000Z"


def test_a_copy_is_the_same_bytes() -> None:
    trace, made = filling("valid-retransmit-is-idempotent")
    first, again = step(trace, "heartbeat"), step(trace, "heartbeat", 1)
    assert made.text(first, trace.start_ms, 0) == made.text(again, trace.start_ms + LATER, 7)


def test_what_the_peer_sent_is_meant_from_then_on() -> None:
    trace, made = filling("valid-content-chunks-in-order")
    request = step(trace, "content.request")
    theirs = {**(request.frame or {}), "msgId": "b" * 8, "seq": 5, "requestId": "r" * 8}
    made.learn(request, theirs)
    ack = filled(trace, made, step(trace, "ack", 0, Side.LA), received=5)
    assert ack["payload"] == {"status": "accepted", "ackSeq": 5, "ackMsgId": "b" * 8}
    assert ack["ack"] == 5
    assert filled(trace, made, step(trace, "content.response"))["requestId"] == "r" * 8


def test_an_ack_is_left_out_before_anything_was_received() -> None:
    trace, made = filling("valid-content-chunks-in-order")
    chunk = step(trace, "content.response")
    assert "ack" in (chunk.frame or {})
    assert "ack" not in filled(trace, made, chunk, received=0)


def test_a_resume_says_what_was_received() -> None:
    trace, made = filling("valid-resume-continues-seq")
    first = step(trace, "ready")
    made.learn(first, {**(first.frame or {}), "payload": {**first.payload, "sessionId": "5" * 8}})
    assert filled(trace, made, step(trace, "register", 1), received=4)["payload"]["resume"] == {
        "sessionId": "5" * 8,
        "lastRecvSeq": 4,
    }
    assert filled(trace, made, step(trace, "ready", 1), received=4)["payload"]["peerLastSeq"] == 4


def test_the_root_ref_is_made_of_the_peers_own_path() -> None:
    trace, made = filling("valid-content-chunks-in-order")
    register = step(trace, "register")
    digest = hashlib.sha256(b"/srv/other").digest()
    spaces = [{"workspaceId": "ws-other", "pathSha256": digest.hex()}]
    made.learn(register, {**(register.frame or {}), "payload": {**register.payload, "workspaces": spaces}})
    payload = filled(trace, made, step(trace, "content.request"))["payload"]
    assert payload["ref"] == base64.urlsafe_b64encode(digest).decode().rstrip("=")


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("invalid-seq-gap", None),
        ("invalid-params-raw-differs-from-payload", "params_mismatch"),
        ("invalid-sig-tenant-mismatch", "tenant_mismatch"),
    ],
)
def test_a_frame_is_signed_anew_and_wrongly_where_the_trace_says_so(name: str, code: str | None) -> None:
    trace, made = filling(name)
    members = filled(trace, made, step(trace, "job.cancel"))
    verifier = Verifier({"live-key": bytes(KEY.verify_key)}, 60)
    assert verifier.refusal(members, trace.start_ms + LATER) == code


def test_a_message_keeps_its_size() -> None:
    trace, made = filling("invalid-frame-over-48kib")
    assert len(made.text(step(trace, "job.assign"), trace.start_ms, 0).encode()) == 49153
    _, bare = filling("invalid-frame-over-48kib")
    assert bare.text(Step(1, Side.LA, 0.0, raw="[1]"), 0, 0) == "[1]"

"""The order of checks on both sides, by frames with two faults at once: the earlier check speaks."""

from __future__ import annotations

import json

import pytest
from nacl.signing import SigningKey

from tests.protocol.sides import (
    JOB,
    KEY,
    Members,
    cancel,
    chunk_frame,
    heartbeat,
    new_agent,
    new_gateway,
    nonce_of,
    ready_agent,
    ready_gateway,
    refusal,
    register,
    sign,
    text,
    uuid,
)

CANARY = "canary-0123456789"

# The order of checks: each fault by its code, the earlier ones first. A double fault gives the code of the earlier.

GATEWAY_ORDER = [
    *("frame_too_large", "bad_frame", "unknown_type", "schema_violation", "tenant_mismatch", "agent_mismatch"),
    *("wrong_direction", "not_ready", "seq_gap", "chunk_inconsistent"),
]
AGENT_ORDER = [
    *("frame_too_large", "bad_frame", "unknown_type", "wrong_direction", "schema_violation", "tenant_mismatch"),
    *("agent_mismatch", "unauthorized", "not_ready", "seq_gap"),
]
APART = [
    {"wrong_direction", "chunk_inconsistent"},
    {"wrong_direction", "unauthorized"},
    {"unknown_type", "wrong_direction"},
]
"""Faults that one frame cannot have together."""


def pairs(order: list[str]) -> list[tuple[str, str]]:
    return [
        (one, other)
        for place, one in enumerate(order)
        for other in order[place:]
        if one == other or {one, other} not in APART
    ]


def spoilt(frame: Members, faults: set[str]) -> str:
    """The frame as text, with the faults that both sides know."""
    if "seq_gap" in faults:
        frame["seq"] = 9
    if "agent_mismatch" in faults:
        frame["agentId"] = uuid(77)
    if "tenant_mismatch" in faults:
        frame["tenantId"] = "tenant-2"
    if "schema_violation" in faults:
        frame["extra"] = CANARY
    if "unknown_type" in faults:
        frame["type"] = "mcp.execute-command"
    if "paramsRaw" in frame:
        frame = sign(frame, nonce_of(1), key=SigningKey(bytes(32)) if "unauthorized" in faults else KEY)
    message = text(frame)
    if "bad_frame" in faults:
        message = message[:-1] + ',"ack":1,"ack":2}'
    if "frame_too_large" in faults:
        message += " " * (49153 - len(message))
    return message


@pytest.mark.req("WS-029", "WS-030", "WS-032", "WS-084")
@pytest.mark.parametrize(("first", "second"), pairs(GATEWAY_ORDER))
def test_gateway_gives_the_code_of_the_earlier_check(first: str, second: str) -> None:
    faults = {first, second}
    if "wrong_direction" in faults:
        frame = {**cancel(1), "paramsRaw": json.dumps({"jobId": JOB}, separators=(",", ":"))}
    else:
        frame = json.loads(chunk_frame(1, 5, 0, 1, byteLength=2 if "chunk_inconsistent" in faults else 1))
    gateway = ready_gateway()
    if "not_ready" in faults:
        gateway = new_gateway()
        gateway.receive_untrusted(register(), 0)
    code = refusal(gateway, spoilt(frame, faults))
    assert code is not None
    assert code[0] == first


@pytest.mark.req("WS-029", "WS-031", "WS-032", "WS-033", "WS-084")
@pytest.mark.parametrize(("first", "second"), pairs(AGENT_ORDER))
def test_agent_gives_the_code_of_the_earlier_check(first: str, second: str) -> None:
    faults = {first, second}
    frame = json.loads(heartbeat(1)) if "wrong_direction" in faults else {**cancel(1), "paramsRaw": RAW}
    agent = ready_agent()
    if "not_ready" in faults:
        agent = new_agent()
        agent.start(0, {})
    code = refusal(agent, spoilt(frame, faults))
    assert code is not None
    assert code[0] == first


RAW = json.dumps({"jobId": JOB}, separators=(",", ":"))


@pytest.mark.req("WS-031", "WS-032")
def test_only_the_place_of_direction_differs_between_the_sides() -> None:
    assert refusal(ready_agent(), heartbeat(1, extra=1)) == ("wrong_direction", 4405)
    assert refusal(ready_gateway(), text({**sign(cancel(1), nonce_of(1)), "extra": 1})) == ("schema_violation", 4402)

"""The witness of frames against golden frames, and against any bytes at all."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nacl.signing import SigningKey

from lab.journal.events import Frame
from lab.journal.writer import Entry, entry_to_json
from tests.tap.frames_by_hand import (
    AGENT,
    CANARIES,
    EPOCH_MS,
    JOB,
    MSG,
    NONCE,
    REQUEST,
    TENANT,
    assign,
    chunks,
    from_agent,
    from_gateway,
    ready,
    signed,
    tap,
)

TAP = tap()


def judge(frame: Any, direction: str | None = None, now: float = 0.0) -> Frame:
    raw = frame if isinstance(frame, str | bytes) else json.dumps(frame)
    if direction is None:
        direction = "cp-to-la" if isinstance(frame, dict) and "sig" in frame else "la-to-cp"
    return TAP.judge("c1", direction, raw, now)


def without(frame: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in frame.items() if key != name}


def test_a_heartbeat() -> None:
    raw = json.dumps(from_agent("heartbeat", 3, {"state": "idle"}, ack=2))
    event = TAP.judge("c1", "la-to-cp", raw, 1.5)
    assert event == Frame(
        conn="c1",
        direction="la-to-cp",
        size=len(raw),
        sha256=hashlib.sha256(raw.encode()).hexdigest(),
        version=2,
        type="heartbeat",
        msg_id=MSG,
        seq=3,
        ack=2,
        tenant_id=TENANT,
        agent_id=AGENT,
        workspace_id="ws-1",
        payload={"state": "idle"},
        facts={
            "parse": "ok",
            "size": "ok",
            "type": "ok",
            "schema": "ok",
            "direction": True,
            "tenant": "ok",
            "agent": "ok",
            "control": False,
            "signature": None,
        },
    )


def test_a_chunk() -> None:
    event = judge(chunks(b"hello")[0])
    assert (event.request_id, event.chunk) == (REQUEST, {"index": 0, "total": 1, "last": True})
    assert event.facts["decoded"] == 5
    assert event.payload["data"] == {
        "kind": "data",
        "bytes": 8,
        "sha256": hashlib.sha256(b"aGVsbG8=").hexdigest(),
    }


def test_ready_keeps_what_the_laws_read() -> None:
    event = judge(ready())
    assert event.facts["schema"] == "ok"
    assert event.facts["control"] is True
    assert event.payload["sessionId"] == MSG
    assert event.payload["limits"]["ackTimeoutMs"] == 5000


# Parsing


@pytest.mark.req("WS-034", "WS-035", "WS-036", "WS-059")
@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[]", "not an object"),
        ("7", "not an object"),
        ('{"a":1,"a":1}', "a member stands twice"),
        ('{"a":{"b":1,"b":2}}', "a member stands twice"),
        ('{"a":NaN}', "NaN or Infinity"),
        ('{"a":-Infinity}', "NaN or Infinity"),
        ('{"a":' + "[" * 64 + "]" * 64 + "}", "nested too deep"),
        ("[" * 100_000, "nested too deep"),
        ('{"a":"' + "x" * 300_000 + '"}', "too long to parse"),
        ('{"a":' + "9" * 5000 + "}", "not JSON"),
        (b'{"a":1}', "binary message"),
        (b"\xff\xfe", "binary message"),
    ],
)
def test_no_frame(raw: str | bytes, reason: str) -> None:
    event = judge(raw)
    assert event.facts["parse"] == reason
    assert event.type is None
    assert event.size == len(raw)


def test_brackets_in_a_text_are_no_depth() -> None:
    assert judge({"a": "[" * 100}).facts["parse"] == "ok"
    assert judge({"a": ['"' + "[" * 100]}).facts["parse"] == "ok"


def test_a_text_full_of_escaped_quotes_costs_linear_time() -> None:
    assert judge('{"a":"' + '[\\"' * 80_000).facts["parse"] == "not JSON"


# The envelope


@pytest.mark.req("WS-019", "WS-020")
@pytest.mark.parametrize(("size", "fact"), [(49152, "ok"), (49153, "frame_too_large")])
def test_size_in_bytes(size: int, fact: str) -> None:
    frame = from_agent("heartbeat", 1, {})
    short = json.dumps({**frame, "x": "\u00e9"}, ensure_ascii=False)
    raw = short[:-2] + "a" * (size - len(short.encode())) + short[-2:]
    event = TAP.judge("c1", "la-to-cp", raw, 0)
    assert (event.size, event.facts["size"]) == (size, fact)


@pytest.mark.parametrize(
    ("change", "keyword", "path"),
    [
        pytest.param({"x": 1}, "unevaluatedProperties", None, id="x", marks=pytest.mark.req("WS-001")),
        pytest.param({"schemaVersion": 1}, "const", "schemaVersion", id="v", marks=pytest.mark.req("WS-002")),
        pytest.param({"msgId": "x"}, "pattern", "msgId", id="msg", marks=pytest.mark.req("WS-003")),
        pytest.param({"seq": 0}, "minimum", "seq", id="seq", marks=pytest.mark.req("WS-005")),
        pytest.param({"requestId": REQUEST.upper()}, "pattern", "requestId", id="r", marks=pytest.mark.req("WS-007")),
        pytest.param({"ts": "today"}, "pattern", "ts", id="ts", marks=pytest.mark.req("WS-014")),
        pytest.param({"payload": {"x": 1}}, None, "payload", id="payload", marks=pytest.mark.req("WS-017")),
        pytest.param({"sig": {}}, None, "sig", id="sig", marks=pytest.mark.req("WS-018")),
    ],
)
def test_schema(change: dict[str, Any], keyword: str | None, path: str | None) -> None:
    schema = judge(from_agent("heartbeat", 1, {}) | change, "la-to-cp").facts["schema"]
    assert schema != "ok"
    if path is not None:
        assert schema["path"] == path
    if keyword is not None and path is not None:
        assert schema["keyword"] == keyword


@pytest.mark.req("WS-001", "WS-012")
@pytest.mark.parametrize("name", ["workspaceId", "msgId", "seq", "ts", "payload"])
def test_a_member_that_is_missing(name: str) -> None:
    assert judge(without(from_agent("heartbeat", 1, {}), name)).facts["schema"]["keyword"] == "required"


def test_a_path_never_carries_a_name_of_the_sender() -> None:
    payload = {"jobId": JOB, "kind": "fix", "inputs": [], "llm": {"alias": "m"}, "options": {"secretName": []}}
    event = judge(from_gateway("job.assign", 1, payload))
    assert event.facts["schema"]["path"] == "payload.options.*"


def test_revisions_go_back() -> None:
    long = json.dumps(assign("x" * 5000))
    assert TAP.judge("c", "cp-to-la", long, 0).facts["schema"] == "ok"
    older = tap("2.2").judge("c", "cp-to-la", long, 0)
    assert older.facts["schema"] != "ok"
    check = json.dumps(from_agent("policy.check", 1, {}))
    assert tap("2.1").judge("c", "la-to-cp", check, 0).facts["type"] == "unknown_type"
    assert TAP.judge("c", "la-to-cp", check, 0).facts["type"] == "ok"


@pytest.mark.req("WS-037", "WS-050")
@pytest.mark.parametrize("name", ["mcp.execute-command", None, 7, "toString"])
def test_an_unknown_type(name: object) -> None:
    event = judge(from_agent("heartbeat", 1, {}) | {"type": name})
    assert event.type is None
    assert event.facts["type"] == "unknown_type"
    assert event.facts["direction"] is None


@pytest.mark.req("V1-002")
@pytest.mark.parametrize("version", [2, 1, "2", None])
def test_a_message_of_v1_has_no_version_at_all(version: object) -> None:
    frame = from_agent("heartbeat", 1, {}) | {"schemaVersion": version}
    assert "v1" not in judge(frame).facts
    del frame["schemaVersion"]
    assert judge(frame).facts["v1"] is True


@pytest.mark.req("WS-038", "TY-040")
def test_direction() -> None:
    beat, order = from_agent("heartbeat", 1, {}), assign()
    assert judge(beat, "la-to-cp").facts["direction"] is True
    assert judge(beat, "cp-to-la").facts["direction"] is False
    assert judge(order, "cp-to-la").facts["direction"] is True
    assert judge(order, "la-to-cp").facts["direction"] is False
    error = from_agent("error", 0, {"code": "internal", "retryable": True})
    assert judge(error, "la-to-cp").facts["direction"] is judge(error, "cp-to-la").facts["direction"] is True


@pytest.mark.req("WS-008")
def test_tenant() -> None:
    assert judge(from_agent("heartbeat", 1, {}) | {"tenantId": "x"}).facts["tenant"] == "tenant_mismatch"


@pytest.mark.req("WS-009", "WS-010")
def test_agent() -> None:
    beat = from_agent("heartbeat", 1, {})
    assert judge(without(beat, "agentId")).facts["agent"] == "agent_mismatch"
    assert judge(beat | {"agentId": MSG}).facts["agent"] == "agent_mismatch"
    assert judge(without(assign(), "agentId"), "cp-to-la").facts["agent"] == "ok"
    error = from_agent("error", 0, {"code": "internal", "retryable": True})
    assert judge(without(error, "agentId"), "cp-to-la").facts["agent"] == "agent_mismatch"


# Signatures

GOOD = {
    "present": True,
    "verified": True,
    "bound": True,
    "equal": True,
    "nonce": hashlib.sha256(NONCE.encode()).hexdigest(),
    "skewMs": 0,
}


@pytest.mark.req("SG-001", "SG-002", "SG-003", "SG-004", "SG-016")
@pytest.mark.parametrize("frame", [ready(), assign()], ids=["ready", "job.assign"])
def test_a_good_signature(frame: dict[str, Any]) -> None:
    assert judge(frame).facts["signature"] == GOOD


@pytest.mark.req("SG-003", "SG-004")
def test_the_golden_signature() -> None:
    """Signed by openssl with the same seed, so that a change of the canonical text cannot pass on both sides."""
    frame = from_gateway("job.cancel", 1, {"jobId": JOB})
    frame["sig"]["signature"] = "3N3m7RYnWcLPCsZVYC3ty9JRafx3BEUNFFCfFdCxxBu6dDxneIOP1WB490ny6kyQXmYU6sfwCDNSm1kiRbZKBA"
    assert frame["paramsRaw"] == '{"jobId": "c0000000-0000-4000-8000-000000000001"}'
    assert judge(frame).facts["signature"] == GOOD


@pytest.mark.parametrize(
    ("frame", "fact"),
    [
        pytest.param(signed(assign(), key=SigningKey(b"x" * 32)), "verified", marks=pytest.mark.req("SG-009")),
        pytest.param(signed(assign(), keyId="cp-2"), "verified", marks=pytest.mark.req("SG-009")),
        pytest.param(signed(assign(), tenantId="other"), "bound", marks=pytest.mark.req("SG-007")),
        pytest.param(signed(assign(), workspaceId="ws-2"), "bound", marks=pytest.mark.req("SG-007")),
        pytest.param(signed(assign(), params="{}"), "equal", marks=pytest.mark.req("SG-005")),
        pytest.param(signed(assign(), params="{"), "equal"),
    ],
)
def test_one_fact_is_wrong(frame: dict[str, Any], fact: str) -> None:
    assert {name for name, value in judge(frame).facts["signature"].items() if value is False} == {fact}


@pytest.mark.req("SG-003")
@pytest.mark.parametrize(
    "change",
    [{"timestamp": EPOCH_MS + 1}, {"nonce": "B" * 22}, {"tenantId": "x"}, {"workspaceId": "ws-2"}, {"alg": "x"}],
)
def test_each_signed_member_counts(change: dict[str, Any]) -> None:
    frame = assign()
    frame["sig"] |= change
    assert judge(frame).facts["signature"]["verified"] is False


@pytest.mark.req("SG-003")
def test_type_and_params_count() -> None:
    frame = from_gateway("job.cancel", 1, {"jobId": JOB})
    assert judge(frame | {"type": "config.update"}).facts["signature"]["verified"] is False
    assert judge(frame | {"paramsRaw": frame["paramsRaw"] + " "}).facts["signature"]["verified"] is False


@pytest.mark.req("SG-005", "SG-006")
@pytest.mark.parametrize(
    ("payload", "params", "equal"),
    [
        ({"a": 1, "b": [1.0]}, '{"b": [1], "a": 1.0}', True),
        ({"a": 1}, '{"a": true}', False),
        ({"a": 0}, '{"a": false}', False),
        ({"a": None}, "{}", False),
        ({"a": [1, 2]}, '{"a": [2, 1]}', False),
        ({"a": 1}, '{"a": 1, "a": 1}', False),
        ({"a": "1"}, '{"a": 1}', False),
        ({"a": {}}, '{"a": []}', False),
        ({"a": [1]}, '{"a": [1, 2]}', False),
    ],
)
def test_equal_by_value(payload: Any, params: str, equal: bool) -> None:
    frame = signed(from_agent("job.cancel", 1, payload), params=params)
    assert judge(frame).facts["signature"]["equal"] is equal


def test_skew_is_measured_on_lab_time() -> None:
    assert judge(assign(), now=61.5).facts["signature"]["skewMs"] == 61_500
    late = signed(assign(), timestamp=str(EPOCH_MS + 5))
    assert judge(late).facts["signature"]["skewMs"] == -5
    assert judge(signed(assign(), timestamp="x")).facts["signature"]["skewMs"] is None


@pytest.mark.req("SG-017")
@pytest.mark.parametrize("name", ["sig", "paramsRaw"])
def test_no_signature(name: str) -> None:
    event = judge(without(assign(), name), "cp-to-la")
    assert event.facts["signature"] == {"present": False}
    assert event.facts["schema"]["keyword"] == "required"


def test_an_unsigned_type_has_no_signature_to_judge() -> None:
    assert judge(from_agent("ack", 0, {}), "cp-to-la").facts["signature"] is None


# Times, lengths and liveness


@pytest.mark.req("HS-012")
@pytest.mark.parametrize(
    ("name", "times", "skew"),
    [
        ("register", {}, 2_000),
        ("hello", {"ts": "2025-12-31T23:59:00.250Z"}, 61_750),
        ("hello", {"ts": "2026-01-01T00:00:05Z"}, -3_000),
        ("hello", {"payload": {"clock": {"utc": "2025-12-31T23:58:02.000Z"}}}, 120_000),
        ("hello", {"ts": "2026-01-01T00:00:05+01:00"}, None),
        ("hello", {"ts": "2026-13-01T00:00:05Z"}, None),
        ("hello", {"ts": 5, "payload": []}, None),
        ("heartbeat", {}, None),
    ],
)
def test_the_skew_of_a_handshake_frame(name: str, times: dict[str, Any], skew: int | None) -> None:
    event = judge({**from_agent(name, 0, {}), **times}, now=2.0)
    assert event.facts.get("skewMs") == skew


@pytest.mark.req("CP-004")
@pytest.mark.parametrize(
    ("payload", "chars"),
    [
        ({"inputs": [{"inline": "\u00e9" * 5000}, {"inline": "x"}, {"ref": "y" * 9000}]}, 5000),
        ({"inputs": []}, 0),
        ({"inputs": "no list"}, 0),
        ([], 0),
    ],
)
def test_the_longest_inline_in_characters(payload: Any, chars: int) -> None:
    assert judge(from_gateway("job.assign", 1, payload), "cp-to-la").facts["inlineChars"] == chars
    assert "inlineChars" not in judge(from_gateway("job.cancel", 1, payload), "cp-to-la").facts


@pytest.mark.req("WS-052")
@pytest.mark.parametrize("word", ["ping", "pong"])
def test_the_json_form_of_a_liveness_message(word: str) -> None:
    event = judge({"type": word})
    assert (event.type, event.version, event.facts) == (None, None, {"parse": "ok", "ping": word})
    assert "ping" not in judge({"type": word, "schemaVersion": 2}).facts


# Canaries


def places(frame: Any) -> set[tuple[str, str]]:
    return {(found["id"], found["place"]) for found in judge(frame).facts.get("canaries", [])}


PROMPT, ANSWER = CANARIES["prompt"], CANARIES["answer"]


@pytest.mark.req("WS-048", "SEC-002")
def test_in_an_inline_and_its_echo() -> None:
    assert places(assign(f"say {PROMPT}!")) == {("prompt", "payload.inputs[].inline"), ("prompt", "paramsRaw")}


@pytest.mark.req("WS-048")
@pytest.mark.parametrize(
    "body",
    [
        f"xx {ANSWER}".encode(),
        json.dumps({"e": f"xx {ANSWER}"}).encode(),
        json.dumps({"e": json.dumps({"t": ANSWER})}).encode(),
        json.dumps({"e": json.dumps({"t": ANSWER}, ensure_ascii=False)}, ensure_ascii=False).encode(),
        json.dumps({"e": f"\U0001f600 \\q {ANSWER}"}).encode(),
        f"bad \\q \\ud800 {PROMPT}".encode() + b"\xff\\",
    ],
)
def test_in_decoded_content(body: bytes) -> None:
    assert {place for _, place in places(chunks(body)[0])} == {"payload.data"}


def test_in_a_webhook() -> None:
    body = base64.b64encode(PROMPT.encode()).decode()
    frame = from_gateway("webhook.forward", 1, {"bodyB64": body, "transient": True})
    assert places(frame) == {("prompt", "payload.bodyB64")}


@pytest.mark.parametrize(
    ("frame", "place"),
    [
        (from_agent("error", 0, {"code": "internal", "retryable": True, "detail": ANSWER}), "payload.detail"),
        (from_agent("job.event", 1, {"a": [[{"b": ANSWER}]]}), "payload.a[][].b"),
        (from_agent("heartbeat", 1, {}, workspaceId=ANSWER), "workspaceId"),
        (from_agent("heartbeat", 1, {ANSWER: 1}), "payload.*"),
        (from_agent(ANSWER, 1, {}), "type"),
        (json.dumps([ANSWER], ensure_ascii=False).replace('\\"', '"'), "text"),
        (ANSWER.encode(), "text"),
    ],
)
def test_anywhere_else(frame: Any, place: str) -> None:
    assert places(frame) == {("answer", place)}


def test_an_escape_hides_nothing() -> None:
    raw = json.dumps(from_agent("heartbeat", 1, {"state": "@"})).replace("@", "\\u0043ANARY-prompt-5f1d")
    assert PROMPT not in raw
    assert places(raw) == {("prompt", "payload.state")}


# Any bytes at all

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=st.characters())
    | st.sampled_from([PROMPT, ANSWER, f"{PROMPT}:1", "ws-1", TENANT]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(
    ["type", "seq", "ack", "msgId", "payload", "sig", "paramsRaw", "chunk", "agentId", "tenantId", "workspaceId"]
)


def written(event: Frame) -> str:
    return entry_to_json(Entry(0, 0.0, "gw", event))


@given(st.binary() | st.text(alphabet=st.characters()), st.sampled_from(["la-to-cp", "cp-to-la"]))
def test_never_raises_on_any_message(raw: str | bytes, direction: str) -> None:
    event = TAP.judge("c1", direction, raw, 0)
    assert json.loads(written(event))["event"] == "frame"


@settings(max_examples=300)
@given(
    st.sampled_from([ready(), assign(), chunks(b"x")[0], from_agent("job.result", 1, {"jobId": JOB})]),
    st.dictionaries(NAMES, JSON, max_size=3),
    st.dictionaries(NAMES | st.sampled_from(["jobId", "inputs", "data", "kind"]), JSON, max_size=3),
)
def test_a_frame_with_anything_in_it_never_shows_a_canary(
    frame: dict[str, Any], change: dict[str, Any], payload: dict[str, Any]
) -> None:
    changed = frame | {"payload": frame["payload"] | payload} | change
    event = TAP.judge("c1", "la-to-cp", json.dumps(changed), 0)
    text = written(event)
    for value in CANARIES.values():
        assert value not in text
        assert json.dumps(value)[1:-1] not in text
    if "canaries" not in event.facts:
        assert not any(json.dumps(value)[1:-1] in json.dumps(changed) for value in CANARIES.values())


def test_the_event_holds_only_json() -> None:
    event = judge(assign())
    for member in fields(event):
        json.dumps(getattr(event, member.name))

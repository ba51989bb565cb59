"""Every trace in both engines, and every trace shown able to fail by breaking its rule in the core."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from lab.contract.trace_core import TracePlayer, play_trace, verify_traces
from lab.contract.traces import TRACES_FOLDER, Side, load_trace
from lab.protocol import gateway_side
from lab.protocol.agent_side import AgentConnection
from lab.protocol.checks import FrameChecks
from lab.protocol.chunks import ChunkTracker
from lab.protocol.connection import Connection
from lab.protocol.contract import contract_of
from lab.protocol.errors import CloseCodes
from lab.protocol.gateway_side import GatewayConnection, SessionStore
from lab.protocol.reliability import Inbound, Outbound, Verdict
from lab.protocol.wire import parse_untrusted
from tests.contract.test_traces import BY_NAME, CHAT, FOLDER, REVISIONS

NEWEST = contract_of(FOLDER, "2.3")
Patch = Callable[[pytest.MonkeyPatch], None]


def case(name: str, ids: str) -> Any:
    return pytest.param(name, id=name, marks=pytest.mark.req(ids))


@pytest.mark.req("CT-024")
@pytest.mark.parametrize("role", Side)
@pytest.mark.parametrize(
    "name",
    [
        case("invalid-agent-mismatch", "CT-025"),
        case("invalid-chunk-after-last", "CT-026"),
        case("invalid-chunk-byte-length-mismatch", "CT-027"),
        case("invalid-chunk-last-flag", "CT-028"),
        case("invalid-chunk-out-of-order", "CT-029"),
        case("invalid-chunk-total-changes", "CT-030"),
        case("invalid-clock-skew", "CT-031"),
        case("invalid-event-before-ready", "CT-032"),
        case("invalid-first-frame-not-register", "CT-033"),
        case("invalid-frame-over-48kib", "CT-034"),
        case("invalid-la-sends-job-assign", "CT-035"),
        case("invalid-params-raw-differs-from-payload", "CT-036"),
        case("invalid-resume-restarts-seq", "CT-038"),
        case("invalid-seq-gap", "CT-039"),
        case("invalid-seq-repeated", "CT-040"),
        case("invalid-sig-tenant-mismatch", "CT-041"),
        case("invalid-signature-warn-with-enforce-required", "CT-042"),
        case("invalid-tenant-mismatch", "CT-043"),
        case("invalid-type-outside-allowlist", "CT-044"),
    ],
)
def test_a_session_that_breaks_a_rule_ends_in_its_code(name: str, role: Side) -> None:
    trace = BY_NAME[name]
    result = play_trace(trace, role, NEWEST)
    whose = "its own" if role is trace.expect.by else "as its peer said"
    assert (result.held, result.seen) == (True, f"it ended with {trace.expect.error}, {whose}")


def test_the_code_of_a_payload_above_the_limit_is_left_open() -> None:
    """The sources do not say it: a bound of the schema is broken, and the trace is named after the payload."""
    trace = BY_NAME["invalid-payload-above-limit"]
    assert trace.expect.codes == ("payload_too_large", "schema_violation")
    results = {role: play_trace(trace, role, NEWEST) for role in Side}
    assert all(result.held for result in results.values())
    assert results[Side.CP].seen == "it ended with schema_violation, its own"


@pytest.mark.req("CT-024")
@pytest.mark.parametrize("role", Side)
@pytest.mark.parametrize(
    "name",
    [
        case("valid-content-chunks-in-order", "CT-045"),
        case("valid-handshake-and-job", "CT-046"),
        case("valid-resume-continues-seq", "CT-047"),
        case("valid-retransmit-is-idempotent", "CT-048"),
        case("valid-chat-job-and-stream", "CT-049"),
    ],
)
def test_a_sound_session_goes_well(name: str, role: Side) -> None:
    result = play_trace(BY_NAME[name], role, NEWEST)
    assert (result.held, result.seen) == (True, "went well")


@pytest.mark.parametrize("role", Side)
@pytest.mark.parametrize("name", BY_NAME)
def test_the_engines_write_the_traces_own_frames_to_the_letter(name: str, role: Side) -> None:
    trace = BY_NAME[name]
    player = TracePlayer(trace, role, contract_of(FOLDER, trace.revision))
    player.play()
    for step, members in player.written:
        frame = dict(step.frame or {})
        if step.type == "error":
            # Where the code is open, the trace names one of two.
            frame["payload"] = {**frame["payload"], "code": members["payload"]["code"]}
        assert members == frame, step
    assert [step for step, _ in player.written] == list(trace.own(role))


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_trace_holds_from_its_revision_on(revision: str) -> None:
    results = verify_traces(FOLDER, contract_of(FOLDER, revision))
    assert [result for result in results if not result.held] == []
    assert len(results) == (50 if revision == "2.3" else 48)


# Each rule broken in the core


def mute(code: str) -> Patch:
    """The checks let pass what `code` is due for."""
    right = FrameChecks._refusal

    def refusal(self: FrameChecks, members: Mapping[str, Any], now: float) -> str | None:
        found = right(self, members, now)
        return None if found == code else found

    return lambda patch: patch.setattr(FrameChecks, "_refusal", refusal)


def swap(code: str, other: str) -> Patch:
    """The checks refuse with another code."""
    right = FrameChecks._refusal

    def refusal(self: FrameChecks, members: Mapping[str, Any], now: float) -> str | None:
        found = right(self, members, now)
        return other if found == code else found

    return lambda patch: patch.setattr(FrameChecks, "_refusal", refusal)


def replaced(owner: Any, name: str, value: Any) -> Patch:
    return lambda patch: patch.setattr(owner, name, value)


def any_size(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("lab.protocol.connection.parse_untrusted", lambda message, _most: parse_untrusted(message, 1 << 20))


def forget_pairs(self: Inbound, seq: int, _msg_id: str) -> Verdict:
    return Verdict.FRESH if seq == self.last_seq + 1 else Verdict.GAP if seq > self.last_seq else Verdict.REPLAYED


BROKEN: list[tuple[str, Side, Patch]] = [
    ("invalid-agent-mismatch", Side.CP, mute("agent_mismatch")),
    ("invalid-agent-mismatch", Side.CP, replaced(GatewayConnection, "_check_agent", lambda *_: None)),
    ("invalid-chunk-after-last", Side.CP, mute("chunk_out_of_order")),
    ("invalid-chunk-after-last", Side.CP, swap("chunk_out_of_order", "chunk_inconsistent")),
    ("invalid-chunk-byte-length-mismatch", Side.CP, mute("chunk_inconsistent")),
    ("invalid-chunk-last-flag", Side.CP, mute("chunk_inconsistent")),
    ("invalid-chunk-out-of-order", Side.CP, mute("chunk_out_of_order")),
    ("invalid-chunk-total-changes", Side.CP, mute("chunk_inconsistent")),
    ("invalid-clock-skew", Side.CP, replaced(GatewayConnection, "_is_skewed", lambda *_: False)),
    ("invalid-event-before-ready", Side.CP, mute("not_ready")),
    ("invalid-first-frame-not-register", Side.CP, swap("handshake_violation", "not_ready")),
    ("invalid-frame-over-48kib", Side.LA, any_size),
    ("invalid-la-sends-job-assign", Side.CP, mute("wrong_direction")),
    ("invalid-params-raw-differs-from-payload", Side.LA, mute("params_mismatch")),
    ("invalid-payload-above-limit", Side.CP, mute("schema_violation")),
    ("invalid-resume-restarts-seq", Side.CP, mute("seq_replayed")),
    ("invalid-resume-restarts-seq", Side.CP, replaced(SessionStore, "resumable", lambda *_: None)),
    ("invalid-seq-gap", Side.LA, mute("seq_gap")),
    ("invalid-seq-repeated", Side.CP, mute("seq_replayed")),
    ("invalid-sig-tenant-mismatch", Side.LA, mute("tenant_mismatch")),
    ("invalid-signature-warn-with-enforce-required", Side.CP, replaced(gateway_side, "STRICT_TENANT_MODES", ())),
    ("invalid-tenant-mismatch", Side.CP, mute("tenant_mismatch")),
    ("invalid-type-outside-allowlist", Side.CP, swap("unknown_type", "bad_frame")),
    # How a refusal is carried out
    ("invalid-seq-gap", Side.LA, replaced(Connection, "fail", lambda self, code, *_: self.end(code, "local"))),
    ("invalid-seq-gap", Side.LA, replaced(CloseCodes, "of", lambda *_: 1000)),
    # A peer that is told of its fault and goes on
    ("invalid-seq-gap", Side.CP, replaced(GatewayConnection, "_on_error", lambda *_: None)),
    ("invalid-agent-mismatch", Side.LA, replaced(AgentConnection, "_on_error", lambda *_: None)),
    # What goes well
    ("valid-content-chunks-in-order", Side.CP, replaced(ChunkTracker, "advance", lambda *_: None)),
    ("valid-content-chunks-in-order", Side.LA, replaced(ChunkTracker, "advance", lambda *_: None)),
    ("valid-handshake-and-job", Side.CP, replaced(GatewayConnection, "_write_ready", lambda *_: None)),
    ("valid-handshake-and-job", Side.LA, replaced(Connection, "_write_ack", lambda *_: None)),
    ("valid-resume-continues-seq", Side.CP, replaced(SessionStore, "resumable", lambda *_: None)),
    ("valid-resume-continues-seq", Side.LA, replaced(AgentConnection, "_impossible", lambda *_: True)),
    ("valid-retransmit-is-idempotent", Side.CP, replaced(Inbound, "judge", forget_pairs)),
    ("valid-retransmit-is-idempotent", Side.LA, replaced(Outbound, "deadline", lambda *_: None)),
]


@pytest.mark.parametrize(
    ("name", "role", "broken"), BROKEN, ids=[f"{name}-{place}" for place, (name, *_) in enumerate(BROKEN)]
)
def test_a_trace_fails_where_its_rule_is_broken(
    name: str, role: Side, broken: Patch, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = BY_NAME[name]
    assert play_trace(trace, role, NEWEST).held
    broken(monkeypatch)
    result = play_trace(trace, role, NEWEST)
    assert not result.held, result


def test_every_trace_has_a_rule_that_is_broken() -> None:
    assert {name for name, *_ in BROKEN} == set(BY_NAME) - {CHAT}


@pytest.mark.parametrize(
    ("role", "seen"),
    [
        (Side.LA, ("it refuses with", "schema_violation")),
        (Side.CP, ("it writes ready", "the payload is not the trace's")),
    ],
)
def test_an_earlier_revision_knows_no_chat(role: Side, seen: tuple[str, str]) -> None:
    """An agent of 2.2 refuses one, and a gateway of 2.2 does not list what announces it."""
    result = play_trace(BY_NAME[CHAT], role, contract_of(FOLDER, "2.2"))
    assert not result.held
    assert all(words in result.seen for words in seen)


# The runner itself


def edited(tmp_path: Path, name: str, change: Callable[[dict[str, Any]], object]) -> Path:
    document = json.loads(BY_NAME[name].path.read_text())
    change(document)
    path = tmp_path / f"{name}.json"
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(
    ("change", "role", "seen"),
    [
        (lambda document: document["steps"][4].pop("lost"), Side.LA, "it writes heartbeat seq 2 at step 6"),
        (lambda document: document["steps"].pop(), Side.CP, "where nothing is due"),
        (lambda document: document["steps"].pop(3), Side.CP, "at step"),
        (lambda document: document["steps"][3]["frame"].update(seq=9), Side.LA, "`seq` is not the trace's"),
        (
            lambda document: document["steps"][2]["frame"]["payload"].update(peerLastSeq=4),
            Side.CP,
            "the payload is not",
        ),
    ],
)
def test_what_differs_from_the_trace_is_named(
    change: Callable[[dict[str, Any]], object], role: Side, seen: str, tmp_path: Path
) -> None:
    trace = load_trace(edited(tmp_path, "valid-retransmit-is-idempotent", change))
    result = play_trace(trace, role, NEWEST)
    assert not result.held
    assert seen in result.seen


def test_a_frame_that_the_engine_refuses_to_send_is_named(tmp_path: Path) -> None:
    def too_long(document: dict[str, Any]) -> None:
        document["steps"][3]["frame"]["payload"]["reason"] = "because"
        document["steps"][3].pop("fault")

    path = edited(tmp_path, "invalid-seq-gap", too_long)
    result = play_trace(load_trace(path), Side.CP, NEWEST)
    assert "it refuses to send step 4 (cp job.cancel): schema_violation" in result.seen


def test_an_unreadable_trace_is_a_result_that_does_not_hold(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "contract")
    path = tmp_path / "contract" / TRACES_FOLDER / "invalid-seq-gap.json"
    path.write_text("[]")
    results = verify_traces(tmp_path / "contract", contract_of(tmp_path / "contract", "2.3"))
    (lost,) = [result for result in results if not result.held]
    assert (lost.role, str(path) in lost.seen) == (None, True)

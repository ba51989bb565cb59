"""The trace files: that all of them are there, whole and really signed, and that the loader names every fault."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey

from lab.contract.traces import TRACES_FOLDER, Side, Step, Trace, load_trace, load_traces
from lab.contract.vectors import revision_order
from lab.errors import ContractError
from lab.protocol.contract import Contract, Direction, contract_of, default_contract_folder

FOLDER = default_contract_folder()
FOUND = load_traces(FOLDER)
BY_NAME = {trace.name: trace for trace in FOUND.traces}
REVISIONS = ("2.0", "2.1", "2.2", "2.3")
MAX_FRAME_BYTES = 49152

NAMES = (
    "invalid-agent-mismatch",
    "invalid-chunk-after-last",
    "invalid-chunk-byte-length-mismatch",
    "invalid-chunk-last-flag",
    "invalid-chunk-out-of-order",
    "invalid-chunk-total-changes",
    "invalid-clock-skew",
    "invalid-event-before-ready",
    "invalid-first-frame-not-register",
    "invalid-frame-over-48kib",
    "invalid-la-sends-job-assign",
    "invalid-params-raw-differs-from-payload",
    "invalid-payload-above-limit",
    "invalid-resume-restarts-seq",
    "invalid-seq-gap",
    "invalid-seq-repeated",
    "invalid-sig-tenant-mismatch",
    "invalid-signature-warn-with-enforce-required",
    "invalid-tenant-mismatch",
    "invalid-type-outside-allowlist",
    "valid-content-chunks-in-order",
    "valid-handshake-and-job",
    "valid-resume-continues-seq",
    "valid-retransmit-is-idempotent",
)
CHAT = "valid-chat-job-and-stream"
Members = dict[str, Any]


def test_every_trace_that_the_ledger_names_is_there() -> None:
    assert FOUND.faults == ()
    assert set(BY_NAME) == {*NAMES, CHAT}
    assert {trace.revision for trace in FOUND.traces if trace.name != CHAT} == {"2.0"}
    assert BY_NAME[CHAT].revision == "2.3"


@pytest.mark.parametrize("trace", FOUND.traces, ids=lambda trace: trace.name)
def test_a_code_that_the_sources_do_not_state_is_marked_as_a_choice(trace: Trace) -> None:
    expect = json.loads(trace.path.read_text())["expect"]
    if trace.expect.error is None:
        assert expect == {}
    else:
        assert expect["x-provenance"] == "inferred"
        assert expect["x-requirement"].startswith("CT-0")


# Only the step at fault may break the contract, and these break it by their form.
FORM = {
    "invalid-agent-mismatch": (),
    "invalid-type-outside-allowlist": ("unknown",),
    "invalid-payload-above-limit": ("maxLength",),
}


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("trace", FOUND.traces, ids=lambda trace: trace.name)
def test_every_sound_frame_keeps_its_schema_and_direction(trace: Trace, revision: str) -> None:
    if revision_order(trace.revision) > revision_order(revision):
        return
    contract = contract_of(FOLDER, revision)
    for step in trace.steps:
        seen = broken(contract, step)
        assert seen == (FORM.get(trace.name, ()) if step.fault else ()), step


def broken(contract: Contract, step: Step) -> tuple[str, ...]:
    if step.frame is None:
        return ()
    if step.type not in contract.types:
        return ("unknown",)
    due = Direction.LA_TO_CP if step.side is Side.LA else Direction.CP_TO_LA
    assert step.fault or contract.types[step.type].direction in (due, Direction.BOTH)
    found = contract.check_frame(step.type, step.frame)
    return () if found is None else (found.keyword,)


def canonical(frame: Members) -> bytes:
    sig = frame["sig"]
    digest = hashlib.sha256(frame["paramsRaw"].encode()).hexdigest()
    lines = ["VH-AGENT-SIG-V1", "WS", frame["type"], sig["tenantId"], sig["workspaceId"]]
    return "\n".join([*lines, str(sig["timestamp"]), sig["nonce"], digest]).encode()


@pytest.mark.req("SG-003")
@pytest.mark.parametrize("trace", FOUND.traces, ids=lambda trace: trace.name)
def test_signatures_hold_over_the_text_as_the_ledger_spells_it(trace: Trace) -> None:
    signed = [dict(step.frame) for step in trace.steps if step.frame is not None and "sig" in step.frame]
    for frame in signed:
        key = SigningKey(trace.keys[frame["sig"]["keyId"]]).verify_key
        signature = base64.urlsafe_b64decode(frame["sig"]["signature"] + "==")
        key.verify(canonical(frame), signature)
        with pytest.raises(BadSignatureError):
            key.verify(canonical({**frame, "type": "ack"}), signature)
    assert signed or trace.name in (
        "invalid-clock-skew",
        "invalid-event-before-ready",
        "invalid-first-frame-not-register",
        "invalid-signature-warn-with-enforce-required",
    )


@pytest.mark.req("CT-049")
def test_the_longest_inline_leaves_its_frame_below_the_limit() -> None:
    (assign,) = [step for step in BY_NAME[CHAT].steps if step.type == "job.assign"]
    assert [len(entry["inline"]) for entry in assign.payload["inputs"]] == [16384]
    assert 33_000 < len(assign.text().encode()) < 36_000 < MAX_FRAME_BYTES


def test_the_frame_that_is_too_large_is_so_by_one_byte_alone() -> None:
    (fault,) = [step for step in BY_NAME["invalid-frame-over-48kib"].steps if step.fault]
    assert len(fault.text().encode()) == MAX_FRAME_BYTES + 1
    assert json.loads(fault.text()) == fault.frame


# The loader

Change = Callable[[Members], object]


def step(number: int, **members: Any) -> Change:
    return lambda document: document["steps"][number].update(members)


def without(*path: Any) -> Change:
    def change(document: Members) -> None:
        target: Any = document
        for name in path[:-1]:
            target = target[name]
        del target[path[-1]]

    return change


@pytest.mark.req("CT-050")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without("about"), "are due"),
        (lambda document: document.update(steps=[]), "are due"),
        (lambda document: document.update(name="other"), "`name` says other"),
        (lambda document: document.update(mode="loose"), "`mode` is one of client, hybrid, hosted"),
        (lambda document: document.update(start="noon"), "`start` is a time"),
        (lambda document: document.update(start="2026-11-04T10:00:00"), "`start` is a time"),
        (lambda document: document.update(revision="two"), "no revision"),
        (lambda document: document.update(keys={"gateway-test-key": "AA=="}), "32 bytes"),
        (lambda document: document.update(keys=[]), "32 bytes"),
        (lambda document: document.update(extra=1), "unknown member extra"),
        (step(0, **{"from": "us"}), "step 1: `from`"),
        (step(0, at=-1), "step 1: `from`"),
        (step(0, at=True), "step 1: `from`"),
        (step(0, raw="x"), "step 1: one of frame"),
        (without("steps", 0, "frame"), "step 1: one of frame"),
        (lambda document: document["steps"].insert(0, {"from": "cp", "at": 0, "act": "reconnect"}), "step 1: one of"),
        (step(0, wait=3), "step 1: unknown member wait"),
        (step(0, lost=False), "step 1: `lost` is true or left out"),
        (step(0, bytes=3), "step 1: `bytes` is the size"),
        (step(2, sign={"keyId": "who"}), "step 3: `sign` needs a keyId"),
        (step(2, sign={"keyId": "gateway-test-key", "nonce": "n"}), "step 3, sign: unknown member nonce"),
        (step(0, at=5000), "its time is before"),
        (lambda document: document.update(expect={"error": "seq_gap"}), "expect: empty, or"),
        (lambda document: document.update(expect={"error": "no_code", "by": "cp"}), "'no_code' is no wire code"),
        (lambda document: document.update(expect={"error": "seq_gap", "by": "cp", "or": "x"}), "None is no wire code"),
        (lambda document: document.update(expect={"error": "seq_gap", "by": "la"}), "the last step is the error frame"),
        (lambda document: document.update(expect={"code": "seq_gap"}), "unknown member code"),
    ],
)
def test_a_fault_is_named_with_its_file_and_step(change: Change, said: str, tmp_path: Path) -> None:
    name = "invalid-agent-mismatch"
    document = json.loads(BY_NAME[name].path.read_text())
    path = tmp_path / f"{name}.json"
    path.write_text(json.dumps(document))
    assert load_trace(path).name == name
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(ContractError) as caught:
        load_trace(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert said in str(caught.value)


def test_every_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    place = tmp_path / TRACES_FOLDER
    place.mkdir(parents=True)
    assert "no traces" in load_traces(tmp_path).faults[0]
    (place / "a.json").write_text("{")
    (place / "b.json").mkdir()
    (place / f"{CHAT}.json").write_bytes(BY_NAME[CHAT].path.read_bytes())
    found = load_traces(tmp_path)
    assert [trace.name for trace in found.traces] == [CHAT]
    assert ["not JSON" in found.faults[0], "cannot be read" in found.faults[1]] == [True, True]


def test_a_repr_holds_neither_key_nor_content() -> None:
    shown = repr(BY_NAME[CHAT])
    assert "tax rate" not in shown
    assert "seed" not in shown
    assert repr(BY_NAME[CHAT].steps[0]).count("version") == 0

"""The oldest revision that takes a frame, as the tap tells it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from lab.errors import ContractError
from lab.tap.revisions import Revisions
from tests.tap.frames_by_hand import CONTRACT, JOB, REQUEST, TS, from_agent, from_gateway, tap

REVISIONS = Revisions(CONTRACT)
LIMITS = {"chunkRawBytes": 32768, "maxChunks": 64, "ackTimeoutMs": 5000, "heartbeatSeconds": 30}
READY = {"sessionId": REQUEST, "resumed": False, "peerLastSeq": 0, "limits": LIMITS}
KEY = {"alias": "default", "provider": "openai", "key": "k", "expiresAt": TS}
CANDIDATE = {"fingerprint": "0" * 64, "level": "error", "count": 1}


def assign(kind: str = "fix", text: str = "a", **more: Any) -> dict[str, Any]:
    inputs = [{"inline": text, "transient": True}]
    payload = {"jobId": JOB, "kind": kind, "inputs": inputs, "llm": {"alias": "default"}, **more}
    return from_gateway("job.assign", 1, payload)


@pytest.mark.req("CP-018", "CT-061", "CT-062")
@pytest.mark.parametrize(
    ("frame", "facts"),
    [
        pytest.param(assign(), {}, id="fix"),
        pytest.param(assign("chat"), {"since": "2.3"}, id="chat", marks=pytest.mark.req("CP-019")),
        pytest.param(assign(text="a" * 4096), {}, id="inline-4096"),
        pytest.param(assign(text="a" * 4097), {"since": "2.3"}, id="inline-4097", marks=pytest.mark.req("CP-020")),
        pytest.param(assign(options={"maxIterations": 1}), {"since": "2.1"}, id="options"),
        pytest.param(from_gateway("ready", 0, READY), {}, id="ready"),
        pytest.param(from_gateway("ready", 0, {**READY, "capabilities": []}), {"since": "2.1"}, id="ready-with-a-list"),
        pytest.param(from_gateway("llm.key", 1, KEY), {"since": "2.1", "typeSince": "2.1"}, id="llm.key"),
        pytest.param(
            from_gateway("policy.decision", 1, {"decision": "deny"}, requestId=REQUEST),
            {"since": "2.2", "typeSince": "2.2"},
            id="policy.decision",
        ),
        pytest.param(
            from_agent("policy.check", 1, {"jobId": JOB, "actionType": "write_file"}, requestId=REQUEST),
            {"since": "2.2", "typeSince": "2.2"},
            id="policy.check",
        ),
        pytest.param(from_agent("incident.candidate", 1, CANDIDATE), {}, id="candidate"),
        pytest.param(
            from_agent("incident.candidate", 1, {**CANDIDATE, "sizeBytes": 1}), {"since": "2.1"}, id="candidate-size"
        ),
        pytest.param(assign("sing"), {}, id="none-takes-it"),
        pytest.param(from_gateway("policy.decision", 1, {}), {"typeSince": "2.2"}, id="type-alone"),
        pytest.param({"type": 7}, {}, id="no-type"),
        pytest.param({"type": "job.sing"}, {}, id="unknown-type"),
    ],
)
def test_the_oldest_revision_that_takes_a_frame(frame: dict[str, Any], facts: dict[str, str]) -> None:
    assert REVISIONS.facts(frame) == facts


@pytest.mark.parametrize("revision", ["2.0", "2.2", "2.3"])
def test_the_tap_tells_it_whatever_its_own_revision(revision: str) -> None:
    seen = tap(revision).judge("c1", "cp-to-la", json.dumps(assign("chat")), 0.0)
    assert seen.facts["since"] == "2.3"
    assert (seen.facts["schema"] == "ok") is (revision == "2.3")


def test_a_folder_of_one_revision_tells_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "one"
    shutil.copytree(CONTRACT, folder, ignore=shutil.ignore_patterns("revisions.json", "vectors"))
    assert Revisions(folder).facts(assign("chat")) == {}


@pytest.mark.parametrize("text", ["{", "[]", '{"newest": "2.3", "older": [{}]}'])
def test_steps_that_cannot_be_read(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "bad"
    shutil.copytree(CONTRACT, folder, ignore=shutil.ignore_patterns("vectors"))
    (folder / "revisions.json").write_text(text, "utf-8")
    with pytest.raises(ContractError, match=r"revisions\.json: not the steps"):
        Revisions(folder)

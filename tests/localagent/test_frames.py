from typing import Any

import pytest

from lab.localagent.counters import Counters
from lab.localagent.frames import FrameGate, audit, is_terminal, progress
from tests.localagent.doubles import JOB, JOB_B, TENANT, TS


def frame(seq: object = 1, kind: str = "job.event", payload: Any = None, **members: Any) -> dict[str, Any]:
    body = {"state": "running"} if payload is None else payload
    return {"type": kind, "seq": seq, "tenantId": TENANT, "jobId": JOB, "ts": TS, "payload": body} | members


@pytest.mark.req("A2-040")
@pytest.mark.parametrize(
    "value",
    [
        frame(),
        frame(kind="job.result", payload={"outcome": "no_change"}),
        frame(kind="audit.event", payload={"code": "tool_used"}),
    ],
)
def test_frames_of_the_job_pass(value: object) -> None:
    gate = FrameGate(TENANT, JOB, Counters())
    accepted = gate.accept(value)
    assert accepted is not None
    assert gate.last_seq == 1


@pytest.mark.req("A2-041")
@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        "x",
        {},
        frame(seq=0),
        frame(seq=-1),
        frame(seq=True),
        frame(seq=1.5),
        frame(seq="1"),
        frame(seq=2**53),
        frame(kind="job.other"),
        frame(type=["job.event"]),
        frame(payload=[]),
        frame(tenantId=None),
        frame(jobId=5),
        frame(kind="job.result"),
        frame(kind="job.result", payload={"outcome": ["no_change"]}),
        frame(kind="audit.event", payload={"code": "Not A Code"}),
    ],
)
def test_what_is_no_frame_is_dropped_and_counted(value: object) -> None:
    counters = Counters()
    assert FrameGate(TENANT, JOB, counters).accept(value) is None
    assert counters == Counters(frames_dropped=1)


@pytest.mark.req("A2-041", "SEC-016")
@pytest.mark.parametrize(
    ("members", "counted"),
    [({"tenantId": "other"}, Counters(tenant_violations=1)), ({"jobId": JOB_B}, Counters(job_violations=1))],
)
def test_foreign_frames_are_counted_and_stop_here(members: dict[str, str], counted: Counters) -> None:
    counters = Counters()
    gate = FrameGate(TENANT, JOB, counters)
    assert gate.accept(frame(9, **members)) is None
    assert counters == counted
    assert gate.accept(frame(1)) is not None


@pytest.mark.req("A2-039")
def test_a_replay_is_passed_over() -> None:
    counters = Counters()
    gate = FrameGate(TENANT, JOB, counters)
    seen = [gate.accept(frame(seq)) is not None for seq in (1, 2, 1, 2, 4, 3, 5)]
    assert seen == [True, True, False, False, True, False, True]
    assert counters == Counters()


@pytest.mark.parametrize(
    ("payload", "terminal"),
    [
        ({"terminal": True}, True),
        ({"state": "done"}, True),
        ({"state": "failed"}, True),
        ({"state": "cancelled"}, True),
        ({"state": "running"}, False),
        ({"terminal": 1, "state": ["done"]}, False),
    ],
)
def test_terminal_events(payload: dict[str, Any], terminal: bool) -> None:
    assert is_terminal(payload) is terminal


@pytest.mark.req("LA-019", "CHAT-028", "SEC-019")
def test_progress_takes_metadata_alone() -> None:
    payload = {"phase": "coding", "iteration": 2, "filesChanged": 3, "state": "waiting_approval", "text": "canary"}
    assert progress(JOB, payload) == {
        "jobId": JOB,
        "state": "waiting_approval",
        "phase": "coding",
        "iteration": 2,
        "filesChanged": 3,
    }
    wrong = {"phase": "a sentence of canary", "iteration": -1, "filesChanged": True, "state": "canary"}
    assert progress(JOB, wrong) == {"jobId": JOB, "state": "running"}


@pytest.mark.req("SEC-008", "TY-028")
def test_audit_takes_codes_and_ids_alone() -> None:
    payload = {
        "code": "tool_used",
        "summary": "canary",
        "ruleId": "a canary",
        "runId": "run-1",
        "count": 3,
        "jobId": JOB_B,
        "mode": ["x"],
    }
    assert audit(JOB, payload, TS) == {"code": "tool_used", "at": TS, "runId": "run-1", "count": 3, "jobId": JOB}
    assert audit(JOB, {"code": "x", "at": "2025-01-01T00:00:00Z"}, TS)["at"] == "2025-01-01T00:00:00Z"

"""Judging the metadata frames of agent2: which count, which were seen before, which are somebody else's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lab.localagent.counters import Counters
from lab.localagent.shapes import count, identifier, picked, timestamp, token

FRAME_TYPES = frozenset({"job.event", "job.result", "audit.event"})
OUTCOMES = frozenset({"pr_opened", "no_change", "failed", "cancelled"})
_TERMINAL_STATES = ("done", "failed", "cancelled")
_EVENT_FORMS = {"phase": token, "iteration": count, "filesChanged": count}
# SEC-008: ids and codes only; a member that could hold a sentence is not in the list.
_AUDIT_FORMS = {
    **dict.fromkeys(("workspaceId", "approvalId", "incidentId", "requestId", "runId", "ruleId", "alias"), identifier),
    **dict.fromkeys(("code", "actionType", "decision", "mode", "errorCode", "phase"), token),
    "at": timestamp,
    "count": count,
}


@dataclass(frozen=True)
class Agent2Frame:
    """A frame in its form; the seq counts from 1 (A2-040)."""

    type: str
    seq: int
    tenant_id: str
    job_id: str
    payload: Mapping[str, object]


class FrameGate:
    """Lets each frame of one job through once."""

    def __init__(self, tenant_id: str, job_id: str, counters: Counters) -> None:
        self._tenant_id = tenant_id
        self._job_id = job_id
        self._counters = counters
        self.last_seq = 0

    def accept(self, value: object) -> Agent2Frame | None:
        """The frame in `value`, or None after counting why not."""
        frame = _normalized(value)
        if frame is None:
            self._counters.frames_dropped += 1
            return None
        # A2-041, SEC-016: a foreign frame is counted and goes nowhere.
        if frame.tenant_id != self._tenant_id:
            self._counters.tenant_violations += 1
            return None
        if frame.job_id != self._job_id:
            self._counters.job_violations += 1
            return None
        # A2-039: a new connection replays what was read before.
        if frame.seq <= self.last_seq:
            return None
        self.last_seq = frame.seq
        return frame


def _normalized(value: object) -> Agent2Frame | None:
    if not isinstance(value, dict):
        return None
    kind, seq, payload = value.get("type"), value.get("seq"), value.get("payload")
    tenant_id, job_id = value.get("tenantId"), value.get("jobId")
    if not isinstance(kind, str) or kind not in FRAME_TYPES or not isinstance(payload, dict):
        return None
    if not isinstance(seq, int) or not count(seq) or seq == 0:
        return None
    if not isinstance(tenant_id, str) or not isinstance(job_id, str):
        return None
    if kind == "audit.event" and not token(payload.get("code")):
        return None
    if kind == "job.result" and not _known_outcome(payload.get("outcome")):
        return None
    return Agent2Frame(kind, seq, tenant_id, job_id, payload)


def _known_outcome(value: object) -> bool:
    return isinstance(value, str) and value in OUTCOMES


def is_terminal(payload: Mapping[str, object]) -> bool:
    """Whether a job.event says that the job is over."""
    return payload.get("terminal") is True or payload.get("state") in _TERMINAL_STATES


def progress(job_id: str, payload: Mapping[str, object]) -> dict[str, object]:
    """The job.event of a non-terminal event of agent2 (LA-019)."""
    state = "waiting_approval" if payload.get("state") == "waiting_approval" else "running"
    return {"jobId": job_id, "state": state, **picked(payload, _EVENT_FORMS)}


def audit(job_id: str, payload: Mapping[str, object], at: str) -> dict[str, object]:
    """The audit.event of one of agent2's; `at` stands in when it gave no time."""
    return {"at": at, **picked(payload, _AUDIT_FORMS), "jobId": job_id}

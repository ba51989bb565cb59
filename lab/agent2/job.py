"""One job of agent2: its states as a table, and the script that moves it.

A job takes `now` in lab seconds and gives journal events, which say what it just did.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from lab.agent2.beats import AwaitApproval, EmitFrame, EmitLine, End, FrameType, LineType, Payload, StreamName
from lab.agent2.feed import Breaks, Feed
from lab.agent2.script import Script
from lab.clock import timestamp, wall_ms
from lab.errors import MisuseError
from lab.journal.events import Agent2Frame, Agent2Job, Agent2Line, Event, digest


class JobState(StrEnum):
    """States of a job, as GET /jobs/{id} tells them."""

    ACCEPTED = "accepted"
    RUNNING = "running"
    WAITING_APPROVAL = "waiting_approval"
    CANCELLING = "cancelling"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Turn(StrEnum):
    """What moves a job from one state to another."""

    BEGIN = "begin"
    ASK = "ask"
    APPROVE = "approve"
    DENY = "deny"
    CANCEL = "cancel"
    END_DONE = "end_done"
    END_FAILED = "end_failed"
    END_CANCELLED = "end_cancelled"


# No state leads out of an end; a pair that is absent is a defect of the caller.
TRANSITIONS: Mapping[tuple[JobState, Turn], JobState] = MappingProxyType(
    {
        (JobState.ACCEPTED, Turn.BEGIN): JobState.RUNNING,
        (JobState.ACCEPTED, Turn.CANCEL): JobState.CANCELLING,
        (JobState.RUNNING, Turn.ASK): JobState.WAITING_APPROVAL,
        (JobState.RUNNING, Turn.CANCEL): JobState.CANCELLING,
        (JobState.RUNNING, Turn.END_DONE): JobState.DONE,
        (JobState.RUNNING, Turn.END_FAILED): JobState.FAILED,
        (JobState.RUNNING, Turn.END_CANCELLED): JobState.CANCELLED,
        (JobState.WAITING_APPROVAL, Turn.APPROVE): JobState.RUNNING,
        (JobState.WAITING_APPROVAL, Turn.DENY): JobState.FAILED,
        (JobState.WAITING_APPROVAL, Turn.CANCEL): JobState.CANCELLING,
        (JobState.CANCELLING, Turn.END_CANCELLED): JobState.CANCELLED,
    }
)

ENDS = (JobState.DONE, JobState.FAILED, JobState.CANCELLED)

_TURN_OF_END = MappingProxyType(
    {"done": Turn.END_DONE, "failed": Turn.END_FAILED, "cancelled": Turn.END_CANCELLED, None: Turn.END_FAILED}
)


def next_state(state: JobState, turn: Turn) -> JobState:
    """The state after `turn`; one that the table lacks raises `MisuseError`."""
    try:
        return TRANSITIONS[state, turn]
    except KeyError:
        raise MisuseError(f"an agent2 job that is {state} cannot {turn}") from None


@dataclass(frozen=True)
class MetadataFrame:
    """A metadata frame, produced at lab time `at` in seconds; `seq` counts from 1 in its job."""

    type: FrameType
    seq: int
    tenant_id: str
    job_id: str
    at: float
    payload: Payload

    def to_json(self, epoch_ms: int) -> dict[str, object]:
        """The frame as a JSON object; `epoch_ms` is the wall time of lab time 0."""
        ts = timestamp(wall_ms(epoch_ms, self.at))
        payload = dict(self.payload)
        if self.type is FrameType.AUDIT_EVENT:
            # TY-028: an audit.event's payload tells the time as well
            payload["at"] = ts
        # A2-040: the form of a frame
        return {
            "type": self.type,
            "seq": self.seq,
            "tenantId": self.tenant_id,
            "jobId": self.job_id,
            "ts": ts,
            "payload": payload,
        }


class Job:
    """A job that runs `script`, accepted at lab time `now`; its first beat is due then."""

    def __init__(
        self, job_id: str, kind: str, script: Script, tenant_id: str, canaries: Mapping[str, str], now: float
    ) -> None:
        self.job_id = job_id
        self.kind = kind
        self.state = JobState.ACCEPTED
        self.outcome: str | None = None
        self.pending_approval: str | None = None
        self.decisions: dict[str, str] = {}
        self.frames: Feed[MetadataFrame] = Feed()
        self.lines: Feed[str] = Feed()
        self._tenant_id = tenant_id
        self._canaries = canaries
        self._script = script
        self._next = 0
        self._due: float | None = now
        order = script.break_stream
        self._breaks = {order.stream: Breaks(order.after, order.times)} if order else {}

    @property
    def due(self) -> float | None:
        """Lab time of the next beat; None while it waits for a decision, and after the end."""
        return self._due

    @property
    def over(self) -> bool:
        """Whether the job has ended."""
        return self.state in ENDS

    def breaks(self, stream: StreamName) -> Breaks | None:
        """How `stream` is to break, if the script orders it; all readers share it."""
        return self._breaks.get(stream)

    def handle_timeout(self, now: float) -> list[Event]:
        """Do every beat that is due at `now`."""
        events: list[Event] = []
        if self.state is JobState.ACCEPTED and self._due is not None and self._due <= now:
            events += self._turn(Turn.BEGIN)
            self._schedule(self._due)
        while self._due is not None and self._due <= now:
            action = self._script.beats[self._next].action
            due = self._due
            self._next += 1
            if isinstance(action, EmitLine):
                events.append(self._emit_line(action))
            elif isinstance(action, EmitFrame):
                events.append(self._emit_frame(action.type, action.payload, now))
            elif isinstance(action, AwaitApproval):
                events += self._ask(action.approval_id, now)
                continue
            else:
                events += self._end(action, _TURN_OF_END[action.state], now)
                continue
            self._schedule(due)
        return events

    def cancel(self, now: float) -> list[Event]:
        """End as cancelled. Nothing happens once the job is over, or when its script ignores a cancel."""
        if self.over or self._script.ignore_cancel:
            return []
        events: list[Event] = self._turn(Turn.CANCEL)
        # A2-050: agent2 reports cancelled itself
        return events + self._end(End({"outcome": "cancelled"}, "cancelled"), Turn.END_CANCELLED, now)

    def decide(self, decision: str, now: float) -> list[Event]:
        """Go on after `approve`; fail as policy_denied after any other decision."""
        if self.pending_approval is None:
            raise MisuseError("no approval is pending")
        self.decisions[self.pending_approval] = decision
        self.pending_approval = None
        if decision != "approve":
            denied = End({"outcome": "failed", "errorCode": "policy_denied"}, "failed")
            return self._end(denied, Turn.DENY, now)
        events: list[Event] = self._turn(Turn.APPROVE)
        events.append(self._emit_frame(FrameType.JOB_EVENT, {"state": "running"}, now))
        self._schedule(now)
        return events

    def _schedule(self, since: float) -> None:
        # From the time a beat was due, not from when it was done: a busy loop does not stretch the script.
        self._due = since + self._script.beats[self._next].delay

    def _turn(self, turn: Turn) -> list[Event]:
        self.state = next_state(self.state, turn)
        return [Agent2Job(self.job_id, self.state)]

    def _emit_line(self, action: EmitLine) -> Event:
        secret = bool(action.canaries)
        filled = action.filled(self._canaries) if secret else action
        line = filled.encoded()
        self.lines.items.append(line)
        answer = next((str(value) for name, value in filled.members if name == "text"), "")
        is_answer = action.type is LineType.ANSWER
        return Agent2Line(
            self.job_id,
            i=len(self.lines.items) - 1,
            sha256=hashlib.sha256(line.encode()).hexdigest(),
            chars=len(line),
            source=action.source,
            secret=secret,
            role="assistant" if is_answer else "",
            text=digest("answer", answer) if is_answer else None,
        )

    def _emit_frame(self, kind: FrameType, payload: Payload, now: float) -> Event:
        # A2-040: seq counts from 1
        frame = MetadataFrame(kind, len(self.frames.items) + 1, self._tenant_id, self.job_id, now, payload)
        self.frames.items.append(frame)
        return Agent2Frame(self.job_id, frame.seq, kind, payload)

    def _ask(self, approval_id: str, now: float) -> list[Event]:
        self.pending_approval = approval_id
        self._due = None
        return [
            *self._turn(Turn.ASK),
            self._emit_frame(FrameType.AUDIT_EVENT, {"code": "approval_requested", "approvalId": approval_id}, now),
            self._emit_frame(FrameType.JOB_EVENT, {"state": "waiting_approval"}, now),
        ]

    def _end(self, end: End, turn: Turn, now: float) -> list[Event]:
        # The result comes before the terminal job.event, so that a reader that stops at either has it (LA-027).
        events: list[Event] = []
        if end.result is not None:
            self.outcome = str(end.result["outcome"])
            events.append(self._emit_frame(FrameType.JOB_RESULT, end.result, now))
        if end.state is not None:
            # TY-014: agent2's own copy of a job.event marks the terminal one
            terminal = {"state": end.state, "terminal": True}
            events.append(self._emit_frame(FrameType.JOB_EVENT, terminal, now))
        self.state = next_state(self.state, turn)
        events.append(Agent2Job(self.job_id, self.state, result=end.result))
        self.pending_approval = None
        self._due = None
        # A2-050: both streams close when the job is over
        self.frames.over = self.lines.over = True
        return events

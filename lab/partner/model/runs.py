"""Runs and their events as they lie in the state, and GET of a run (MSG-003, MSG-004)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from lab.clock import timestamp
from lab.journal.partner_events import PartnerTurn
from lab.partner.model.answers import Answer, ApiRequest, success
from lab.partner.model.authority import Actor, Caller, Conversation, RunAuthority
from lab.partner.model.parts import Parts
from lab.partner.model.refusals import unavailable
from lab.partner.model.sse import compact
from lab.partner.model.state import State
from lab.partner.model.timings import pending_snapshot
from lab.partner.model.words import TERMINAL, RunStatus

CALL_ID_BYTES: Final = 12


@dataclass(frozen=True, slots=True)
class Run:
    """A run as it is stored now. The JSON members keep the values that were stored (US-026)."""

    run_id: str
    conversation_id: str
    turn_id: str
    status: RunStatus
    reason: str | None
    authority: RunAuthority
    message: str = field(repr=False)
    attachment_ids: tuple[str, ...]
    tool_errors: Sequence[Mapping[str, object]]
    timings: Mapping[str, object] | None
    usage: Mapping[str, object] | None
    created_ms: int

    @property
    def over(self) -> bool:
        """Whether its status is terminal (MSG-020)."""
        return self.status in TERMINAL

    def to_json(self) -> dict[str, object]:
        """`Run` of the contract (MSG-002, MSG-024)."""
        return {
            "runId": self.run_id,
            "conversationId": self.conversation_id,
            "turnId": self.turn_id,
            "status": str(self.status),
            "reason": self.reason,
            "createdAt": timestamp(self.created_ms),
            **self.result(),
        }

    def result(self) -> dict[str, object]:
        """What GET and the terminal run_status have in common (SSE-024, SSE-025, TM-042)."""
        return {"toolErrors": list(self.tool_errors), "timings": self.timings, "usage": self.usage}


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event of a run. `data` is the exact text of its data line (SSE-045)."""

    sequence: int
    kind: str
    data: str = field(repr=False)


def find_run(state: State, run_id: str) -> Run | None:
    """The run with this id, whoever it belongs to."""
    row = state.row("SELECT * FROM runs WHERE run_id = ?", run_id)
    return None if row is None else _run_of(row)


def run_status(state: State, run_id: str) -> RunStatus | None:
    """Where the run stands; None once it was removed."""
    row = state.row("SELECT status FROM runs WHERE run_id = ?", run_id)
    return None if row is None else RunStatus(row["status"])


def run_in(state: State, conversation_id: str, run_id: str) -> Run:
    """The conversation's run; 404 for another one's (MSG-040)."""
    run = find_run(state, run_id)
    if run is None or run.conversation_id != conversation_id:
        raise unavailable("run")
    return run


def active_run(state: State, conversation_id: str) -> str | None:
    """The run of the conversation that has not ended, if there is one (MSG-008)."""
    row = state.row(
        "SELECT run_id FROM runs WHERE conversation_id = ? AND status IN (?, ?)",
        conversation_id,
        RunStatus.ACCEPTED,
        RunStatus.RUNNING,
    )
    return None if row is None else str(row["run_id"])


def accept_run(
    parts: Parts,
    caller: Caller,
    actor: Actor,
    conversation: Conversation,
    message: str,
    files: Sequence[str],
    zone: str,
) -> Run:
    """Store a new run; call it in the transaction of its receipt (MSG-023, TM-002)."""
    run_id, turn_id = parts.ids.uuid(), parts.ids.uuid()
    parts.state.run(
        "INSERT INTO runs (run_id, conversation_id, turn_id, status, key_role, namespace, actor_id, team_id, agent_id, "
        "subject_version, message, attachment_ids, timezone, timings, created_ms) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        run_id,
        conversation.conversation_id,
        turn_id,
        RunStatus.ACCEPTED,
        caller.role,
        caller.namespace,
        actor.actor_id,
        actor.team_id,
        conversation.agent_id,
        actor.subject_version,
        message,
        json.dumps(list(files)),
        zone,
        compact(pending_snapshot()),
        parts.now_ms(),
    )
    return run_in(parts.state, conversation.conversation_id, run_id)


def append_event(state: State, run_id: str, kind: str, data: Mapping[str, object]) -> int | None:
    """Store the run's next event and tell its sequence (SSE-030); None once the run has ended or was removed."""
    stored = state.run(
        "INSERT INTO events SELECT run_id, 1 + (SELECT COALESCE(MAX(seq), 0) FROM events WHERE run_id = ?), ?, ? "
        "FROM runs WHERE run_id = ? AND status IN (?, ?)",
        run_id,
        kind,
        compact({"type": kind, **data}).encode("utf-8", "surrogatepass"),
        run_id,
        RunStatus.ACCEPTED,
        RunStatus.RUNNING,
    )
    return last_sequence(state, run_id) if stored else None


def events_after(state: State, run_id: str, sequence: int, most: int) -> list[StoredEvent]:
    """At most `most` events behind `sequence`, in order."""
    rows = state.rows("SELECT * FROM events WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?", run_id, sequence, most)
    return [StoredEvent(row["seq"], row["type"], bytes(row["data"]).decode("utf-8", "surrogatepass")) for row in rows]


def last_sequence(state: State, run_id: str) -> int:
    """The sequence of the last stored event, 0 without any."""
    return state.count("SELECT COALESCE(MAX(seq), 0) FROM events WHERE run_id = ?", run_id)


def tell_turn(
    parts: Parts,
    run: Run,
    change: str,
    *,
    status: RunStatus = RunStatus.RUNNING,
    reason: str | None = None,
    call_id: str | None = None,
    facts: Mapping[str, object] | None = None,
) -> None:
    """Journal a change of the run or an effect of it; `facts` hold no content."""
    event = PartnerTurn(
        run.run_id,
        run.conversation_id,
        run.turn_id,
        change,
        str(status),
        reason,
        call_id,
        {} if facts is None else facts,
    )
    parts.ctx.journal.record(parts.name, event)


def get_run(parts: Parts, caller: Caller, request: ApiRequest) -> Answer:
    """GET run: the polled run (MSG-003, MSG-024). Ownership is tested as for its stream (US-031)."""
    _, conversation = parts.own_conversation(caller, request)
    run = run_in(parts.state, conversation.conversation_id, request.path["runId"])
    facts = {"status": str(run.status), "reason": run.reason, "turnId": run.turn_id, **run.result()}
    return success(200, run.to_json(), conversation_id=run.conversation_id, run_id=run.run_id, facts=facts)


def _run_of(row: sqlite3.Row) -> Run:
    authority = RunAuthority(
        row["key_role"],
        row["namespace"],
        row["actor_id"],
        row["team_id"],
        row["agent_id"],
        row["conversation_id"],
        row["subject_version"],
    )
    return Run(
        row["run_id"],
        row["conversation_id"],
        row["turn_id"],
        RunStatus(row["status"]),
        row["reason"],
        authority,
        row["message"],
        tuple(json.loads(row["attachment_ids"])),
        json.loads(row["tool_errors"]),
        None if row["timings"] is None else json.loads(row["timings"]),
        None if row["usage"] is None else json.loads(row["usage"]),
        row["created_ms"],
    )

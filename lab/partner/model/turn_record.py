"""What a turn writes down: claim, events, failed tools, and its end in one transaction (US-025, SSE-055)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from lab.clock import timestamp
from lab.partner.model.history import ensure_answer_item, keep_answer
from lab.partner.model.parts import Parts
from lab.partner.model.runs import Run, append_event, find_run, tell_turn
from lab.partner.model.sse import compact
from lab.partner.model.words import TOOL_FAILED, TOOL_REFUSED, RunStatus


class RunGone(Exception):
    """The run has ended or was removed meanwhile: nothing more of it may be written."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn ends. `stop_reason` is of its `done` event, `error` the code of its `error` event.

    `certain`: what the provider did is known, so the bill may be (US-020).
    """

    status: RunStatus
    reason: str | None = None
    stop_reason: str | None = None
    error: str | None = None
    certain: bool = True


COMPLETED: Final = Ending(RunStatus.COMPLETED, stop_reason="completed")
# MSG-013: TOOL_REFUSED is the failure of this ending, and of no other
TOOL_ERROR: Final = Ending(RunStatus.FAILED, TOOL_REFUSED, stop_reason="tool_error")
LIMITED: Final = Ending(RunStatus.LIMITED, stop_reason="max_iterations")
CANCELLED: Final = Ending(RunStatus.CANCELLED, certain=False)
INTERRUPTED: Final = Ending(RunStatus.INTERRUPTED, certain=False)


def failed(code: str, *, certain: bool) -> Ending:
    """The ending of a turn that `code` stopped: an error event and no done (SSE-036)."""
    return Ending(RunStatus.FAILED, code, error=code, certain=certain)


class TurnRecord:
    """The writing hand of one run. What writes an event raises `RunGone` once there is nothing to add to."""

    def __init__(self, parts: Parts, run: Run) -> None:
        self._parts = parts
        self.run = run
        self._errors: list[dict[str, object]] = []
        self._has_item = False

    def claim(self) -> int:
        """Take the run: from now on a crash leaves it uncertain (MSG-010). The wall time of the claim."""
        now_ms = self._parts.now_ms()
        with self._parts.state.transaction():
            claimed = self._parts.state.run(
                "UPDATE runs SET status = ?, claimed = 1, claimed_ms = ?, instance = ? WHERE run_id = ? AND status = ?",
                RunStatus.RUNNING,
                now_ms,
                self._parts.instance_id,
                self.run.run_id,
                RunStatus.ACCEPTED,
            )
            if not claimed:
                raise RunGone
            # SSE-040: turn is sent at the claim
            self._append("turn", {"turnId": self.run.turn_id, "ts": timestamp(now_ms)})
        tell_turn(self._parts, self.run, "claimed")
        self._parts.bell.ring()
        return now_ms

    def text(self, text: str) -> None:
        """A delta of the answer (SSE-012)."""
        self._content("text", {"text": text})

    def tool_call(self, name: str, call_id: str) -> None:
        """A call begins. Its arguments stay here (SSE-013, SSE-021)."""
        self._content("tool_call", {"name": name, "id": call_id})

    def tool_result(self, name: str, call_id: str, ok: bool) -> None:
        """A call ended; of a failure the partner learns no more than that (SSE-022, MSG-018, MSG-046)."""
        with self._parts.state.transaction():
            self._content("tool_result", {"name": name, "ok": ok} | ({} if ok else {"error": TOOL_FAILED}))
            if not ok:
                # MSG-041: in the order of the events
                self._errors.append({"toolCallId": call_id, "name": name, "errorCode": TOOL_FAILED})
                self._parts.state.run(
                    "UPDATE runs SET tool_errors = ? WHERE run_id = ?", json.dumps(self._errors), self.run.run_id
                )

    def keep_answer(self) -> None:
        """Write the history of the turn."""
        keep_answer(self._parts.state, self.run.run_id)

    def end(
        self, ending: Ending, timings: Mapping[str, object] | None, usage: Mapping[str, object] | None
    ) -> Run | None:
        """The terminal status, its snapshots and its last events, together or not at all (US-025).

        None when the run had ended before, or is gone. `timings` None leaves the snapshot that is stored (TM-053).
        """
        ended = finish_run(self._parts, self.run.run_id, ending, timings, usage)
        self._parts.bell.ring()
        return ended

    def _content(self, kind: str, data: Mapping[str, object]) -> None:
        with self._parts.state.transaction():
            self._append(kind, data)
            if not self._has_item:
                ensure_answer_item(self._parts, self.run)
                self._has_item = True
        self._parts.bell.ring()

    def _append(self, kind: str, data: Mapping[str, object]) -> None:
        if append_event(self._parts.state, self.run.run_id, kind, data) is None:
            raise RunGone


def finish_run(
    parts: Parts,
    run_id: str,
    ending: Ending,
    timings: Mapping[str, object] | None,
    usage: Mapping[str, object] | None,
) -> Run | None:
    """See `TurnRecord.end`; also for a run that no turn of this life holds."""
    state = parts.state
    with state.transaction():
        if ending.stop_reason is not None:
            # SSE-019: done before run_status
            append_event(state, run_id, "done", {"stopReason": ending.stop_reason})
        if ending.error is not None:
            append_event(state, run_id, "error", {"code": ending.error})
        row = state.row("SELECT tool_errors, timings FROM runs WHERE run_id = ?", run_id)
        if row is None:
            return None
        stored = row["timings"] if timings is None else compact(timings)
        if ending.error is None or parts.settings.status_after_error:
            # SSE-028, SSE-029, SSE-036: the last event, unless the turn ended with an error
            data = {
                "status": str(ending.status),
                "reason": ending.reason,
                "toolErrors": json.loads(row["tool_errors"]),
                "timings": None if stored is None else json.loads(stored),
                "usage": usage,
            }
            if append_event(state, run_id, "run_status", data) is None:
                return None
        changed = state.run(
            "UPDATE runs SET status = ?, reason = ?, timings = ?, usage = ?, ended_ms = ? "
            "WHERE run_id = ? AND status IN (?, ?)",
            ending.status,
            ending.reason,
            stored,
            None if usage is None else compact(usage),
            parts.now_ms(),
            run_id,
            RunStatus.ACCEPTED,
            RunStatus.RUNNING,
        )
    return _told_end(parts, run_id) if changed else None


def _told_end(parts: Parts, run_id: str) -> Run | None:
    """The run as it ended, told to the journal."""
    run = find_run(parts.state, run_id)
    if run is not None:
        facts = {"toolErrors": len(run.tool_errors), "timings": run.timings, "usage": run.usage}
        tell_turn(parts, run, "ended", status=run.status, reason=run.reason, facts=facts)
    return run

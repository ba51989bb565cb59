"""Slips of a partner API in taking messages and in how runs end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lab.partner.model import event_stream, messages, turn_record, turns
from lab.partner.model.answers import Answer, ApiRequest
from lab.partner.model.authority import Caller
from lab.partner.model.event_stream import EventStreams, Opening
from lab.partner.model.parts import Parts
from lab.partner.model.refusals import Refusal, conflict
from lab.partner.model.runs import Run, active_run
from lab.partner.model.shape import Fields, read_object_untrusted
from lab.partner.model.state import State
from lab.partner.model.turn import Turn
from lab.partner.model.turn_record import CANCELLED, COMPLETED, LIMITED, TOOL_ERROR, Ending, TurnRecord
from lab.partner.model.words import CHAT_EXECUTION_FAILED, TOOL_FAILED, TOOL_REFUSED, RunStatus
from tests.bugs.partner import patching
from tests.bugs.partner.plants import plant
from tests.bugs.plants import Function, Patch

# Taking a message


@plant("api-replay-conflicts-while-running", scenario="message-replayed-while-running", law="one-run-per-key")
def replay_conflicts_while_running(patch: Patch) -> None:
    """Whether a run is active is asked first."""

    def make(original: patching.Route) -> patching.Route:
        def post(parts: Parts, caller: Caller, request: ApiRequest) -> Answer:
            if active_run(parts.state, request.path["conversationId"]) is not None:
                patch.slipped()
                raise conflict("active run")
            return original(parts, caller, request)

        return post

    patching.route(patch, patching.MESSAGES, make)


@plant("api-second-message-accepted", scenario="concurrent-message", law="one-active-run")
def second_message_accepted(patch: Patch) -> None:
    """Runs of a conversation go side by side."""
    patching.instead(patch, messages, "active_run", None)


@plant("api-lock-kept-after-failure", scenario="after-a-failure", law="free-after-end")
def lock_kept_after_failure(patch: Patch) -> None:
    """Only a completed run lets the next one in."""

    def make(original: Function) -> Function:
        def active(state: State, conversation_id: str) -> str | None:
            row = state.row(
                "SELECT run_id FROM runs WHERE conversation_id = ? AND status <> 'completed'", conversation_id
            )
            if row is None:
                return None
            patch.slipped()
            return str(row["run_id"])

        return active

    patch.wrap(messages, "active_run", make)


@plant("api-replay-shows-first-status", scenario="message-replayed", law="terminal-is-final")
def replay_shows_first_status(patch: Patch) -> None:
    """A replay is the first answer, word by word."""

    def first(data: patching.Data) -> bool:
        if data["status"] == "accepted":
            return False
        data["status"] = "accepted"
        return True

    patching.data(patch, patching.MESSAGES, first)


@plant("api-message-answers-200", scenario="partner-chat", law="answers-fit-contract")
def message_answers_200(patch: Patch) -> None:
    """All that went well is 200."""
    patching.answer(patch, patching.MESSAGES, lambda usual: replace(usual, status=200))


@plant("api-answer-is-running", scenario="partner-chat", law="first-answer-is-accepted")
def answer_is_running(patch: Patch) -> None:
    """The run has begun before the answer goes out."""

    def running(data: patching.Data) -> bool:
        data["status"] = "running"
        return True

    patching.data(patch, patching.MESSAGES, running)


@plant("api-blank-message-accepted", scenario="nothing-to-say", law="malformed-is-refused")
def blank_message_accepted(patch: Patch) -> None:
    """A message of blanks is one."""

    def make(original: Function) -> Function:
        def read(parts: Parts, request: ApiRequest) -> Any:
            try:
                return original(parts, request)
            except Refusal as refusal:
                if refusal.why != "neither text nor file":
                    raise
            patch.slipped()
            fields = Fields(read_object_untrusted(request), False)
            user, team = fields.text("externalUserId", 255), fields.text("externalTeamId", 255)
            return messages.Message(user, team, fields.optional_text("message", 32000) or "", (), "UTC")

        return read

    patch.wrap(messages, "read_message_untrusted", make)


# What is told of a run


@plant("api-created-at-of-poll", scenario="partner-chat", law="run-keeps-its-ids")
def created_at_of_poll(patch: Patch) -> None:
    """A run is as old as its poll."""

    def make(original: patching.Route) -> patching.Route:
        def polled(parts: Parts, caller: Caller, request: ApiRequest) -> Answer:
            told = original(parts, caller, request)
            assert isinstance(told.body, dict)
            patch.slipped()
            data = {**told.body["data"], "createdAt": parts.stamp(parts.now_ms())}
            return replace(told, body={"success": True, "data": data})

        return polled

    patching.route(patch, patching.RUN, make)


@plant("api-turn-id-per-view", scenario="partner-chat", law="history-equals-stream")
def turn_id_per_view(patch: Patch) -> None:
    """The history has ids of its own for turns."""

    def other(item: patching.Data) -> bool:
        item["turnId"] = f"h{item['turnId']}"
        return True

    patching.items(patch, other)


@plant("api-tool-errors-in-stream-only", scenario="failed-tools", law="stream-equals-run")
def tool_errors_in_stream_only(patch: Patch) -> None:
    """The polled run knows of no failed tool."""

    def none(run: Run, data: patching.Data) -> bool:
        data["toolErrors"] = []
        return bool(run.tool_errors)

    patching.result(patch, none)


@plant("api-tool-errors-null", scenario="partner-chat", law="answers-fit-contract")
def tool_errors_null(patch: Patch) -> None:
    """No failed tool is null."""

    def null(run: Run, data: patching.Data) -> bool:
        data["toolErrors"] = data["toolErrors"] or None
        return data["toolErrors"] is None

    patching.result(patch, null)


@plant("api-tool-errors-by-name", scenario="failed-tools", law="tool-errors")
def tool_errors_by_name(patch: Patch) -> None:
    """A tool fails once."""

    def make(original: Function) -> Function:
        def ended(self: TurnRecord, name: str, call_id: str, ok: bool) -> None:
            if not ok and any(error["name"] == name for error in self._errors):
                patch.slipped()
                self._content("tool_result", {"name": name, "ok": ok, "error": TOOL_FAILED})
                return
            original(self, name, call_id, ok)

        return ended

    patch.wrap(TurnRecord, "tool_result", make)


@plant("api-tool-error-has-message", scenario="failed-tools", law="stream-equals-run")
def tool_error_has_message(patch: Patch) -> None:
    """A tool error says what the store said."""

    def told(run: Run, data: patching.Data) -> bool:
        data["toolErrors"] = [{**error, "message": "unknown product"} for error in data["toolErrors"]]
        return bool(data["toolErrors"])

    patching.result(patch, told)


# Endings


def endings(patch: Patch, change: Any) -> None:
    """Let `change` make another ending of a turn; None leaves it as it is."""

    def make(original: Function) -> Function:
        def conclude(self: Turn, ending: Ending) -> Any:
            other = change(self, ending)
            if other is not None:
                patch.slipped()
            return original(self, other or ending)

        return conclude

    patch.wrap(Turn, "_conclude", make)


@plant("api-failed-tool-fails-run", scenario="failed-tools", law="stop-reason-table")
def failed_tool_fails_run(patch: Patch) -> None:
    """A failed step is a failed run."""

    def change(self: Turn, ending: Ending) -> Ending | None:
        if ending is not COMPLETED or not self._record._errors:
            return None
        return replace(ending, status=RunStatus.FAILED, reason=TOOL_REFUSED)

    endings(patch, change)


@plant("api-refusal-reason-left-out", scenario="stopped-on-refusal", law="stop-reason-table")
def refusal_reason_left_out(patch: Patch) -> None:
    """Failed says it all."""
    endings(patch, lambda _, ending: replace(ending, reason=None) if ending is TOOL_ERROR else None)


@plant("api-limited-is-completed", scenario="endless-tools", law="stop-reason-table")
def limited_is_completed(patch: Patch) -> None:
    """A turn that came to its bound is over, so it is completed."""
    endings(patch, lambda _, ending: replace(ending, status=RunStatus.COMPLETED) if ending is LIMITED else None)


@plant("api-limited-has-reason", scenario="endless-tools", law="stop-reason-table")
def limited_has_reason(patch: Patch) -> None:
    """A limited run says why."""
    endings(patch, lambda _, ending: replace(ending, reason="MAX_ITERATIONS") if ending is LIMITED else None)


@plant("api-exception-without-reason", scenario="provider-fails", law="stop-reason-table")
def exception_without_reason(patch: Patch) -> None:
    """An exception has no reason of the contract."""
    endings(patch, lambda _, ending: replace(ending, reason=None) if ending.error is not None else None)


@plant("api-disconnect-cancels", scenario="stream-cut", law="cancelled-by-order")
def disconnect_cancels(patch: Patch) -> None:
    """Nobody listens, so nobody needs the answer."""

    def gone(self: EventStreams, number: int, opening: Opening, change: str, sent: int) -> None:
        if change == "broken":
            patch.slipped()
            turn_record.finish_run(self._parts, opening.run.run_id, CANCELLED, None, None)

    patch.after(event_stream.EventStreams, "_tell", gone)


# After a crash


@plant("api-interrupted-runs-again", scenario="killed-in-a-turn", law="crashed-run-is-interrupted")
def interrupted_runs_again(patch: Patch) -> None:
    """What was under way goes back into the queue."""

    def again(self: turns.TurnRunner) -> None:
        if self._parts.state.run("UPDATE runs SET status = 'accepted' WHERE status = 'running'"):
            patch.slipped()

    patch.set(turns.TurnRunner, "_interrupt_claimed", again)


@plant("api-crashed-run-failed", scenario="killed-in-a-turn", law="crashed-run-is-interrupted")
def crashed_run_failed(patch: Patch) -> None:
    """What a crash cut off has failed."""
    patch.set(turns, "INTERRUPTED", Ending(RunStatus.FAILED, CHAT_EXECUTION_FAILED, certain=False))
    patch.after(turns, "finish_run", lambda *_: patch.slipped())

"""Slips of a partner API in the events of a run and in its streams."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from lab.partner.model import core, event_stream, turn, turn_record
from lab.partner.model.answers import ApiRequest
from lab.partner.model.authority import Caller
from lab.partner.model.context import UsableGrant, usable_grant
from lab.partner.model.event_stream import Opening
from lab.partner.model.parts import Parts
from lab.partner.model.runs import Run, StoredEvent
from lab.partner.model.script import ModelIteration, Text, Thinking
from lab.partner.model.turn import Turn
from lab.partner.model.turn_record import CANCELLED, COMPLETED, Ending, TurnRecord
from tests.bugs.partner import patching
from tests.bugs.partner.plants import plant
from tests.bugs.partner.plants_runs import endings
from tests.bugs.plants import Function, Patch

# Where a stream begins


def opened(patch: Patch, alter: Any) -> None:
    """Let `alter` say behind which sequence a resumed stream goes on."""

    def make(original: Function) -> Function:
        def opening(parts: Parts, caller: Caller, request: ApiRequest) -> Opening:
            usual: Opening = original(parts, caller, request)
            if not usual.after:
                return usual
            patch.slipped()
            return replace(usual, after=alter(usual.after))

        return opening

    patch.wrap(core, "open_stream", make)


@plant("api-resume-repeats-event", scenario="stream-cut", law="resume-continues")
def resume_repeats_event(patch: Patch) -> None:
    """The event that Last-Event-ID names comes again."""
    opened(patch, lambda after: after - 1)


@plant("api-resume-skips-event", scenario="stream-cut", law="resume-continues")
def resume_skips_event(patch: Patch) -> None:
    """One event too many is passed over."""
    opened(patch, lambda after: after + 1)


@plant("api-resume-from-start", scenario="stream-cut", law="resume-continues")
def resume_from_start(patch: Patch) -> None:
    """Every stream begins with the first event."""
    opened(patch, lambda _: 0)


@plant("api-bad-last-event-id-ignored", scenario="stream-bad-last-event-id", law="resume-continues")
def bad_last_event_id_ignored(patch: Patch) -> None:
    """What is no id is no header."""

    def make(original: Function) -> Function:
        def after(header: str | None, run_id: str, last: int) -> int:
            given: int | None = original(header, run_id, last)
            if given is None:
                patch.slipped()
            return given or 0

        return after

    patch.wrap(event_stream, "continue_after", make)


# The bytes of an event


def encoded(patch: Patch, alter: Any) -> None:
    """Let `alter` change sequence and name of what is written; None leaves it as it is."""

    def make(original: Function) -> Function:
        def encode(run_id: str, sequence: int, kind: str, data: str) -> bytes:
            other = alter(sequence, kind)
            if other is not None:
                patch.slipped()
            written: bytes = original(run_id, *((sequence, kind) if other is None else other), data)
            return written

        return encode

    patch.wrap(event_stream, "encode", make)


@plant("api-sequence-from-zero", scenario="partner-chat", law="event-ids")
def sequence_from_zero(patch: Patch) -> None:
    """The first event is number 0."""
    encoded(patch, lambda sequence, kind: (sequence - 1, kind))


@plant("api-event-name-differs", scenario="partner-chat", law="event-grammar")
def event_name_differs(patch: Patch) -> None:
    """A text is a message."""
    encoded(patch, lambda sequence, kind: (sequence, "message") if kind == "text" else None)


@plant("api-journal-names-sent", scenario="partner-chat", law="event-grammar")
def journal_names_sent(patch: Patch) -> None:
    """The journal's name of the event goes out."""
    patching.events(patch, lambda kind, data: ("turn.started", data) if kind == "turn" else None)


@plant("api-stream-cacheable", scenario="partner-chat", law="answers-fit-contract")
def stream_cacheable(patch: Patch) -> None:
    """A stream has the headers that every stream has."""
    headers = {name: value for name, value in event_stream.HEADERS.items() if name != "Cache-Control"}
    patch.set(event_stream, "HEADERS", headers)
    patch.after(event_stream.EventStreams, "_tell", lambda *_: patch.slipped())


@plant("api-replay-joins-text", scenario="stream-replayed", law="replay-identical")
def replay_joins_text(patch: Patch) -> None:
    """A replay is tidied up."""

    def make(original: Function) -> Function:
        def after(state: Any, run_id: str, sequence: int, most: int) -> list[StoredEvent]:
            found: list[StoredEvent] = original(state, run_id, sequence, most)
            joined: list[StoredEvent] = []
            for event in found:
                if joined and event.kind == joined[-1].kind == "text" and len(found) > 8:
                    text = json.loads(joined[-1].data)["text"] + json.loads(event.data)["text"]
                    data = json.dumps({"type": "text", "text": text}, separators=(",", ":"))
                    joined[-1] = replace(event, data=data)
                    patch.slipped()
                else:
                    joined.append(event)
            return joined

        return after

    patch.wrap(event_stream, "events_after", make)


# Which events there are


@plant("api-turn-event-missing", scenario="partner-chat", law="event-grammar")
def turn_event_missing(patch: Patch) -> None:
    """The first event is the first that says something."""

    def make(original: Function) -> Function:
        def append(self: TurnRecord, kind: str, data: Any) -> None:
            if kind == "turn":
                patch.slipped()
            else:
                original(self, kind, data)

        return append

    patch.wrap(TurnRecord, "_append", make)


@plant("api-run-status-before-done", scenario="partner-chat", law="event-grammar")
def run_status_before_done(patch: Patch) -> None:
    """The status is known first."""

    def make(original: Function) -> Function:
        held: list[Any] = []

        def append(state: Any, run_id: str, kind: str, data: Any) -> int | None:
            if kind == "done":
                held.append(data)
                return 0
            stored: int | None = original(state, run_id, kind, data)
            if kind == "run_status" and held:
                patch.slipped()
                stored = original(state, run_id, "done", held.pop())
            return stored

        return append

    patch.wrap(turn_record, "append_event", make)


@plant("api-run-status-after-error", scenario="provider-fails", law="event-grammar")
def run_status_after_error(patch: Patch) -> None:
    """Every run ends with its status."""

    def make(original: Function) -> Function:
        def finish(parts: Parts, *args: Any) -> Run | None:
            patch.slipped()
            settings = replace(parts.settings, status_after_error=True)
            ended: Run | None = original(replace(parts, settings=settings), *args)
            return ended

        return finish

    patch.wrap(turn_record, "finish_run", make)


@plant("api-interrupted-run-done", scenario="cancelled", law="stop-reason-table")
def interrupted_run_done(patch: Patch) -> None:
    """Each end is an end of the turn."""
    patch.set(turn, "CANCELLED", replace(CANCELLED, stop_reason="completed"))
    patch.after(Turn, "cancel", lambda _: patch.slipped())


@plant("api-stop-reason-of-provider", scenario="partner-chat", law="answers-fit-contract")
def stop_reason_of_provider(patch: Patch) -> None:
    """The provider's word goes out as it came."""

    def change(_: Turn, ending: Ending) -> Ending | None:
        return replace(ending, stop_reason="end_turn") if ending is COMPLETED else None

    endings(patch, change)


@plant("api-thinking-as-text", scenario="partner-chat", law=None, why="what the model thought, as a canary")
def thinking_as_text(patch: Patch) -> None:
    """A delta is a delta."""

    def make(original: Function) -> Function:
        def stream(self: Turn, iteration: ModelIteration, meter: Any) -> Any:
            if any(isinstance(delta, Thinking) for delta in iteration.deltas):
                patch.slipped()
            deltas = tuple(Text(delta.text) if isinstance(delta, Thinking) else delta for delta in iteration.deltas)
            return original(self, replace(iteration, deltas=deltas), meter)

        return stream

    patch.wrap(Turn, "_stream", make)


@plant("api-status-visible-before-event", scenario="polled-at-the-end", law="stream-equals-run")
def status_visible_before_event(patch: Patch) -> None:
    """The status is stored first, the event when there is time."""
    soon: dict[str, str] = {}

    def make(original: Function) -> Function:
        def conclude(self: Turn, ending: Ending) -> Any:
            soon[self._run.run_id] = str(ending.status)
            return original(self, ending)

        return conclude

    def early(run: Run, data: patching.Data) -> bool:
        if run.over or run.run_id not in soon:
            return False
        data["status"] = soon[run.run_id]
        data["timings"]["complete"] = True
        return True

    patch.wrap(Turn, "_conclude", make)
    patching.result(patch, early)


# What an event holds


@plant("api-tool-detail-sent", scenario="partner-chat", law="answers-fit-contract")
def tool_detail_sent(patch: Patch) -> None:
    """A call is told with its arguments."""

    def detailed(kind: str, data: patching.Data) -> tuple[str, patching.Data] | None:
        return (kind, {**data, "detail": '{"productId":9001}'}) if kind == "tool_call" else None

    patching.events(patch, detailed)


def tool_results(patch: Patch, change: Any) -> None:
    """Let `change` make another tool_result; None leaves it as it is."""

    def altered(kind: str, data: patching.Data) -> tuple[str, patching.Data] | None:
        other = change(data) if kind == "tool_result" else None
        return None if other is None else (kind, other)

    patching.events(patch, altered)


@plant("api-tool-result-raw-error", scenario="failed-tools", law="tool-errors")
def tool_result_raw_error(patch: Patch) -> None:
    """The error is what the store said."""
    tool_results(patch, lambda data: None if data["ok"] else {**data, "error": "unknown product 9999"})


@plant("api-ok-result-has-error", scenario="partner-chat", law="answers-fit-contract")
def ok_result_has_error(patch: Patch) -> None:
    """No error is an error of null."""
    tool_results(patch, lambda data: {**data, "error": None} if data["ok"] else None)


@plant("api-tool-result-in-event", scenario="partner-chat", law="answers-fit-contract")
def tool_result_in_event(patch: Patch) -> None:
    """The result goes out with its event."""
    tool_results(patch, lambda data: {**data, "result": {"title": "Lamp"}})


@plant("api-grant-in-event", scenario="partner-chat", law="answers-fit-contract")
def grant_in_event(patch: Patch) -> None:
    """The turn is told with its context."""

    def make(original: Function) -> Function:
        def append(self: TurnRecord, kind: str, data: Any) -> None:
            found = self._parts.authority.find_conversation(self.run.conversation_id)
            grant = usable_grant(self._parts, found) if found is not None else None
            if kind == "turn" and isinstance(grant, UsableGrant):
                patch.slipped()
                data = {**data, "context": {"grant": grant.grant}}
            original(self, kind, data)

        return append

    patch.wrap(TurnRecord, "_append", make)


# Ids and names of tool calls


@plant("api-model-call-id-shown", scenario="endless-tools", law="store-call-id-is-public-id")
def model_call_id_shown(patch: Patch) -> None:
    """The model counts its calls anew in each response."""
    patch.set(turn, "CALL_ID_BYTES", 0)
    patch.after(TurnRecord, "tool_call", lambda *_: patch.slipped())


@plant("api-tool-name-prefixed", scenario="partner-chat", law="store-call-id-is-public-id")
def tool_name_prefixed(patch: Patch) -> None:
    """Tools are named as the model has them."""

    def prefixed(kind: str, data: patching.Data) -> tuple[str, patching.Data] | None:
        if kind not in ("tool_call", "tool_result"):
            return None
        return kind, {**data, "name": f"store__{data['name']}"}

    patching.events(patch, prefixed)


@plant("api-history-mints-call-ids", scenario="partner-chat", law="history-equals-stream")
def history_mints_call_ids(patch: Patch) -> None:
    """The history has ids of its own."""

    def minted(item: patching.Data) -> bool:
        calls = [part for part in item.get("parts", ()) if part["type"] == "tool_call"]
        for number, part in enumerate(calls, 1):
            part["toolCallId"] = f"call-{number}"
        return bool(calls)

    patching.items(patch, minted)

"""The laws of a run's end: one status that stays, told alike by stream and poll, and no effect behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from lab.laws.partner.promise import Bench, promise
from lab.laws.partner.seen import EventAt, Moment, Run, Snapshot, key
from lab.laws.partner.view import PartnerView
from lab.laws.partner.words import EVENT_CODES, PARTNER_API, STOP_TABLE

OUTCOME = ("status", "reason", "toolErrors", "timings", "usage")
"""What a run's end tells, and never tells otherwise."""

IDENTITY = ("runId", "conversationId", "turnId", "createdAt")

UNFINISHED: Sequence[tuple[str, str | None]] = (("interrupted", None), ("cancelled", None))

IN_FLIGHT = 0.25
"""Seconds in which what was sent before a denial or an end may still arrive."""


def _differs(first: Snapshot, second: Snapshot, names: Sequence[str]) -> str | None:
    """The first member that both tell, and tell otherwise."""
    both = (name for name in names if name in first.facts and name in second.facts)
    return next((name for name in both if first.facts[name] != second.facts[name]), None)


def _terminal_is_final(view: PartnerView, bench: Bench) -> None:
    for run in view.runs.values():
        ends = run.ends()
        if not ends:
            continue
        bench.held()
        first = ends[0]
        for other in ends[1:]:
            # A poll and the stream are compared by stream-equals-run; a replayed 202 owes the status only (MSG-027).
            alike = other.source == first.source != "message"
            name = _differs(first, other, OUTCOME if alike else ("status", "reason"))
            seen = f"{name or 'nothing'} of the {first.status} run changed"
            bench.case(name is None, seen, "a terminal run never changes", first.n, other.n)
        for other in run.snapshots:
            if not other.terminal and other.after(first):
                bench.odd(f"{other.status} after {first.status}", f"{first.status} for good", first.n, other.n)
        for earlier, later in pairwise(sorted(run.snapshots, key=lambda one: one.n)):
            if later.status == "accepted" and earlier.status == "running" and later.after(earlier):
                bench.odd("accepted after running", "running or a terminal status", earlier.n, later.n)


def _run_keeps_its_ids(view: PartnerView, bench: Bench) -> None:
    for run in view.runs.values():
        told = [one for one in run.snapshots if one.call is not None]
        for other in told[1:]:
            name = _differs(told[0], other, IDENTITY)
            bench.case(name is None, f"another {name} of one run", f"{name} as first told", told[0].n, other.n)


def _stream_equals_run(view: PartnerView, bench: Bench) -> None:
    for run in view.runs.values():
        streamed = [one for one in run.ends() if one.source == "run_status"]
        polled = [one for one in run.ends() if one.source == "run"]
        if not streamed or not polled:
            continue
        for one in polled:
            name = _differs(streamed[0], one, OUTCOME)
            due = f"{name} as in run_status"
            bench.case(name is None, f"{name} of the polled run differs", due, streamed[0].n, one.n)


def _end_of(run: Run) -> Snapshot | None:
    return next(iter(run.ends()), None)


def _stop_reason_table(view: PartnerView, bench: Bench) -> None:
    for run in view.runs.values():
        events, end = run.whole(), _end_of(run)
        if events is None or end is None:
            if run.streams and end is not None:
                bench.unsure()
            continue
        done = next((seen for seen in events if seen.type == "done"), None)
        error = next((seen for seen in events if seen.type == "error"), None)
        told = (end.status, end.facts.get("reason"))
        if error is not None:
            code = key(error.facts.get("code"))
            bench.case(told == ("failed", code), _words(told), f"failed with {code}", error.n, end.n)
        elif done is not None:
            _judge_done(bench, done, told, end)
        else:
            # SSE-052: without a done the turn did not reach its end
            fine = told in (("interrupted", None), ("cancelled", None)) or (
                told[0] == "failed" and key(told[1]) in EVENT_CODES
            )
            bench.case(fine, f"{_words(told)} without done", "interrupted or cancelled", events[-1].n, end.n)


def _judge_done(bench: Bench, done: EventAt, told: tuple[object, object], end: Snapshot) -> None:
    stop = done.facts.get("stopReason")
    due = STOP_TABLE.get(stop) if isinstance(stop, str) else None
    if due is None:
        # SSE-027: a client takes any string
        bench.unsure()
    else:
        bench.case(told == due, f"{_words(told)} after stopReason {stop}", _words(due), done.n, end.n)


def _words(told: tuple[object, object]) -> str:
    status, reason = told
    return f"{status} with {reason}" if reason is not None else f"{status} without a reason"


def _tool_errors(view: PartnerView, bench: Bench) -> None:
    for run in view.runs.values():
        events = run.whole()
        for seen in run.events():
            if seen.type == "tool_result":
                fine = seen.facts.get("error") == (None if seen.facts.get("ok") is True else "TOOL_FAILED")
                # SSE-022, SSE-044
                bench.case(fine, f"tool_result with error {seen.facts.get('error')}", "TOOL_FAILED iff not ok", seen.n)
        if events is None:
            continue
        failed = sorted(
            (one for one in run.tool_calls(events) if one.ok is False),
            key=lambda one: one.result.n if one.result is not None else 0,
        )
        due = [(one.id, one.name, "TOOL_FAILED") for one in failed]
        for end in run.ends():
            told = end.facts.get("toolErrors")
            if not isinstance(told, list | tuple):
                if end.source == "run":
                    bench.odd("no list of toolErrors", f"{len(due)} toolErrors", end.n)
                continue
            found = [_error_words(one) for one in told]
            seen_words = f"{len(found)} toolErrors that are not the failed tool calls" if found != due else ""
            bench.case(found == due, seen_words, f"one for each of {len(due)} in their order", end.n)


def _error_words(error: object) -> tuple[object, object, object]:
    told = error if isinstance(error, Mapping) else {}
    return key(told.get("toolCallId")), key(told.get("name")), told.get("errorCode")


def _interrupted_never_rerun(view: PartnerView, bench: Bench) -> None:
    for run in view.runs.values():
        end = _end_of(run)
        if end is None or end.status != "interrupted":
            continue
        bench.held()
        _judge_effects_after(view, bench, run, end)


def _judge_effects_after(view: PartnerView, bench: Bench, run: Run, end: Moment) -> None:
    for call in run.store_calls:
        late = end.t + IN_FLIGHT + view.journal.slack(end.t, end.t + IN_FLIGHT)
        if call.after(end) and call.t <= late:
            bench.unsure()
        elif call.after(end):
            bench.odd("a store call of a run that was over", "no effect behind the end", end.n, call.n)
    for at, turn in run.turns:
        if at.n > end.n and turn.change in ("claimed", "model", "tool"):
            bench.odd(f"{turn.change} of a run that was over", "no effect behind the end", end.n, at.n)


def _no_effect_after_end(view: PartnerView, bench: Bench) -> None:
    for run in view.runs.values():
        end = _end_of(run)
        if end is not None and end.status != "interrupted":
            bench.held()
            _judge_effects_after(view, bench, run, end)


LAWS = (
    promise(
        "terminal-is-final",
        "A run goes from accepted by running to one terminal status, which never changes, nor what was told with it",
        PARTNER_API,
        ("MSG-022", "MSG-027", "SSE-055", "US-026", "US-027", "US-028"),
        _terminal_is_final,
    ),
    promise(
        "run-keeps-its-ids",
        "A run has the same runId, conversationId, turnId and createdAt in every answer",
        PARTNER_API,
        ("MSG-004", "MSG-027", "MSG-039"),
        _run_keeps_its_ids,
    ),
    promise(
        "stream-equals-run",
        "The last run_status tells status, reason, toolErrors, timings and usage as the polled run does",
        PARTNER_API,
        ("MSG-016", "SSE-024", "SSE-025", "SSE-055", "TM-042", "US-001"),
        _stream_equals_run,
    ),
    promise(
        "stop-reason-table",
        "How a turn stopped and the run's status and reason fit together",
        PARTNER_API,
        ("MSG-012", "MSG-013", "MSG-014", "MSG-021", "MSG-042", "SSE-052"),
        _stop_reason_table,
    ),
    promise(
        "tool-errors",
        "A run has one TOOL_FAILED for each failed tool call, in their order, and none else",
        PARTNER_API,
        ("MSG-016", "MSG-017", "MSG-018", "MSG-041", "SSE-022", "SSE-044"),
        _tool_errors,
    ),
    promise(
        "interrupted-never-rerun",
        "A run that was interrupted is not executed again",
        PARTNER_API,
        ("MSG-010", "MSG-011"),
        _interrupted_never_rerun,
    ),
    promise(
        "no-effect-after-end",
        "A run that ended asks no model and calls no store any more",
        PARTNER_API,
        ("MSG-022",),
        _no_effect_after_end,
    ),
)

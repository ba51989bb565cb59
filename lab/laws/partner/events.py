"""The laws of a run's stream: numbered without gaps, the same at every replay, and in an order that tells a turn."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from lab.journal.partner_events import PartnerStream
from lab.laws.partner.promise import Bench, promise
from lab.laws.partner.seen import EventAt, Moment, Run, StreamAt, key
from lab.laws.partner.view import PartnerView
from lab.laws.partner.words import PARTNER_API, TERMINAL

TYPES = frozenset({"turn", "text", "tool_call", "tool_result", "done", "run_status", "error"})
"""The public events (SSE-023)."""

LAST = frozenset({"run_status", "error"})


def _streams(view: PartnerView) -> Iterator[tuple[Run, StreamAt]]:
    return ((run, stream) for run in view.runs.values() for stream in run.streams)


def _event_ids(view: PartnerView, bench: Bench) -> None:
    for run, stream in _streams(view):
        last = None
        for seen in stream.events:
            sequence = seen.event.sequence
            if sequence is None or seen.event.event_id != f"{run.run_id}:{sequence}":
                # SSE-003: what follows is counted from the next good one.
                bench.odd("an id that is not the run's", "<runId>:<sequence>", seen.n)
                last = None
                continue
            if last is None:
                bench.case(sequence >= 1, f"sequence {sequence}", "sequences from 1", seen.n)
            else:
                due = last.event.sequence + 1 if last.event.sequence is not None else 1
                bench.case(sequence == due, f"event {sequence}", f"event {due}", last.n, seen.n)
            last = seen


def _resume_continues(view: PartnerView, bench: Bench) -> None:
    for _, stream in _streams(view):
        asked = stream.asked
        at, opened = stream.opened
        if asked is None:
            # SSE-031: what is no id of this run is refused before the stream opens
            bench.odd("a stream for a Last-Event-ID that names none of the run", "400 CHAT_INVALID", at.n)
        elif stream.events and stream.events[0].event.sequence is not None:
            first = stream.events[0]
            seen = f"event {first.event.sequence} first after {asked}"
            bench.case(first.event.sequence == asked + 1, seen, f"event {asked + 1}", at.n, first.n)
        elif opened.last_event_id is not None and stream.ended:
            _judge_empty(view, bench, stream, asked)
    for run in view.runs.values():
        for at, refusal in run.refused:
            if refusal.last_event_id is not None and not refusal.facts.get("byOrder"):
                _judge_refusal(bench, run, at, refusal)


def _judge_refusal(bench: Bench, run: Run, at: Moment, refusal: PartnerStream) -> None:
    """What was delivered may be named (SSE-005, SSE-007)."""
    named = refusal.last_event_id
    seen = [one.n for one in run.all_events() if one.event.sequence == named and one.n < at.n][:1]
    fine = refusal.code != "CHAT_INVALID" or not (seen or named == 0)
    bench.case(fine, f"CHAT_INVALID for event {named}", f"a stream from event {(named or 0) + 1}", *seen, at.n)


def _judge_empty(view: PartnerView, bench: Bench, stream: StreamAt, asked: int) -> None:
    """A stream that ended without an event: right behind the last event alone (SSE-034)."""
    run = view.run(stream.run_id)
    at = stream.opened[0]
    over = stream.over[0] if stream.over is not None else at
    later = next((one for one in run.all_events() if one.event.sequence == asked + 1 and one.n < at.n), None)
    if later is None:
        bench.held()
    elif view.quiet(at.t, over.t) and not _denied(view, stream):
        bench.odd(f"no event after {asked}", f"event {asked + 1}", later.n, over.n)
    else:
        bench.unsure()


_TAKES_RIGHTS = ("clock", "identities", "keys/rotate", "keys/revoke", "removals")
"""Controls by which authority is lost, or a key changes."""


def _denied(view: PartnerView, stream: StreamAt) -> bool:
    """Whether authority may have been lost, or a key changed: then delivery stops without a word (SSE-037)."""
    lost = any(call.event.code in ("EXECUTION_DENIED", "CREDENTIAL_REJECTED") for call in view.calls)
    withheld = any(one.change == "withheld" for _, one in view.run(stream.run_id).deliveries)
    off = any(call.sent.get("active") is False for call in view.of("membership"))
    return lost or withheld or off or any(True for _ in view.ordered(*_TAKES_RIGHTS))


def _replay_identical(view: PartnerView, bench: Bench) -> None:
    for run in view.runs.values():
        first: dict[int, EventAt] = {}
        for seen in run.all_events():
            sequence = seen.event.sequence
            if sequence is None:
                continue
            known = first.setdefault(sequence, seen)
            if known is not seen:
                same = known.event.sha256 == seen.event.sha256 and known.event.name == seen.event.name
                bench.case(same, f"event {sequence} with other bytes", "the same bytes at each replay", known.n, seen.n)


# The order of a turn


def _event_grammar(view: PartnerView, bench: Bench) -> None:
    for run in view.runs.values():
        events = run.events()
        if events and events[0].event.sequence == 1:
            _judge_order(bench, run, events)
        elif events:
            bench.unsure()


def _judge_order(bench: Bench, run: Run, events: Sequence[EventAt]) -> None:
    before: EventAt | None = None
    open_tools: dict[Hashable, int] = {}
    for due, seen in enumerate(events, 1):
        if seen.event.sequence != due:
            # What lies between was not seen, so the rest tells nothing.
            return
        odd = _odd(run, before, open_tools, seen)
        if odd is None:
            bench.held()
        else:
            bench.odd(odd[0], odd[1], *([before.n] if before is not None else []), seen.n)
        before = seen


def _odd(run: Run, before: EventAt | None, open_tools: dict[Hashable, int], seen: EventAt) -> tuple[str, str] | None:
    name = key(seen.facts.get("name"))
    if seen.event.name != seen.type:
        return f"event name {seen.event.name} over data of type {seen.type}", "the same name in both"
    if seen.type not in TYPES:
        return f"an event of type {seen.type}", "one of the seven types"
    if before is not None and before.type in LAST:
        return f"{seen.type} after {before.type}", "nothing after the last event"
    if before is not None and before.type == "done" and seen.type != "run_status":
        return f"{seen.type} after done", "run_status"
    if (before is None) != (seen.type == "turn") and not _turnless(before, seen):
        return f"{seen.type} as {'the first' if before is None else 'a later'} event", "turn first, and only first"
    if seen.type == "turn" and run.turn_id is not None and seen.facts.get("turnId", run.turn_id) != run.turn_id:
        return "a turn event with another turnId", "the turnId of the run"
    if seen.type == "tool_call":
        open_tools[name] = open_tools.get(name, 0) + 1
    elif seen.type == "tool_result":
        if open_tools.get(name, 0) == 0:
            return f"tool_result of {name} without an open tool_call", "a tool_call before its result"
        open_tools[name] -= 1
    elif seen.type == "done" and any(open_tools.values()):
        return "done with an open tool_call", "the result of every tool before done"
    elif seen.type == "run_status" and key(seen.facts.get("status")) not in TERMINAL:
        return f"run_status {seen.facts.get('status')}", "a terminal status"
    return None


def _turnless(before: EventAt | None, seen: EventAt) -> bool:
    """Whether a run ended before its claim: it has no turn event (MSG-022, SSE-040)."""
    return before is None and seen.type in LAST


LAWS = (
    promise(
        "event-ids",
        "The ids of a run's events are its runId and a sequence that rises by one from 1",
        PARTNER_API,
        ("SSE-003", "SSE-030"),
        _event_ids,
    ),
    promise(
        "resume-continues",
        "A stream begins with the event after the one that Last-Event-ID names, and with the first without one",
        PARTNER_API,
        ("SSE-005", "SSE-006", "SSE-007", "SSE-008", "SSE-031", "SSE-034"),
        _resume_continues,
    ),
    promise(
        "replay-identical",
        "An event has the same bytes in every stream that tells it",
        PARTNER_API,
        ("SSE-045", "US-026"),
        _replay_identical,
    ),
    promise(
        "event-grammar",
        "A run's events begin with turn, pair each tool_result with a call, and end with run_status or error",
        PARTNER_API,
        ("MSG-039", "SSE-004", "SSE-019", "SSE-023", "SSE-029", "SSE-036", "SSE-040"),
        _event_grammar,
    ),
)

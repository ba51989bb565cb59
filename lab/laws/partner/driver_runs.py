"""The laws of how the driver takes a conversation: bind, then message; resume, then poll; fresh grants only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise

from lab.journal.partner_events import PartnerStream
from lab.laws.partner.instants import instant
from lab.laws.partner.promise import Bench, promise
from lab.laws.partner.seen import CallAt, Conversation, Moment, Run
from lab.laws.partner.view import PartnerView
from lab.laws.partner.words import PARTNER_CLIENT, TERMINAL

MOST_RECONNECTS = 5
"""Times that a driver opens a broken stream again without having got on (SSE-047)."""


def _openings(run: Run) -> Iterator[tuple[Moment, PartnerStream]]:
    """Each stream that the driver asked for, whatever came of it, in their order."""
    asked = [*(stream.opened for stream in run.streams), *run.refused, *run.unopened]
    return iter(sorted(asked, key=lambda one: one[0].n))


def _resumes_with_last_id(view: PartnerView, bench: Bench) -> None:
    for run in view.runs.values():
        for at, opened in _openings(run):
            if opened.facts.get("byOrder"):
                continue
            got = [one.event.sequence or 0 for one in run.all_events() if one.event.applied and one.n < at.n]
            due = max(got, default=0)
            asked = opened.last_event_id or 0
            bench.case(asked == due, f"a stream from {asked} after event {due}", f"from event {due}", at.n)
        came = Counter(one.last_event_id for _, one in run.deliveries if one.change == "opened")
        if came:
            for stream in run.streams:
                text = None if stream.opened[1].last_event_id is None else f"{run.run_id}:{stream.asked}"
                at = stream.opened[0]
                fine = stream.asked is None or came[text] > 0 or (stream.asked == 0 and came[None] > 0)
                bench.case(fine, "a Last-Event-ID that never came to the API", "what the driver tells", at.n)


def _applied_once(view: PartnerView, bench: Bench) -> None:
    for run in view.runs.values():
        last: dict[str, tuple[int, int]] = {}
        for (by, _), stream in view.streams.items():
            if stream.run_id != run.run_id or stream.by_order:
                continue
            for seen in stream.events:
                sequence = seen.event.sequence
                if seen.event.applied and sequence is not None:
                    before, n = last.get(by, (0, seen.n))
                    bench.case(
                        sequence > before, f"event {sequence} taken after {before}", "each event once", n, seen.n
                    )
                    last[by] = (max(before, sequence), seen.n)


def _reconnects_bounded(view: PartnerView, bench: Bench) -> None:
    for run in view.runs.values():
        idle = 0
        openings = [one for one in _openings(run) if not one[1].facts.get("byOrder")]
        for (before, _), (at, _) in pairwise(openings):
            got = any(before.n < seen.n < at.n and seen.event.applied for seen in run.all_events())
            idle = 0 if got else idle + 1
            seen = f"{idle} reconnections without an event"
            bench.case(idle <= MOST_RECONNECTS, seen, f"{MOST_RECONNECTS} at most", before.n, at.n)


def _outcome_from_authority(view: PartnerView, bench: Bench) -> None:
    for run in view.runs.values():
        for at, told in run.texts:
            known = [one for one in run.ends() if one.n < at.n]
            streamed = [one for one in known if one.source == "run_status" and one.status == told.outcome]
            polled = [one for one in known if one.source == "run" and one.status == told.outcome]
            if told.outcome not in TERMINAL:
                bench.unsure()
                continue
            fine = bool(streamed) if told.source == "run_status" else bool(polled)
            bench.case(fine, f"outcome {told.outcome} that no {told.source} told", "run_status or a poll", at.n)
            errors = [seen for seen in run.all_events() if seen.type == "error" and seen.n < at.n]
            if errors and not streamed:
                # SSE-018
                after = any(poll.after(errors[0]) and poll.n < at.n for poll in run.polls)
                bench.case(after, "no poll after an error event", "GET run", errors[0].n, at.n)


# Grants and binds


def _binds_first(view: PartnerView, bench: Bench) -> None:
    for conversation in view.conversations.values():
        if not isinstance(conversation.facts.get("mcp"), Mapping):
            continue
        ordered = {call.event.idempotency_key for call in conversation.of("message") if call.by_order}
        first = next(
            (one for one in conversation.arrived("message") if one.event.idempotency_key not in ordered),
            None,
        )
        if first is not None:
            bound = any(one.ok and one.n < first.n for one in conversation.arrived("bind"))
            bench.case(bound, "a message before any bind", "grant, bind, then the message", first.n)
        opening = next(iter(conversation.of("bind")), None)
        if opening is not None and not opening.by_order:
            expected = opening.sent.get("expectedVersion")
            read = any(opening.after(call) for call in conversation.of("context"))
            fine = expected == 0 or read
            bench.case(fine, f"the first bind at expectedVersion {expected}", "0, or what GET told", opening.n)


def _fresh_grants(view: PartnerView, bench: Bench) -> None:
    for conversation in view.conversations.values():
        binds = [call for call in conversation.of("bind") if not call.by_order]
        for call in binds:
            end = instant(call.sent.get("expiresAt"))
            if end is not None and view.clock_known():
                # CX-012: one that was over when it came is the issuer's, and the freshest there is
                fine = view.wall(call, call.start) <= end or _came_too_late(view, call, end)
                bench.case(fine, "a grant that has expired", "a fresh grant", call.n)
        for place, (before, call) in enumerate(pairwise(binds), 1):
            if not before.ok:
                _judge_recovery(bench, conversation, binds[:place], call)


def _came_too_late(view: PartnerView, bind: CallAt, end: float) -> bool:
    """Whether the grant of a bind had expired already when the driver got it."""
    grant = bind.sent.get("grant")
    came = [call for call in view.issuer_calls if call.answer.get("grant") == grant and call.n < bind.n]
    return bool(came) and view.wall(came[-1]) > end


def _judge_recovery(bench: Bench, conversation: Conversation, earlier: list[CallAt], call: CallAt) -> None:
    """CX-008 to CX-011: read first, then bind a fresh grant at what was read."""
    before = earlier[-1]
    if before.answered and before.event.code != "MCP_CONTEXT_CONFLICT":
        return
    grant = call.sent.get("grant")
    used = [one.n for one in earlier if grant is not None and one.sent.get("grant") == grant]
    reads = [one for one in conversation.of("context") if one.ok and one.after(before) and call.after(one)]
    expected = call.sent.get("expectedVersion")
    told = reads[-1].answer.get("version") if reads else None
    if used:
        bench.odd("a grant that was sent before", "a fresh grant", used[0], call.n)
    elif not reads:
        bench.odd("a bind after one without success, and no GET between", "GET context first", before.n, call.n)
    else:
        fine = expected == told
        bench.case(fine, f"expectedVersion {expected} where GET told {told}", f"{told}", reads[-1].n, call.n)


def _uploads_first(view: PartnerView, bench: Bench) -> None:
    for conversation in view.conversations.values():
        uploads = [call for call in conversation.of("upload") if call.ok]
        for call in conversation.of("message"):
            named = call.sent.get("attachmentIds")
            if call.by_order or not isinstance(named, list | tuple):
                continue
            for one in named:
                known = any(upload.answer.get("id") == one and call.after(upload) for upload in uploads)
                bench.case(known, "a file that was not uploaded here before", "an id of an upload", call.n)


def _asks_issuer_rightly(view: PartnerView, bench: Bench) -> None:
    for call in view.issuer_calls:
        if call.operation != "grant" or call.by_order or not call.answered:
            continue
        conversation = view.conversations.get(str(call.sent.get("conversationId", call.event.conversation_id)))
        created = conversation is not None and any(call.after(one) for one in conversation.created)
        store = conversation is not None and conversation.destination is not None
        bench.case(created and store, "a grant for what is no conversation with a store", "create first", call.n)


LAWS = (
    promise(
        "resumes-with-last-id",
        "A driver opens a stream again behind the last event that it took, and says so to the API",
        PARTNER_CLIENT,
        ("SSE-047", "SSE-048"),
        _resumes_with_last_id,
    ),
    promise(
        "applied-once",
        "A driver takes each event of a run once, in rising order",
        PARTNER_CLIENT,
        ("SSE-046",),
        _applied_once,
    ),
    promise(
        "reconnects-bounded",
        "A driver opens a stream five times again at most without getting on",
        PARTNER_CLIENT,
        ("SSE-047",),
        _reconnects_bounded,
    ),
    promise(
        "outcome-from-authority",
        "A driver takes a run's outcome from run_status or a poll, and polls after an error event",
        PARTNER_CLIENT,
        ("MSG-015", "SSE-018", "SSE-050"),
        _outcome_from_authority,
    ),
    promise(
        "binds-before-message",
        "A driver binds a grant at version 0 before the first message of a conversation with a store",
        PARTNER_CLIENT,
        ("CV-009", "CX-004", "CX-011"),
        _binds_first,
    ),
    promise(
        "fresh-grants",
        "A driver binds no expired grant, and after a bind without success a fresh one at the version that it read",
        PARTNER_CLIENT,
        ("CX-008", "CX-009", "CX-010", "CX-011", "CX-012", "GR-007"),
        _fresh_grants,
    ),
    promise(
        "uploads-before-message",
        "A driver names files in a message only once they were uploaded into its conversation",
        PARTNER_CLIENT,
        ("AT-011",),
        _uploads_first,
    ),
    promise(
        "asks-for-grants-rightly",
        "A driver asks for a grant only for a conversation with a store that it created",
        PARTNER_CLIENT,
        ("CV-008", "GR-006", "GR-017"),
        _asks_issuer_rightly,
    ),
)

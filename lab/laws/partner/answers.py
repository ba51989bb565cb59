"""The laws of any answer: it fits the contract, its code is a known one with its status, and it holds no secret."""

from __future__ import annotations

from collections.abc import Iterator

from lab.journal.partner_events import PartnerStream
from lab.laws.partner.promise import Bench, promise
from lab.laws.partner.seen import CallAt, Moment, key, sha_of
from lab.laws.partner.view import PartnerView
from lab.laws.partner.words import CODE_STATUS, EVENT_CODES, ISSUER, PARTNER_API, REASONS, TERMINAL
from lab.tap.partner import LEAK

FILE_HEADERS = {
    "cacheControl": "private, no-store",
    "contentTypeOptions": "nosniff",
    "contentSecurityPolicy": "default-src 'none'; sandbox",
}
"""What guards the bytes of a file (AT-020 to AT-022)."""

NO_ENVELOPE = frozenset({"not-json", "not-envelope", "too-long"})
"""Whole answers that are none of the contract's (PA-057)."""

INTERMEDIARY = frozenset({502, 504})
"""Statuses that stand for something between driver and API."""


def _misses(view: PartnerView) -> Iterator[tuple[str, Moment, tuple[str, ...]]]:
    for call in view.calls:
        unread = call.event.error in NO_ENVELOPE and call.event.status not in INTERMEDIARY
        if call.answered or (unread and view.quiet(call.start, call.t)):
            yield f"the answer to {call.event.route}", call, call.event.misses
    for run in view.runs.values():
        for stream in run.streams:
            yield "the head of a stream", stream.opened[0], stream.opened[1].misses
        for at, refusal in run.refused:
            yield "the refusal of a stream", at, refusal.misses
        for seen in run.all_events():
            yield f"event {seen.event.name}", seen, seen.event.misses


def _answers_fit(view: PartnerView, bench: Bench) -> None:
    for what, at, told in _misses(view):
        # A secret is another law's.
        misses = [miss for miss in told if not miss.startswith(LEAK)]
        bench.case(not misses, f"{what} at {', '.join(misses)}", "what the contract says", at.n)


def _issuer_answers_fit(view: PartnerView, bench: Bench) -> None:
    for call in view.issuer_calls:
        if call.answered:
            seen = f"the answer to {call.event.route} at {', '.join(call.event.misses)}"
            bench.case(not call.event.misses, seen, "what the contract says", call.n)


def _no_secrets(view: PartnerView, bench: Bench) -> None:
    for call in view.calls:
        leaks = call.event.leaks
        bench.case(not leaks, f"{', '.join(leaks)} in the answer to {call.event.route}", "no secret", call.n)
    for run in view.runs.values():
        for seen in run.all_events():
            leaks = seen.event.leaks
            bench.case(not leaks, f"{', '.join(leaks)} in event {seen.event.name}", "no secret", seen.n)
        for stream in run.streams:
            _judge_rest(bench, "in the head of a stream", *stream.opened)
            if stream.over is not None:
                _judge_rest(bench, "at the end of a stream", *stream.over)
        for at, refusal in (*run.refused, *run.unopened):
            _judge_rest(bench, "in a stream that was refused", at, refusal)
        for at, text in run.texts:
            bench.case(not text.leaks, f"{', '.join(text.leaks)} in the joined text", "no secret", at.n)


def _judge_rest(bench: Bench, where: str, at: Moment, told: PartnerStream) -> None:
    """What a stream has beside its whole events; the witness tells a find there among the misses."""
    leaks = [miss.removeprefix(LEAK) for miss in told.misses if miss.startswith(LEAK)]
    bench.case(not leaks, f"{', '.join(leaks)} {where}", "no secret", at.n)


def _codes_known(view: PartnerView, bench: Bench) -> None:
    for call in view.calls:
        if call.answered and not call.ok:
            _judge_code(bench, call.event.route, call.event.status, call.event.code, call)
        elif call.event.error in NO_ENVELOPE:
            _judge_not_json(view, bench, call)
    for run in view.runs.values():
        for at, refusal in run.refused:
            if refusal.status:
                _judge_code(bench, "a stream", refusal.status, refusal.code, at)
        for seen in run.all_events():
            if seen.type == "error":
                code = seen.facts.get("code")
                bench.case(key(code) in EVENT_CODES, f"error event with code {code}", "a safe execution code", seen.n)
        for one in run.snapshots:
            reason = one.facts.get("reason")
            fine = key(reason) in REASONS if one.status == "failed" else reason is None
            if one.status in TERMINAL and "reason" in one.facts:
                due = "a safe code" if one.status == "failed" else "null"
                bench.case(fine, f"{one.status} with reason {reason}", due, one.n)


def _judge_code(bench: Bench, what: str, status: int, code: str | None, at: Moment) -> None:
    due = CODE_STATUS.get(code or "")
    if due is None:
        bench.odd(f"{status} with code {code} for {what}", "a code of the contract", at.n)
    else:
        bench.case(status == due, f"{status} with {code} for {what}", f"{due}", at.n)


def _judge_not_json(view: PartnerView, bench: Bench, call: CallAt) -> None:
    if call.event.status in INTERMEDIARY or not view.quiet(call.start, call.t):
        # PA-057: what stands between the two may say what it likes
        bench.unsure()
    else:
        seen = f"{call.event.status} that is {call.event.error} for {call.event.route}"
        bench.odd(seen, "the envelope of the contract", call.n)


def _files_guarded(view: PartnerView, bench: Bench) -> None:
    for conversation in view.conversations.values():
        uploads = conversation.of("upload")
        known = {(sha_of(one.sent), one.answer.get("mimeType")) for one in uploads if one.ok}
        for call in conversation.of("file"):
            if not call.ok:
                continue
            for name, due in FILE_HEADERS.items():
                if name in call.answer:
                    bench.case(call.answer[name] == due, f"{name} {call.answer[name]!r}", due, call.n)
            told = (sha_of(call.answer), call.answer.get("contentType"))
            # A file that was there before, or whose upload had no answer, is not known.
            if conversation.created and all(one.answered for one in uploads) and told[0] is not None:
                shown_by = [one.n for one in uploads]
                bench.case(told in known, "a file that was not uploaded so", "its bytes and type", *shown_by, call.n)


LAWS = (
    promise(
        "answers-fit-contract",
        "Every answer and every event has the members, types and values that the contract gives it",
        PARTNER_API,
        (
            *("PA-004", "PA-007", "PA-014", "PA-019", "PA-035", "PA-048", "PA-051", "MB-002", "MB-020", "CV-002"),
            *("CV-007", "CV-015", "CX-001", "CX-013", "MSG-002", "MSG-017", "MSG-024", "SSE-002", "SSE-011", "SSE-012"),
            *("SSE-013", "SSE-014", "SSE-015", "SSE-016", "SSE-021", "SSE-038", "HIS-003", "HIS-006", "HIS-010"),
            *("HIS-034", "AT-002", "AT-006", "AT-020", "AT-021", "AT-022", "AT-026", "AT-027", "TM-026", "TM-029"),
            *("TM-044", "US-002", "US-011"),
        ),
        _answers_fit,
    ),
    promise(
        "issuer-answers-fit",
        "Every answer of the issuer has the members that were agreed",
        ISSUER,
        ("GR-003", "GR-013"),
        _issuer_answers_fit,
    ),
    promise(
        "no-secrets",
        "No answer and no event holds a grant, a key, or what a tool or a provider said of its own",
        PARTNER_API,
        (
            *("CX-002", "HIS-019", "PA-018", "PRIV-001", "PRIV-003", "PRIV-004", "PRIV-005", "PRIV-006", "SSE-010"),
            *("SSE-014", "SSE-020", "TM-041"),
        ),
        _no_secrets,
    ),
    promise(
        "error-codes-known",
        "A refusal has a code of the contract with that code's status, and a run ends for a safe reason only",
        PARTNER_API,
        (
            *("MSG-021", "PA-011", "PA-012", "PA-013", "PA-014", "PA-015", "PA-016", "PA-038", "PA-056", "PRIV-013"),
            *("SSE-017", "SSE-054"),
        ),
        _codes_known,
    ),
    promise(
        "files-guarded",
        "A file comes back with its bytes and type, under headers that let nothing in it run",
        PARTNER_API,
        ("AT-019", "AT-020", "AT-021", "AT-022", "PRIV-010"),
        _files_guarded,
    ),
)

"""The laws of the driver's calls: one key a message, tries that end, the right key and lease, a walk that ends."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import pairwise

from lab.laws.partner.instants import instant
from lab.laws.partner.promise import Bench, promise
from lab.laws.partner.seen import CallAt, key
from lab.laws.partner.view import PartnerView
from lab.laws.partner.words import CODE_STATUS, LEASE_S, PARTNER_CLIENT, TERMINAL

KEYED = frozenset({"message", "create"})

MOST_TRIES = 8
"""Tries of one call."""

FIRST_WAIT = 0.25
LONGEST_WAIT = 2.0
"""Seconds before the second try or poll, doubling up to the longest (MSG-043)."""

EARLY = 0.02
"""Seconds by which a wait may seem shorter than it was."""

NO_KEY_OF_CHAT = "provisioning"


def _tries(view: PartnerView) -> Iterator[list[CallAt]]:
    """The tries of each call of API and issuer, in their order."""
    groups: dict[tuple[str, str], list[CallAt]] = {}
    for call in (*view.calls, *view.issuer_calls):
        groups.setdefault((call.by, call.event.call), []).append(call)
    return (sorted(tries, key=lambda one: one.event.attempt) for tries in groups.values())


def _ordered_keys(view: PartnerView) -> set[str | None]:
    return {call.event.idempotency_key for call in view.calls if call.by_order}


def _one_key(view: PartnerView, bench: Bench) -> None:
    ordered = _ordered_keys(view)
    # The input that a key was first sent with: the same again is a repeat.
    owner: dict[tuple[str, str | None], tuple[str, int]] = {}
    for tries in _tries(view):
        first = tries[0]
        if first.operation not in KEYED or first.by_order:
            continue
        for one in tries[1:]:
            same = (one.event.idempotency_key, one.event.request) == (first.event.idempotency_key, first.event.request)
            bench.case(same, "a retry with another key or body", "the same key and body", first.n, one.n)
        key = first.event.idempotency_key
        asked, n = owner.setdefault((first.operation, key), (first.event.request, first.n))
        fine = key is not None and (asked == first.event.request or key in ordered)
        bench.case(fine, "a key that another message had", "a new key for each message", n, first.n)
    bodies: dict[tuple[str, str], tuple[str, int]] = {}
    for request in view.requests:
        came = request.event.idempotency_key
        if request.operation in KEYED and came is not None and came not in ordered:
            body, n = bodies.setdefault((request.operation, came), (request.event.request, request.n))
            same = body == request.event.request
            bench.case(same, "another body came under one key", "the same body at each try", n, request.n)


def _final(call: CallAt) -> bool:
    """Whether no other answer is to be expected (PA-043)."""
    return call.answered and (call.event.status < 500 or call.event.code in CODE_STATUS)


def _no_retry_after_final(view: PartnerView, bench: Bench) -> None:
    for tries in _tries(view):
        for one, following in pairwise(tries):
            what = f"another try after {one.event.status} {one.event.code or ''}".rstrip()
            bench.case(not _final(one), what, "a final answer is taken", one.n, following.n)
        if len(tries) == 1 and _final(tries[0]):
            bench.held()
    sent: dict[str | None, int] = {}
    for call in view.calls:
        sent[call.event.idempotency_key] = sent.get(call.event.idempotency_key, 0) + 1
    came: dict[str, list[int]] = {}
    for request in view.requests:
        key = request.event.idempotency_key
        if request.operation in KEYED and key is not None:
            came.setdefault(key, []).append(request.n)
    for key, entries in came.items():
        # One that was on its way when the run ended has no answer that the driver could tell.
        if len(entries) > sent.get(key, 0) + 1:
            bench.odd(f"{len(entries)} requests for {sent.get(key, 0)} tries", "each try is told", *entries)


def _tries_bounded(view: PartnerView, bench: Bench) -> None:
    for tries in _tries(view):
        if len(tries) > MOST_TRIES:
            bench.odd(f"{len(tries)} tries of one call", f"{MOST_TRIES} at most", *(one.n for one in tries))
        due = FIRST_WAIT
        for one, following in pairwise(tries):
            waited = following.start - one.t
            fine = waited >= due - EARLY
            bench.case(fine, f"another try after {waited:.2f} s", f"{due:g} s", one.n, following.n)
            due = min(2 * due, LONGEST_WAIT)


def _polls_back_off(view: PartnerView, bench: Bench) -> None:
    for run in view.runs.values():
        for one, following in pairwise(run.polls):
            k = following.event.facts.get("poll")
            before = one.event.facts.get("poll")
            if not isinstance(k, int) or not isinstance(before, int) or k != before + 1 or one.by != following.by:
                continue
            if key(one.answer.get("status")) in TERMINAL:
                bench.odd("another poll after a terminal status", "no further poll", one.n, following.n)
                continue
            waited = following.start - one.t
            due = min(FIRST_WAIT * 2 ** (before - 1), LONGEST_WAIT)
            bench.case(waited >= due - EARLY, f"a poll after {waited:.2f} s", f"{due:g} s", one.n, following.n)


def _right_key(view: PartnerView, bench: Bench) -> None:
    odd = {(call.operation, call.event.key) for call in view.calls if call.by_order}
    # FX-026: the chat key of an instance that is gone was the right one.
    good: set[str | None] = set()
    for request in view.requests:
        if request.operation in ("control", "unknown") or (request.operation, request.event.key) in odd:
            continue
        role = request.event.key_role
        if role not in (None, NO_KEY_OF_CHAT):
            good.add(request.event.key)
        elif role is None and request.event.key in good:
            continue
        what = f"the {NO_KEY_OF_CHAT if role == NO_KEY_OF_CHAT else 'unknown'} key at {request.operation}"
        bench.case(role not in (None, NO_KEY_OF_CHAT), what, "the chat key", request.n)
    used: dict[str | None, tuple[str, int]] = {}
    for call in (*view.calls, *view.issuer_calls):
        if call.by_order or call.event.key is None:
            continue
        door = call.operation if call in view.issuer_calls else "the API"
        first, n = used.setdefault(call.event.key, (door, call.n))
        bench.case(first == door, f"the key of {first} at {door}", "a key for each", n, call.n)


def _lease_asked(view: PartnerView, bench: Bench) -> None:
    for call in view.of("membership"):
        until = instant(call.sent.get("validUntil"))
        if until is not None and call.sent.get("active") is True and not call.by_order and view.clock_known():
            asked = until - view.wall(call, call.start)
            bench.case(
                0 < asked <= LEASE_S, f"a lease of {asked:.0f} s was asked for", f"{LEASE_S:g} s at most", call.n
            )


def _walk_ends(view: PartnerView, bench: Bench) -> None:
    for conversation in view.conversations.values():
        given: set[Hashable] = set()
        walked: list[Hashable] = []
        for page in conversation.of("history"):
            cursor = key(page.sent.get("cursor"))
            if page.event.facts.get("page") == 1 or cursor is None:
                walked = []
            number = page.event.facts.get("page")
            if not page.by_order and cursor is None and isinstance(number, int) and number > 1:
                bench.odd(f"page {number} without a cursor", "the nextCursor of the page before", page.n)
            if not page.by_order and cursor is not None and page.event.attempt == 1:
                # HIS-005
                bench.case(cursor in given, "a cursor that no page gave", "nextCursor unchanged", page.n)
                bench.case(cursor not in walked, "one cursor twice in a walk", "the walk ends", page.n)
                walked.append(cursor)
            given.add(key(page.answer.get("nextCursor")))


LAWS = (
    promise(
        "one-key-per-message",
        "A driver sends a message under one key of its own, and the same key and body at each retry",
        PARTNER_CLIENT,
        ("CV-024", "MSG-032", "MSG-033"),
        _one_key,
    ),
    promise(
        "no-retry-after-final",
        "A driver takes an answer with a status below 500 or with a known code as final",
        PARTNER_CLIENT,
        ("MSG-034", "PA-020", "PA-037", "PA-043"),
        _no_retry_after_final,
    ),
    promise(
        "tries-bounded",
        "A driver tries a call eight times at most, and waits longer before each try",
        PARTNER_CLIENT,
        ("PA-043",),
        _tries_bounded,
    ),
    promise(
        "polls-back-off",
        "A driver polls after 250 ms, doubling to 2 s, and not after a terminal status",
        PARTNER_CLIENT,
        ("MSG-043", "US-029"),
        _polls_back_off,
    ),
    promise(
        "right-key-for-the-route",
        "A driver shows the chat key to the API, and each key of the issuer to its own route alone",
        PARTNER_CLIENT,
        ("GR-002", "PA-005", "PRIV-020"),
        _right_key,
    ),
    promise(
        "lease-asked",
        "A driver asks for a lease of five minutes at most",
        PARTNER_CLIENT,
        ("MB-022",),
        _lease_asked,
    ),
    promise(
        "walk-ends",
        "A driver sends cursors back as they came, and none twice in a walk",
        PARTNER_CLIENT,
        ("HIS-005", "HIS-036"),
        _walk_ends,
    ),
)

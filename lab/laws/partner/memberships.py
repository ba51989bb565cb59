"""The laws of memberships: versions only rise, a lease is short, and what was revoked stays so."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from lab.laws.partner.instants import instant
from lab.laws.partner.promise import Bench, promise
from lab.laws.partner.seen import CallAt
from lab.laws.partner.view import PartnerView
from lab.laws.partner.words import CLOCKS_S, LEASE_S, PARTNER_API

VERSIONS = ("sourceRevision", "subjectVersion", "membershipVersion")


def of_pairs(view: PartnerView) -> Iterator[list[CallAt]]:
    """The confirmations of each employee in each team, in the order of their answers (MB-033)."""
    pairs: dict[tuple[Hashable, Hashable], list[CallAt]] = {}
    for call in view.of("membership"):
        pairs.setdefault(call.actor, []).append(call)
    return iter(pairs.values())


def _before(calls: list[CallAt], call: CallAt) -> CallAt | None:
    """The last confirmation that was answered, and surely before this one."""
    return next((one for one in reversed(calls) if one.ok and call.after(one)), None)


def _alone(calls: list[CallAt], first: CallAt, second: CallAt) -> bool:
    """Whether no other confirmation can have come between two."""
    others = (one for one in calls if one is not first and one is not second)
    return all(first.after(one) or one.after(second) or (one.answered and not one.ok) for one in others)


def _versions_rise(view: PartnerView, bench: Bench) -> None:
    for calls in of_pairs(view):
        for call in (one for one in calls if one.ok):
            before = _before(calls, call)
            if before is None:
                bench.held()
                continue
            for name in VERSIONS:
                old, new = before.answer.get(name), call.answer.get(name)
                if isinstance(old, int) and isinstance(new, int):
                    bench.case(new >= old, f"{name} {new} after {old}", "a version that never falls", before.n, call.n)
            if _alone(calls, before, call):
                _judge_step(bench, before, call)


def _judge_step(bench: Bench, before: CallAt, call: CallAt) -> None:
    old, new = before.answer.get("membershipVersion"), call.answer.get("membershipVersion")
    if not isinstance(old, int) or not isinstance(new, int):
        return
    changed = any(before.answer.get(name) != call.answer.get(name) for name in ("role", "active"))
    fine = new > old if changed else new == old
    due = "a higher one: role or active changed" if changed else f"{old}: nothing changed"
    bench.case(fine, f"membershipVersion {new} after {old}", due, before.n, call.n)


def _lease_bounded(view: PartnerView, bench: Bench) -> None:
    for calls in of_pairs(view):
        for call in (one for one in calls if one.ok):
            until = instant(call.answer.get("validUntil"))
            if call.answer.get("active") is False:
                # MB-024
                bench.case(until is None, "a lease of a revoked membership", "validUntil null", call.n)
            elif until is not None and view.clock_known():
                _judge_asked(view, bench, calls, call)
                left = until - view.wall(call)
                bench.case(left <= LEASE_S + CLOCKS_S, f"a lease of {left:.0f} s", f"{LEASE_S:g} s at most", call.n)
            before = _before(calls, call)
            if before is not None and before.answer.get("sourceRevision") == call.answer.get("sourceRevision"):
                same = until == instant(before.answer.get("validUntil"))
                seen = "another lease for the same sourceRevision"
                bench.case(same, seen, "the lease of its first confirmation", before.n, call.n)


def _judge_asked(view: PartnerView, bench: Bench, calls: list[CallAt], call: CallAt) -> None:
    """MB-022: a lease that is too long is refused, and not cut to what is allowed, where it would be applied."""
    asked, before = instant(call.sent.get("validUntil")), _before(calls, call)
    repeat = before is not None and before.answer.get("sourceRevision") == call.sent.get("sourceRevision")
    if asked is not None and not repeat and asked - view.wall(call) > LEASE_S + CLOCKS_S:
        bench.odd("a lease that is too long was taken", "400 CHAT_INVALID", call.n)


def _stays_revoked(view: PartnerView, bench: Bench) -> None:
    for calls in of_pairs(view):
        for call in (one for one in calls if one.answered):
            off = [one for one in calls if one.ok and one.answer.get("active") is False and call.after(one)]
            if off and not call.ok and call.sent.get("active") is True:
                # MB-028: it was asked for, and refused
                bench.held()
            elif off and call.ok:
                alive = call.answer.get("active") is True
                bench.case(not alive, "a revoked membership is active again", "revoked for good", off[0].n, call.n)


def _revisions_decide(view: PartnerView, bench: Bench) -> None:
    for calls in of_pairs(view):
        for call in calls:
            before = _before(calls, call)
            sent = call.sent.get("sourceRevision")
            if before is None or not isinstance(sent, int) or not call.answered:
                if call.ok and isinstance(sent, int):
                    told = call.answer.get("sourceRevision", sent)
                    bench.case(told == sent, f"sourceRevision {told} for {sent}", f"{sent}", call.n)
                elif call is calls[0] and call.event.code == "CHAT_CONFLICT" and call.event.attempt == 1:
                    # MB-033: what another team's revision is says nothing
                    bench.odd("CHAT_CONFLICT for a first confirmation", "200", call.n)
                continue
            known = before.answer.get("sourceRevision")
            if not isinstance(known, int):
                continue
            if call.ok and sent > known:
                told = call.answer.get("sourceRevision")
                bench.case(told == sent, f"sourceRevision {told} for {sent}", f"{sent}", before.n, call.n)
            same = all(call.sent.get(name) == before.answer.get(name) for name in ("role", "active"))
            if call.ok:
                stale = sent < known or (sent == known and not same)
                seen = f"revision {sent} was taken after {known}"
                bench.case(not stale, seen, "409 CHAT_CONFLICT", before.n, call.n)
            elif call.event.code == "CHAT_CONFLICT" and sent > known and same and _alone(calls, before, call):
                # MB-010
                bench.odd(f"CHAT_CONFLICT for the newer revision {sent}", "200", before.n, call.n)
            elif call.event.code == "CHAT_CONFLICT":
                bench.held()


def _identity_permanent(view: PartnerView, bench: Bench) -> None:
    actors: dict[Hashable, tuple[object, int]] = {}
    teams: dict[Hashable, tuple[object, int]] = {}
    for call in (*view.of("membership"), *view.of("create")):
        if not call.ok:
            continue
        for known, external, name in ((actors, call.actor[0], "actorId"), (teams, call.actor[1], "teamId")):
            told = call.answer.get(name)
            if external is not None and told is not None:
                first, n = known.setdefault(external, (told, call.n))
                bench.case(told == first, f"another {name} for the same external id", "the same for good", n, call.n)


LAWS = (
    promise(
        "membership-versions-rise",
        "The versions of a membership never fall, and membershipVersion rises with role and active, and only then",
        PARTNER_API,
        ("MB-007", "MB-008", "MB-009", "MB-031"),
        _versions_rise,
    ),
    promise(
        "lease-bounded",
        "A lease lasts five minutes at most, and only a newer confirmation moves its end",
        PARTNER_API,
        ("MB-011", "MB-012", "MB-022", "MB-024", "MB-026"),
        _lease_bounded,
    ),
    promise(
        "revoked-stays-revoked",
        "A membership that was revoked is never active again",
        PARTNER_API,
        ("MB-014", "MB-028"),
        _stays_revoked,
    ),
    promise(
        "revisions-decide",
        "A confirmation with an older or a contradicting sourceRevision is refused, a newer one that repeats is taken",
        PARTNER_API,
        ("MB-008", "MB-009", "MB-010", "MB-013", "MB-025", "MB-027", "MB-033", "MB-035"),
        _revisions_decide,
    ),
    promise(
        "identity-permanent",
        "An external employee and an external team always are the same actor and the same team",
        PARTNER_API,
        ("MB-004", "MB-018", "PA-027"),
        _identity_permanent,
    ),
)

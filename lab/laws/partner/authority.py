"""The laws of lost authority: no answer, no effect and no delivery for whoever lost it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from math import inf

from lab.laws.partner.endings import IN_FLIGHT
from lab.laws.partner.instants import instant
from lab.laws.partner.memberships import of_pairs
from lab.laws.partner.promise import Bench, promise
from lab.laws.partner.seen import CallAt, Moment, Run
from lab.laws.partner.view import PartnerView
from lab.laws.partner.words import CLOCKS_S, PARTNER_API

UNSCOPED = frozenset({"membership", "file"})
"""Operations that need no lease of the employee, or not always (AT-034)."""


@dataclass(frozen=True)
class Denial(Moment):
    """From here on an employee has no authority in a team, until lab time `until`."""

    actor: tuple[Hashable, Hashable]
    what: str
    until: float
    shown_by: int
    """The entry of the confirmation that tells it."""
    until_n: float = inf
    """The number that the journal had come to when the next confirmation began; exact, where times are rounded."""
    runs_only: bool = False
    """Only the runs that were accepted before have lost it."""


def denials(view: PartnerView) -> Iterator[Denial]:
    """Every revocation that was acknowledged, every lease that ran out, and every change of an identity."""
    yield from _of_identities(view)
    for calls in of_pairs(view):
        for call in calls:
            if not call.ok:
                continue
            if call.answer.get("active") is False:
                yield Denial(call.n, call.t, call.actor, "the revocation", inf, call.n)
                break
            lapse = _lapse(view, call)
            later = [one for one in calls if one is not call and one.t > call.start]
            until = min((one.start for one in later), default=inf)
            until_n = min((inf if one.event.began is None else one.event.began for one in later), default=inf)
            if lapse is not None and lapse.t < min(until, view.journal.end):
                yield Denial(lapse.n, lapse.t, call.actor, "its lease", until, call.n, until_n)


def _of_identities(view: PartnerView) -> Iterator[Denial]:
    """What controls took from employees: the subject epoch stands in what a run was admitted with."""
    for order in view.ordered("identities"):
        change = order.event.facts.get("change")
        what = _CHANGES.get(str(change))
        if what is None:
            continue
        actor_id = order.event.facts.get("actorId")
        for actor in {call.actor: None for call in view.of("membership") if call.answer.get("actorId") == actor_id}:
            yield Denial(order.n, order.t, actor, what, inf, order.n, runs_only=change == "reset")


_CHANGES = {
    "revoke": "the revocation",
    "delete": "the deletion of the identity",
    "reset": "a rise of the subject epoch",
}


def _lapse(view: PartnerView, call: CallAt) -> Moment | None:
    """When a lease has run out by any clock."""
    end = instant(call.answer.get("validUntil"))
    return None if end is None or not view.clock_known() else view.when(end + CLOCKS_S, call)


def _no_service(view: PartnerView, bench: Bench) -> None:
    for denial in denials(view):
        if denial.runs_only:
            continue
        for call in view.calls:
            mine = call.actor == denial.actor and call.operation not in UNSCOPED
            before_the_next = call.t < denial.until or call.n < denial.until_n < inf
            if mine and call.answered and call.after(denial) and before_the_next:
                seen = f"{call.event.route} was served after {denial.what}"
                bench.case(not call.ok, seen, "403 EXECUTION_DENIED", denial.shown_by, call.n)


def _runs_of(view: PartnerView, denial: Denial) -> Iterator[Run]:
    for conversation in view.conversations.values():
        if conversation.actor == denial.actor:
            runs = conversation.runs
            yield from (run for run in runs if not denial.runs_only or _accepted_before(run, denial))


def _accepted_before(run: Run, denial: Moment) -> bool:
    """By the model's own word, else by the answer that the driver got."""
    own = [at.n for at, turn in run.turns if turn.change == "accepted"]
    return min(own or [call.n for call in run.accepted], default=inf) < denial.n


def _late(view: PartnerView, denial: Denial) -> float:
    """The lab time by which what was on its way at a denial has arrived."""
    return denial.t + IN_FLIGHT + view.journal.slack(denial.t, denial.t + IN_FLIGHT)


def _no_effect(view: PartnerView, bench: Bench) -> None:
    for denial in denials(view):
        late = _late(view, denial)
        for run in _runs_of(view, denial):
            for call in run.store_calls:
                if not call.event.executed or call.t >= denial.until or not call.after(denial):
                    continue
                if call.t <= late:
                    bench.unsure()
                else:
                    bench.odd(f"a store call after {denial.what}", "no effect", denial.shown_by, call.n)
            begun = [at for at, turn in run.turns if turn.change in ("model", "tool") and denial.n < at.n]
            odd = [at.n for at in begun if denial.t <= at.t < denial.until]
            bench.case(not odd, f"an effect after {denial.what}", "no effect", denial.shown_by, *odd[:1])


def _no_delivery(view: PartnerView, bench: Bench) -> None:
    for denial in denials(view):
        late = _late(view, denial)
        for run in _runs_of(view, denial):
            behind = [seen for seen in run.all_events() if denial.n < seen.n and late < seen.t < denial.until]
            if behind:
                seen = f"event {behind[0].event.sequence} after {denial.what}"
                bench.odd(seen, "a stream that closes without a word", denial.shown_by, behind[0].n)
            elif any(seen.n < denial.n for seen in run.all_events()):
                bench.held()


LAWS = (
    promise(
        "no-service-after-denial",
        "Whoever is revoked, or whose lease ran out, gets nothing done and reads nothing",
        PARTNER_API,
        ("CV-026", "MB-035", "PA-017", "PA-021", "PA-049"),
        _no_service,
    ),
    promise(
        "no-effect-after-denial",
        "No model request and no store call begins for an employee who is revoked or whose lease ran out",
        PARTNER_API,
        ("MB-037", "PA-021"),
        _no_effect,
    ),
    promise(
        "no-delivery-after-denial",
        "No event is delivered to an employee who is revoked or whose lease ran out",
        PARTNER_API,
        ("PA-021", "SSE-026", "SSE-037"),
        _no_delivery,
    ),
)

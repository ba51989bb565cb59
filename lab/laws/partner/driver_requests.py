"""The laws of what the driver sends: what the contract asks for, the target that it was told, its leases in time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType

from lab.journal.events import StepEnded, StepStarted
from lab.laws.partner.driver_calls import LONGEST_WAIT
from lab.laws.partner.instants import instant
from lab.laws.partner.memberships import of_pairs
from lab.laws.partner.promise import Bench, promise
from lab.laws.partner.seen import CallAt, Conversation, key, part
from lab.laws.partner.view import PartnerView
from lab.laws.partner.words import PARTNER_CLIENT, TERMINAL

_ACTOR = frozenset({"externalUserId", "externalTeamId"})
DUE: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "membership": _ACTOR | {"sourceRevision", "role", "active", "validUntil"},
        "create": _ACTOR | {"agentId"},
        "bind": _ACTOR | {"serverId", "destination", "grant", "expiresAt", "expectedVersion"},
        **dict.fromkeys(("context", "run", "history", "message", "upload"), _ACTOR),
    }
)
"""The members that an operation asks for; a file may be read in nobody's name (AT-018)."""

UNLISTED = "*"


def _own(view: PartnerView, operation: str) -> Iterator[CallAt]:
    return (call for call in view.of(operation) if not call.by_order)


def _requests_fit(view: PartnerView, bench: Bench) -> None:
    for operation, due in DUE.items():
        for call in _own(view, operation):
            missing = sorted(due - call.sent.keys())
            if missing:
                bench.odd(f"{operation} without {', '.join(missing)}", "what the contract asks for", call.n)
            else:
                seen = f"{operation} with a member that the contract does not have"
                bench.case(UNLISTED not in call.sent, seen, "what the contract asks for", call.n)
    unknown = [one for one in view.requests if one.operation == "unknown"]
    for call in view.calls:
        began = call.event.began
        if unknown and began is not None and not call.by_order and call.answered and call.event.status in (404, 405):
            window = [one for one in view.requests if began <= one.n < call.n]
            if window and all(one.operation == "unknown" for one in window):
                bench.odd(f"{call.operation} at a path of its own", "a route of the contract", window[0].n, call.n)


def _binds_as_told(view: PartnerView, bench: Bench) -> None:
    minted = {key(one.answer.get("grant")): one for one in view.issuer_calls if one.operation == "grant" and one.ok}
    for conversation in view.conversations.values():
        for call in conversation.of("bind"):
            if not call.by_order and conversation.destination is not None:
                _judge_bind(bench, conversation, call, minted.get(key(call.sent.get("grant"))))


def _judge_bind(bench: Bench, conversation: Conversation, call: CallAt, grant: CallAt | None) -> None:
    told = part(conversation.facts, "mcp")
    made = conversation.created[0].n
    for name in ("serverId", "destination"):
        # CV-014, CX-034: as it came
        seen = f"a bind with another {name} than was told"
        bench.case(call.sent.get(name) == told.get(name), seen, "what the create call told", made, call.n)
    due = None if grant is None else instant(grant.answer.get("expiresAt"))
    if grant is not None and due is not None:
        # CX-030: as instants
        fine = instant(call.sent.get("expiresAt")) == due
        bench.case(fine, "a bind with another expiresAt than the issuer's", "the issuer's expiresAt", grant.n, call.n)


def _renewed(view: PartnerView, bench: Bench) -> None:
    if view.clock_moved():
        return
    for calls in of_pairs(view):
        kept = [call for call in calls if call.event.attempt == 1]
        for call, following in pairwise(kept):
            if not call.by_order and not following.by_order:
                _judge_renewal(view, bench, call, following)
        if kept and not kept[-1].by_order and kept[-1].ok:
            end = _end_of_lease(view, kept[-1])
            if end is not None:
                fine = view.journal.end <= end or not view.quiet(kept[-1].t, end)
                bench.case(fine, "a lease that ran out", "a renewal in time", kept[-1].n)


def _judge_renewal(view: PartnerView, bench: Bench, call: CallAt, following: CallAt) -> None:
    old, new = call.sent.get("sourceRevision"), following.sent.get("sourceRevision")
    if isinstance(old, int) and isinstance(new, int):
        bench.case(new > old, f"revision {new} after {old}", "a higher one", call.n, following.n)
    end = _end_of_lease(view, call) if call.ok else None
    if end is not None and view.quiet(call.t, following.t):
        bench.case(following.start < end, "a renewal after the lease had run out", "half of it", call.n, following.n)


def _end_of_lease(view: PartnerView, call: CallAt) -> float | None:
    """The lab time at which a lease that was told runs out."""
    until = instant(call.answer.get("validUntil")) if call.answer.get("active") is True else None
    return None if until is None else view.when(until, call).t


def _by_step(view: PartnerView, bench: Bench) -> None:
    steps = [entry for entry in view.journal.entries if isinstance(entry.event, StepStarted | StepEnded)]
    sent: set[str | None] = set()
    for call in view.of("message"):
        if call.event.idempotency_key in sent:
            continue
        sent.add(call.event.idempotency_key)
        began = call.n if call.event.began is None else call.event.began
        step = next((entry for entry in reversed(steps) if entry.n < began), None)
        if step is not None and isinstance(step.event, StepStarted):
            fine = step.event.step in ("message", "call")
            bench.case(
                fine, f"a message during a {step.event.step} step", "a message that was asked for", step.n, call.n
            )


def _polls_on(view: PartnerView, bench: Bench) -> None:
    for run in view.runs.values():
        loops = [call for call in run.polls if isinstance(call.event.facts.get("poll"), int)]
        last = loops[-1] if loops else None
        if last is None or not last.ok:
            continue
        waited = LONGEST_WAIT + view.journal.slack(last.t, last.t + LONGEST_WAIT) + 1.0
        if key(last.answer.get("status")) in TERMINAL:
            bench.held()
        elif _gave_up(loops, last) or view.journal.end <= last.t + waited:
            bench.unsure()
        else:
            bench.odd(f"no further poll of a run that is {last.answer.get('status')}", "polls until its end", last.n)


def _gave_up(loops: list[CallAt], last: CallAt) -> bool:
    """Whether a loop may have come to its deadline: it is the scenario's, and not below the longest wait."""
    first = next((one for one in reversed(loops) if one.event.facts.get("poll") == 1), last)
    return last.t - first.t >= LONGEST_WAIT


LAWS = (
    promise(
        "requests-fit-contract",
        "A driver's requests hold what the contract asks for and nothing else, at the contract's routes",
        PARTNER_CLIENT,
        ("CV-001", "CX-003", "HIS-001", "MB-001", "MSG-001", "MSG-003", "PA-006", "PA-009", "PA-044", "SSE-001"),
        _requests_fit,
    ),
    promise(
        "binds-as-told",
        "A driver binds the target that the create call told until the instant that the issuer told",
        PARTNER_CLIENT,
        ("CV-014", "CX-030", "CX-034"),
        _binds_as_told,
    ),
    promise(
        "leases-renewed",
        "A driver renews a lease that it keeps before it runs out, each time with a higher revision",
        PARTNER_CLIENT,
        ("MB-036",),
        _renewed,
    ),
    promise(
        "messages-by-step",
        "A driver sends no message by itself",
        PARTNER_CLIENT,
        ("MSG-034",),
        _by_step,
    ),
    promise(
        "polls-to-the-end",
        "A driver that polls a run goes on until its status is terminal",
        PARTNER_CLIENT,
        ("MSG-020", "TM-007", "US-029"),
        _polls_on,
    ),
)

"""The laws of what a control of the lab ordered: a spent budget, a removal, a rotated key, a cancelled run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from lab.laws.partner.endings import IN_FLIGHT
from lab.laws.partner.promise import Bench, promise
from lab.laws.partner.seen import CallAt, Conversation, Moment, RequestAt, key
from lab.laws.partner.view import PartnerView
from lab.laws.partner.words import PARTNER_API

SERVED = frozenset({"context", "bind", "upload", "message", "history", "run", "file"})


def _spent(view: PartnerView, bench: Bench) -> None:
    orders = list(view.ordered("budget"))
    for order, following in zip_longest(orders, orders[1:]):
        if order.event.facts.get("spent") is not True:
            continue
        end = view.journal.end if following is None else following.t
        for call in view.of("message"):
            if call.after(order) and (following is None or call.n < following.n) and call.answered:
                known = any(one.event.idempotency_key == call.event.idempotency_key for one in _before(view, call))
                if call.ok and not known:
                    bench.odd("a message was taken on a spent budget", "429 QUOTA_EXCEEDED", order.n, call.n)
                else:
                    bench.held()
        for run in view.runs.values():
            begun = [at for at, turn in run.turns if turn.change == "model" and order.n < at.n and at.t < end]
            if begun and (following is None or begun[0].n < following.n):
                # MSG-044
                bench.odd("a model request on a spent budget", "no further request", order.n, begun[0].n)


def _before(view: PartnerView, call: CallAt) -> Iterator[CallAt]:
    return (one for one in view.of("message") if one.ok and one.n < call.n)


def _removed(view: PartnerView, bench: Bench) -> None:
    for order in view.ordered("removals"):
        for conversation in view.conversations.values():
            if not _is_in(conversation, order):
                continue
            for call in conversation.calls:
                if call.operation in SERVED and call.answered and call.after(order):
                    seen = f"{call.operation} in a conversation that was removed"
                    bench.case(not call.ok, seen, "404 CHAT_UNAVAILABLE", order.n, call.n)


def _is_in(conversation: Conversation, order: RequestAt) -> bool:
    kind, name = order.event.facts.get("kind"), order.event.facts.get("id")
    own = {
        "thread": conversation.conversation_id,
        "agent": conversation.facts.get("agentId"),
        "team": conversation.facts.get("teamId"),
    }
    return own.get(str(kind)) == name


def _dead_keys(view: PartnerView, bench: Bench) -> None:
    _rotated(view, bench)
    _revoked(view, bench)


def _rotated(view: PartnerView, bench: Bench) -> None:
    for order in view.ordered("keys/rotate"):
        if order.event.facts.get("role") != "chat":
            continue
        old = {call.event.key for call in view.calls if call.n < order.n and call.ok and not call.by_order}
        for call in view.calls:
            if call.event.key in old and call.answered and call.after(order):
                bench.case(not call.ok, "a rotated key was served", "401 CREDENTIAL_REJECTED", order.n, call.n)
        late = order.t + IN_FLIGHT + view.journal.slack(order.t, order.t + IN_FLIGHT)
        for run in view.runs.values():
            for stream in run.streams:
                if stream.opened[0].n < order.n:
                    _judge_stream(bench, order, [seen for seen in stream.events if seen.n > order.n], late)


def _revoked(view: PartnerView, bench: Bench) -> None:
    for order in view.ordered("keys/revoke"):
        role = order.event.facts.get("role")
        keys = {one.event.key for one in view.requests if one.event.key_role == role and one.n < order.n} - {None}
        for call in view.calls:
            if call.event.key in keys and call.answered and call.after(order):
                bench.case(not call.ok, "a revoked key was served", "401 CREDENTIAL_REJECTED", order.n, call.n)
        for run in view.runs.values():
            if any(call.event.key in keys and call.n < order.n for call in run.accepted):
                begun = [at.n for at, turn in run.turns if turn.change in ("model", "tool") and at.n > order.n]
                bench.case(not begun, "an effect of a revoked key", "no effect", order.n, *begun[:1])


def _judge_stream(bench: Bench, order: Moment, behind: Sequence[Moment], late: float) -> None:
    odd = next((seen for seen in behind if seen.t > late), None)
    if odd is not None:
        bench.odd("an event on a stream of a rotated key", "a stream that closes", order.n, odd.n)
    else:
        bench.held()


def _cancelled(view: PartnerView, bench: Bench) -> None:
    orders = {key(one.event.facts.get("runId")): one for one in view.ordered("runs/cancel")}
    for run in view.runs.values():
        end = next((one for one in run.ends() if one.status == "cancelled"), None)
        if end is None:
            continue
        if not view.requests:
            bench.unsure()
        else:
            # MSG-009, MSG-037: nothing else cancels a run, least of all a reader that went away
            bench.case(run.run_id in orders, "a run that nobody cancelled is cancelled", "its own end", end.n)


LAWS = (
    promise(
        "spent-budget-refuses",
        "While the budget is spent no message is taken and no model is asked",
        PARTNER_API,
        ("MSG-044", "PA-019", "PA-051"),
        _spent,
    ),
    promise(
        "removed-is-gone",
        "Of a conversation that was removed nothing is done or told any more",
        PARTNER_API,
        ("CV-025", "PA-026", "PA-039", "PRIV-012"),
        _removed,
    ),
    promise(
        "rotated-key-is-dead",
        "A key that was rotated or revoked opens nothing more, and the streams or the runs that it opened end",
        PARTNER_API,
        ("MSG-036", "PA-021", "PA-036", "PA-054"),
        _dead_keys,
    ),
    promise(
        "cancelled-by-order",
        "A run is cancelled by order alone, not because a reader went away",
        PARTNER_API,
        ("MSG-009", "MSG-037"),
        _cancelled,
    ),
)

"""The law of what an agent has no handler for."""

from __future__ import annotations

from lab.laws.law import Judgement, Law, Tally
from lab.laws.seen import GATEWAY, LOCAL_AGENT, Connection, FrameAt
from lab.laws.view import JournalView

LAW = "unhandled-rejected"

EVERYBODY_HANDLES = frozenset({"job.assign", "job.cancel", "approval.decision", "content.request"})
"""Types that need no declaration: an agent without them is none."""

EVERYBODY_SERVES = frozenset({"job.stream", "chat.session", "file.list"})
"""Kinds of content that an agent may serve without saying so."""


def _unhandled_rejected(view: JournalView) -> Judgement:
    tally = Tally(LAW, LOCAL_AGENT)
    for connection in view.connections.values():
        for seen in connection.data(GATEWAY):
            if seen.passed_on and seen.clean:
                _judge(tally, view, connection, seen)
    return tally.judgement()


def _judge(tally: Tally, view: JournalView, connection: Connection, seen: FrameAt) -> None:
    who = view.agent_of(connection)
    if seen.frame.type == "content.request":
        kind = seen.frame.payload.get("kind")
        handled, what = _has(view, who, "serves", kind, EVERYBODY_SERVES), f"content of kind {kind}"
    else:
        handled, what = _has(view, who, "handles", seen.frame.type, EVERYBODY_HANDLES), str(seen.frame.type)
    if handled is None:
        tally.unsure()
    elif not handled:
        _judge_ack(tally, view, who, seen, what)


def _has(view: JournalView, who: str, fact: str, name: object, everybody: frozenset[str]) -> bool | None:
    """Whether the agent has a handler, as it was declared; None where nobody told and it is not everybody's."""
    declared = view.participants.get(who)
    told = declared.facts.get(fact) if declared is not None else None
    if isinstance(told, list | tuple):
        return name in told
    return True if name in everybody else None


def _judge_ack(tally: Tally, view: JournalView, who: str, seen: FrameAt, what: str) -> None:
    acks = [one for one in view.acks.get(seen.frame.msg_id or "", ()) if one.party == LOCAL_AGENT and one.n > seen.n]
    exchange = view.exchanges.get(seen.frame.request_id or "") if seen.frame.type == "content.request" else None
    answer = next(iter(exchange.answers), None) if exchange is not None else None
    ack = next(iter(acks), None)
    if answer is not None:
        # CH-035
        tally.broken(who, f"an answer with {what}, which it does not serve", _DUE, (seen.n, answer.n))
    elif ack is None or ack.frame.payload.get("status") == "duplicate":
        # That an ack is due is told by a law of its own; the first one may have been lost.
        tally.unsure()
    elif (ack.frame.payload.get("status"), ack.frame.payload.get("errorCode")) != ("rejected", "protocol_unsupported"):
        # SQ-009
        told = ack.frame.payload.get("errorCode") or ack.frame.payload.get("status")
        tally.broken(who, f"{what} without a handler acked {told}", _DUE, (seen.n, ack.n))
    else:
        tally.held()


_DUE = "an ack rejected protocol_unsupported, and nothing else"

LAWS = (
    Law(
        LAW,
        "An agent rejects with protocol_unsupported what it has no handler for",
        LOCAL_AGENT,
        ("CH-035", "SQ-009"),
        _unhandled_rejected,
    ),
)

"""The laws of a single frame, and of what may follow a fatal error."""

from __future__ import annotations

from functools import partial

from lab.journal.events import SocketClosed, TextMessage
from lab.laws.codes import CLOSE_CODES, CODE_OF_CLOSE, FATAL, fatal_error
from lab.laws.law import Judgement, Law, Tally
from lab.laws.seen import GATEWAY, LOCAL_AGENT, Connection, FrameAt, other_party
from lab.laws.view import JournalView

LEAST_WAIT = 1.0
"""Seconds without ready after which an agent may fall back to v1: 10 (HS-020), or less by its settings (LA-006)."""

CLOSES_WITHIN = 5.0
"""Seconds from a fatal error frame to the close; the documents name no time."""

_DUE = {
    "parse": "one JSON object without repeated members, in a text message",
    "size": "at most 49152 bytes",
    "type": "a type of the contract",
    "tenant": "the tenant of the connection",
    "agent": "the agentId of the connection's agent",
}


def _frames_valid(law: str, party: str, view: JournalView) -> Judgement:
    tally = Tally(law, party)
    fallback = _fallback_from(view)
    for connection in view.connections.values():
        for position, seen in enumerate(connection.made(party)):
            if _is_v1(connection, seen, fallback):
                continue
            breaks = [*_fact_breaks(connection, seen), *_place_breaks(connection, seen, position, party)]
            for what, due in breaks:
                tally.broken(view.name_of(party, connection), what, due, (seen.n,))
            if not breaks:
                tally.held()
    return tally.judgement()


def _fact_breaks(connection: Connection, seen: FrameAt) -> list[tuple[str, str]]:
    facts = seen.frame.facts
    name = seen.frame.type or "a frame"
    breaks = [
        (f"{name}: {facts[fact]}", due) for fact, due in _DUE.items() if facts.get(fact, "ok") not in ("ok", None)
    ]
    schema = facts.get("schema", "ok")
    # WS-031: what a side sends it has validated itself; an unknown type has no schema
    if schema != "ok" and facts.get("type", "ok") == "ok":
        breaks.append((f"{name}: schema_violation at {_where(schema)}", "the closed schema of its type"))
    if facts.get("direction") is False:
        breaks.append((f"{name}: wrong_direction", "a type that this side may send"))
    agent = seen.frame.agent_id
    if agent is not None and connection.agent_id is not None and agent != connection.agent_id:
        breaks.append((f"{name}: agent_mismatch", "the agent that registered here"))
    return breaks


def _where(schema: object) -> str:
    return f"{schema.get('path') or 'the frame'} ({schema.get('keyword')})" if isinstance(schema, dict) else "?"


def _place_breaks(connection: Connection, seen: FrameAt, position: int, party: str) -> list[tuple[str, str]]:
    kind = seen.frame.type
    if kind is None:
        return []
    if party == LOCAL_AGENT and position == 0 and kind != "register":
        # HS-016
        return [(f"{kind} as the first frame", "register")]
    before_ready = connection.answered is None or connection.answered.n > seen.n
    if seen.is_data and (before_ready if party == GATEWAY else not connection.in_session(seen)):
        # HS-017, HS-038
        return [(f"{kind} before ready", "no data frame before ready")]
    if kind == "ready" and not before_ready and connection.answered is not seen:
        return [("a second ready", "one ready on a connection")]
    if kind in ("register", "hello") and any(
        one.frame.type == kind and one.n < seen.n for one in connection.made(party)
    ):
        # HS-018
        return [(f"a second {kind}", f"one {kind} on a connection")]
    return []


def _fallback_from(view: JournalView) -> float | None:
    """Lab time from which agents may speak v1 (HS-020, HS-021)."""
    times = []
    for connection in view.connections.values():
        refused = connection.error(frozenset({"protocol_unsupported"}), GATEWAY)
        if refused is not None and connection.ready is None:
            times.append(refused.t)
        end = view.horizon(connection, connection.opened)
        answered = connection.ready.t if connection.ready else end
        if answered - connection.opened >= LEAST_WAIT:
            times.append(connection.opened + LEAST_WAIT)
    return min(times, default=None)


def _is_v1(connection: Connection, seen: FrameAt, fallback: float | None) -> bool:
    """A message of the v1 protocol, which bears no schemaVersion and is not judged here."""
    if seen.is_v1_register:
        # Whether it was due is told by a law of its own.
        return True
    return (
        fallback is not None
        and seen.t >= fallback
        and seen.frame.version is None
        and seen.frame.facts.get("parse", "ok") == "ok"
        and (connection.ready is None or seen.n < connection.ready.n)
    )


def _after_fatal(law: str, party: str, view: JournalView) -> Judgement:
    tally = Tally(law, party)
    for connection in view.connections.values():
        error = fatal_error(connection, party)
        if error is not None:
            _judge_after(tally, view, connection, party, error)
        _judge_close(tally, view, connection, party)
    return tally.judgement()


def _judge_after(tally: Tally, view: JournalView, connection: Connection, party: str, error: FrameAt) -> None:
    who = view.name_of(party, connection)
    code = str(error.frame.payload.get("code"))
    direction = error.frame.direction
    later = [
        (seen.n, seen.frame.type or "a frame")
        for seen in connection.after(error.n)
        if seen.party == party and seen.made
    ]
    for entry in connection.texts:
        event = entry.event
        if isinstance(event, TextMessage) and event.direction == direction and entry.n > error.n:
            later.append((entry.n, f"text {event.text}"))
    closed = connection.closed
    if later:
        n, name = min(later)
        # WS-042: the error frame is the last one
        tally.broken(who, f"{name} after the fatal error {code}", f"close {CLOSE_CODES[code]}", (error.n, n))
    elif closed is not None and isinstance(closed.event, SocketClosed):
        by = closed.event.by
        if by == _side(party) and closed.event.code != CLOSE_CODES[code]:
            # WS-040: 4400 and the position of the code
            tally.broken(
                who, f"close {closed.event.code} after {code}", f"close {CLOSE_CODES[code]}", (error.n, closed.n)
            )
        elif by == _side(party):
            tally.held()
        else:
            tally.unsure()
    else:
        due = error.t + CLOSES_WITHIN
        due += view.slack(error.t, due)
        if view.horizon(connection, error.t) >= due:
            tally.broken(who, f"no close after the fatal error {code}", f"close {CLOSE_CODES[code]}", (error.n,))


def _judge_close(tally: Tally, view: JournalView, connection: Connection, party: str) -> None:
    """WS-042: a close of a protocol error stands behind its error frame; one that follows the peer's may repeat it."""
    closed = connection.closed
    if closed is None or not isinstance(closed.event, SocketClosed) or closed.event.by != _side(party):
        return
    code = CODE_OF_CLOSE.get(closed.event.code or 0)
    if code is None or code not in FATAL or fatal_error(connection, other_party(party)) is not None:
        return
    if fatal_error(connection, party) is None:
        tally.broken(
            view.name_of(party, connection),
            f"close {closed.event.code} without an error frame",
            f"an error frame {code} before it",
            (closed.n,),
        )


def _side(party: str) -> str:
    """The witness stands at the gateway: it is local there."""
    return "local" if party == GATEWAY else "remote"


_FRAME_RULES = (
    *(f"WS-{number:03d}" for number in range(1, 21) if number not in (6, 11, 12)),
    "WS-031",
    "WS-034",
    "WS-036",
    "WS-038",
    # What the schemas say of one frame.
    *("HS-014", "SQ-011", "TY-004"),
)

LAWS = (
    Law(
        "agent-frames-valid",
        "An agent sends only frames of the contract, in its direction, for its tenant and in its own name",
        LOCAL_AGENT,
        (
            *(*_FRAME_RULES, "LA-007", "HS-016", "HS-017", "HS-018", "HS-038", "CH-008", "CH-010", "CH-012", "CH-021"),
            *("SEC-008", "TY-014", "TY-015", "TY-027"),
        ),
        partial(_frames_valid, "agent-frames-valid", LOCAL_AGENT),
    ),
    Law(
        "gateway-frames-valid",
        "A gateway sends only frames of the contract, in its direction, for its tenant, after ready",
        GATEWAY,
        (*_FRAME_RULES, "HS-038"),
        partial(_frames_valid, "gateway-frames-valid", GATEWAY),
    ),
    Law(
        "after-fatal",
        "An agent sends nothing but the close, with the error's code, after a fatal error",
        LOCAL_AGENT,
        ("WS-040", "WS-042", "LA-008"),
        partial(_after_fatal, "after-fatal", LOCAL_AGENT),
    ),
    Law(
        "gateway-after-fatal",
        "A gateway sends nothing but the close, with the error's code, after a fatal error",
        GATEWAY,
        ("WS-040", "WS-042"),
        partial(_after_fatal, "gateway-after-fatal", GATEWAY),
    ),
)

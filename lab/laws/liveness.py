"""The laws of liveness: signs of life in time, and timeouts that were due."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from lab.journal.events import TextMessage
from lab.laws.codes import fatal_error
from lab.laws.law import Judgement, Law, Tally
from lab.laws.seen import GATEWAY, LOCAL_AGENT, Connection, FrameAt, other_party
from lab.laws.view import JournalView

HEARTBEAT_SECONDS = 30.0
"""Between two heartbeats where ready names no other time (WS-024)."""

LONGEST_HEARTBEAT = 30.0
"""What ready may name at most (HS-027)."""

PING_SECONDS = 30.0
"""Between two text pings; no ready changes it (SQ-028)."""

SILENCE = 90.0
"""Seconds without any message from the agent that end a session (SQ-029)."""

HANDSHAKE_SECONDS = 10.0
"""For each step of the handshake (WS-023)."""

COPIES = 4
"""The first send of a frame and its three copies (WS-022)."""

LATE_PART = 0.2
"""Part of its period by which a sign of life may come late: a timer on a busy machine."""

LATE_SECONDS = 2.0
"""As LATE_PART, for short periods."""

CLOSES_LATE = 5.0
"""Seconds that a timeout may be late in showing."""

EARLY = 0.1
"""Part of a time limit by which it may seem to end early."""


def _heartbeats(view: JournalView) -> Judgement:
    tally = Tally("heartbeats", LOCAL_AGENT)
    for connection in view.connections.values():
        ready = connection.ready
        if ready is None or ready.frame.fate == "delayed":
            continue
        ended = fatal_error(connection)
        until = min(view.horizon(connection, ready.t), ended.t if ended else view.end)
        period = heartbeat_period(connection)
        _judge_signs(tally, view, connection, "heartbeat", period, list(_beats(connection)), until)
        _judge_signs(tally, view, connection, "ping", PING_SECONDS, list(_pings(connection)), until)
    return tally.judgement()


def heartbeat_period(connection: Connection) -> float:
    """Seconds between two heartbeats, as ready named them."""
    limits = connection.ready.frame.payload.get("limits") if connection.ready else None
    value = limits.get("heartbeatSeconds") if isinstance(limits, Mapping) else None
    due = float(value) if isinstance(value, int) and value > 0 else HEARTBEAT_SECONDS
    return min(due, LONGEST_HEARTBEAT)


def _beats(connection: Connection) -> Iterator[tuple[int, float]]:
    known: set[str | None] = set()
    for seen in connection.data(LOCAL_AGENT):
        if seen.frame.type == "heartbeat" and seen.frame.msg_id not in known:
            known.add(seen.frame.msg_id)
            yield seen.n, seen.t


def _pings(connection: Connection) -> Iterator[tuple[int, float]]:
    for entry in connection.texts:
        event = entry.event
        if isinstance(event, TextMessage) and event.direction == "la-to-cp" and event.text == "ping":
            yield entry.n, entry.t
    for seen in connection.frames:
        if seen.party == LOCAL_AGENT and seen.frame.facts.get("ping") == "ping":
            yield seen.n, seen.t


def _judge_signs(
    tally: Tally,
    view: JournalView,
    connection: Connection,
    name: str,
    period: float,
    signs: list[tuple[int, float]],
    until: float,
) -> None:
    """Each sign of life comes one period after the one before it, the first one a period after ready."""
    ready = connection.ready
    if ready is None:
        return
    before, since = ready.n, ready.t
    late = max(period * LATE_PART, LATE_SECONDS)
    for n, t in [*((n, t) for n, t in signs if t >= ready.t), (-1, until)]:
        due = since + period + late
        due += view.slack(since, due)
        if t > due and not _kept_back(view, connection, before, since, due):
            seen = f"no {name} for {t - since:.1f} s"
            entries = (before, n) if n >= 0 else (before,)
            tally.broken(view.agent_of(connection), seen, f"a {name} every {period:g} s", entries)
            return
        if n >= 0:
            tally.held()
            before, since = n, t


def _kept_back(view: JournalView, connection: Connection, after: int, start: float, end: float) -> bool:
    """Whether the agent's window may have been full: a heartbeat waits in it like any data frame (SQ-017)."""
    faults = any(seen.frame.fate != "passed" and seen.t <= end for seen in connection.after(after))
    return faults or not view.quiet(start, end)


# Timeouts


def _timeouts(law: str, party: str, view: JournalView) -> Judgement:
    tally = Tally(law, party)
    for connection in view.connections.values():
        error = connection.error(frozenset({"timeout"}), party)
        if error is not None:
            _judge_cause(tally, view, connection, party, error)
        if party == GATEWAY:
            _judge_silence(tally, view, connection)
    return tally.judgement()


def _judge_cause(tally: Tally, view: JournalView, connection: Connection, party: str, error: FrameAt) -> None:
    """A timeout is called only when one has passed."""
    if connection.ready is None and party == LOCAL_AGENT:
        # HS-020 gives it another way, after a time of its own choice.
        tally.unsure()
        return
    if connection.ready is None:
        passed, least = error.t - connection.opened, HANDSHAKE_SECONDS
        due = f"no timeout before {least:g} s of the handshake"
        entries: tuple[int, ...] = (error.n,)
    else:
        if _exhausted(view, connection, party, error):
            tally.held()
            return
        n, t = _last_sign(connection, other_party(party), error.n)
        passed, least, entries = error.t - t, SILENCE, (n, error.n)
        due = f"{SILENCE:g} s of silence, or three copies without an ack"
    if passed >= least * (1 - EARLY) - view.slack(error.t - passed, error.t):
        tally.held()
    else:
        tally.broken(view.name_of(party, connection), f"timeout after {passed:.1f} s", due, entries)


def _exhausted(view: JournalView, connection: Connection, party: str, error: FrameAt) -> bool:
    """SQ-020, SQ-022: whether some frame was sent four times, and its last wait was over."""
    sends: dict[int | None, list[float]] = {}
    for seen in connection.data(party):
        if seen.n < error.n:
            sends.setdefault(seen.frame.seq, []).append(seen.t)
    least = connection.ack_timeout * (1 - EARLY) - 0.05
    return any(
        len(times) >= COPIES and error.t - times[-1] >= least - view.slack(times[-1], error.t)
        for times in sends.values()
    )


def _last_sign(connection: Connection, party: str, before: int) -> tuple[int, float]:
    """The last message of `party` that was passed on before an entry, and ready at the earliest."""
    ready = connection.ready
    last = (ready.n, ready.t) if ready is not None else (before, connection.opened)
    for n, t in _signs(connection, party):
        if n < before:
            last = max(last, (n, t))
    return last


def _signs(connection: Connection, party: str) -> Iterator[tuple[int, float]]:
    direction = "la-to-cp" if party == LOCAL_AGENT else "cp-to-la"
    for seen in connection.frames:
        if seen.party == party and seen.delivered:
            yield seen.n, seen.t
    for entry in connection.texts:
        if isinstance(entry.event, TextMessage) and entry.event.direction == direction:
            yield entry.n, entry.t


def _judge_silence(tally: Tally, view: JournalView, connection: Connection) -> None:
    """SQ-029, SQ-030: 90 s without any message end the connection."""
    if connection.ready is None:
        return
    ended = fatal_error(connection)
    end = min(view.end, connection.closed.t if connection.closed else view.end, ended.t if ended else view.end)
    signs = sorted(sign for sign in _signs(connection, LOCAL_AGENT) if sign[0] > connection.ready.n)
    before, since = connection.ready.n, connection.ready.t
    for n, t in [*signs, (-1, end)]:
        due = since + SILENCE + CLOSES_LATE
        due += view.slack(since, due)
        if t > due:
            seen = f"still open after {t - since:.1f} s without a message"
            tally.broken(connection.gateway, seen, f"close 4420 after {SILENCE:g} s", (before,))
            return
        if n >= 0:
            before, since = n, t


LAWS = (
    Law(
        "heartbeats",
        "An agent sends a heartbeat every heartbeatSeconds, and a text ping every 30 s beside it",
        LOCAL_AGENT,
        ("SQ-028", "TY-006", "WS-024", "HS-027", "WS-051"),
        _heartbeats,
    ),
    Law(
        "timeouts",
        "An agent calls a timeout only after three copies without an ack, or after 90 s of silence",
        LOCAL_AGENT,
        ("SQ-020", "WS-079", "WS-022"),
        partial(_timeouts, "timeouts", LOCAL_AGENT),
    ),
    Law(
        "gateway-timeouts",
        "A gateway ends a connection that is silent for 90 s, and calls no timeout before one has passed",
        GATEWAY,
        ("SQ-022", "SQ-029", "SQ-030", "WS-023", "WS-024", "WS-079"),
        partial(_timeouts, "gateway-timeouts", GATEWAY),
    ),
)

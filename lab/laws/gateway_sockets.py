"""The law of a gateway's sockets: whom it lets in, and which one it keeps."""

from __future__ import annotations

from itertools import pairwise

from lab.journal.events import SocketClosed, SocketOpened
from lab.laws.codes import fatal_error
from lab.laws.law import Judgement, Law, Tally
from lab.laws.seen import GATEWAY, Connection, FrameAt
from lab.laws.view import JournalView

LAW = "gateway-sockets"

PLAIN = frozenset({1000, 1001})
"""Close codes that are no error's."""

OLDER_CLOSES_WITHIN = 8.0
"""Seconds from a newer ready to the end of the older socket: its agent may take its time to answer the close."""


def _gateway_sockets(view: JournalView) -> Judgement:
    tally = Tally(LAW, GATEWAY)
    for entry in view.entries:
        if isinstance(entry.event, SocketOpened) and entry.event.credential:
            _judge_credential(tally, entry.by, entry.n, entry.event.credential)
    by_agent: dict[tuple[str, str], list[Connection]] = {}
    for connection in view.connections.values():
        if connection.answered is not None and connection.agent_id is not None:
            by_agent.setdefault((connection.gateway, connection.agent_id), []).append(connection)
    for connections in by_agent.values():
        for older, newer in pairwise(connections):
            if newer.answered is not None:
                _judge_older(tally, view, older, newer.answered)
    return tally.judgement()


def _judge_credential(tally: Tally, gateway: str, n: int, credential: str) -> None:
    if credential == "ok":
        tally.held()
    else:
        # HS-002, WS-054
        seen = "an upgrade accepted without a credential" if credential == "none" else "an unknown credential accepted"
        tally.broken(gateway, seen, "HTTP 401", (n,))


def _judge_older(tally: Tally, view: JournalView, older: Connection, newer: FrameAt) -> None:
    """RS-021: the newest ready session wins; the older socket is closed plainly, and gets nothing more."""
    closed = older.closed
    if closed is not None and closed.n < newer.n:
        return
    late = next((seen for seen in older.after(newer.n) if seen.party == GATEWAY and seen.made), None)
    due = newer.t + OLDER_CLOSES_WITHIN
    due += view.slack(newer.t, due)
    if late is not None:
        seen = f"{late.frame.type or 'a message'} on the older connection"
        tally.broken(older.gateway, seen, "all on the newer one of its agent", (newer.n, late.n))
    elif closed is not None and isinstance(closed.event, SocketClosed) and closed.t <= due:
        if closed.event.by == "local" and closed.event.code not in PLAIN and fatal_error(older) is None:
            seen = f"close {closed.event.code} of the older connection"
            tally.broken(older.gateway, seen, "close 1000", (newer.n, closed.n))
        elif closed.event.by == "local":
            tally.held()
        else:
            tally.unsure()
    elif min(view.end, view.steps_end if view.steps_end is not None else view.end) >= due:
        seen = f"an older connection open {OLDER_CLOSES_WITHIN:g} s after a newer one was ready"
        tally.broken(older.gateway, seen, "close 1000", (newer.n,))


LAWS = (
    Law(
        LAW,
        "A gateway lets in known credentials only, and keeps one ready connection for each agent",
        GATEWAY,
        ("HS-002", "RS-021", "WS-054"),
        _gateway_sockets,
    ),
)

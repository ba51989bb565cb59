"""The laws of revisions: nobody sends what the other side's revision of the contract would refuse."""

from __future__ import annotations

from functools import partial

from lab.laws.capabilities import announced
from lab.laws.law import Judgement, Law, Tally
from lab.laws.revisions import declared_revision, newer
from lab.laws.seen import GATEWAY, LOCAL_AGENT, Connection, FrameAt
from lab.laws.view import JournalView

FIRST = "2.0"
"""The revision that names no capability (HS-035)."""

BROUGHT_BY = {
    "job.assign": "2.1",
    "job.options": "2.1",
    "policy.check": "2.2",
    "job.chat": "2.3",
    "job.inline.16k": "2.3",
}
"""The revision that brought each capability (HS-035)."""


def _within(law: str, party: str, view: JournalView) -> Judgement:
    tally = Tally(law, party)
    told: set[tuple[str | None, str | None]] = set()
    for connection in view.connections.values():
        register = connection.register
        if register is None or register.frame.version is None:
            # V1-001: v1 has no revisions.
            continue
        if party == LOCAL_AGENT:
            _judge_announced(tally, view, connection, register)
        peer = _revision_at(view, connection, GATEWAY if party == LOCAL_AGENT else LOCAL_AGENT)
        for seen in connection.made(party):
            place = (connection.session_id, seen.frame.msg_id)
            # RS-004: a copy goes out as it was, to whoever resumed the session.
            if seen.frame.version is not None and (seen.frame.msg_id is None or place not in told):
                told.add(place)
                _judge_frame(tally, view.name_of(party, connection), register, seen, peer)
    return tally.judgement()


def _judge_frame(tally: Tally, who: str, register: FrameAt, seen: FrameAt, peer: str | None) -> None:
    since = seen.frame.facts.get("since")
    if peer is None:
        tally.unsure()
    elif isinstance(since, str) and newer(since, peer):
        # CP-018, CP-019, CP-020: the closed schemas of the peer know nothing of it
        what = f"{seen.frame.type or 'a frame'} of revision {since}, to a peer of {peer}"
        tally.broken(who, what, f"nothing that {peer} refuses", (register.n, seen.n))
    else:
        tally.held()


def _judge_announced(tally: Tally, view: JournalView, connection: Connection, register: FrameAt) -> None:
    """HS-035: an agent names the capabilities of its own revision."""
    own = declared_revision(view.participants.get(view.agent_of(connection)))
    names = announced(connection)
    if own is None or names is None:
        return
    for name in sorted(names):
        brought_by = BROUGHT_BY.get(name)
        if brought_by is not None and newer(brought_by, own):
            what = f"{name} of revision {brought_by} announced by an agent of {own}"
            tally.broken(view.agent_of(connection), what, f"the capabilities of {own}", (register.n,))
            return
    tally.held()


def _revision_at(view: JournalView, connection: Connection, party: str) -> str | None:
    """The revision of one side: as it was declared, or for an agent at least what its capabilities tell."""
    declared = declared_revision(view.participants.get(view.name_of(party, connection)))
    if declared is not None or party == GATEWAY:
        return declared
    names = announced(connection)
    if names is None:
        return None
    # Whoever names a capability is beyond 2.0, whatever the name.
    return max((BROUGHT_BY.get(name, "2.1") for name in names), default=FIRST)


LAWS = (
    Law(
        "agent-within-peer-revision",
        "An agent sends only what the gateway's revision of the contract takes, and announces only what its own has",
        LOCAL_AGENT,
        ("HS-032", "HS-035", "TY-042", "TY-045"),
        partial(_within, "agent-within-peer-revision", LOCAL_AGENT),
    ),
    Law(
        "gateway-within-peer-revision",
        "A gateway sends only what the revision of the agent before it takes",
        GATEWAY,
        ("CP-018", "CP-019", "CP-020", "CP-034", "CT-063", "TY-045"),
        partial(_within, "gateway-within-peer-revision", GATEWAY),
    ),
)

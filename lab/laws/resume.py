"""The laws of going on with a session on a new connection."""

from __future__ import annotations

from lab.journal.events import SocketClosed
from lab.laws.codes import FATAL, fatal_error, refused_frame
from lab.laws.law import Judgement, Law, Tally
from lab.laws.received import Reached, lost_at, session_before
from lab.laws.resume_answer import FATAL_ENDS, judge_answer
from lab.laws.seen import GATEWAY, LOCAL_AGENT, Connection, FrameAt, Session, other_party
from lab.laws.view import JournalView

AGENT_KEEPS = 120.0
"""Seconds that an agent keeps its session after a dropped socket (RS-008)."""


def _resume_rules(view: JournalView) -> Judgement:
    tally = Tally("resume-rules", LOCAL_AGENT)
    for connection in view.connections.values():
        if connection.register is not None:
            _judge_asking(tally, view, connection)
        if connection.ready is not None and connection.resume() is not None:
            _judge_going_on(tally, view, connection, LOCAL_AGENT)
    return tally.judgement()


def _gateway_resume_rules(view: JournalView) -> Judgement:
    tally = Tally("gateway-resume-rules", GATEWAY)
    for connection in view.connections.values():
        if connection.ready is not None and (connection.resume() is not None or connection.resumed):
            judge_answer(tally, view, connection)
            _judge_going_on(tally, view, connection, GATEWAY)
    return tally.judgement()


# What the agent asks


def _judge_asking(tally: Tally, view: JournalView, connection: Connection) -> None:
    register = connection.register
    if register is None:
        return
    who = view.agent_of(connection)
    may_have = _sessions_it_may_have(view, connection, register)
    asked = connection.resume()
    if asked is None:
        _judge_not_asking(tally, view, register, may_have, who)
        return
    session_id, last_recv = asked
    session = next((one for one in may_have if one.session_id == session_id), None)
    if session is None:
        # RS-006: only a session from before
        tally.broken(who, "resume of a session it did not have", "its own last session, or none", (register.n,))
        return
    lost = lost_at(session, register)
    if lost is not None and register.t - lost.t > AGENT_KEEPS + view.slack(lost.t, register.t):
        # RS-008
        tally.broken(
            who,
            f"resume {register.t - lost.t:.1f} s after the loss",
            f"within {AGENT_KEEPS:g} s",
            (lost.n, register.n),
        )
        return
    least, most = _can_have_got(session, register)
    if last_recv is None or not least.seq <= last_recv <= most.seq:
        # RS-020 mirrored: the last in sequence that it got
        near = least if last_recv is not None and last_recv < least.seq else most
        due = f"{least.seq}" if least.seq == most.seq else f"{least.seq} to {most.seq}"
        entries = (near.n, register.n) if near.n is not None else (register.n,)
        tally.broken(who, f"lastRecvSeq {last_recv}", f"lastRecvSeq {due}", entries)
        return
    tally.held()


def _judge_not_asking(tally: Tally, view: JournalView, register: FrameAt, may_have: list[Session], who: str) -> None:
    """RS-016: after a mere loss of the socket a kept session is asked for again."""
    if not may_have:
        return
    before = may_have[0].connections[-1]
    lost = lost_at(may_have[0], register)
    if lost is None or register.t - lost.t > AGENT_KEEPS - view.slack(lost.t, register.t):
        return
    error = before.error(FATAL - {"timeout"})
    if (
        len(may_have) > 1
        or error is not None
        or _left(before)
        or _given_up(may_have[0])
        or not any(_heard_ready(one, register) for one in may_have[0].connections)
        or view.agent_process_changed(who, before.opened, register.t)
    ):
        # Decisions of the agent that a witness cannot follow: a dropped session, a new process, a ready that was lost.
        tally.unsure()
        return
    tally.broken(who, "register without resume", "resume of the session it had", (lost.n, register.n))


def _given_up(session: Session) -> bool:
    """Whether a session ended fatally so often, for whatever code, that its agent may leave it.

    The error frame itself may have been lost with the socket.
    """
    return sum(fatal_error(one) is not None or _got_a_fault(one) for one in session.connections) >= FATAL_ENDS


def _got_a_fault(connection: Connection) -> bool:
    return any(seen.party == GATEWAY and seen.delivered and not seen.clean for seen in connection.frames)


def _left(connection: Connection) -> bool:
    """Whether the agent itself ended a connection, and no error did."""
    closed = connection.closed.event if connection.closed is not None else None
    return isinstance(closed, SocketClosed) and closed.by == "remote" and closed.code in (1000, 1001)


def _sessions_it_may_have(view: JournalView, connection: Connection, register: FrameAt) -> list[Session]:
    """The agent's last session, and older ones where the newer ready may have been lost on the way."""
    found: list[Session] = []
    for session in reversed(view.sessions):
        ready = session.connections[0].ready
        if session.agent_id != connection.agent_id or ready is None or ready.n > register.n:
            continue
        found.append(session)
        if any(True for one in session.connections if _heard_ready(one, register)):
            break
    return found


def _heard_ready(connection: Connection, register: FrameAt) -> bool:
    """Whether the agent sent something after ready: then it had read it."""
    return any(seen.n < register.n and connection.in_session(seen) for seen in connection.made(LOCAL_AGENT))


def _can_have_got(session: Session, register: FrameAt) -> tuple[Reached, Reached]:
    """Bounds of the agent's receive counter: what it said it has, and what was passed on to it and not refused."""
    least, most = Reached(0, None), Reached(0, None)
    got: set[int] = set()
    for connection in session.connections:
        asked = connection.resume()
        earlier = connection.register
        if connection.resumed and asked is not None and earlier is not None and earlier.n < register.n:
            least = Reached(asked[1] or 0, earlier.n) if (asked[1] or 0) > least.seq else least
        refused = refused_frame(connection, LOCAL_AGENT)
        for seen in connection.frames:
            if seen is refused:
                # SQ-033: it does not count, and what lies behind it was not read
                break
            if seen.n >= register.n or not connection.in_session(seen):
                continue
            if seen.party == LOCAL_AGENT and seen.made:
                # Only the running count: an ack of one seq says nothing of those before it.
                if (seen.frame.ack or 0) > least.seq:
                    least = Reached(seen.frame.ack or 0, seen.n)
            elif seen.party == GATEWAY and seen.delivered and seen.is_data and seen.frame.seq is not None:
                got.add(seen.frame.seq)
                while most.seq + 1 in got:
                    most = Reached(most.seq + 1, seen.n)
    return least, most


# How each side goes on


def _judge_going_on(tally: Tally, view: JournalView, connection: Connection, party: str) -> None:
    ready = connection.ready
    if ready is None:
        return
    who = view.name_of(party, connection)
    first = next(connection.data(party), None)
    if not connection.resumed:
        if first is not None and first.frame.seq != 1:
            # RS-005
            tally.broken(who, f"seq {first.frame.seq} after resumed:false", "seq 1", (ready.n, first.n))
        elif first is not None:
            tally.held()
        return
    session = session_before(view, connection.session_id, ready)
    known = _peer_has(connection, party)
    if session is None or known is None:
        return
    if party == LOCAL_AGENT and first is not None and (first.frame.seq or 0) != known + 1:
        # RS-002, RS-012
        tally.broken(who, f"seq {first.frame.seq} after resumed:true", f"seq {known + 1}", (ready.n, first.n))
        return
    old = next((seen for seen in connection.data(party) if (seen.frame.seq or 0) <= known), None)
    if party == GATEWAY and old is not None:
        # RS-004: lastRecvSeq is an ack
        seen = f"seq {old.frame.seq} again after lastRecvSeq {known}"
        tally.broken(who, seen, f"what comes after seq {known}", (ready.n, old.n))
        return
    _judge_sent_again(tally, view, connection, session, party, known, ready)


def _peer_has(connection: Connection, party: str) -> int | None:
    """What the other side said it has: peerLastSeq for the agent, lastRecvSeq for the gateway (RS-004)."""
    if party == LOCAL_AGENT:
        value = connection.ready.frame.payload.get("peerLastSeq") if connection.ready else None
    else:
        asked = connection.resume()
        value = asked[1] if asked else None
    return value if isinstance(value, int) else None


def _judge_sent_again(
    tally: Tally,
    view: JournalView,
    connection: Connection,
    session: Session,
    party: str,
    known: int,
    ready: FrameAt,
) -> None:
    """RS-002, RS-003, RS-004: each frame that the peer lacks comes again, the agent's with the same bytes."""
    who = view.name_of(party, connection)
    acked = {
        seen.frame.payload.get("ackSeq")
        for one in session.connections
        for seen in one.made(other_party(party))
        if seen.frame.type == "ack" and seen.passed_on
    }
    lacking: dict[int, FrameAt] = {}
    for seen in session.data(party):
        if seen.frame.seq is not None and seen.frame.seq > known and seen.frame.seq not in acked:
            lacking[seen.frame.seq] = seen
    again: dict[int, FrameAt] = {}
    for seen in connection.data(party):
        again.setdefault(seen.frame.seq or 0, seen)
    for seq, before in sorted(lacking.items()):
        copy = again.get(seq)
        due = ready.t + connection.patience
        due += view.slack(ready.t, due)
        ended = fatal_error(connection)
        if copy is None:
            if view.horizon(connection, ready.t) >= due and not (ended and ended.t <= due):
                tally.broken(who, f"seq {seq} not sent again", "every unacked frame again", (before.n, ready.n))
        elif party == LOCAL_AGENT and copy.frame.sha256 != before.frame.sha256:
            tally.broken(who, f"seq {seq} sent again with other bytes", "the same bytes", (before.n, copy.n))
        elif copy.frame.msg_id != before.frame.msg_id:
            tally.broken(who, f"seq {seq} sent again with another msgId", "the same msgId", (before.n, copy.n))
        else:
            tally.held()
    if not lacking:
        tally.held()


LAWS = (
    Law(
        "resume-rules",
        "An agent resumes the session it had within 120 s, tells what it got, and sends again what was not acked",
        LOCAL_AGENT,
        ("RS-002", "RS-003", "RS-005", "RS-006", "RS-008", "RS-012", "RS-016", "SQ-033"),
        _resume_rules,
    ),
    Law(
        "gateway-resume-rules",
        "A gateway resumes a live session within 90 s only, tells what it got, and sends again what was not acked",
        GATEWAY,
        ("HS-039", "RS-001", "RS-004", "RS-005", "RS-009", "RS-018", "RS-020", "SQ-033"),
        _gateway_resume_rules,
    ),
)

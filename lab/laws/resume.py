"""The laws of going on with a session on a new connection."""

from __future__ import annotations

from lab.journal.events import SocketClosed
from lab.laws.codes import FATAL, fatal_error
from lab.laws.law import Judgement, Law, Tally
from lab.laws.seen import GATEWAY, LOCAL_AGENT, Connection, FrameAt, Session, other_party
from lab.laws.view import JournalView

AGENT_KEEPS = 120.0
"""Seconds that an agent keeps its session after a dropped socket (RS-008)."""

FATAL_ENDS = 5
"""Fatal ends of a session after which it may be dropped."""

GATEWAY_KEEPS = 90.0
"""Seconds that a gateway keeps it (RS-009)."""


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
            _judge_answer(tally, view, connection)
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
    lost = _lost_at(session, register)
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
    lost = _lost_at(may_have[0], register)
    if lost is None or register.t - lost.t > AGENT_KEEPS - view.slack(lost.t, register.t):
        return
    error = before.error(FATAL - {"timeout"})
    if (
        len(may_have) > 1
        or error is not None
        or _left(before)
        or not any(_heard_ready(one, register) for one in may_have[0].connections)
        or view.agent_process_changed(who, before.opened, register.t)
    ):
        # Decisions of the agent that a witness cannot follow: a dropped session, a new process, a ready that was lost.
        tally.unsure()
        return
    tally.broken(who, "register without resume", "resume of the session it had", (lost.n, register.n))


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


class _Loss:
    """When a session lost its socket."""

    def __init__(self, n: int, t: float) -> None:
        self.n, self.t = n, t


def _lost_at(session: Session, before: FrameAt) -> _Loss | None:
    """The close of the session's last connection before a frame; None if it was still open then."""
    earlier = [one for one in session.connections if one.ready is not None and one.ready.n < before.n]
    closed = earlier[-1].closed if earlier else None
    return _Loss(closed.n, closed.t) if closed is not None and closed.n < before.n else None


class _Reached:
    """A seq, and the entry that shows it."""

    def __init__(self, seq: int, n: int | None) -> None:
        self.seq, self.n = seq, n


def _can_have_got(session: Session, register: FrameAt) -> tuple[_Reached, _Reached]:
    """Bounds of the agent's receive counter: what it said it has, and what was passed on to it."""
    least, most = _Reached(0, None), _Reached(0, None)
    got: set[int] = set()
    for connection in session.connections:
        asked = connection.resume()
        earlier = connection.register
        if connection.resumed and asked is not None and earlier is not None and earlier.n < register.n:
            least = _Reached(asked[1] or 0, earlier.n) if (asked[1] or 0) > least.seq else least
        for seen in connection.frames:
            if seen.n >= register.n or not connection.in_session(seen):
                continue
            if seen.party == LOCAL_AGENT and seen.made:
                # Only the running count: an ack of one seq says nothing of those before it.
                if (seen.frame.ack or 0) > least.seq:
                    least = _Reached(seen.frame.ack or 0, seen.n)
            elif seen.party == GATEWAY and seen.delivered and seen.is_data and seen.frame.seq is not None:
                got.add(seen.frame.seq)
                while most.seq + 1 in got:
                    most = _Reached(most.seq + 1, seen.n)
    return least, most


# What the gateway answers


def _judge_answer(tally: Tally, view: JournalView, connection: Connection) -> None:
    ready, asked = connection.ready, connection.resume()
    if ready is None:
        return
    who = connection.gateway
    payload = ready.frame.payload
    session = _session_before(view, asked[0] if asked else None, ready)
    peer_last = payload.get("peerLastSeq")
    if not connection.resumed:
        _judge_refusal(tally, view, connection, session, ready, peer_last)
        return
    if asked is None or payload.get("sessionId") != asked[0]:
        # HS-039
        tally.broken(who, "resumed:true for another session than asked", "the session asked for", (ready.n,))
        return
    if session is None or session.agent_id != connection.agent_id or session.connections[-1].gateway != who:
        # RS-018, RS-009
        tally.broken(who, "resumed:true for a session it did not have", "resumed:false", (ready.n,))
        return
    lost = _lost_at(session, ready)
    if lost is not None and ready.t - lost.t > GATEWAY_KEEPS + view.slack(lost.t, ready.t):
        # RS-009
        tally.broken(who, f"resumed:true {ready.t - lost.t:.1f} s after the loss", "resumed:false", (lost.n, ready.n))
        return
    received, clean = _received(session, ready)
    if not clean:
        tally.unsure()
    elif peer_last != received.seq:
        # RS-020: the highest in sequence
        entries = (received.n, ready.n) if received.n is not None else (ready.n,)
        tally.broken(who, f"peerLastSeq {peer_last}", f"peerLastSeq {received.seq}", entries)
    else:
        tally.held()


def _judge_refusal(
    tally: Tally,
    view: JournalView,
    connection: Connection,
    session: Session | None,
    ready: FrameAt,
    peer_last: object,
) -> None:
    who = connection.gateway
    if peer_last != 0:
        # RS-020
        tally.broken(who, f"peerLastSeq {peer_last} with resumed:false", "peerLastSeq 0", (ready.n,))
        return
    if any(
        one.session_id == ready.frame.payload.get("sessionId")
        and one.connections[0].ready is not None
        and one.connections[0].ready.n < ready.n
        for one in view.sessions
    ):
        # HS-039
        tally.broken(who, "resumed:false with the id of an older session", "a new sessionId", (ready.n,))
        return
    if session is None or session.agent_id != connection.agent_id or session.connections[-1].gateway != who:
        tally.held()
        return
    lost = _lost_at(session, ready)
    asked = connection.resume()
    sent = max((seen.frame.seq or 0 for seen in session.data(GATEWAY) if seen.n < ready.n), default=0)
    since = lost.t if lost is not None else ready.t
    dropped = _superseded(view, session, ready) or _given_up(session, ready) or _broken_off(view, session, ready)
    possible = asked is not None and (asked[1] or 0) <= sent
    if dropped or not possible or ready.t - since > GATEWAY_KEEPS - view.slack(since, ready.t):
        tally.held()
    else:
        # RS-001
        tally.broken(
            who,
            f"resumed:false {ready.t - since:.1f} s after the loss",
            f"resumed:true, within {GATEWAY_KEEPS:g} s",
            (lost.n, ready.n) if lost is not None else (ready.n,),
        )


def _superseded(view: JournalView, session: Session, ready: FrameAt) -> bool:
    """RS-021: a newer session of the same agent, READY in between, discards the older one."""
    last = session.connections[-1].ready
    firsts = [one.connections[0].ready for one in view.sessions if one.agent_id == session.agent_id]
    return last is not None and any(first is not None and last.n < first.n < ready.n for first in firsts)


def _broken_off(view: JournalView, session: Session, ready: FrameAt) -> bool:
    """Whether a resume of the session that could not be was refused before: that drops it."""
    return any(
        (one.resume() or (None,))[0] == session.session_id and error.n < ready.n
        for one in view.connections.values()
        if (error := one.error(frozenset({"handshake_violation"}), GATEWAY)) is not None
    )


def _given_up(session: Session, ready: FrameAt) -> bool:
    """Whether a session ended fatally so often that either side may drop it, lest it go on so for ever."""
    ends = [one.error(FATAL - {"timeout"}) for one in session.connections]
    return sum(end is not None and end.n < ready.n for end in ends) >= FATAL_ENDS


def _session_before(view: JournalView, session_id: str | None, ready: FrameAt) -> Session | None:
    """The session with this id as it stood before a ready."""
    for session in reversed(view.sessions):
        earlier = [one for one in session.connections if one.ready is not None and one.ready.n < ready.n]
        if session.session_id == session_id and session_id is not None and earlier:
            return Session(session.session_id, session.agent_id, earlier)
    return None


def _received(session: Session, ready: FrameAt) -> tuple[_Reached, bool]:
    """What the gateway got in sequence, and whether nothing in it was refused or held back."""
    reached = _Reached(0, None)
    got: dict[int, int] = {}
    clean = True
    for seen in session.data(LOCAL_AGENT):
        if seen.n > ready.n or not seen.delivered or seen.frame.seq is None:
            continue
        clean = clean and seen.clean and seen.frame.fate != "delayed"
        got.setdefault(seen.frame.seq, seen.n)
        while reached.seq + 1 in got:
            reached = _Reached(reached.seq + 1, got[reached.seq + 1])
    return reached, clean and not any(one.error(FATAL - {"timeout"}, GATEWAY) for one in session.connections)


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
    session = _session_before(view, connection.session_id, ready)
    known = _peer_has(connection, party)
    if session is None or known is None:
        return
    if party == LOCAL_AGENT and first is not None and (first.frame.seq or 0) != known + 1:
        # RS-002, RS-012
        tally.broken(who, f"seq {first.frame.seq} after resumed:true", f"seq {known + 1}", (ready.n, first.n))
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
        if seen.frame.type == "ack" and seen.delivered
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
        ("RS-002", "RS-003", "RS-005", "RS-006", "RS-008", "RS-012", "RS-016"),
        _resume_rules,
    ),
    Law(
        "gateway-resume-rules",
        "A gateway resumes a live session within 90 s only, tells what it got, and sends again what was not acked",
        GATEWAY,
        ("HS-039", "RS-001", "RS-004", "RS-005", "RS-009", "RS-018", "RS-020"),
        _gateway_resume_rules,
    ),
)

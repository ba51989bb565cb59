"""What a gateway answers to a register that asks for a session: resumed or not, and what it has got."""

from __future__ import annotations

from lab.laws.codes import fatal_error, refused_frame
from lab.laws.law import Tally
from lab.laws.received import Reached, lost_at, session_before
from lab.laws.seen import GATEWAY, LOCAL_AGENT, Connection, FrameAt, Session
from lab.laws.view import JournalView

FATAL_ENDS = 5
"""Fatal ends of a session after which it may be dropped."""

GATEWAY_KEEPS = 90.0
"""Seconds that a gateway keeps it (RS-009)."""


def judge_answer(tally: Tally, view: JournalView, connection: Connection) -> None:
    ready, asked = connection.ready, connection.resume()
    if ready is None:
        return
    who = connection.gateway
    payload = ready.frame.payload
    session = session_before(view, asked[0] if asked else None, ready)
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
    lost = lost_at(session, ready)
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
    lost = lost_at(session, ready)
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
    ends = [fatal_error(one) for one in session.connections]
    return sum(end is not None and end.n < ready.n for end in ends) >= FATAL_ENDS


def _received(session: Session, ready: FrameAt) -> tuple[Reached, bool]:
    """What the gateway got in sequence, and whether that can be told: what it refused it has not got (SQ-033)."""
    reached = Reached(0, None)
    got: dict[int, int] = {}
    refused: set[tuple[int | None, str | None]] = set()
    clean = True
    for connection in session.connections:
        error = fatal_error(connection, GATEWAY)
        wrong = refused_frame(connection, GATEWAY)
        clean = clean and (error is None or error.code == "timeout" or wrong is not None)
        for seen in connection.arrived(LOCAL_AGENT):
            place = (seen.frame.seq, seen.frame.msg_id)
            if seen.n > ready.n or (error is not None and seen.n > error.n):
                break
            if seen is wrong:
                refused.add(place)
            elif seen.frame.seq is not None:
                # What was refused before comes again, and is used up whatever is wrong with it.
                clean = clean and (seen.clean or place in refused)
                got.setdefault(seen.frame.seq, seen.n)
                while reached.seq + 1 in got:
                    reached = Reached(reached.seq + 1, got[reached.seq + 1])
    return reached, clean

"""What there was of a session before one of its connections, as far as the journal tells."""

from __future__ import annotations

from lab.laws.chunks import Series
from lab.laws.codes import refused_frame
from lab.laws.seen import GATEWAY, LOCAL_AGENT, Connection, FrameAt, Session, other_party
from lab.laws.view import JournalView


def received_before(connection: Connection, party: str) -> int:
    """What the receiver had in sequence when the connection became ready, by its own word (RS-020)."""
    if not connection.resumed:
        return 0
    asked = connection.resume()
    value = asked[1] if party == LOCAL_AGENT and asked else None
    if party == GATEWAY and connection.ready is not None:
        value = connection.ready.frame.payload.get("peerLastSeq")
    return value if isinstance(value, int) else 0


def pairs_before(session: Session | None, connection: Connection, party: str) -> dict[int | None, str | None]:
    """The msgId of each seq that came on the session's earlier connections."""
    pairs: dict[int | None, str | None] = {}
    for one in session.connections if session is not None else ():
        if one is connection:
            break
        for seen in one.data(other_party(party)):
            if seen.passed_on:
                pairs.setdefault(seen.frame.seq, seen.frame.msg_id)
    return pairs


def refused_before(session: Session | None, connection: Connection, party: str) -> set[tuple[int | None, str | None]]:
    """Seq and msgId of what ended the session's earlier connections: it comes again, and is then consumed."""
    refused = set()
    for one in session.connections if session is not None else ():
        if one is connection:
            break
        wrong = refused_frame(one, party)
        if wrong is not None:
            refused.add((wrong.frame.seq, wrong.frame.msg_id))
        # The error that told of it may have been lost with the socket.
        refused |= {(seen.frame.seq, seen.frame.msg_id) for seen in one.arrived(other_party(party)) if not seen.clean}
    return refused


def series_before(
    session: Session | None, connection: Connection, refused: set[tuple[int | None, str | None]]
) -> dict[str, Series]:
    """RS-015: how far each answer had come on the session's earlier connections, as far as the gateway had it."""
    series: dict[str, Series] = {}
    if session is None or not connection.resumed:
        return series
    received = received_before(connection, GATEWAY)
    counted = 0
    for one in session.connections:
        if one is connection:
            break
        for seen in one.arrived(LOCAL_AGENT):
            if seen.frame.seq == counted + 1 and counted < received:
                counted += 1
                taken = (seen.frame.seq, seen.frame.msg_id) not in refused
                if seen.frame.type == "content.response" and taken:
                    go_on(series, session, seen)
    return series


def go_on(all_series: dict[str, Series], session: Session, seen: FrameAt) -> None:
    chunk, request_id = seen.frame.chunk, seen.frame.request_id
    if chunk is None or request_id is None:
        return
    series = all_series.setdefault(request_id, Series(session, seen, chunk["total"], 0))
    series.due = chunk["index"] + 1
    series.over = bool(chunk["last"])


def sent_and_acked(view: JournalView, connection: Connection, session_id: str | None, claims: str) -> tuple[int, int]:
    """What the other side had sent in a session before a connection, and what `claims` had acked of it."""
    sent = acked = 0
    for session in view.sessions:
        if session.session_id != session_id:
            continue
        for one in session.connections:
            if one is connection:
                break
            for seen in one.frames:
                if seen.party != claims and seen.is_data and one.in_session(seen):
                    sent = max(sent, seen.frame.seq or 0)
                elif seen.party == claims and seen.delivered and one.in_session(seen):
                    acked = max(acked, seen.frame.ack or 0)
    return sent, acked


class Loss:
    """When a session lost its socket."""

    def __init__(self, n: int, t: float) -> None:
        self.n, self.t = n, t


def lost_at(session: Session, before: FrameAt) -> Loss | None:
    """The close of the session's last connection before a frame; None if it was still open then."""
    earlier = [one for one in session.connections if one.ready is not None and one.ready.n < before.n]
    closed = earlier[-1].closed if earlier else None
    return Loss(closed.n, closed.t) if closed is not None and closed.n < before.n else None


class Reached:
    """A seq, and the entry that shows it."""

    def __init__(self, seq: int, n: int | None) -> None:
        self.seq, self.n = seq, n


def session_before(view: JournalView, session_id: str | None, ready: FrameAt) -> Session | None:
    """The session with this id as it stood before a ready."""
    for session in reversed(view.sessions):
        earlier = [one for one in session.connections if one.ready is not None and one.ready.n < ready.n]
        if session.session_id == session_id and session_id is not None and earlier:
            return Session(session.session_id, session.agent_id, earlier)
    return None

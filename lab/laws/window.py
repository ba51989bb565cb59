"""The law of the window: how many data frames of an agent are without an ack at once."""

from __future__ import annotations

from lab.laws.codes import fatal_error
from lab.laws.law import Judgement, Law, Tally
from lab.laws.liveness import LATE_PART, LATE_SECONDS, heartbeat_period
from lab.laws.seen import GATEWAY, LOCAL_AGENT, Connection, FrameAt, Session
from lab.laws.view import JournalView

LAW = "window"

WINDOW = 8
"""Frames without an ack at most, where the agent's settings name no other number (LA-005)."""


def _window(view: JournalView) -> Judgement:
    tally = Tally(LAW, LOCAL_AGENT)
    for session in view.sessions:
        _Window(tally, view, session).judge()
    return tally.judgement()


class _Window:
    """Follows which data frames of the agent are without an ack in a session, at the earliest that it could know."""

    def __init__(self, tally: Tally, view: JournalView, session: Session) -> None:
        self._tally = tally
        self._view = view
        self._session = session
        self._who = view.agent_of(session.connections[0])
        declared = view.participants.get(self._who)
        told = declared.facts.get("window") if declared is not None else None
        self._size = told if isinstance(told, int) else WINDOW
        self._unknown = told is None and declared is not None and declared.how == "attach"
        """Whether the agent's settings are its user's affair."""
        self._open: dict[int, FrameAt] = {}
        self._highest = 0
        self._reached = 0

    def judge(self) -> None:
        for connection in self._session.connections:
            self._follow(connection)
        if self._reached > self._size and self._unknown:
            self._tally.unsure()
        elif self._reached:
            self._tally.held()

    def _follow(self, connection: Connection) -> None:
        room: FrameAt | None = None
        """What made room in a window that was full before."""
        full = False
        for seen in connection.frames:
            if seen is connection.ready:
                self._settle(self._told_at_resume(connection), None)
            elif seen.party == GATEWAY and seen.delivered and connection.in_session(seen):
                self._settle(seen.frame.ack or 0, seen)
                if full and len(self._open) < self._size:
                    full, room = False, seen
            elif self._is_new(connection, seen):
                self._judge_room(connection, room, seen)
                self._send(seen)
                room = None
                full = full or len(self._open) >= self._size
        self._judge_room(connection, room, None)

    def _is_new(self, connection: Connection, seen: FrameAt) -> bool:
        """Whether the agent sends a data frame for the first time."""
        data = seen.party == LOCAL_AGENT and seen.made and seen.is_data and connection.in_session(seen)
        return data and (seen.frame.seq or 0) > self._highest

    def _told_at_resume(self, connection: Connection) -> int:
        told = connection.ready.frame.payload.get("peerLastSeq") if connection.ready and connection.resumed else 0
        return told if isinstance(told, int) else 0

    def _settle(self, up_to: int, ack: FrameAt | None) -> None:
        """SQ-014: both forms settle a frame."""
        for seq in [seq for seq in self._open if seq <= up_to or (ack is not None and seq == ack.ack_seq)]:
            del self._open[seq]

    def _send(self, seen: FrameAt) -> None:
        self._highest = seq = seen.frame.seq or 0
        self._open[seq] = seen
        if len(self._open) > max(self._size, self._reached) and not self._unknown:
            # SQ-017: the rest waits
            first = next(iter(self._open.values()))
            self._tally.broken(
                self._who,
                f"{len(self._open)} data frames without an ack at once",
                f"at most {self._size}",
                (first.n, seen.n),
            )
        self._reached = max(self._reached, len(self._open))

    def _judge_room(self, connection: Connection, room: FrameAt | None, after: FrameAt | None) -> None:
        """SQ-014: what was acked makes room; a heartbeat at least is then due within its period."""
        if room is None:
            return
        period = heartbeat_period(connection)
        due = room.t + period + max(period * LATE_PART, LATE_SECONDS)
        due += self._view.slack(room.t, due)
        ended = fatal_error(connection)
        until = after.t if after is not None else self._view.horizon(connection, room.t)
        until = min(until, ended.t) if ended is not None else until
        if until > due and self._view.quiet(room.t, due):
            seen = f"no data frame for {until - room.t:.1f} s though {len(self._open)} are without an ack"
            self._tally.broken(self._who, seen, "the next frame: one that is acked makes room", (room.n,))


LAWS = (
    Law(
        LAW,
        "An agent has at most eight data frames without an ack at once, or what its settings say, "
        "and what is acked makes room",
        LOCAL_AGENT,
        ("CH-015", "LA-005", "SQ-014", "SQ-017"),
        _window,
    ),
)

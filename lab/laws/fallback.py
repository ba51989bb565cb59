"""The law of the fallback: v1 when and only when it is due."""

from __future__ import annotations

from lab.journal.events import SocketClosed
from lab.laws.codes import FATAL
from lab.laws.law import Judgement, Law, Tally
from lab.laws.seen import GATEWAY, LOCAL_AGENT, Connection, FrameAt
from lab.laws.view import JournalView

LAW = "v1-fallback"

LEAST_WAIT = 1.0
"""Seconds without ready after which an agent may fall back at the earliest (LA-006)."""

WAIT = 10.0
"""Seconds without ready after which it must (HS-020)."""

LATE = 3.0
"""Seconds by which a fallback may be late."""

SUSPENDED = 600.0
"""Seconds for which v2 is not offered again (HS-021)."""


def _v1_fallback(view: JournalView) -> Judgement:
    tally = Tally(LAW, LOCAL_AGENT)
    by_agent: dict[str, list[Connection]] = {}
    for connection in view.connections.values():
        by_agent.setdefault(view.agent_of(connection), []).append(connection)
    for who, connections in by_agent.items():
        _Follower(tally, view, who).judge(connections)
    return tally.judgement()


class _Follower:
    """Follows the protocol that one agent speaks, connection by connection."""

    def __init__(self, tally: Tally, view: JournalView, who: str) -> None:
        self._tally = tally
        self._view = view
        self._who = who
        self._fallen: FrameAt | None = None
        """The v1 register of the last fallback."""
        self._spoke_v2 = False
        self._unseen = False
        """Whether it may have fallen back on a connection that was gone before that could be seen."""

    def judge(self, connections: list[Connection]) -> None:
        for connection in connections:
            old = _v1_register(connection)
            new = _v2_register(connection)
            if self._fallen is not None and self._renewed(connection):
                self._fallen = None
            if self._fallen is not None:
                self._judge_suspended(new)
            if old is not None:
                self._judge_v1(connection, old, new)
            elif new is not None and self._fallen is None:
                self._judge_staying(connection, new)
            self._spoke_v2 |= new is not None

    def _renewed(self, connection: Connection) -> bool:
        """Whether a new process, or the end of the ten minutes, lets v2 be offered again."""
        fallen = self._fallen
        if fallen is None:
            return False
        changed = self._view.agent_process_changed(self._who, fallen.t, connection.opened)
        return changed or connection.opened - fallen.t > SUSPENDED - LATE

    def _judge_v1(self, connection: Connection, old: FrameAt, new: FrameAt | None) -> None:
        if self._fallen is None and new is None and not self._spoke_v2:
            # LA-002: an agent with v2 switched off
            self._tally.unsure()
            return
        if self._fallen is None and new is None and self._unseen:
            self._fallen = old
            self._tally.unsure()
            return
        if self._fallen is None and self._view.paused(connection.opened, old.t):
            # By the agent's own clock the wait for ready may have been over when it read again.
            self._fallen = old
            self._tally.unsure()
            return
        if self._fallen is None and new is not None and self._view.stalled(new.t, old.t):
            # The ready was sent, and may have come too late, or never.
            self._fallen = old
            self._tally.unsure()
            return
        if self._fallen is None and not self._may_fall_back(connection, old, new):
            # HS-019, HS-023: only silence and protocol_unsupported lead to v1
            entries = (old.n,) if new is None else (new.n, old.n)
            self._tally.broken(self._who, f"a v1 register {self._after(connection, old)}", "v2 again, later", entries)
            return
        self._fallen = self._fallen or old
        later = next((seen for seen in connection.after(old.n) if _is_v2(seen)), None)
        if later is not None:
            # V1-012
            self._tally.broken(self._who, f"v2 frame {later.frame.type} after the fallback", "v1", (old.n, later.n))
        else:
            self._tally.held()

    def _after(self, connection: Connection, old: FrameAt) -> str:
        error = _refusal(connection, old.n)
        code = error.frame.payload.get("code") if error is not None else None
        return f"after {code}" if code else f"{old.t - connection.opened:.1f} s into the connection"

    def _may_fall_back(self, connection: Connection, old: FrameAt, new: FrameAt | None) -> bool:
        """HS-020: on the same connection, after the wait for ready or after protocol_unsupported."""
        if new is None or new.n > old.n:
            return False
        if connection.ready is not None and connection.ready.n < old.n and connection.ready.frame.fate == "passed":
            return False
        refused = _refusal(connection, old.n)
        if refused is not None:
            return refused.frame.payload.get("code") == "protocol_unsupported"
        return old.t - new.t >= LEAST_WAIT * 0.9 - self._view.slack(new.t, old.t)

    def _judge_suspended(self, new: FrameAt | None) -> None:
        fallen = self._fallen
        if new is not None and fallen is not None:
            # HS-021, V1-012
            seen = f"v2 offered {new.t - fallen.t:.0f} s after the fallback"
            self._tally.broken(self._who, seen, f"v1 for {SUSPENDED:g} s", (fallen.n, new.n))

    def _judge_staying(self, connection: Connection, new: FrameAt) -> None:
        """HS-020: whoever gets no ready, or is told that v2 is not spoken, falls back on the same connection."""
        refused = _refusal(connection, self._view.entries[-1].n + 1)
        if connection.ready is not None and connection.ready.passed_on:
            # A ready that was held back may have come when the wait for it was over, and the fallback been held too.
            self._unseen |= self._view.stalled(new.t, connection.ready.t + WAIT)
            return
        if refused is not None and refused.frame.payload.get("code") != "protocol_unsupported":
            self._tally.held()
            return
        since = refused.t + LATE if refused is not None else new.t + WAIT + LATE
        due = since + self._view.slack(new.t, since)
        if self._judge_leaving(connection, new, refused):
            return
        if self._view.horizon(connection, new.t) < due or not self._view.quiet(new.t, due):
            self._unseen |= refused is not None or self._view.horizon(connection, new.t) - new.t >= LEAST_WAIT * 0.9
            return
        why = "protocol_unsupported" if refused is not None else f"{WAIT:g} s without ready"
        entries = (new.n,) if refused is None else (new.n, refused.n)
        self._tally.broken(self._who, f"no v1 register after {why}", "a v1 register on the same connection", entries)

    def _judge_leaving(self, connection: Connection, new: FrameAt, refused: FrameAt | None) -> bool:
        """HS-020: whoever closes by itself, where v1 was due, does not go on in v1; whether it did so."""
        closed = connection.closed
        if closed is None or not isinstance(closed.event, SocketClosed) or closed.event.by != "remote":
            return False
        over = self._view.steps_end is not None and closed.t >= self._view.steps_end
        changed = self._view.agent_process_changed(self._who, connection.opened, closed.t)
        soon = refused is None and closed.t - new.t < WAIT * 0.9
        if over or changed or soon or not self._view.quiet(new.t, closed.t):
            return False
        why = "protocol_unsupported" if refused is not None else f"{closed.t - new.t:.1f} s without ready"
        entries = (new.n, closed.n) if refused is None else (new.n, refused.n, closed.n)
        self._tally.broken(
            self._who, f"closed the connection after {why}", "a v1 register on the same connection", entries
        )
        return True


def _v1_register(connection: Connection) -> FrameAt | None:
    return next((seen for seen in connection.made(LOCAL_AGENT) if seen.is_v1_register), None)


def _v2_register(connection: Connection) -> FrameAt | None:
    return next((seen for seen in connection.made(LOCAL_AGENT) if seen.frame.type == "register" and _is_v2(seen)), None)


def _is_v2(seen: FrameAt) -> bool:
    return seen.party == LOCAL_AGENT and seen.made and seen.frame.version == 2


def _refusal(connection: Connection, before: int) -> FrameAt | None:
    """The gateway's first refusal that reached the agent before it was ready, and before an entry."""
    codes = FATAL | {"protocol_unsupported"}
    for seen in connection.frames:
        if seen.n >= before or (connection.ready is not None and seen.n > connection.ready.n):
            return None
        is_error = seen.party == GATEWAY and seen.frame.type == "error" and seen.delivered
        if is_error and seen.code in codes:
            return seen
    return None


LAWS = (
    Law(
        LAW,
        "An agent falls back to v1 when no ready comes or v2 is not spoken, only then, and for ten minutes",
        LOCAL_AGENT,
        ("HS-019", "HS-020", "HS-021", "HS-023", "HS-024", "V1-012"),
        _v1_fallback,
    ),
)

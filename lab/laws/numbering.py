"""The laws of seq and acks."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from functools import partial

from lab.laws.codes import fatal_error, refused_frame
from lab.laws.law import Judgement, Law, Tally
from lab.laws.seen import GATEWAY, LOCAL_AGENT, Connection, FrameAt, Session, other_party
from lab.laws.view import JournalView

GATEWAY_ACKS_WITHIN = 1.0
"""Seconds in which the lab's own gateway acks what reached it (SQ-034: on receipt)."""


def _numbering(law: str, party: str, view: JournalView) -> Judgement:
    tally = Tally(law, party)
    for session in view.sessions:
        last = 0
        known: dict[int, FrameAt] = {}
        for connection in session.connections:
            who = view.name_of(party, connection)
            for seen in connection.data(party):
                seq = seen.frame.seq
                if seq is None:
                    continue
                first = known.get(seq)
                if first is not None:
                    # SQ-003: a copy keeps its msgId
                    if first.frame.msg_id == seen.frame.msg_id:
                        tally.held()
                    else:
                        tally.broken(
                            who,
                            f"seq {seq} again with another msgId ({seen.frame.type})",
                            f"seq {last + 1}, or the msgId of the first",
                            (first.n, seen.n),
                        )
                    continue
                # SQ-001, SQ-004: on by one
                if seq == last + 1:
                    tally.held()
                else:
                    entries = (known[last].n, seen.n) if last in known else (seen.n,)
                    tally.broken(who, f"seq {seq} ({seen.frame.type})", f"seq {last + 1}", entries)
                known[seq] = seen
                last = max(last, seq)
    return tally.judgement()


def _acks(law: str, party: str, within: Callable[[Connection], float], view: JournalView) -> Judgement:
    tally = Tally(law, party)
    for session in view.sessions:
        reader = _AckReader(tally, view, session, party, within)
        reader.judge_acks()
        reader.judge_piggybacks()
    return tally.judgement()


class _AckReader:
    """Follows what a receiver got in a session, and how it acked that."""

    def __init__(
        self, tally: Tally, view: JournalView, session: Session, party: str, within: Callable[[Connection], float]
    ) -> None:
        self._tally = tally
        self._view = view
        self._session = session
        self._party = party
        self._within = within
        self._sent = {seen.frame.seq: seen.frame.msg_id for seen in session.data(other_party(party))}
        self._first_ids: dict[int, str | None] = {}

    def judge_acks(self) -> None:
        """Each delivered data frame in its turn has an ack; only the first delivery is accepted."""
        contiguous = 0
        entries, known = self._known()
        for connection in self._session.connections:
            acks = _acks_of(connection, self._party)
            ended = fatal_error(connection)
            own_end = fatal_error(connection, self._party)
            got_here: set[int] = set()
            for seen in connection.frames:
                if own_end is not None and seen.n > own_end.n:
                    # WS-042: whoever called a fatal error reads no more
                    break
                if seen.party == self._party or not (seen.is_data and connection.in_session(seen) and seen.delivered):
                    continue
                seq = seen.frame.seq
                if not seen.clean or seq is None or seq > contiguous + 1:
                    # SQ-033, SQ-004: an error is due for it, no ack
                    break
                if self._first_ids.setdefault(seq, seen.frame.msg_id) != seen.frame.msg_id:
                    # SQ-003: another frame under a used number
                    break
                sure = seq in got_here or seq <= known[bisect_left(entries, seen.n) - 1]
                self._judge_one(connection, seen, seq, sure, seq == contiguous + 1, acks, ended)
                contiguous = max(contiguous, seq)
                got_here.add(seq)
            self._judge_left_over(connection, acks)

    def _known(self) -> tuple[list[int], list[int]]:
        """By journal entry: up to which seq the receiver had shown that it has all."""
        entries, known = [0], [0]
        for connection in self._session.connections:
            refused = refused_frame(connection, self._party)
            own_end = fatal_error(connection, self._party)
            over = False
            for seen in connection.frames:
                # Behind a frame that it refused with a fatal code, the receiver takes nothing more.
                over = over or seen is refused or (own_end is not None and seen.n > own_end.n)
                if not connection.in_session(seen) or (over and seen.party != self._party):
                    continue
                if seen.party == self._party:
                    value = max(seen.frame.ack or 0, seen.ack_seq) if seen.made else 0
                else:
                    # What the gateway's witness passed on in sequence, the gateway has; behind a gap it has nothing.
                    passed = seen.delivered and seen.clean
                    has = self._party == GATEWAY and passed and seen.frame.seq == known[-1] + 1
                    value = known[-1] + 1 if has else 0
                entries.append(seen.n)
                known.append(max(known[-1], value))
        return entries, known

    def _judge_one(
        self,
        connection: Connection,
        seen: FrameAt,
        seq: int,
        sure: bool,
        fresh: bool,
        acks: dict[int, list[FrameAt]],
        ended: FrameAt | None,
    ) -> None:
        who = self._view.name_of(self._party, connection)
        within = self._within(connection)
        slack = self._view.slack(seen.t, seen.t + within)
        due = seen.t + within + slack
        answers = [ack for ack in acks.get(seq, ()) if ack.n > seen.n]
        if not answers:
            refused = ended is not None and ended.t <= due
            # What covers a copy may be the ack frame of the one before it.
            covered = self._covered(connection, seen, seq, None) if fresh else None
            if self._settled_by_content(connection, seen):
                self._tally.held()
            elif covered is not None:
                # SQ-007, SQ-015: the number rides beside the ack frame and never before it
                self._tally.broken(
                    who,
                    f"no ack frame of seq {seq} ({seen.frame.type}), yet ack {covered.frame.ack}",
                    "an ack frame of its own, before any frame whose ack covers it",
                    (seen.n, covered.n),
                )
            elif self._view.horizon(connection, seen.t) >= due and not refused:
                self._tally.broken(
                    who,
                    f"no ack of seq {seq} ({seen.frame.type})",
                    f"an ack within {within:g} s",
                    (seen.n,),
                )
            return
        ack = answers[0]
        acks[seq].remove(ack)
        status = ack.frame.payload.get("status")
        if ack.frame.payload.get("ackMsgId") != seen.frame.msg_id:
            self._tally.broken(who, f"ack of seq {seq} with another ackMsgId", "its msgId", (seen.n, ack.n))
        elif status == "rejected" and (before := self._covered(connection, seen, seq, ack)) is not None:
            # SQ-015: else the sender takes it for accepted
            self._tally.broken(
                who,
                f"ack {before.frame.ack} before the rejection of seq {seq}",
                "the ack frame first",
                (before.n, ack.n),
            )
        elif status == "accepted" and sure:
            # SQ-002, SQ-008: a repeat is not taken again
            self._tally.broken(who, f"seq {seq} accepted again", "status duplicate", (seen.n, ack.n))
        elif status == "duplicate" and fresh:
            self._tally.broken(
                who, f"seq {seq} called a duplicate at its first delivery", "accepted or rejected", (seen.n, ack.n)
            )
        elif ack.t > due:
            self._tally.broken(
                who,
                f"ack of seq {seq} after {ack.t - seen.t:.1f} s",
                f"within {within:g} s",
                (seen.n, ack.n),
                f"{ack.t - due:.1f} s late",
            )
        else:
            self._tally.held()

    def _covered(self, connection: Connection, seen: FrameAt, seq: int, ack: FrameAt | None) -> FrameAt | None:
        """A frame of the receiver whose ack number covers `seq` before the ack frame does."""
        for one in connection.after(seen.n):
            if ack is not None and one.n >= ack.n:
                return None
            if one.party == self._party and one.made and (one.frame.ack or 0) >= seq:
                return one
        return None

    def _settled_by_content(self, connection: Connection, seen: FrameAt) -> bool:
        # SQ-026: the first content.response acks its request
        return seen.frame.type == "content.request" and any(
            one.frame.type == "content.response" and one.frame.request_id == seen.frame.request_id and one.made
            for one in connection.after(seen.n)
        )

    def _judge_left_over(self, connection: Connection, acks: dict[int, list[FrameAt]]) -> None:
        for seq, left in sorted(acks.items()):
            for ack in left:
                if seq not in self._sent:
                    self._tally.broken(
                        self._view.name_of(self._party, connection),
                        f"ack of seq {seq}",
                        "acks only of what was sent in this session",
                        (ack.n,),
                    )

    def judge_piggybacks(self) -> None:
        """`ack` never exceeds what can have come, and never goes back; copies repeat their old one."""
        said = 0
        said_at: FrameAt | None = None
        got: set[int] = set()
        contiguous = 0
        first_of: set[int] = set()
        for connection in self._session.connections:
            for seen in connection.frames:
                if not connection.in_session(seen):
                    continue
                seq = seen.frame.seq
                if seen.party != self._party:
                    if seen.is_data and seen.delivered and seq is not None:
                        got.add(seq)
                        while contiguous + 1 in got:
                            contiguous += 1
                    continue
                copy = seen.is_data and seq in first_of
                if seen.is_data and seq is not None:
                    first_of.add(seq)
                if not seen.made or copy or seen.frame.ack is None:
                    continue
                who = self._view.name_of(self._party, connection)
                if seen.frame.ack > contiguous:
                    self._tally.broken(
                        who, f"ack {seen.frame.ack}", f"at most {contiguous}, the last in sequence", (seen.n,)
                    )
                elif seen.frame.ack < said and seen.is_data and connection.resumed:
                    # It may have been lost with the old socket, and is sent again with the same bytes.
                    self._tally.unsure()
                elif seen.frame.ack < said and said_at is not None:
                    self._tally.broken(
                        who, f"ack {seen.frame.ack} after ack {said}", f"at least {said}", (said_at.n, seen.n)
                    )
                else:
                    self._tally.held()
                    said, said_at = seen.frame.ack, seen


def _acks_of(connection: Connection, party: str) -> dict[int, list[FrameAt]]:
    acks: dict[int, list[FrameAt]] = {}
    for seen in connection.made(party):
        if seen.frame.type == "ack" and connection.in_session(seen):
            acks.setdefault(seen.ack_seq, []).append(seen)
    return acks


def _agent_acks_within(connection: Connection) -> float:
    return connection.patience


def _gateway_acks_within(_: Connection) -> float:
    return GATEWAY_ACKS_WITHIN


LAWS = (
    Law(
        "numbering",
        "An agent numbers its data frames on by one in a session, and a copy keeps seq and msgId",
        LOCAL_AGENT,
        ("SQ-001", "SQ-003", "SQ-004", "RS-002"),
        partial(_numbering, "numbering", LOCAL_AGENT),
    ),
    Law(
        "gateway-numbering",
        "A gateway numbers its data frames on by one in a session, and a copy keeps seq and msgId",
        GATEWAY,
        ("SQ-001", "SQ-003", "SQ-004"),
        partial(_numbering, "gateway-numbering", GATEWAY),
    ),
    Law(
        "acks",
        "An agent acks each data frame it gets, a repeat as duplicate, and never more than it got",
        LOCAL_AGENT,
        (
            "SQ-002",
            "SQ-007",
            "SQ-008",
            "SQ-010",
            "SQ-013",
            "SQ-015",
            "SQ-025",
            "SQ-026",
            "SQ-027",
            "WS-006",
            "CHAT-038",
        ),
        partial(_acks, "acks", LOCAL_AGENT, _agent_acks_within),
    ),
    Law(
        "acked-at-once",
        "A gateway acks each data frame on receipt, a repeat as duplicate, and never more than it got",
        GATEWAY,
        ("CP-023", "SQ-002", "SQ-013", "SQ-015", "SQ-034", "WS-006"),
        partial(_acks, "acked-at-once", GATEWAY, _gateway_acks_within),
    ),
)

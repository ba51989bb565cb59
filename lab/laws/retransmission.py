"""The laws of retransmission: how often, how far apart, and with which bytes a frame is sent again."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

from lab.laws.codes import fatal_error
from lab.laws.law import Judgement, Law, Tally
from lab.laws.seen import GATEWAY, LOCAL_AGENT, Connection, FrameAt
from lab.laws.view import JournalView

MOST_COPIES = 3
"""Retransmissions of a frame on one connection (WS-022)."""

EARLY = 0.1
"""Part of the ack timeout by which a copy may seem early."""

EARLY_SECONDS = 0.05
"""As EARLY, for short ack timeouts."""

LATE = 0.5
"""Part of the ack timeout by which a copy may come late."""

LATE_SECONDS = 1.0
"""As LATE, for short ack timeouts."""

CROSSES = 0.5
"""Seconds for which a copy may still come after its ack: it was on its way, or its sender had not read the ack yet."""


def _retransmission(law: str, party: str, view: JournalView) -> Judgement:
    tally = Tally(law, party)
    for session in view.sessions:
        for connection in session.connections:
            sends: dict[int, list[FrameAt]] = {}
            for seen in connection.data(party):
                if seen.frame.seq is not None:
                    sends.setdefault(seen.frame.seq, []).append(seen)
            for seq, copies in sends.items():
                _judge_copies(tally, view, connection, party, seq, copies)
    return tally.judgement()


def _judge_copies(
    tally: Tally, view: JournalView, connection: Connection, party: str, seq: int, sends: list[FrameAt]
) -> None:
    who = view.name_of(party, connection)
    timeout = connection.ack_timeout
    settled = _settled(view, connection, party, seq, sends[0])
    for number, (before, copy) in enumerate(pairwise(sends), 1):
        entries = (before.n, copy.n)
        gap = copy.t - before.t
        least = timeout - max(timeout * EARLY, EARLY_SECONDS) - view.slack(before.t, copy.t)
        if number > MOST_COPIES:
            tally.broken(who, f"copy {number} of seq {seq}", f"at most {MOST_COPIES} copies, then close 4420", entries)
        elif party == LOCAL_AGENT and copy.frame.sha256 != before.frame.sha256:
            # SQ-019: the same bytes
            tally.broken(who, f"a copy of seq {seq} with other bytes", "the same bytes", entries)
        elif party == GATEWAY and _same_nonce(before, copy):
            # SQ-023: signed anew
            tally.broken(who, f"a copy of seq {seq} with the old nonce", "a new nonce and timestamp", entries)
        elif party == GATEWAY and copy.frame.payload != before.frame.payload:
            tally.broken(who, f"a copy of seq {seq} with another payload", "the same payload", entries)
        elif gap < least:
            # SQ-021: a fixed spacing
            tally.broken(
                who, f"a copy of seq {seq} after {gap:.2f} s", f"{timeout:g} s apart", entries, f"{least:.2f} s least"
            )
        elif settled is not None and copy.t > settled + min(CROSSES, timeout):
            tally.broken(who, f"a copy of seq {seq} after its ack", "no copy of an acked frame", entries)
        elif gap > (most := timeout + max(timeout * LATE, LATE_SECONDS) + view.slack(before.t, copy.t)):
            # SQ-021: a fixed spacing, no back-off
            tally.broken(
                who, f"a copy of seq {seq} after {gap:.2f} s", f"{timeout:g} s apart", entries, f"{most:.2f} s at most"
            )
        else:
            tally.held()
    _judge_missing_copy(tally, view, connection, seq, sends, settled, who)


def _judge_missing_copy(
    tally: Tally,
    view: JournalView,
    connection: Connection,
    seq: int,
    sends: list[FrameAt],
    settled: float | None,
    who: str,
) -> None:
    """SQ-019, SQ-020, SQ-022: without an ack the next copy is due, or the close after the last one."""
    last = sends[-1]
    due = last.t + connection.ack_timeout + connection.patience
    due += view.slack(last.t, due)
    ended = fatal_error(connection)
    in_time = settled is not None and settled <= due
    if in_time or (ended and ended.t <= due) or view.horizon(connection, last.t) < due:
        return
    last_one = len(sends) > MOST_COPIES
    tally.broken(
        who,
        f"nothing for {due - last.t:.1f} s after seq {seq} without an ack",
        "close 4420" if last_one else f"copy {len(sends)} after {connection.ack_timeout:g} s",
        (last.n,),
    )


def _settled(view: JournalView, connection: Connection, party: str, seq: int, first: FrameAt) -> float | None:
    """When an ack of `seq` was passed on to its sender (SQ-014), with the time that a link can hold it."""
    for seen in connection.after(first.n):
        if seen.party == party or not seen.delivered:
            continue
        if not seen.clean:
            # WS-085, SQ-033: what breaks a rule is dropped or refused, and settles nothing.
            continue
        covered = (seen.frame.ack or 0) >= seq or seen.ack_seq == seq
        answered = (
            seen.frame.type == "content.response"
            and first.frame.type == "content.request"
            and seen.frame.request_id == first.frame.request_id
        )
        if covered or answered:
            # A delay that begins while it is on its way holds it as well.
            return seen.t + view.slack(seen.t, seen.t + CROSSES)
    return None


def _same_nonce(one: FrameAt, other: FrameAt) -> bool:
    nonces = [(seen.frame.facts.get("signature") or {}).get("nonce") for seen in (one, other)]
    return nonces[0] is not None and nonces[0] == nonces[1]


LAWS = (
    Law(
        "retransmission",
        "An agent sends an unacked frame again with the same bytes, one ack timeout apart, three times at most",
        LOCAL_AGENT,
        ("SQ-019", "SQ-020", "SQ-021", "WS-022"),
        partial(_retransmission, "retransmission", LOCAL_AGENT),
    ),
    Law(
        "gateway-retransmission",
        "A gateway sends an unacked frame again signed anew, one ack timeout apart, three times at most",
        GATEWAY,
        ("SQ-021", "SQ-022", "SQ-023", "WS-022"),
        partial(_retransmission, "gateway-retransmission", GATEWAY),
    ),
)

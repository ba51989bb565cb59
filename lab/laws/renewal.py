"""The law of results that were lost with their session."""

from __future__ import annotations

from lab.laws.codes import fatal_error
from lab.laws.law import Judgement, Law, Tally
from lab.laws.seen import GATEWAY, LOCAL_AGENT, Connection, FrameAt, Session
from lab.laws.view import JournalView

LAW = "result-renewed"

RENEWED_WITHIN = 2.0
"""Seconds from ready to the new frame; the documents name no time."""


def _result_renewed(view: JournalView) -> Judgement:
    tally = Tally(LAW, LOCAL_AGENT)
    for at, session in enumerate(view.sessions):
        following = next((one for one in view.sessions[at + 1 :] if one.agent_id == session.agent_id), None)
        if following is None:
            continue
        for result in _lost(session):
            _judge_renewed(tally, view, following, result)
    return tally.judgement()


def _lost(session: Session) -> list[FrameAt]:
    """The results of a session that nothing acked, each by its first frame."""
    results: dict[int | None, FrameAt] = {}
    for seen in session.data(LOCAL_AGENT):
        if seen.frame.type == "job.result":
            results.setdefault(seen.frame.seq, seen)
    return [seen for seq, seen in results.items() if not any(_acks(one, seq) for one in session.connections)]


def _acks(connection: Connection, seq: int | None) -> bool:
    ready = connection.ready
    told = ready.frame.payload.get("peerLastSeq") if ready is not None and connection.resumed else 0
    if seq is None or (isinstance(told, int) and told >= seq):
        return True
    return any(
        seen.passed_on and connection.in_session(seen) and ((seen.frame.ack or 0) >= seq or seen.ack_seq == seq)
        for seen in connection.made(GATEWAY)
    )


def _judge_renewed(tally: Tally, view: JournalView, following: Session, result: FrameAt) -> None:
    """RS-006, RS-011: the frame fails with its session, the job's result does not."""
    job_id = result.frame.payload.get("jobId")
    again = any(
        seen.n > result.n and seen.frame.type == "job.result" and seen.frame.payload.get("jobId") == job_id
        for session in view.sessions[view.sessions.index(following) :]
        for seen in session.data(LOCAL_AGENT)
    )
    if again:
        tally.held()
        return
    first = following.connections[0]
    ready = first.ready
    if ready is None:
        return
    who = view.agent_of(first)
    due = ready.t + RENEWED_WITHIN
    due += view.slack(ready.t, due)
    ended = fatal_error(first)
    if view.horizon(first, ready.t) < due or (ended is not None and ended.t <= due):
        return
    held_up = any(seen.frame.fate != "passed" for seen in first.frames)
    if held_up or view.agent_process_changed(who, result.t, due) or not view.quiet(ready.t, due):
        # A new process, a window that a fault may have filled, or a link that was disturbed again.
        tally.unsure()
        return
    tally.broken(
        who,
        "a job.result that was lost with its session, and not sent again in the next",
        "the result again, as a new frame",
        (result.n, ready.n),
    )


LAWS = (
    Law(
        LAW,
        "A job's result that was lost with its session is sent again in the next",
        LOCAL_AGENT,
        ("LA-028", "RS-006", "RS-011"),
        _result_renewed,
    ),
)

"""The law that a job runs at most once."""

from __future__ import annotations

from lab.laws.law import Judgement, Law, Tally
from lab.laws.view import LOCAL_AGENT, FrameAt, Job, JournalView, Session

LAW = "job-at-most-once"


def _job_at_most_once(view: JournalView) -> Judgement:
    tally = Tally(LAW, LOCAL_AGENT)
    for job in view.jobs.values():
        _judge_posts(tally, view, job)
        _judge_results(tally, view, job)
    return tally.judgement()


def _judge_posts(tally: Tally, view: JournalView, job: Job) -> None:
    accepted = [entry for entry, request in job.posts if 200 <= request.status < 300]
    if not accepted:
        return
    who = _agent_of(view, job)
    first = accepted[0]
    for entry in accepted[1:]:
        if view.agent_process_changed(who, first.t, entry.t):
            # A new process cannot know what the old one began.
            tally.unsure()
        else:
            # SQ-002, SQ-008, SQ-025: never executed twice
            tally.broken(who, "the job posted to agent2 again", "one accepted POST /jobs", (first.n, entry.n))
    if len(accepted) == 1:
        tally.held()


def _judge_results(tally: Tally, view: JournalView, job: Job) -> None:
    sessions = {seen.n: session for session in view.sessions for seen in session.data(LOCAL_AGENT)}
    firsts: list[FrameAt] = []
    for seen in job.results:
        if any(_same_frame(seen, first) for first in firsts):
            continue
        if firsts and not _may_renew(job, sessions, firsts[-1], seen):
            tally.broken(_agent_of(view, job), "a second job.result", "one job.result a job", (firsts[-1].n, seen.n))
        elif firsts and seen.frame.payload != firsts[-1].frame.payload:
            tally.broken(
                _agent_of(view, job),
                "a job.result that differs from the one before",
                "the same result when it is sent again",
                (firsts[-1].n, seen.n),
            )
        else:
            tally.held()
        firsts.append(seen)


def _same_frame(seen: FrameAt, first: FrameAt) -> bool:
    return (seen.frame.seq, seen.frame.msg_id) == (first.frame.seq, first.frame.msg_id)


def _may_renew(job: Job, sessions: dict[int, Session], before: FrameAt, seen: FrameAt) -> bool:
    """A new frame with the result is due after a lost session (RS-006) and when the job is assigned again."""
    if sessions.get(before.n) is not sessions.get(seen.n):
        return True
    return any(before.n < assign.n < seen.n for assign in job.assigns)


def _agent_of(view: JournalView, job: Job) -> str:
    for seen in (*job.results, *job.assigns):
        return view.agent_of(view.connections[seen.frame.conn])
    return view.participant(None)


LAWS = (
    Law(
        LAW,
        "A job runs at most once, and ends with one job.result",
        LOCAL_AGENT,
        ("SQ-002", "SQ-008", "SQ-025"),
        _job_at_most_once,
    ),
)

"""The law that a job runs at most once."""

from __future__ import annotations

from lab.journal.events import Agent2Request
from lab.journal.writer import Entry
from lab.laws.law import Judgement, Law, Tally
from lab.laws.seen import LOCAL_AGENT, FrameAt, Job
from lab.laws.view import JournalView

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
    who = view.agent_of_job(job)
    first = accepted[0]
    # Whatever agent2 answers to it: that it knows the job is its merit, not the agent's.
    again = [entry for entry, _ in job.posts if entry.n > first.n]
    for entry in again:
        if view.agent_process_changed(who, first.t, entry.t):
            # A new process cannot know what the old one began.
            tally.unsure()
        else:
            # SQ-002, SQ-008, SQ-025: never executed twice
            tally.broken(who, "the job posted to agent2 again", "one accepted POST /jobs", (first.n, entry.n))
    if not again:
        tally.held()


def _judge_results(tally: Tally, view: JournalView, job: Job) -> None:
    firsts: list[FrameAt] = []
    for seen in job.results:
        if any(_same_frame(seen, first) for first in firsts):
            continue
        if firsts and not _may_renew(view, job, firsts[-1], seen):
            tally.broken(view.agent_of_job(job), "a second job.result", "one job.result a job", (firsts[-1].n, seen.n))
        elif firsts and seen.frame.payload != firsts[-1].frame.payload:
            tally.broken(
                view.agent_of_job(job),
                "a job.result that differs from the one before",
                "the same result when it is sent again",
                (firsts[-1].n, seen.n),
            )
        else:
            tally.held()
        firsts.append(seen)


def _same_frame(seen: FrameAt, first: FrameAt) -> bool:
    return (seen.frame.seq, seen.frame.msg_id) == (first.frame.seq, first.frame.msg_id)


def _may_renew(view: JournalView, job: Job, before: FrameAt, seen: FrameAt) -> bool:
    """A new frame with the result is due after a lost session (RS-006) and when the job is assigned again."""
    if view.session_of.get(before.frame.conn) is not view.session_of.get(seen.frame.conn):
        return True
    return any(before.n < assign.n < seen.n for assign in job.assigns)


def _as_assigned(view: JournalView) -> Judgement:
    tally = Tally("as-assigned", LOCAL_AGENT)
    for job in view.jobs.values():
        taken = next((entry for entry, post in job.posts if 200 <= post.status < 300), None)
        if taken is not None and not job.assigns and view.has_gateway:
            tally.broken(view.agent_of_job(job), "a job at agent2 that nobody assigned", "assigned jobs", (taken.n,))
        for entry, post in job.posts:
            kind = post.facts.get("kind")
            if job.assigns:
                _judge_root(tally, view, job, entry, post)
            if not job.kind or not isinstance(kind, str):
                continue
            if kind == job.kind:
                tally.held()
            else:
                # CHAT-023: it never runs as another kind
                tally.broken(view.agent_of_job(job), f"posted to agent2 as {kind}", job.kind, (entry.n,))
    for job in view.jobs.values():
        if job.kind == "chat" and job.posts and job.assigns:
            _judge_asked(tally, view, job, job.posts[0][0])
    return tally.judgement()


def _judge_root(tally: Tally, view: JournalView, job: Job, entry: Entry, post: Agent2Request) -> None:
    """A2-008, LA-016: agent2 works in the workspace of the assignment."""
    who = view.agent_of_job(job)
    declared = view.participants.get(who)
    roots = declared.facts.get("roots", {}) if declared is not None else {}
    known = roots.get(job.assigns[0].frame.workspace_id)
    root = post.facts.get("root")
    if known is None or not isinstance(root, str):
        return
    if root in known:
        tally.held()
    else:
        seen, due = "posted to agent2 with another workspaceRoot", "the root of the assignment's workspace"
        tally.broken(who, seen, due, (job.assigns[0].n, entry.n))


def _judge_asked(tally: Tally, view: JournalView, job: Job, post: Entry) -> None:
    """CHAT-023: agent2's health is asked anew for each chat."""
    who = view.agent_of_job(job)
    begun = [
        other.posts[0][0].n
        for other in view.jobs.values()
        if other.posts and other.assigns and other.posts[0][0].n < post.n and view.agent_of_job(other) == who
    ]
    since = max([job.assigns[0].n, *begun])
    healths = [at for at, call in view.agent2_requests if call.route.endswith("/health") and at.by == post.by]
    if any(since < at.n < post.n for at in healths):
        tally.held()
    elif view.agent_process_changed(who, job.assigns[0].t, post.t):
        tally.unsure()
    else:
        seen = "a chat posted to agent2 without asking its health"
        tally.broken(who, seen, "GET /health between the assignment and POST /jobs", (since, post.n))


LAWS = (
    Law(
        LAW,
        "A job runs at most once, and ends with one job.result",
        LOCAL_AGENT,
        ("SQ-002", "SQ-008", "SQ-025"),
        _job_at_most_once,
    ),
    Law(
        "as-assigned",
        "Only jobs that were assigned reach agent2, each as what it was assigned, a chat once agent2 was asked anew",
        LOCAL_AGENT,
        ("A2-008", "CHAT-001", "CHAT-023", "LA-016"),
        _as_assigned,
    ),
)

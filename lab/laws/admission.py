"""The laws of an agent's door: which jobs it takes, and that each one it took has its turn."""

from __future__ import annotations

from collections.abc import Iterator

from lab.journal.writer import Entry
from lab.laws.conversation import CHAT_PROMPT, told_by_driver
from lab.laws.law import Judgement, Law, Tally
from lab.laws.outcome import ENDS
from lab.laws.seen import LOCAL_AGENT, FrameAt, Job
from lab.laws.view import JournalView

QUEUE = 16
"""Jobs that may wait behind the one that runs (LA-014)."""

TURN_WITHIN = 10.0
"""Seconds in which a free agent asks agent2 for the next job's sake, or ends it; the documents name no time."""

SERVED = frozenset({"fix", "implement", "chat"})
"""Kinds that an agent may take at all (LA-009)."""


def _taken(view: JournalView, job: Job) -> Iterator[tuple[FrameAt, FrameAt]]:
    """Each assignment of a job with the agent's first ack of it."""
    for assign in job.assigns:
        acks = view.acks.get(assign.frame.msg_id or "", ())
        first = next((ack for ack in acks if ack.party == LOCAL_AGENT and ack.n > assign.n), None)
        if first is not None:
            yield assign, first


def _accepted(view: JournalView, job: Job) -> tuple[FrameAt, FrameAt] | None:
    """The assignment by which an agent took a job, and its ack."""
    return next(
        ((assign, ack) for assign, ack in _taken(view, job) if ack.frame.payload.get("status") == "accepted"), None
    )


def _begun(job: Job) -> Entry | None:
    return job.posts[0][0] if job.posts else None


# What is taken


def _jobs_admitted(view: JournalView) -> Judgement:
    tally = Tally("jobs-admitted", LOCAL_AGENT)
    for job in view.jobs.values():
        for assign, ack in list(_taken(view, job))[:1]:
            _judge_kind(tally, view, job, assign, ack)
            if ack.frame.payload.get("status") == "accepted":
                _judge_room(tally, view, job, ack)
    return tally.judgement()


def _judge_kind(tally: Tally, view: JournalView, job: Job, assign: FrameAt, ack: FrameAt) -> None:
    """LA-009, LA-010: what the runner does not list is rejected."""
    kind, status = assign.frame.payload.get("kind"), ack.frame.payload.get("status")
    if not isinstance(kind, str) or kind in SERVED:
        return
    if status == "accepted":
        seen, due = f"a job of kind {kind} accepted", "rejected protocol_unsupported"
        tally.broken(view.agent_of_job(job), seen, due, (assign.n, ack.n))
    elif status == "rejected":
        tally.held()


def _judge_room(tally: Tally, view: JournalView, job: Job, ack: FrameAt) -> None:
    """LA-014: sixteen jobs wait, a further one is rejected."""
    who = view.agent_of_job(job)
    mine = [other for other in view.jobs.values() if other.assigns and view.agent_of_job(other) == who]
    waiting = [other for other in mine if _waits(view, other, ack)]
    runs = any(_runs(other, ack.n) for other in mine)
    if len(waiting) <= QUEUE:
        tally.held()
    elif runs or len(waiting) > QUEUE + 1:
        seen = f"a job accepted as number {len(waiting)} of those that wait"
        tally.broken(who, seen, f"at most {QUEUE} that wait, then rejected rate_limited", (ack.n,))
    else:
        # One of them may have been under way to agent2.
        tally.unsure()


def _waits(view: JournalView, job: Job, ack: FrameAt) -> bool:
    taken, begun = _accepted(view, job), _begun(job)
    return (
        taken is not None
        and taken[1].n <= ack.n
        and not (begun is not None and begun.n < ack.n)
        and not any(one.n < ack.n for one in (*job.results, *job.cancels))
    )


def _runs(job: Job, n: int) -> bool:
    """Whether agent2 ran a job at entry `n`, so that nothing else can have been under way to it."""
    begun = any(200 <= post.status < 300 and entry.n < n for entry, post in job.posts)
    over = any(state.state in ENDS and entry.n < n for entry, state in job.states)
    return begun and not over and not any(result.n < n for result in job.results)


# Its turn


def _every_job_its_turn(view: JournalView) -> Judgement:
    tally = Tally("every-job-its-turn", LOCAL_AGENT)
    if view.has_agent2:
        for job in view.jobs.values():
            taken = _accepted(view, job)
            if taken is None or job.cancels:
                continue
            if _begun(job) is not None:
                tally.held()
            elif job.results:
                _judge_unasked(tally, view, job, *taken)
            else:
                _judge_waiting(tally, view, job, *taken)
    return tally.judgement()


def _judge_unasked(tally: Tally, view: JournalView, job: Job, assign: FrameAt, ack: FrameAt) -> None:
    """A job that ended though agent2 was never asked: there has to be a reason."""
    result = job.results[0]
    payload = result.frame.payload
    code, who = payload.get("errorCode"), view.agent_of_job(job)
    if payload.get("outcome") != "failed" or view.agent_process_changed(who, assign.t, result.t) or view.crashes:
        tally.unsure()
    elif code == "unknown":
        _judge_prompt(tally, job, who, result)
    elif code == "infra" and _another_runs(view, job, result):
        # LA-014: it is queued, and runs afterwards
        tally.broken(who, "outcome failed (infra) while another job ran", "its turn after that", (ack.n, result.n))
    else:
        tally.unsure()


def _judge_prompt(tally: Tally, job: Job, who: str, result: FrameAt) -> None:
    """CHAT-012: only a prompt beyond the limit is too large."""
    told = told_by_driver(job)
    due = told.prompt if told is not None else None
    if due is not None and 0 < due["bytes"] <= CHAT_PROMPT:
        seen = f"outcome failed (unknown) of a prompt of {due['bytes']} bytes, which agent2 never got"
        tally.broken(who, seen, f"POST /jobs: up to {CHAT_PROMPT} bytes are served", (result.n,))
    else:
        tally.unsure()


def _another_runs(view: JournalView, job: Job, result: FrameAt) -> bool:
    """Whether a job of the same agent ran at agent2, undisturbed, from this one's assignment to its result."""
    who, start = view.agent_of_job(job), job.assigns[0]
    return view.quiet(start.t, result.t) and any(
        _runs(other, start.n) and _runs(other, result.n)
        for other in view.jobs.values()
        if other is not job and other.assigns and view.agent_of_job(other) == who
    )


def _judge_waiting(tally: Tally, view: JournalView, job: Job, assign: FrameAt, ack: FrameAt) -> None:
    """LA-028: once every job before it has its result, the next one begins."""
    who = view.agent_of_job(job)
    before = [
        other
        for other in view.jobs.values()
        if other is not job
        and other.assigns
        and other.assigns[0].n < assign.n
        and view.agent_of_job(other) == who
        and (_begun(other) is not None or _accepted(view, other) is not None)
    ]
    if not all(other.results for other in before):
        return
    free = max([ack.t, *(other.results[0].t for other in before)])
    due = free + TURN_WITHIN
    due += view.slack(free, due)
    connection = view.connections[assign.frame.conn]
    if view.horizon(connection, assign.t) < due or (view.steps_end if view.steps_end is not None else view.end) < due:
        return
    # LA-016: before a job agent2's health is asked.
    asked = any(free <= entry.t <= due and call.route.endswith("/health") for entry, call in view.agent2_requests)
    gone = view.agent_process_changed(who, assign.t, due)
    if asked or gone or view.crashes or not view.quiet(assign.t, due):
        tally.unsure()
    else:
        entries = (ack.n, *(other.results[0].n for other in before[-1:]))
        seen = f"an accepted job neither begun nor ended {due - free:.0f} s after the agent was free"
        tally.broken(who, seen, "POST /jobs", entries)


LAWS = (
    Law(
        "jobs-admitted",
        f"An agent accepts a job only of a kind that it serves, and while no more than {QUEUE} wait",
        LOCAL_AGENT,
        ("LA-009", "LA-010", "LA-014"),
        _jobs_admitted,
    ),
    Law(
        "every-job-its-turn",
        "Every accepted job has its turn at agent2, whatever became of the one before it",
        LOCAL_AGENT,
        ("CHAT-012", "LA-014", "LA-028"),
        _every_job_its_turn,
    ),
)

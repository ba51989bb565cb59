"""The laws of an agent's jobs: one at a time, in order, and ended when they are cancelled."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from lab.journal.events import Agent2Request
from lab.journal.writer import Entry
from lab.laws.law import Judgement, Law, Tally
from lab.laws.outcome import ENDS
from lab.laws.seen import LOCAL_AGENT, FrameAt, Job
from lab.laws.view import JournalView

CANCELLED_WITHIN = 10.0
"""Seconds that agent2 has to end a cancelled job by itself (LA-021)."""

ON_ITS_WAY = 1.0
"""Seconds that a job.result may still be on its way when the next job begins."""

LATE = 5.0
"""Seconds by which the end of a cancelled job may be late."""

CALLED_WITHIN = 2.0
"""Seconds in which a running job's cancel is passed on to agent2."""


def _accepted(job: Job) -> Entry | None:
    return next((entry for entry, request in job.posts if 200 <= request.status < 300), None)


def _ended(job: Job) -> Entry | None:
    return next((entry for entry, state in job.states if state.state in ENDS), None)


def _cancel_calls(job: Job) -> list[tuple[Entry, Agent2Request]]:
    return [(entry, call) for entry, call in job.requests if call.method == "POST" and call.route.endswith("/cancel")]


# One at a time


def _one_job_at_a_time(view: JournalView) -> Judgement:
    tally = Tally("one-job-at-a-time", LOCAL_AGENT)
    by_agent: dict[str, list[Job]] = {}
    for job in view.jobs.values():
        if job.assigns and job.posts:
            by_agent.setdefault(view.agent_of_job(job), []).append(job)
    for who, jobs in by_agent.items():
        jobs.sort(key=lambda job: job.posts[0][0].n)
        for before, job in pairwise(jobs):
            _judge_pair(tally, view, who, before, job)
        for _ in jobs[:1]:
            tally.held()
    return tally.judgement()


def _judge_pair(tally: Tally, view: JournalView, who: str, before: Job, job: Job) -> None:
    begun, post = _accepted(before), job.posts[0][0]
    end = _ended(before)
    if view.agent_process_changed(who, before.posts[0][0].t, post.t):
        tally.unsure()
        return
    if before.assigns[0].n > job.assigns[0].n and _in_order(view, before, job):
        # LA-014: queued and run in the order of assignment
        tally.broken(
            who, "a job begun before one assigned earlier", "the order of assignment", (job.assigns[0].n, post.n)
        )
        return
    over = begun is None or (end is not None and end.n < post.n)
    if over or any(result.n < post.n for result in before.results):
        tally.held()
    elif begun is not None and (_lets_go(before, post) or not view.quiet(begun.t, post.t)):
        # The agent may have let go of the job while its result was still on its way.
        tally.unsure()
    elif begun is not None:
        # LA-013, A2-044
        tally.broken(who, "POST /jobs while a job runs", "one job at a time", (begun.n, post.n))


def _lets_go(before: Job, post: Entry) -> bool:
    return any(post.t <= result.t <= post.t + ON_ITS_WAY for result in before.results)


def _in_order(view: JournalView, before: Job, job: Job) -> bool:
    """Whether both assignments came undisturbed on one connection, so that their order is the agent's too."""
    first, second = job.assigns[0], before.assigns[0]
    same = first.frame.conn == second.frame.conn and first.frame.fate == second.frame.fate == "passed"
    return same and view.quiet(first.t, second.t)


# Cancelled


def _cancel(view: JournalView) -> Judgement:
    tally = Tally("cancel-honoured", LOCAL_AGENT)
    for job in view.jobs.values():
        cancel = next((one for one in job.cancels if one.delivered and one.clean), None)
        over = cancel is not None and (_is_rejected(view, job) or any(one.n < cancel.n for one in job.results))
        if cancel is not None and view.has_agent2 and not over:
            _Cancel(tally, view, job, cancel).judge()
    return tally.judgement()


def _is_rejected(view: JournalView, job: Job) -> bool:
    """Whether the agent never took the job: such a one has no result."""
    acks = [ack.frame.payload.get("status") for one in job.assigns for ack in view.acks.get(one.frame.msg_id or "", ())]
    return "rejected" in acks and "accepted" not in acks


class _Cancel:
    """Judges what follows the first job.cancel of a job that had no result yet."""

    def __init__(self, tally: Tally, view: JournalView, job: Job, cancel: FrameAt) -> None:
        self._tally = tally
        self._view = view
        self._job = job
        self._cancel = cancel
        self._who = view.agent_of_job(job)
        self._connection = view.connections[cancel.frame.conn]
        acks = view.acks.get(cancel.frame.msg_id or "", ())
        self._taken = next((ack for ack in acks if ack.frame.payload.get("status") == "accepted"), None)

    def judge(self) -> None:
        calls = _cancel_calls(self._job)
        if len([call for _, call in calls if call.status < 400]) > 1:
            # LA-020
            self._broken("a second POST cancel", "exactly one", calls[0][0].n, calls[1][0].n)
            return
        begun = _accepted(self._job)
        if begun is None or begun.n > self._cancel.n:
            self._judge_queued(begun)
        else:
            self._judge_running(calls)

    def _broken(self, seen: str, due: str, *entries: int) -> None:
        self._tally.broken(self._who, seen, due, sorted({self._cancel.n, *entries}))

    def _can_tell(self, due: float) -> bool:
        view, start = self._view, self._cancel.t
        # A new process has never heard of a job that an older one was given.
        known = min((assign.t for assign in self._job.assigns), default=start)
        return view.quiet(start, due) and not view.agent_process_changed(self._who, known, due)

    def _due(self, seconds: float) -> float:
        due = self._cancel.t + seconds + LATE
        return due + self._view.slack(self._cancel.t, due)

    def _judge_queued(self, begun: Entry | None) -> None:
        if begun is not None and self._taken is not None and begun.n > self._taken.n:
            room = self._view.slack(self._taken.t, begun.t)
            if begun.t > self._taken.t + 1.0 + room:
                # LA-017: not begun any more
                self._broken("POST /jobs after the cancel", "cancelled without POST /jobs", begun.n)
            else:
                # The call may have been on its way.
                self._tally.unsure()
            return
        self._judge_result(0.0, begun is None)

    def _judge_running(self, calls: list[tuple[Entry, Agent2Request]]) -> None:
        due = self._cancel.t + CALLED_WITHIN
        due += self._view.slack(self._cancel.t, due)
        end = _ended(self._job)
        if not calls and not (end is not None and end.t <= due):
            result = next((one for one in self._job.results if one.t <= due), None)
            if not self._can_tell(due) or self._refused():
                self._tally.unsure()
            elif result is not None or self._view.horizon(self._connection, self._cancel.t) >= due:
                # LA-020
                self._broken("no POST cancel", "exactly one POST cancel", *(() if result is None else (result.n,)))
            return
        self._judge_result(CANCELLED_WITHIN, False)

    def _refused(self) -> bool:
        acks = self._view.acks.get(self._cancel.frame.msg_id or "", ())
        return any(ack.frame.payload.get("status") == "rejected" for ack in acks)

    def _judge_result(self, seconds: float, never_ran: bool) -> None:
        due = self._due(seconds)
        result = next(iter(self._job.results), None)
        if result is None or result.t > due:
            if not self._can_tell(due):
                self._tally.unsure()
            elif result is not None or self._view.horizon(self._connection, self._cancel.t) >= due:
                # LA-021
                self._broken(
                    f"no job.result {due - self._cancel.t:.0f} s after the cancel",
                    f"outcome cancelled within {seconds:g} s",
                    *(() if result is None else (result.n,)),
                )
            return
        outcome = result.frame.payload.get("outcome")
        end = _ended(self._job)
        own_end = end is not None and end.n < result.n
        if outcome == "cancelled" or own_end:
            # What agent2 ended is told as agent2 said.
            self._tally.held()
        elif never_ran and self._job.kind == "chat" and not self._found_up(result):
            # CHAT-024: a health call that the cancel broke off may surface as infra.
            self._tally.unsure()
        elif self._job.posts or not self._can_tell(result.t):
            # A refused POST has its own outcome.
            self._judge_running_outcome(outcome, result)
        else:
            self._broken(f"outcome {outcome} of a job that never ran", "cancelled", result.n)

    def _found_up(self, result: FrameAt) -> bool:
        """LA-017: whether agent2's health was good when the cancel was known already."""
        return self._taken is not None and any(
            self._taken.n < entry.n < result.n and call.route.endswith("/health") and call.status == 200
            for entry, call in self._view.agent2_requests
        )

    def _judge_running_outcome(self, outcome: object, result: FrameAt) -> None:
        accepted = _accepted(self._job)
        told = accepted is not None and accepted.n < self._cancel.n
        if told and self._can_tell(result.t) and not any(call.status >= 400 for _, call in self._job.requests):
            self._broken(f"outcome {outcome} after the cancel", "cancelled: agent2 had not ended", result.n)
        else:
            self._tally.unsure()


def laws() -> Iterator[Law]:
    """The laws of this family."""
    yield Law(
        "one-job-at-a-time",
        "An agent runs one job at a time at agent2, in the order of their assignment",
        LOCAL_AGENT,
        ("A2-044", "LA-013", "LA-014"),
        _one_job_at_a_time,
    )
    yield Law(
        "cancel-honoured",
        "A cancelled job that runs is cancelled at agent2 once and ends; one that waits never starts",
        LOCAL_AGENT,
        ("A2-010", "CHAT-024", "LA-017", "LA-020", "LA-021", "TY-012"),
        _cancel,
    )


LAWS = tuple(laws())

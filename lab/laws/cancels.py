"""The law of cancels at agent2: only what was asked for, with its reason, and a while to end."""

from __future__ import annotations

from lab.journal.events import Agent2Request
from lab.journal.writer import Entry
from lab.laws.law import Judgement, Law, Tally
from lab.laws.outcome import ENDS
from lab.laws.seen import LOCAL_AGENT, Job
from lab.laws.view import JournalView

LAW = "cancel-at-agent2"

LEAST_WAIT = 1.0
"""Seconds that agent2 has at least to end a cancelled job by itself (LA-020: a while; LA-021 chooses 10)."""

EARLY = 0.1
"""Seconds by which that wait may seem shorter."""


def _cancel_at_agent2(view: JournalView) -> Judgement:
    tally = Tally(LAW, LOCAL_AGENT)
    for job in view.jobs.values():
        calls = [(at, call) for at, call in job.requests if call.method == "POST" and call.route.endswith("/cancel")]
        if job.assigns:
            for entry, call in calls:
                _judge_call(tally, view, job, entry, call)
            for entry, call in calls[:1]:
                _judge_wait(tally, view, job, entry, call)
    return tally.judgement()


def _judge_call(tally: Tally, view: JournalView, job: Job, entry: Entry, call: Agent2Request) -> None:
    who = view.agent_of_job(job)
    asked = next((seen for seen in job.cancels if seen.n < entry.n and seen.passed_on), None)
    if call.facts.get("reason", "") is None:
        # A2-010: the reason goes along
        tally.broken(who, "POST cancel without a reason", "{reason} in its body", (entry.n,))
    elif asked is not None:
        tally.held()
    elif _own_time_is_over(job, call) or _ends(view, who, job, entry):
        # LA-022: the agent's own time limit, or its own end
        tally.unsure()
    else:
        # TY-012, LA-020: the job of job.cancel, and no other
        tally.broken(who, "POST cancel of a job that nobody cancelled", "no cancel", (entry.n,))


def _own_time_is_over(job: Job, call: Agent2Request) -> bool:
    timed_out = any(result.frame.payload.get("errorCode") == "timeout" for result in job.results)
    return timed_out or call.facts.get("reason") == "timeout"


def _ends(view: JournalView, who: str, job: Job, entry: Entry) -> bool:
    over = view.steps_end is not None and entry.t >= view.steps_end
    return over or view.agent_process_changed(who, job.assigns[0].t, entry.t)


def _judge_wait(tally: Tally, view: JournalView, job: Job, entry: Entry, call: Agent2Request) -> None:
    """LA-020, A2-050: the agent waits a while for agent2's own cancelled before it lets the job go."""
    result = next((seen for seen in job.results if seen.n > entry.n), None)
    if result is None or result.frame.payload.get("outcome") != "cancelled" or call.status >= 400:
        return
    waited = result.t - entry.t
    ended = any(state.state in ENDS and at.n < result.n for at, state in job.states)
    if ended or waited >= LEAST_WAIT - EARLY:
        tally.held()
    elif not _listened(job, entry.n) or not view.quiet(entry.t, result.t):
        # What an agent cannot hear it does not wait for.
        tally.unsure()
    else:
        seen = f"cancelled {waited:.1f} s after POST cancel, though agent2 had not ended"
        due = f"agent2's own end, or {LEAST_WAIT:g} s at least"
        tally.broken(view.agent_of_job(job), seen, due, (entry.n, result.n))


def _listened(job: Job, n: int) -> bool:
    """Whether the job's events were being read at entry `n`."""
    changes = [stream.change for at, stream in job.streams if stream.stream == "events" and at.n < n]
    return changes[-1:] == ["opened"]


LAWS = (
    Law(
        LAW,
        "agent2 is told to cancel the job that was cancelled and no other, why, and has a while to end it",
        LOCAL_AGENT,
        ("A2-010", "A2-050", "LA-020", "LA-022", "TY-012"),
        _cancel_at_agent2,
    ),
)

"""The law of an agent's manners as a client of agent2."""

from __future__ import annotations

from lab.journal.events import Agent2Request, Agent2Stream
from lab.journal.writer import Entry
from lab.laws.law import Judgement, Law, Tally
from lab.laws.outcome import ENDS
from lab.laws.seen import LOCAL_AGENT, Job
from lab.laws.view import JournalView

LAW = "agent2-client"

RETRY_SECONDS = 0.25
"""Wait before attempt n is n times this (A2-042)."""

MOST_ATTEMPTS = 5
"""Attempts in a row without progress (A2-043)."""

EARLY = 0.2
"""Part of the wait by which an attempt may seem early."""

NOTICED_WITHIN = 2.0
"""Seconds by which agent2 may notice late that a link tore a reader away."""

LET_GO_WITHIN = 3.0
"""Seconds from a job's result to the end of its streams; the documents name no time."""

REOPENED_WITHIN = MOST_ATTEMPTS * RETRY_SECONDS + 2.0
"""Seconds from a broken stream to the next attempt at most: the longest wait, and what a machine needs."""


def _agent2_client(view: JournalView) -> Judgement:
    tally = Tally(LAW, LOCAL_AGENT)
    for entry, request in view.agent2_requests:
        odd = _odd_request(request)
        if odd is not None:
            tally.broken(_who(view, request), odd[0], odd[1], (entry.n,))
        else:
            tally.held()
    for job in view.jobs.values():
        for name in ("events", "stream"):
            streams = [(entry, stream) for entry, stream in job.streams if stream.stream == name]
            _judge_reopening(tally, view, job, name, streams)
            _judge_left_open(tally, view, job, name, streams)
        _judge_given_up(tally, view, job)
        _judge_retries(tally, view, job)
    return tally.judgement()


def _who(view: JournalView, request: Agent2Request) -> str:
    job = view.jobs.get(request.job_id or "")
    return view.agent_of_job(job) if job is not None else view.participant(None)


def _odd_request(request: Agent2Request) -> tuple[str, str] | None:
    name = f"{request.method} {request.route}"
    if request.route.endswith("/health"):
        # A2-002
        return (f"{name} with a token", "no token") if request.facts.get("authorization") is True else None
    if request.status == 401 and "kind" not in request.facts:
        # A2-017; a 401 of POST /jobs by the script's order comes with the kind that was asked for
        return f"{name} without the right token", "Authorization: Bearer <token>"
    if request.facts.get("accepts_sse") is False:
        # A2-021
        return f"{name} without Accept: text/event-stream", "that header"
    return None


def _judge_retries(tally: Tally, view: JournalView, job: Job) -> None:
    """A2-045: a job that agent2 refused has failed, and is not tried again."""
    refused = next((entry for entry, request in job.posts if request.status >= 300), None)
    again = next((entry for entry, _ in job.posts if refused is not None and entry.n > refused.n), None)
    if refused is None or any(entry.n < refused.n for entry, request in job.posts if request.status < 300):
        return
    who = view.agent_of_job(job)
    if again is None:
        tally.held()
    elif view.agent_process_changed(who, refused.t, again.t) or not view.quiet(refused.t, again.t):
        tally.unsure()
    else:
        tally.broken(who, "a job that agent2 refused posted again", "one POST /jobs", (refused.n, again.n))


def _judge_reopening(
    tally: Tally, view: JournalView, job: Job, name: str, streams: list[tuple[Entry, Agent2Stream]]
) -> None:
    """A2-042, A2-043: a broken stream is opened again after 250 ms times the attempt, five times at most."""
    attempt = most = 0
    for place, (entry, stream) in enumerate(streams):
        if stream.change == "opened":
            continue
        if stream.change != "broken":
            attempt = 0
            continue
        attempt = 1 if stream.sent > most else attempt + 1
        most = max(most, stream.sent)
        again = next((at for at, later in streams[place + 1 :] if later.change == "opened"), None)
        due = entry.t + REOPENED_WITHIN
        due += view.slack(entry.t, due)
        if not view.quiet(entry.t - NOTICED_WITHIN, min(due, again.t) if again is not None else due):
            tally.unsure()
        elif again is not None and again.t <= due:
            _judge_attempt(tally, view, job, name, attempt, entry, again)
        elif name == "events" and attempt <= MOST_ATTEMPTS and _still_due(view, job, entry, due):
            seen = f"the {name} stream of a running job not opened again"
            tally.broken(view.agent_of_job(job), seen, f"again after {attempt * RETRY_SECONDS:g} s", (entry.n,))


def _judge_attempt(
    tally: Tally, view: JournalView, job: Job, name: str, attempt: int, broken: Entry, again: Entry
) -> None:
    wait = again.t - broken.t
    least = min(attempt, MOST_ATTEMPTS) * RETRY_SECONDS * (1 - EARLY) - view.slack(broken.t, again.t)
    who = view.agent_of_job(job)
    if attempt > MOST_ATTEMPTS:
        seen = f"attempt {attempt} in a row at the {name} stream"
        tally.broken(who, seen, f"at most {MOST_ATTEMPTS}", (broken.n, again.n))
    elif wait < least:
        seen = f"attempt {attempt} at the {name} stream after {wait:.2f} s"
        tally.broken(who, seen, f"after {attempt * RETRY_SECONDS:g} s", (broken.n, again.n))
    else:
        tally.held()


def _judge_given_up(tally: Tally, view: JournalView, job: Job) -> None:
    """A2-042: a job does not fail at the first break of its events stream."""
    result = next((one for one in job.results if one.frame.payload.get("errorCode") == "infra"), None)
    if result is None:
        return
    changes = [(entry, one) for entry, one in job.streams if one.stream == "events" and entry.n < result.n]
    refused = any(request.status >= 400 and entry.n < result.n for entry, request in job.requests)
    ended = any(state.state in ENDS and entry.n < result.n for entry, state in job.states)
    if [one.change for _, one in changes] != ["opened", "broken"] or refused or ended or job.cancels:
        return
    broken = changes[1][0]
    if view.crashes or not view.quiet(changes[0][0].t, result.t):
        tally.unsure()
    else:
        seen = "a job given up at the first break of its events stream"
        tally.broken(view.agent_of_job(job), seen, f"again after {RETRY_SECONDS:g} s", (broken.n, result.n))


def _judge_left_open(
    tally: Tally, view: JournalView, job: Job, name: str, streams: list[tuple[Entry, Agent2Stream]]
) -> None:
    """LA-028, A2-061: a job's streams are let go with it."""
    result = next(iter(job.results), None)
    if result is None or not job.assigns:
        return
    for reader in sorted({one.reader for _, one in streams}):
        opened = next(entry for entry, one in streams if one.reader == reader)
        closed = next((entry for entry, one in streams if one.reader == reader and one.change != "opened"), None)
        since = max(opened.t, result.t)
        due = since + LET_GO_WITHIN
        due += view.slack(since, due)
        until = view.steps_end if view.steps_end is not None else view.end
        if closed is not None and closed.t <= due:
            tally.held()
        elif not view.quiet(opened.t, due) or view.agent_process_changed(view.agent_of_job(job), opened.t, due):
            tally.unsure()
        elif until >= due:
            seen = f"the {name} stream of a job open {due - since:.0f} s after its result"
            tally.broken(view.agent_of_job(job), seen, "closed with the job", (opened.n, result.n))


def _still_due(view: JournalView, job: Job, broken: Entry, due: float) -> bool:
    """Whether the agent still needed the stream until `due`: nothing had ended the job, and nobody the agent."""
    ended = any(state.state in ENDS and entry.t <= due for entry, state in job.states)
    over = any(result.t <= due for result in job.results) or any(cancel.t <= due for cancel in job.cancels)
    if ended or over or not job.assigns or view.agent_process_changed(view.agent_of_job(job), broken.t, due):
        return False
    until = view.steps_end if view.steps_end is not None else view.end
    return until >= due


LAWS = (
    Law(
        LAW,
        "An agent asks agent2 with its token, takes a refusal, opens a broken stream again, and lets go with the job",
        LOCAL_AGENT,
        ("A2-002", "A2-017", "A2-021", "A2-042", "A2-043", "A2-044", "A2-045", "A2-061", "LA-028"),
        _agent2_client,
    ),
)

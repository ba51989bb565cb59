"""The law of progress: job.event mirrors what agent2 told, in order and once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lab.journal.events import Agent2Frame
from lab.journal.writer import Entry
from lab.laws.law import Judgement, Law, Tally
from lab.laws.outcome import ENDS
from lab.laws.seen import LOCAL_AGENT, FrameAt, Job
from lab.laws.view import JournalView

LAW = "progress"

OF_A_JOB = ("job.event", "job.result", "audit.event")
"""Types of the agent that name a job of agent2."""

UUID_CHARS = 36

WAITING = "waiting_approval"

Told = tuple[Entry, Agent2Frame]


def _progress(view: JournalView) -> Judgement:
    tally = Tally(LAW, LOCAL_AGENT)
    _judge_foreign(tally, view)
    for job in view.jobs.values():
        if job.told and job.assigns:
            _judge_mirror(tally, view, job)
        _judge_context(tally, view, job)
    return tally.judgement()


def _judge_context(tally: Tally, view: JournalView, job: Job) -> None:
    """LA-018: a job that agent2 took is told to the gateway with phase context, apart from what agent2 tells."""
    taken = next((entry for entry, post in job.posts if 200 <= post.status < 300), None)
    result = next(iter(job.results), None)
    if taken is None or result is None or not job.assigns:
        return
    events = [
        seen
        for connection in view.connections.values()
        for seen in connection.data(LOCAL_AGENT)
        if seen.frame.type == "job.event" and seen.frame.payload.get("jobId") == job.assigns[0].frame.payload["jobId"]
    ]
    own = {seen.frame.msg_id for seen in events if seen.n < result.n and _context(seen.frame.payload)}
    told = [frame for _, frame in job.told if frame.type == "job.event" and _context(frame.payload)]
    if len(own) > len(told):
        tally.held()
    elif own or job.cancels or not view.quiet(job.assigns[0].t, result.t):
        # Those there are may be agent2's, passed on.
        tally.unsure()
    else:
        seen = "a job.result without the agent's own job.event before it"
        tally.broken(view.agent_of_job(job), seen, "job.event with phase context", (taken.n, result.n))


def _judge_foreign(tally: Tally, view: JournalView) -> None:
    """SEC-016: no frame of a job that this agent never had."""
    for connection in view.connections.values():
        who = view.agent_of(connection)
        declared = view.participants.get(who)
        if declared is None or declared.how == "attach":
            continue
        for seen in connection.data(LOCAL_AGENT):
            job_id = seen.frame.payload.get("jobId")
            # LA-035: a note of the agent's own may name a short job id.
            if seen.frame.type not in OF_A_JOB or not isinstance(job_id, str) or len(job_id) != UUID_CHARS:
                continue
            job = view.jobs.get(job_id)
            assigns = job.assigns if job is not None else ()
            if any(view.agent_of(view.connections[one.frame.conn]) == who for one in assigns):
                tally.held()
            else:
                tally.broken(who, f"{seen.frame.type} of a job that it never had", "only its own jobs", (seen.n,))


def _rich(payload: Mapping[str, Any]) -> bool:
    """Whether an event can be told from the agent's own progress (LA-018)."""
    counts = isinstance(payload.get("iteration"), int) or isinstance(payload.get("filesChanged"), int)
    return counts or payload.get("state") == WAITING


def _context(payload: Mapping[str, Any]) -> bool:
    """Whether it may be the agent's own progress."""
    return payload.get("phase") == "context" and not _rich(payload)


def _terminal(payload: Mapping[str, Any]) -> bool:
    return payload.get("terminal") is True or payload.get("state") in ENDS


def _same(seen: Mapping[str, Any], told: Mapping[str, Any]) -> bool:
    """Phase, iteration and waiting are passed on as they are (LA-019), a count of files where the agent does so."""
    alike = all(seen.get(name) == told.get(name) for name in ("phase", "iteration"))
    alike = alike and (seen.get("state") == WAITING) == (told.get("state") == WAITING)
    return alike and seen.get("filesChanged", told.get("filesChanged")) == told.get("filesChanged")


def _judge_mirror(tally: Tally, view: JournalView, job: Job) -> None:
    told = [
        (entry, frame)
        for entry, frame in job.told
        if frame.type == "job.event" and not _terminal(frame.payload) and _rich(frame.payload)
    ]
    mirrored, whole = _mirrored(view, job)
    who = view.agent_of_job(job)
    place = 0
    for seen in mirrored:
        if place < len(told) and told[place][0].n < seen.n and _same(seen.frame.payload, told[place][1].payload):
            tally.held()
            place += 1
            continue
        later = next((at for at in range(place, len(told)) if _told_before(told[at], seen)), None)
        if later is not None:
            if whole:
                # LA-019: each one, in order
                tally.broken(
                    who, f"agent2's event {told[place][1].seq} left out", "each one", (told[place][0].n, seen.n)
                )
            else:
                tally.unsure()
            place = later + 1
            continue
        earlier = next((one for one in reversed(told[:place]) if _told_before(one, seen)), None)
        if earlier is not None:
            # A2-038, A2-039: a replay brings nothing twice
            tally.broken(who, f"agent2's event {earlier[1].seq} again", "once", (earlier[0].n, seen.n))
        else:
            tally.broken(who, "a job.event that agent2 never told", "what agent2 told", (seen.n,))
    _judge_rest(tally, view, job, told[place:], whole, bool(mirrored))


def _told_before(told: Told, seen: FrameAt) -> bool:
    return told[0].n < seen.n and _same(seen.frame.payload, told[1].payload)


def _mirrored(view: JournalView, job: Job) -> tuple[list[FrameAt], bool]:
    """The agent's events of a job, each once, and whether none of them can have been lost with a session."""
    frames: list[FrameAt] = []
    known: set[str | None] = set()
    for seen in job.events:
        if seen.frame.msg_id not in known and seen.party == LOCAL_AGENT and _rich(seen.frame.payload):
            known.add(seen.frame.msg_id)
            frames.append(seen)
    # RS-006: what was on its way when the session of the assignment was lost never arrived.
    named = (*job.assigns[:1], *job.events, *job.results)
    sessions = {id(view.session_of.get(seen.frame.conn)) for seen in named}
    who = view.agent_of_job(job)
    end = frames[-1].t if frames else view.end
    return frames, len(sessions) <= 1 and not view.agent_process_changed(who, job.assigns[0].t, end)


def _judge_rest(tally: Tally, view: JournalView, job: Job, rest: list[Told], whole: bool, mirrors: bool) -> None:
    """All of them come before the result that ends the job."""
    result = next(iter(job.results), None)
    end = next((entry for entry, state in job.states if state.state in ENDS), None)
    due = [one for one in rest if result is not None and end is not None and one[0].n < end.n < result.n]
    if not due or result is None or end is None or not whole:
        return
    own_end = result.frame.payload.get("errorCode") in ("infra", "timeout") or job.cancels
    began = job.assigns[0].t
    if own_end or not mirrors or not view.quiet(began, result.t):
        tally.unsure()
    else:
        tally.broken(
            view.agent_of_job(job), f"agent2's event {due[0][1].seq} left out", "each one", (due[0][0].n, result.n)
        )


LAWS = (
    Law(
        LAW,
        "An agent's job.event frames mirror agent2's, in order, each once, and of its own jobs alone",
        LOCAL_AGENT,
        ("A2-036", "A2-038", "A2-039", "A2-041", "CHAT-068", "LA-018", "LA-019", "SEC-016", "SQ-018"),
        _progress,
    ),
)

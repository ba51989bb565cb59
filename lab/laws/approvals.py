"""The law of approvals: agent2 hears of a decision exactly when a good token allows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lab.journal.events import Agent2Request
from lab.journal.writer import Entry
from lab.laws.law import Judgement, Law, Tally
from lab.laws.seen import LOCAL_AGENT, FrameAt, Job
from lab.laws.view import JournalView

LAW = "approvals"

AROUND_ITS_END = 2.0
"""Seconds around the end of a token in which either answer is right: what clocks and machines may differ by."""

TOLD_WITHIN = 5.0
"""Seconds from a good decision to agent2's hearing of it; the documents name no time."""


def _approvals(view: JournalView) -> Judgement:
    tally = Tally(LAW, LOCAL_AGENT)
    for job in view.jobs.values():
        told = [(entry, call) for entry, call in job.requests if call.method == "POST" and "/approvals/" in call.route]
        for place, (entry, call) in enumerate(told):
            _judge_told(tally, view, job, entry, call, [one for _, one in told[:place]])
        for seen in job.decisions:
            if seen.passed_on and _first_of_its_frame(job, seen):
                _judge_decision(tally, view, job, seen, told)
    return tally.judgement()


def _first_of_its_frame(job: Job, seen: FrameAt) -> bool:
    return not any(one.n < seen.n and one.passed_on and one.frame.msg_id == seen.frame.msg_id for one in job.decisions)


def _about(seen: FrameAt, facts: Mapping[str, Any]) -> bool:
    """Whether a frame and a call of agent2 are the same decision."""
    return all(seen.frame.payload.get(name) == facts.get(name) for name in ("approvalId", "decision"))


def _good(view: JournalView, seen: FrameAt) -> bool | None:
    """Whether an agent has to take a frame's token, None where its clock decides; LA-032: until its end."""
    token = seen.frame.facts.get("token")
    if not isinstance(token, Mapping):
        return None
    if token.get("form") != "ok" or not token.get("verified") or not token.get("equal"):
        return False
    register = view.connections[seen.frame.conn].register
    skew = register.frame.facts.get("skewMs") if register is not None else None
    # The agent goes by its own clock.
    left = (token["leftMs"] + (skew if isinstance(skew, int) else 0)) / 1000
    return None if abs(left) <= AROUND_ITS_END else left > 0


def _judge_told(
    tally: Tally, view: JournalView, job: Job, entry: Entry, call: Agent2Request, before: list[Agent2Request]
) -> None:
    """What agent2 hears was decided, with a token that holds, and is told once."""
    if not job.assigns:
        # Somebody else's job.
        return
    who = view.agent_of_job(job)
    decisions = [seen for seen in job.decisions if seen.n < entry.n and seen.passed_on and _about(seen, call.facts)]
    frames = {seen.frame.msg_id for seen in decisions}
    goods = [_good(view, seen) for seen in decisions]
    if not decisions:
        tally.broken(who, "a decision at agent2 that the gateway never told", "approval.decision first", (entry.n,))
    elif all(good is False for good in goods):
        # LA-031, TY-019: the token counts, whoever signed the frame
        seen = f"a decision at agent2 whose token {_fault(decisions[-1])}"
        tally.broken(who, seen, "agent2 not told", (decisions[-1].n, entry.n))
    elif len([one for one in before if one.facts == call.facts and one.status < 400]) >= len(frames):
        # SQ-025
        tally.broken(who, "a decision told to agent2 again", "once", (decisions[-1].n, entry.n))
    elif True in goods:
        tally.held()
    else:
        tally.unsure()


def _fault(seen: FrameAt) -> str:
    token = seen.frame.facts.get("token") or {}
    if token.get("form") != "ok":
        return "is none"
    if not token.get("verified"):
        return "no trusted key signed"
    return "is for another decision" if not token.get("equal") else "was over"


def _judge_decision(
    tally: Tally, view: JournalView, job: Job, seen: FrameAt, told: list[tuple[Entry, Agent2Request]]
) -> None:
    """LA-031: a good decision on what a running job waits for is forwarded."""
    states = [state.state for entry, state in job.states if entry.n < seen.n]
    if states[-1:] != ["waiting_approval"] or not seen.clean or _good(view, seen) is not True or job.cancels:
        return
    due = seen.t + TOLD_WITHIN
    due += view.slack(seen.t, due)
    if any(entry.n > seen.n and entry.t <= due and _about(seen, call.facts) for entry, call in told):
        # Judged where agent2 was told.
        return
    connection = view.connections[seen.frame.conn]
    gone = view.agent_process_changed(view.agent_of(connection), seen.t, due)
    if gone or view.crashes or not view.quiet(seen.t, due):
        tally.unsure()
    elif view.horizon(connection, seen.t) >= due:
        what = f"agent2 not told of a good decision in {TOLD_WITHIN:g} s"
        tally.broken(view.agent_of(connection), what, "POST approvals", (seen.n,))


LAWS = (
    Law(
        LAW,
        "agent2 hears of a decision once, when its token is good, trusted and not over, and never otherwise",
        LOCAL_AGENT,
        ("LA-031", "LA-032", "TY-019"),
        _approvals,
    ),
)

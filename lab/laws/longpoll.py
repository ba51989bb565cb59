"""The law of the long poll: held while nothing is new, answered at once when something is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from lab.journal.events import BodyAnswered
from lab.journal.writer import Entry
from lab.laws.law import Judgement, Law, Tally
from lab.laws.outcome import ENDS
from lab.laws.seen import LOCAL_AGENT, Exchange, FrameAt, Job
from lab.laws.view import JournalView

LEAST_HOLD = 6.0
"""Seconds that an empty page takes at least (CHAT-036)."""

LONGEST_HOLD = 9.5
"""Seconds that any page takes at most (CHAT-036)."""

AT_ONCE = 1.0
"""Seconds from something new to its page (CHAT-039)."""

LEAST_DRAIN = 1.0
"""Seconds that agent2's content stream may surely go on after its end: an agent waits for it (CHAT-030, CHAT-031)."""

MOST_WAITING = 16
"""Requests that an agent holds at a time (CHAT-070)."""

CLOSES_WITHIN = 5.0
"""Seconds from agent2's end to the closed stream: 3 s of drain (CHAT-031), and what is done around it."""


@dataclass(frozen=True)
class Poll:
    """A page of a job's stream with its request; `start` is the position asked for, None where it is not known."""

    job: Job
    exchange: Exchange
    asked: FrameAt
    answered: FrameAt
    entry: Entry
    body: BodyAnswered
    start: int | None
    length: int

    @property
    def done(self) -> bool:
        """Whether it says that no further event comes."""
        return self.body.facts.get("done") is True

    @property
    def seconds(self) -> float:
        """From the request to the first chunk."""
        return self.answered.t - self.asked.t


def polls(view: JournalView, job: Job) -> Iterator[Poll]:
    """The pages of a job's stream whose request and answer can be told apart from everything else."""
    positions = {hashlib.sha256(job.job_id.encode()).hexdigest(): 0}
    for entry, body in job.bodies:
        if body.content != "job.stream" or body.status != "ok":
            continue
        start = positions.get(body.ref)
        length = len(body.facts.get("events", ()))
        cursor = body.facts.get("next")
        if start is not None and isinstance(cursor, str):
            positions.setdefault(cursor, start + length)
        exchange = view.exchanges[body.request_id]
        if exchange.asks and exchange.answers:
            yield Poll(job, exchange, exchange.asks[0], exchange.answers[0], entry, body, start, length)


def _long_poll(view: JournalView) -> Judgement:
    tally = Tally("long-poll", LOCAL_AGENT)
    for job in view.jobs.values():
        reader = _Reader(view, job)
        early: list[Poll] = []
        for poll in polls(view, job):
            if not poll.exchange.on_one_connection or not view.quiet(poll.asked.t, poll.answered.t):
                tally.unsure()
            elif poll.length:
                _judge_page(tally, view, reader, poll)
            elif not poll.done:
                _judge_empty(tally, view, reader, poll, early)
            elif poll.seconds > LONGEST_HOLD + view.slack(poll.asked.t, poll.answered.t):
                _broken(tally, view, poll, f"done:true after {poll.seconds:.1f} s", f"within {LONGEST_HOLD:g} s")
            else:
                tally.held()
        if early:
            more = f" (and {len(early) - 1} more)" if len(early) > 1 else ""
            seen = f"an empty page after {early[0].seconds:.2f} s{more}"
            # CHAT-036: a hold of about 8 s, and so no busy loop
            _broken(tally, view, early[0], seen, f"held for about 8 s, at least {LEAST_HOLD:g}")
    return tally.judgement()


class _Reader:
    """When each line of a job reached its agent, as far as agent2's witness can tell."""

    def __init__(self, view: JournalView, job: Job) -> None:
        self._view = view
        # CHAT-048: an empty line has no position
        self._lines = [entry.t for entry, line in job.lines if line.chars > 0]
        self._streams = [(entry, stream) for entry, stream in job.streams if stream.stream == "stream"]

    def arrival(self, position: int, before: float) -> float | None:
        """When the line at `position` came to a reader that was there before `before`; None if nobody can tell."""
        opened = [entry.t for entry, stream in self._streams if stream.change == "opened" and entry.t <= before]
        if position >= len(self._lines) or not opened:
            return None
        begun = max(self._lines[position], opened[0])
        broken = any(stream.change == "broken" and entry.t <= before for entry, stream in self._streams)
        return None if broken or not self._view.quiet(opened[0], before) else begun


def _judge_page(tally: Tally, view: JournalView, reader: _Reader, poll: Poll) -> None:
    arrival = reader.arrival(poll.start, poll.answered.t) if poll.start is not None else None
    if arrival is None:
        late = poll.seconds > LONGEST_HOLD + view.slack(poll.asked.t, poll.answered.t)
    else:
        since = max(arrival, poll.asked.t)
        late = poll.answered.t > since + AT_ONCE + view.slack(since, poll.answered.t)
    if late:
        # CHAT-039
        since = max(arrival or 0.0, poll.asked.t)
        seen = f"event {poll.start} {poll.answered.t - since:.1f} s after it was there"
        _broken(tally, view, poll, seen, f"at once, within {AT_ONCE:g} s")
    else:
        tally.held()


def _judge_empty(tally: Tally, view: JournalView, reader: _Reader, poll: Poll, early: list[Poll]) -> None:
    slack = view.slack(poll.asked.t, poll.answered.t)
    arrival = reader.arrival(poll.start, poll.answered.t) if poll.start is not None else None
    if arrival is not None and arrival + AT_ONCE + slack < poll.answered.t:
        # CHAT-039
        _broken(tally, view, poll, f"an empty page though event {poll.start} was there", f"event {poll.start}")
    elif poll.seconds < LEAST_HOLD - slack:
        early.append(poll)
    elif poll.seconds > LONGEST_HOLD + slack:
        _broken(tally, view, poll, f"an empty page after {poll.seconds:.1f} s", f"within {LONGEST_HOLD:g} s")
    else:
        tally.held()


def _broken(tally: Tally, view: JournalView, poll: Poll, seen: str, due: str) -> None:
    tally.broken(view.agent_of_job(poll.job), seen, due, (poll.asked.n, poll.entry.n))


# The end of a stream


def _stream_done(view: JournalView) -> Judgement:
    tally = Tally("stream-done", LOCAL_AGENT)
    for job in view.jobs.values():
        end = next((entry for entry, state in job.states if state.state in ENDS), None)
        for poll in polls(view, job):
            if end is not None and _slept_over(view, poll, end):
                # CHAT-036, CHAT-041: the close of the stream ends the hold
                seen = f"a request held for {poll.answered.t - end.t:.1f} s after agent2's end"
                due = f"done:true within {CLOSES_WITHIN:g} s"
                tally.broken(view.agent_of_job(job), seen, due, (end.n, poll.entry.n))
            elif poll.done:
                _judge_done(tally, view, poll, end)
            elif end is not None:
                _judge_not_done(tally, view, poll, end)
    return tally.judgement()


def _slept_over(view: JournalView, poll: Poll, end: Entry) -> bool:
    """Whether a request that waited when agent2 ended was answered, without any event, long after that."""
    if poll.length or poll.asked.t > end.t or not poll.exchange.on_one_connection:
        return False
    late = poll.answered.t > end.t + CLOSES_WITHIN + AT_ONCE + view.slack(end.t, poll.answered.t)
    torn = any(stream.change == "broken" for _, stream in poll.job.streams)
    return late and not torn and view.quiet(poll.asked.t, poll.answered.t)


def _judge_done(tally: Tally, view: JournalView, poll: Poll, end: Entry | None) -> None:
    """CHAT-041: closed means that no event comes any more, so agent2 must have ended, or the agent the job."""
    job = poll.job
    accepted = next((entry for entry, request in job.posts if 200 <= request.status < 300), None)
    if accepted is None:
        ended = bool(job.results or job.cancels or job.posts) or not view.has_agent2
        if ended or not job.assigns:
            tally.held()
        else:
            # CHAT-065, CHAT-069 close what never ran; its result may come after the page.
            tally.unsure()
    elif end is not None and end.n < poll.entry.n and not _still_said(job, poll, end):
        tally.held()
    elif _may_have_let_go(view, job, accepted, poll):
        tally.unsure()
    else:
        what = "at it" if end is None or end.n > poll.entry.n else "writing the content stream"
        _broken(tally, view, poll, f"done:true though agent2 was still {what}", "done:false until the stream is closed")


def _still_said(job: Job, poll: Poll, end: Entry) -> bool:
    """CHAT-030: whether agent2 had more to say in a content stream that it had not ended, shortly after its end."""
    given = any(
        stream.stream == "stream" and stream.change == "ended" and entry.n < poll.entry.n
        for entry, stream in job.streams
    )
    lines = sum(1 for _, line in job.lines if line.chars > 0)
    more = poll.start is not None and poll.start + poll.length < lines
    return not given and more and poll.answered.t - end.t < LEAST_DRAIN


def _may_have_let_go(view: JournalView, job: Job, accepted: Entry, poll: Poll) -> bool:
    """Whether the agent may have ended the job, or the reading of its content, by itself (CHAT-066, LA-021)."""
    t = poll.answered.t
    return (
        any(cancel.n < poll.entry.n for cancel in job.cancels)
        or any(result.n < poll.entry.n for result in job.results)
        or any(request.status >= 400 and entry.n < poll.entry.n for entry, request in job.requests)
        or any(stream.change == "broken" and entry.n < poll.entry.n for entry, stream in job.streams)
        or not view.quiet(accepted.t, t)
        or view.agent_process_changed(view.agent_of_job(job), accepted.t, t)
    )


def _judge_not_done(tally: Tally, view: JournalView, poll: Poll, end: Entry) -> None:
    """CHAT-069: once the stream is closed, a page behind its last event says so."""
    if poll.length or poll.start is None or poll.asked.t <= end.t + CLOSES_WITHIN:
        return
    late = poll.asked.t > end.t + CLOSES_WITHIN + view.slack(end.t, poll.asked.t)
    lines = sum(1 for _, line in poll.job.lines if line.chars > 0)
    if late and poll.start >= lines and view.quiet(end.t, poll.answered.t):
        seen = f"done:false {poll.asked.t - end.t:.1f} s after agent2's end"
        tally.broken(view.agent_of_job(poll.job), seen, "done:true, since the stream is closed", (end.n, poll.entry.n))


# Many requests at once


def _polls_bounded(view: JournalView) -> Judgement:
    tally = Tally("polls-bounded", LOCAL_AGENT)
    waiting: dict[str, list[Exchange]] = {}
    for exchange in view.exchanges.values():
        if exchange.kind != "job.stream":
            continue
        asked = exchange.asks[0]
        before = waiting.setdefault(asked.frame.conn, [])
        before[:] = [other for other in before if _answered(other) > asked.t]
        # One that is answered while the further one is judged need not have been counted.
        held = sum(other.on_one_connection and _answered(other) > asked.t + AT_ONCE for other in before)
        if held >= MOST_WAITING:
            _judge_further(tally, view, exchange, held)
        before.append(exchange)
    return tally.judgement()


def _answered(exchange: Exchange) -> float:
    return exchange.answers[0].t if exchange.answers else inf


def _judge_further(tally: Tally, view: JournalView, exchange: Exchange, held: int) -> None:
    asked = exchange.asks[0]
    due = asked.t + AT_ONCE
    due += view.slack(asked.t, due)
    answered = exchange.answers[0] if exchange.answers else None
    if not exchange.on_one_connection or not view.quiet(asked.t, due) or view.end < due:
        tally.unsure()
    elif answered is not None and answered.t <= due:
        tally.held()
    else:
        # CHAT-070
        who = view.agent_of(view.connections[asked.frame.conn])
        seen = f"a request held while {held} others wait"
        tally.broken(who, seen, f"rate_limited at once: {MOST_WAITING} wait at most", (asked.n,))


LAWS = (
    Law(
        "polls-bounded",
        "An agent holds sixteen requests for a page at a time, and refuses a further one at once",
        LOCAL_AGENT,
        ("CHAT-070",),
        _polls_bounded,
    ),
    Law(
        "long-poll",
        "A page comes at once when something is new, and an empty one after about 8 s",
        LOCAL_AGENT,
        ("CHAT-036", "CHAT-039", "CHAT-067"),
        _long_poll,
    ),
    Law(
        "stream-done",
        "A page says done exactly when the stream is closed",
        LOCAL_AGENT,
        ("CHAT-019", "CHAT-030", "CHAT-041", "CHAT-042", "CHAT-069"),
        _stream_done,
    ),
)

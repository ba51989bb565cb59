"""The law of a run's end: nothing is left over."""

from __future__ import annotations

from lab.journal.events import ConnectionLeft, SocketClosed, Undelivered
from lab.laws.codes import fatal_error
from lab.laws.law import Judgement, Law, Tally
from lab.laws.outcome import ENDS
from lab.laws.seen import GATEWAY, LOCAL_AGENT, Connection, Job
from lab.laws.view import JournalView

LAW = "nothing-left-over"

RESULT_WITHIN = 10.0
"""Seconds from agent2's end to the job.result in a run that is over; the drain alone has 3 s (CHAT-031)."""

IN_ORDER = (1000, 1001)
"""Close codes of an agent that ends (WS-042 keeps 44xx for errors)."""


def _nothing_left_over(view: JournalView) -> Judgement:
    tally = Tally(LAW, LOCAL_AGENT)
    if not view.completed:
        return tally.judgement()
    until = view.steps_end if view.steps_end is not None else view.end
    for job in view.jobs.values():
        _judge_job(tally, view, job, until)
    for connection in view.connections.values():
        _judge_close(tally, view, connection, until)
    _judge_undelivered(tally, view)
    _judge_left(tally, view)
    return tally.judgement()


def _judge_job(tally: Tally, view: JournalView, job: Job, until: float) -> None:
    """LA-028: every job that agent2 ended has its result."""
    end = next((entry for entry, state in job.states if state.state in ENDS), None)
    if end is None or not job.assigns:
        return
    if job.results:
        tally.held()
    elif until - end.t < RESULT_WITHIN + view.slack(end.t, until):
        return
    elif not view.quiet(job.assigns[0].t, until) or not _stayed(view, job, until):
        tally.unsure()
    else:
        seen = f"a job without job.result {until - end.t:.0f} s after agent2's end"
        tally.broken(view.agent_of_job(job), seen, "a job.result", (end.n,))


def _stayed(view: JournalView, job: Job, until: float) -> bool:
    """Whether the job's agent was there all the time."""
    connection = view.connections[job.assigns[0].frame.conn]
    open_still = connection.closed is None or connection.closed.t >= until
    who = view.agent_of_job(job)
    return open_still and not view.agent_process_changed(who, job.assigns[0].t, until)


def _judge_close(tally: Tally, view: JournalView, connection: Connection, until: float) -> None:
    """An agent that is ended in order closes its socket itself, with a code that is no error's."""
    closed = connection.closed
    who = view.agent_of(connection)
    declared = view.participants.get(who)
    if closed is None or closed.t < until or not isinstance(closed.event, SocketClosed):
        return
    if declared is None or declared.how == "attach" or connection.ready is None or not _ended_in_order(view, who):
        return
    event = closed.event
    if event.by == "local" or fatal_error(connection) is not None:
        # The lab ended its gateway first, or an error did: with which code is told by a law of its own.
        tally.unsure()
    elif event.by == "remote" and event.code in IN_ORDER:
        tally.held()
    elif view.disturbed(until, closed.t):
        tally.unsure()
    else:
        seen = "the socket torn" if event.by != "remote" else f"close {event.code}"
        tally.broken(who, f"{seen} at the agent's end", "close 1000 or 1001", (closed.n,))


def _ended_in_order(view: JournalView, who: str) -> bool:
    return not any(name == who and change in ("killed", "exited", "crashed") for _, name, change in view.sut_ends)


def _judge_undelivered(tally: Tally, view: JournalView) -> None:
    """Every frame of the gateway is acked, unless something was broken on purpose."""
    for entry in view.entries:
        if not isinstance(entry.event, Undelivered):
            continue
        connection = view.connections.get(entry.event.conn)
        if connection is None or _explained(view, connection, entry.t):
            tally.unsure()
        else:
            seen = f"{entry.event.type} never acked"
            tally.broken(view.agent_of(connection), seen, "an ack, since nothing was broken", (entry.n,))


def _judge_left(tally: Tally, view: JournalView) -> None:
    """A2-061, LA-028: in every ending, its own too, an agent lets go of its streams and its socket."""
    for entry in view.entries:
        if isinstance(entry.event, ConnectionLeft):
            left = entry.event
            seen = f"connection {left.conn} still open {left.seconds:g} s after the agent's end"
            tally.broken(view.participant(None), seen, "every connection closed by the agent", (entry.n,))


def _explained(view: JournalView, connection: Connection, t: float) -> bool:
    gone = connection.closed is not None and connection.closed.t <= t
    changed = view.agent_process_changed(view.agent_of(connection), 0.0, t)
    return view.faulted or gone or changed or view.disturbed(0.0, t) or _rightly_refused(view, connection, t)


def _rightly_refused(view: JournalView, connection: Connection, t: float) -> bool:
    """Whether the gateway had sent this agent what it had to refuse: that costs connections, and then the session."""
    who = view.agent_of(connection)
    return any(
        seen.t <= t and not seen.form_clean
        for other in view.connections.values()
        if view.agent_of(other) == who
        for seen in other.made(GATEWAY)
    )


LAWS = (
    Law(
        LAW,
        "At a run's end every job has its result, each frame its ack, and the agent has closed its connections itself",
        LOCAL_AGENT,
        ("A2-061", "LA-028", "SQ-007", "WS-042"),
        _nothing_left_over,
    ),
)

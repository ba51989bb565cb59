"""The laws of what an error ends: a fatal one everything, any other one nothing."""

from __future__ import annotations

from functools import partial

from lab.journal.events import FaultFired, SocketClosed
from lab.journal.writer import Entry
from lab.laws.codes import FATAL, fatal_error
from lab.laws.law import Judgement, Law, Tally
from lab.laws.seen import GATEWAY, LOCAL_AGENT, Connection, FrameAt, Job
from lab.laws.view import JournalView

STAYS = 1.0
"""Seconds for which a connection stays open after an error that is not fatal (WS-043)."""


# An error that is not fatal


def _goes_on(law: str, party: str, view: JournalView) -> Judgement:
    tally = Tally(law, party)
    for connection in view.connections.values():
        for error in connection.errors:
            soft = error.code is not None and error.code not in FATAL and error.passed_on
            if soft and _binds(connection, party, error):
                _judge_staying(tally, view, connection, party, error)
    return tally.judgement()


def _binds(connection: Connection, party: str, error: FrameAt) -> bool:
    """In a session any; before it the gateway's refusal of v2, after which v1 goes on here (HS-020)."""
    return connection.in_session(error) or (party == GATEWAY and error.code == "protocol_unsupported")


def _judge_staying(tally: Tally, view: JournalView, connection: Connection, party: str, error: FrameAt) -> None:
    due = error.t + STAYS
    closed = connection.closed
    end = closed.t if closed is not None else view.end
    if end >= due:
        tally.held()
    elif closed is None or not isinstance(closed.event, SocketClosed):
        return
    elif closed.event.by != ("local" if party == GATEWAY else "remote"):
        # Whoever ended it was the other side, or a link.
        return
    elif fatal_error(connection) is not None or _called_for(view, connection, error, closed):
        tally.unsure()
    else:
        # WS-042, WS-043
        seen = f"close {closed.event.code} after {error.code}, which is not fatal"
        tally.broken(view.name_of(party, connection), seen, "the connection goes on", (error.n, closed.n))


def _called_for(view: JournalView, connection: Connection, error: FrameAt, closed: Entry) -> bool:
    """Whether the lab itself may have ended a party: at the run's end, or by a fault."""
    over = view.steps_end is not None and closed.t >= view.steps_end
    struck = any(isinstance(one.event, FaultFired) for one in view.entries[error.n : closed.n])
    changed = view.agent_process_changed(view.agent_of(connection), error.t, closed.t)
    return over or struck or changed or not view.quiet(error.t, closed.t)


# A fatal one


def _nothing_behind(view: JournalView) -> Judgement:
    tally = Tally("nothing-behind-fatal", LOCAL_AGENT)
    for job in view.jobs.values():
        _judge_post(tally, view, job)
    return tally.judgement()


def _judge_post(tally: Tally, view: JournalView, job: Job) -> None:
    """WS-042: a job whose assignment came behind what the agent refused is not begun before it comes again."""
    for entry, _ in job.posts:
        assigns = [seen for seen in job.assigns if seen.passed_on and seen.n < entry.n]
        refused = [_refused_before(view.connections[seen.frame.conn], seen) for seen in assigns]
        if not any(refused):
            continue
        if not all(refused):
            tally.held()
            continue
        wrong, error = next(found for found in refused if found is not None)
        due = "nothing of what came behind the refused frame"
        seen = f"a job posted to agent2 after the fatal error {error.code}, behind which it was assigned"
        tally.broken(view.agent_of_job(job), seen, due, (wrong.n, assigns[0].n, error.n, entry.n))
        return


def _refused_before(connection: Connection, assign: FrameAt) -> tuple[FrameAt, FrameAt] | None:
    """What stood before an assignment on its connection and was refused, and the error; None where nothing was."""
    error = connection.error(FATAL - {"timeout"}, LOCAL_AGENT)
    if error is None:
        return None
    for seen in connection.frames:
        if seen.n >= min(assign.n, error.n):
            return None
        if seen.party == GATEWAY and seen.delivered and not _in_order(seen):
            return seen, error
    return None


def _in_order(seen: FrameAt) -> bool:
    """Whether nothing in it is refused, whatever the agent's mode: a signature may pass, an ack is never answered."""
    facts = seen.frame.facts
    names = ("parse", "size", "type", "schema", "tenant", "agent")
    exempt = seen.frame.type in ("ack", "error") or "ping" in facts or facts.get("v1") is True
    return exempt or all(facts.get(name, "ok") == "ok" for name in names)


LAWS = (
    Law(
        "goes-on",
        "An agent goes on with its connection after an error that is not fatal",
        LOCAL_AGENT,
        ("WS-042", "WS-043"),
        partial(_goes_on, "goes-on", LOCAL_AGENT),
    ),
    Law(
        "gateway-goes-on",
        "A gateway goes on with its connection after an error that is not fatal",
        GATEWAY,
        ("WS-042", "WS-043"),
        partial(_goes_on, "gateway-goes-on", GATEWAY),
    ),
    Law(
        "nothing-behind-fatal",
        "An agent obeys nothing that came behind a frame that it refused with a fatal error",
        LOCAL_AGENT,
        ("WS-042", "WS-043"),
        _nothing_behind,
    ),
)

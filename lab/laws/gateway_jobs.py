"""The laws of what passes between a gateway's caller and the wire: jobs on their way out, reports on their way in."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab.journal.events import JobAssigned, JobMoved
from lab.journal.writer import Entry
from lab.laws.law import Judgement, Law, Tally
from lab.laws.seen import GATEWAY, FrameAt, Job
from lab.laws.view import JournalView

AS_ORDERED = "assigned-as-ordered"
TOLD_ONCE = "reports-told-once"


def _assigned_as_ordered(view: JournalView) -> Judgement:
    tally = Tally(AS_ORDERED, GATEWAY)
    for job in view.jobs.values():
        order = job.assigned[0].event if job.assigned else None
        for assign in job.assigns:
            breaks = _odd_assign(assign.frame.payload, order if isinstance(order, JobAssigned) else None)
            entries = (*(entry.n for entry in job.assigned[:1]), assign.n)
            for seen, due in breaks:
                tally.broken(assign.by, seen, due, entries)
            if not breaks:
                tally.held()
    return tally.judgement()


def _odd_assign(payload: Mapping[str, Any], order: JobAssigned | None) -> list[tuple[str, str]]:
    breaks = []
    kind = payload.get("kind")
    if kind == "chat" and "incidentRef" in payload:
        # CP-016, CP-017: the schema takes it, a gateway never sends it
        breaks.append(("a chat with incidentRef", "a chat without an incident"))
    if order is None:
        return breaks
    if kind != order.job_kind:
        breaks.append((f"a job of kind {kind if isinstance(kind, str) else '?'}", f"kind {order.job_kind}, as ordered"))
    inputs = payload.get("inputs")
    if isinstance(inputs, list | tuple) and _hashes(inputs) != [one["sha256"] for one in order.inputs]:
        # CP-016: the request's text as it is
        breaks.append((f"{len(inputs)} inputs that are not the caller's", f"the {len(order.inputs)} inputs as ordered"))
    return breaks


def _hashes(inputs: list[Any] | tuple[Any, ...]) -> list[object]:
    texts = (one.get("inline") if isinstance(one, Mapping) else None for one in inputs)
    return [text.get("sha256") if isinstance(text, Mapping) else None for text in texts]


# Reports


@dataclass(frozen=True)
class _Reports:
    """Frames of one type about one job: the entries at which each came first, and at which each was accepted."""

    came: list[int]
    accepted: list[int]

    def judge(self, tally: Tally, entry: Entry, what: str, told: int | None) -> None:
        """SQ-002: a repeat is acked and not told again; what was accepted is told."""
        came, accepted = bisect_left(self.came, entry.n), bisect_left(self.accepted, entry.n)
        if told is None or not came:
            return
        if told > came:
            tally.broken(entry.by, f"{told} {what} told, {came} came", "each once", (self.came[came - 1], entry.n))
        elif told < accepted:
            entries = (self.accepted[accepted - 1], entry.n)
            tally.broken(entry.by, f"{told} {what} told, {accepted} accepted", "each once", entries)
        else:
            tally.held()


def _reports_told_once(view: JournalView) -> Judgement:
    tally = Tally(TOLD_ONCE, GATEWAY)
    reports = {job.job_id: _reports(view, job) for job in view.jobs.values() if job.assigns}
    for entry in view.entries:
        event = entry.event
        if isinstance(event, JobMoved) and event.job_id in reports:
            events, results = reports[event.job_id]
            events.judge(tally, entry, "job.event", event.events)
            results.judge(tally, entry, "job.result", event.results)
    return tally.judgement()


def _reports(view: JournalView, job: Job) -> tuple[_Reports, _Reports]:
    agent = view.connections[job.assigns[0].frame.conn].agent_id
    return _reports_in(view, agent, job.events), _reports_in(view, agent, job.results)


def _reports_in(view: JournalView, agent: str | None, frames: list[FrameAt]) -> _Reports:
    came: dict[str | None, int] = {}
    accepted = []
    for seen in frames:
        # A report of another agent than the job's is nobody's.
        if seen.passed_on and view.connections[seen.frame.conn].agent_id == agent and seen.frame.msg_id not in came:
            came[seen.frame.msg_id] = seen.n
            accepted += _accepted(view, seen.frame.msg_id)
    return _Reports(list(came.values()), sorted(accepted))


def _accepted(view: JournalView, msg_id: str | None) -> list[int]:
    """The entry of the gateway's ack accepted for a frame, if there is one."""
    acks = view.acks.get(msg_id or "", ())
    return [ack.n for ack in acks if ack.party == GATEWAY and ack.frame.payload.get("status") == "accepted"][:1]


LAWS = (
    Law(
        AS_ORDERED,
        "A gateway assigns a job as its caller ordered it, and a chat without an incident",
        GATEWAY,
        ("CP-016", "CP-017"),
        _assigned_as_ordered,
    ),
    Law(
        TOLD_ONCE,
        "A gateway tells its caller every job.event and job.result that it accepts, once",
        GATEWAY,
        ("SQ-002",),
        _reports_told_once,
    ),
)

"""The law of audits: what agent2 notes for the audit reaches the gateway, once each, before the job's result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lab.journal.events import Agent2Frame
from lab.journal.writer import Entry
from lab.laws.law import Judgement, Law, Tally
from lab.laws.outcome import same_value
from lab.laws.seen import LOCAL_AGENT, FrameAt, Job
from lab.laws.view import JournalView

LAW = "audit-forwarded"

IDS = ("code", "workspaceId", "approvalId", "incidentId", "requestId", "runId", "ruleId")
"""Members that say what an audit is about (TY-027)."""

Told = tuple[Entry, Agent2Frame]


def _audit_forwarded(view: JournalView) -> Judgement:
    tally = Tally(LAW, LOCAL_AGENT)
    for job in view.jobs.values():
        told = [(entry, frame) for entry, frame in job.told if frame.type == "audit.event"]
        if told and job.assigns and job.results:
            _Forwarding(tally, view, job, told).judge()
    return tally.judgement()


class _Forwarding:
    """Judges what became of the audits that agent2 told of a job."""

    def __init__(self, tally: Tally, view: JournalView, job: Job, told: list[Told]) -> None:
        self._tally = tally
        self._view = view
        self._job = job
        self._told = told
        self._who = view.agent_of_job(job)
        self._sent = self._frames()

    def _frames(self) -> list[FrameAt]:
        """The agent's audits of the job, each once; a new session brings old ones as new frames (RS-006)."""
        frames: list[FrameAt] = []
        known: set[str | None] = set()
        for seen in self._job.audits:
            if seen.party == LOCAL_AGENT and seen.frame.msg_id not in known:
                known.add(seen.frame.msg_id)
                frames.append(seen)
        return frames

    def judge(self) -> None:
        """Each audit of agent2 against the agent's that say the same."""
        left = list(self._sent)
        for entry, frame in self._told:
            later = (seen for seen in left if seen.n > entry.n)
            match = next((seen for seen in later if _alike(seen.frame.payload, frame.payload)), None)
            if match is None:
                self._missing(entry, frame)
            else:
                left.remove(match)
                self._in_time(entry, match)
        for seen in left:
            first = next((one for one in self._told if _alike(seen.frame.payload, one[1].payload)), None)
            # What agent2 never told may be a note of the agent's own (LA-035).
            if first is not None:
                self._doubled(first[0], seen)

    def _in_time(self, entry: Entry, match: FrameAt) -> None:
        result = self._job.results[0]
        if match.n < result.n:
            self._tally.held()
        elif self._whole() and entry.n < result.n:
            # LA-026: the outcome waits for audits that are on their way
            self._tally.broken(self._who, "audit.event behind the job.result", "before it", (result.n, match.n))
        else:
            self._tally.unsure()

    def _missing(self, entry: Entry, frame: Agent2Frame) -> None:
        result = self._job.results[0]
        if result.n < entry.n:
            # The agent had let go of the job.
            return
        own_end = result.frame.payload.get("errorCode") in ("infra", "timeout") or self._job.cancels
        if self._whole() and not own_end:
            # TY-028: forwarded as such
            seen = f"agent2's audit.event {frame.seq} not forwarded with its code and ids"
            self._tally.broken(self._who, seen, "one audit.event before the job.result", (entry.n, result.n))
        else:
            self._tally.unsure()

    def _doubled(self, first: Entry, seen: FrameAt) -> None:
        if self._whole():
            # A2-039: a replay brings nothing twice
            self._tally.broken(self._who, "agent2's audit.event again", "once", (first.n, seen.n))
        else:
            self._tally.unsure()

    def _whole(self) -> bool:
        """Whether nothing can have made the agent give up or send again: TY-028 lets it after failures."""
        sessions = {id(self._view.session_of.get(seen.frame.conn)) for seen in (*self._sent, *self._job.results)}
        start, end = self._job.assigns[0].t, self._job.results[0].t
        changed = self._view.agent_process_changed(self._who, start, end)
        return len(sessions) == 1 and not self._view.faulted and not changed and self._view.quiet(start, end)


def _alike(seen: Mapping[str, Any], told: Mapping[str, Any]) -> bool:
    return all(same_value(seen.get(name), told[name]) for name in IDS if name in told)


LAWS = (
    Law(
        LAW,
        "What agent2 notes for the audit is forwarded with its code and ids, once each, before the job.result",
        LOCAL_AGENT,
        ("A2-039", "LA-026", "TY-027", "TY-028"),
        _audit_forwarded,
    ),
)

"""The law that a job.result tells what agent2 said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lab.journal.events import FaultFired
from lab.journal.redaction import digest_of
from lab.journal.writer import Entry
from lab.laws.law import Judgement, Law, Tally
from lab.laws.seen import GATEWAY, LOCAL_AGENT, FrameAt, Job
from lab.laws.view import JournalView

LAW = "job-outcome"

ENDS = frozenset({"done", "failed", "cancelled"})

RESULT_WITHIN = 10.0
"""Seconds from agent2's end to the job.result: the drain has 3 (CHAT-031), five attempts at a stream 4 (A2-042)."""

# A2-045: what a refused POST /jobs makes of a job
POST_ERRORS: Mapping[int, str] = {403: "policy_denied", 400: "unknown", 422: "unknown"}

_PASSED_ON = ("prUrl", "branch", "commitSha", "filesChangedCount", "diffSha256", "tests")


def _job_outcome(view: JournalView) -> Judgement:
    tally = Tally(LAW, LOCAL_AGENT)
    if view.has_agent2:
        for job in view.jobs.values():
            if job.results:
                _Outcome(tally, view, job, job.results[0]).judge()
            else:
                _judge_missing(tally, view, job)
    return tally.judgement()


class _Outcome:
    """Judges one job.result by what the agent could know when it made it."""

    def __init__(self, tally: Tally, view: JournalView, job: Job, result: FrameAt) -> None:
        self._tally = tally
        self._view = view
        self._job = job
        self._result = result
        self._payload = result.frame.payload
        self._outcome = str(self._payload.get("outcome"))
        self._who = view.agent_of(view.connections[result.frame.conn])

    def judge(self) -> None:
        """Against the refusal of the job, agent2's own end, or its silence."""
        posts = [(entry, request) for entry, request in self._job.posts if entry.n < self._result.n]
        if not posts:
            self._without_agent2("agent2 was never asked", ())
        elif not any(200 <= request.status < 300 for _, request in posts):
            self._refused(posts[-1][0], posts[-1][1].status)
        else:
            end = next(((e, s) for e, s in self._job.states if s.state in ENDS and e.n < self._result.n), None)
            if end is None:
                self._without_agent2("agent2 had not ended", (posts[0][0].n,))
            else:
                self._ended(end[0], end[1].state, end[1].result)

    def _broken(self, seen: str, due: str, *entries: int) -> None:
        self._tally.broken(self._who, seen, due, (*entries, self._result.n))

    def _says(self) -> str:
        code = self._payload.get("errorCode")
        return f"outcome {self._outcome}" + (f" ({code})" if code else "")

    def _cancelled(self) -> bool:
        return any(cancel.n < self._result.n for cancel in self._job.cancels)

    def _own_end(self) -> bool:
        """Whether the agent may have ended the job by itself: a cancel, or its own time limit (LA-022)."""
        if self._outcome == "cancelled":
            return self._cancelled()
        return self._outcome == "failed" and self._payload.get("errorCode") == "timeout"

    def _without_agent2(self, why: str, entries: tuple[int, ...]) -> None:
        if self._outcome == "failed" or self._own_end():
            self._tally.held()
        else:
            # A2-051, LA-023, LA-027: nothing came that could have said so
            self._broken(f"{self._says()}, though {why}", "failed", *entries)

    def _refused(self, post: Entry, status: int) -> None:
        due = POST_ERRORS.get(status, "infra")
        if self._own_end() and self._outcome == "cancelled":
            self._tally.unsure()
        elif self._outcome == "failed" and self._payload.get("errorCode") == due:
            self._tally.held()
        else:
            self._broken(f"{self._says()} after HTTP {status} of POST /jobs", f"outcome failed ({due})", post.n)

    def _ended(self, end: Entry, state: str, told: Mapping[str, Any] | None) -> None:
        due = (told or {}).get("outcome", state if state != "done" else None)
        if due is None:
            self._tally.unsure()
        elif due == self._outcome:
            self._members(end, told or {})
        elif self._own_end() or self._may_not_know(end):
            # A2-051, CHAT-022: the agent went by what it could read
            self._tally.unsure()
        else:
            self._broken(self._says(), f"outcome {due}, as agent2 said", end.n)

    def _may_not_know(self, end: Entry) -> bool:
        """Whether a broken or slow stream can have kept agent2's end from the agent, which then fails infra."""
        if self._outcome != "failed":
            return False
        began = self._job.posts[0][0].t
        refused = any(request.status >= 400 and entry.n < self._result.n for entry, request in self._job.requests)
        last = max((frame.seq for entry, frame in self._job.told if entry.n < end.n), default=0)
        # A reader that hangs up once it has the result leaves a stream that is called broken.
        told = any(
            stream.stream == "events" and stream.change != "opened" and entry.n > end.n and stream.sent >= last
            for entry, stream in self._job.streams
        )
        return (
            refused
            or not told
            or self._view.disturbed(began, self._result.t)
            or self._view.delayed(began, self._result.t)
        )

    def _members(self, end: Entry, told: Mapping[str, Any]) -> None:
        if self._outcome == "cancelled":
            extra = sorted(set(self._payload) - {"jobId", "outcome"})
            if extra:
                # LA-024
                self._broken(f"cancelled with {', '.join(extra)}", "no other member", end.n)
                return
        elif self._outcome in ("no_change", "pr_opened"):
            due = {name: told[name] for name in _PASSED_ON if name in told}
            if self._job.kind == "chat":
                due["filesChangedCount"] = self._files_changed(told)
            for name in _PASSED_ON:
                if not same_value(self._payload.get(name), due.get(name)):
                    self._broken(f"{name} {_word(self._payload.get(name))}", f"{name} {_word(due.get(name))}", end.n)
                    return
        self._tally.held()

    def _files_changed(self, told: Mapping[str, Any]) -> int:
        """CHAT-009, CHAT-010, CHAT-011: the larger of agent2's count and its events' that are not terminal."""
        own = told.get("filesChangedCount")
        counts = [own if isinstance(own, int) and not isinstance(own, bool) and 0 <= own < 2**53 else 0]
        for entry, frame in self._job.told:
            changed = frame.payload.get("filesChanged")
            counts_in = frame.type == "job.event" and entry.n < self._result.n and not _terminal(frame.payload)
            if counts_in and isinstance(changed, int) and not isinstance(changed, bool):
                counts.append(changed)
        return max(counts)


def _terminal(payload: Mapping[str, Any]) -> bool:
    return payload.get("terminal") is True or payload.get("state") in ENDS


def same_value(seen: object, due: object) -> bool:
    """Equal, where either side may stand as a digest of the other."""
    if seen == due:
        return True
    if isinstance(seen, dict) and "sha256" in seen and isinstance(due, str):
        return bool(seen["sha256"] == digest_of("", due)["sha256"])
    if isinstance(due, dict) and "sha256" in due and isinstance(seen, dict) and "sha256" in seen:
        return bool(seen["sha256"] == due["sha256"])
    return False


def _word(value: object) -> str:
    return "absent" if value is None else str(value) if isinstance(value, int) else "with another value"


def _judge_missing(tally: Tally, view: JournalView, job: Job) -> None:
    """A job that agent2 ended, or that died with it, and whose agent stayed connected, undisturbed, has its result."""
    end = next((entry for entry, state in job.states if state.state in ENDS), None) or _died(view, job)
    if end is None or not job.assigns:
        return
    due = end.t + RESULT_WITHIN
    due += view.slack(end.t, due)
    began = job.assigns[0]
    connection = view.connections[began.frame.conn]
    if view.horizon(connection, began.t) < due:
        return
    died = isinstance(end.event, FaultFired)
    # Whatever stands between the agent and an agent2 that died, the job ends (A2-051).
    disturbed = view.disturbed(began.t, due, GATEWAY if died else None)
    if disturbed or not any(200 <= request.status < 300 for _, request in job.posts):
        tally.unsure()
        return
    tally.broken(
        view.agent_of(connection),
        f"no job.result {due - end.t:.0f} s after {'agent2 died' if died else 'its end'}",
        "a job.result",
        (began.n, end.n),
    )


def _died(view: JournalView, job: Job) -> Entry | None:
    """LA-023: where the agent2 that had taken a job died with it."""
    taken = next((entry for entry, request in job.posts if 200 <= request.status < 300), None)
    if taken is None:
        return None
    return next((one for one in view.crashes_of(taken.by) if one.n > taken.n), None)


LAWS = (
    Law(
        LAW,
        "A job.result comes, and tells what agent2 said, as far as the agent could know it",
        LOCAL_AGENT,
        (
            *("A2-045", "A2-051", "A2-063", "CHAT-007", "CHAT-009", "CHAT-010", "CHAT-011", "CHAT-030"),
            *("LA-023", "LA-024", "LA-025", "LA-027"),
        ),
        _job_outcome,
    ),
)

"""The agent2 double as a pure engine: a request and `now` in; an answer, journal events and the next timer out.

Does: admit one job at a time, run its script, tell its state, cancel it, take decisions on approvals, keep
everything for readers. Does not: look at the workspace, call a model, run tools. Never: does I/O or reads a clock.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from lab.agent2.beats import StreamName
from lab.agent2.defaults import DEFAULTS, default_script
from lab.agent2.feed import Reader
from lab.agent2.job import Job, MetadataFrame
from lab.agent2.script import Script
from lab.errors import ScenarioError
from lab.journal.events import Agent2Job, Event, digest

# A2-047: agent2's own limit for the text of a chat, in bytes of UTF-8
CHAT_PROMPT_BYTES = 16_384
# A2-046: what the local mode can do at all; `quality` is not among it
SERVED_KINDS = tuple(sorted(DEFAULTS))
DECISIONS = ("approve", "deny")
DEFAULT_REASON = "user"

ID = re.compile(r"[A-Za-z0-9._:/-]{1,128}")
"""What an id looks like; `/` is in it because a caller must encode it in paths (A2-016)."""
KEPT_JOBS = 64
"""Jobs that can still be read; the oldest is forgotten first."""


@dataclass(frozen=True)
class Answer:
    """An HTTP answer, and what happened because of the request."""

    status: int
    body: Mapping[str, object]
    events: tuple[Event, ...] = ()


def refusal(status: int, code: str) -> Answer:
    """An answer that says only why not."""
    return Answer(status, {"error": code})


class Engine:
    """The jobs of one agent2.

    `kinds` is what /health lists, `scripts` the script of a kind (a built-in one where it has none), `canaries`
    the values of the secrets that scripts name. A script that names another raises `ScenarioError`.
    After each call arm a timer for `next_timeout()` and wake the readers.
    """

    def __init__(
        self,
        kinds: Sequence[str],
        scripts: Mapping[str, Script],
        tenant_id: str,
        canaries: Mapping[str, str],
    ) -> None:
        for script in scripts.values():
            for name, place in script.canaries.items():
                if name not in canaries:
                    message = f"The canary `{name}` has no value in this run: declare it, or take it out of the line."
                    raise ScenarioError(place, "", message)
        self.kinds = tuple(kinds)
        self._scripts = {**{kind: default_script(kind) for kind in SERVED_KINDS}, **scripts}
        self._tenant_id = tenant_id
        self._canaries = dict(canaries)
        self._jobs: dict[str, Job] = {}
        self._current: Job | None = None

    def health(self) -> Answer:
        """Up, and the kinds."""
        # A2-003: kinds as a list
        return Answer(200, {"status": "up", "kinds": list(self.kinds)})

    def start_untrusted(self, body: object, now: float) -> Answer:
        """POST /jobs. An accepted job's first beat is due at `now`."""
        # A2-008: any object with a jobId and a kind
        if not isinstance(body, dict):
            return refusal(400, "not_an_object")
        job_id, kind, prompt = body.get("jobId"), body.get("kind"), body.get("requestText", "")
        if not _is_id(job_id) or not isinstance(kind, str) or not isinstance(prompt, str):
            return refusal(400, "bad_job")
        refused = self._refuse(job_id, kind, prompt)
        if refused is not None:
            return refused
        job = Job(job_id, kind, self._scripts[kind], self._tenant_id, self._canaries, now)
        self._keep(job)
        accepted = Agent2Job(job_id, job.state, job_kind=kind, prompt=digest("prompt", prompt))
        # A2-009: 202 with the job's id and state
        return Answer(202, {"jobId": job_id, "state": job.state}, (accepted,))

    def cancel_untrusted(self, job_id: str, body: object, now: float) -> Answer:
        """POST /jobs/{id}/cancel; `body` is None when the request had none. May be repeated."""
        job = self._jobs.get(job_id)
        if job is None:
            return refusal(404, "not_found")
        # A2-010: {reason}, `user` when it is left out
        given = {} if body is None else body
        if not isinstance(given, dict) or not isinstance(given.get("reason", DEFAULT_REASON), str):
            return refusal(400, "bad_cancel")
        events = job.cancel(now)
        return Answer(202, {"jobId": job_id, "state": job.state}, tuple(events))

    def state(self, job_id: str) -> Answer:
        """GET /jobs/{id}."""
        job = self._jobs.get(job_id)
        if job is None:
            return refusal(404, "not_found")
        # A2-012: {jobId, state, outcome?}
        outcome = {} if job.outcome is None else {"outcome": job.outcome}
        return Answer(200, {"jobId": job_id, "state": job.state, **outcome})

    def decide_untrusted(self, approval_id: str, body: object, now: float) -> Answer:
        """POST /approvals/{id} with {jobId, decision}. The same decision may be repeated, another one not."""
        if not isinstance(body, dict) or not _is_id(body.get("jobId")) or body.get("decision") not in DECISIONS:
            return refusal(400, "bad_decision")
        job, decision = self._jobs.get(body["jobId"]), body["decision"]
        if job is None or approval_id not in (job.pending_approval, *job.decisions):
            return refusal(404, "not_found")
        answer = {"approvalId": approval_id, "jobId": job.job_id, "decision": decision}
        if approval_id in job.decisions:
            return Answer(200, answer) if job.decisions[approval_id] == decision else refusal(409, "decided")
        return Answer(200, answer, tuple(job.decide(decision, now)))

    def knows(self, job_id: str) -> bool:
        """Whether the job's streams can be read."""
        return job_id in self._jobs

    def read_frames(self, job_id: str) -> Reader[MetadataFrame] | None:
        """A reader of the job's metadata frames from the first; None for an unknown job."""
        # A2-038: each connection gets everything from the start; A2-060: after the end as well
        job = self._jobs.get(job_id)
        return None if job is None else Reader(job.frames, job.breaks(StreamName.EVENTS))

    def read_lines(self, job_id: str) -> Reader[str] | None:
        """A reader of the job's content lines from the first; None for an unknown job."""
        job = self._jobs.get(job_id)
        return None if job is None else Reader(job.lines, job.breaks(StreamName.STREAM))

    def forget(self) -> None:
        """What is left of the jobs once the process has died: nothing, not even the ids."""
        # A2-051, LA-023: a job that was running is lost, and is not taken up again
        self._jobs.clear()
        self._current = None

    def next_timeout(self) -> float | None:
        """Lab time at which `handle_timeout` is due, None when nothing is."""
        return None if self._current is None else self._current.due

    def handle_timeout(self, now: float) -> tuple[Event, ...]:
        """Do what is due at `now`."""
        return () if self._current is None else tuple(self._current.handle_timeout(now))

    def _refuse(self, job_id: str, kind: str, prompt: str) -> Answer | None:
        # A2-046, A2-048: quality, chat without its flag, and kinds nobody knows
        if kind not in self.kinds or kind not in SERVED_KINDS:
            return refusal(422, "unsupported_kind")
        if kind == "chat" and len(prompt.encode("utf-8", "surrogatepass")) > CHAT_PROMPT_BYTES:
            return refusal(422, "prompt_too_large")
        status = self._scripts[kind].http_status
        if status is not None:
            return refusal(status, "ordered")
        # A2-044: one job at a time. A known id stays taken after its end, so that no job runs twice.
        if job_id in self._jobs or (self._current is not None and not self._current.over):
            return refusal(409, "busy")
        return None

    def _keep(self, job: Job) -> None:
        self._jobs[job.job_id] = self._current = job
        while len(self._jobs) > KEPT_JOBS:
            del self._jobs[next(iter(self._jobs))]


def _is_id(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and ID.fullmatch(value) is not None

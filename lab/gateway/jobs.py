"""The jobs that a gateway has assigned: ids, states and outcomes, nothing of their content (CP-015)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lab.errors import RemoteError

INLINE_LEGACY_MAX_CHARS = 4096
"""Longest inline input for an agent without job.inline.16k (CP-004)."""


class CallRefused(RemoteError):
    """The gateway refused its caller's wish; `code` is its API code, nothing went onto the wire."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(f"{code}: {reason}")
        self.code = code


@dataclass(frozen=True)
class Order:
    """What a caller wants done. `inputs` are inline texts."""

    job_id: str
    kind: str
    inputs: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    llm: str | None = None
    incident: str | None = None
    repo: str | None = None

    @property
    def conversation_id(self) -> str:
        """The conversation that a chat belongs to (CHAT-055, decision 32)."""
        return str(self.options.get("conversationId", self.job_id))

    def payload(self) -> dict[str, Any]:
        """The payload of its job.assign (TY-009)."""
        payload: dict[str, Any] = {
            "jobId": self.job_id,
            "kind": self.kind,
            "inputs": [{"inline": text, "transient": True} for text in self.inputs],
        }
        # CP-016: a chat belongs to no incident.
        if self.incident is not None and self.kind != "chat":
            payload["incidentRef"] = {"id": self.incident}
        if self.repo is not None:
            payload["repoRef"] = {"repoId": self.repo}
        if self.llm is not None:
            payload["llm"] = {"alias": self.llm}
        if self.options:
            payload["options"] = dict(self.options)
        return payload


@dataclass
class Job:
    """One assigned job as the gateway knows it."""

    job_id: str
    kind: str
    agent_id: str
    conversation_id: str
    """What chat.session is asked with: the job's own id unless its options name one (CHAT-055, decision 32)."""
    answer: str | None = None
    """accepted, or rejected, once the agent has said so."""
    code: str | None = None
    """Why it was rejected, or why its job.assign was lost."""
    state: str | None = None
    """The state of its latest job.event."""
    events: int = 0
    result: Mapping[str, Any] | None = None
    results: int = 0
    approval_id: str | None = None
    """The approval that it waits for, as its agent's audit.event told."""


def job_state(job: Job) -> str:
    """Where a job stands, in a word: assigned, accepted, rejected, ended, or the state of its latest job.event."""
    if job.results:
        return "ended"
    return job.state or job.answer or "assigned"


def refuse_unsupported(order: Order, announced: tuple[str, ...]) -> None:
    """Raises `CallRefused` AGENT_UNSUPPORTED, before a seq is taken, if the session lacks what it needs (CP-034)."""
    missing = [name for name in _needed(order) if name not in _implied(announced)]
    if missing:
        # CP-002, CP-005
        raise CallRefused("AGENT_UNSUPPORTED", f"the agent did not announce {missing[0]}")


def _implied(announced: tuple[str, ...]) -> tuple[str, ...]:
    # CP-006: job.chat implies job.assign.
    return (*announced, "job.assign") if "job.chat" in announced else announced


def _needed(order: Order) -> list[str]:
    # CP-001, CP-004, CP-007, CP-030
    needed = ["job.chat" if order.kind == "chat" else "job.assign"]
    if any(len(text) > INLINE_LEGACY_MAX_CHARS for text in order.inputs):
        needed.append("job.inline.16k")
    if order.options:
        needed.append("job.options")
    return needed

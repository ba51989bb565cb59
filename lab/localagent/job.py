"""A job as the gateway assigned it, and the signal that ends it early."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Job:
    """An assigned job. `inline` holds client content: it is in no repr."""

    job_id: str
    kind: str
    workspace_id: str
    inline: tuple[str, ...] = field(default=(), repr=False)
    alias: str | None = None
    repo_ref: Mapping[str, object] | None = None
    incident_id: str | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    conversation_id: str = ""

    @property
    def chat(self) -> bool:
        """Whether it is a chat."""
        return self.kind == "chat"


def assigned_job(payload: Mapping[str, Any], workspace_id: str) -> Job:
    """The job in a job.assign payload that its schema accepted.

    Inputs that are given by ref yield no text here: this agent has nothing to resolve them with.
    """
    options = payload.get("options") or {}
    return Job(
        job_id=payload["jobId"],
        kind=payload["kind"],
        workspace_id=workspace_id,
        inline=tuple(item["inline"] for item in payload["inputs"] if "inline" in item),
        alias=(payload.get("llm") or {}).get("alias"),
        repo_ref=payload.get("repoRef"),
        incident_id=(payload.get("incidentRef") or {}).get("id"),
        options=options,
        # CHAT-055: the conversation has the job's id unless the options name one.
        conversation_id=options.get("conversationId") or payload["jobId"],
    )


class CancelSignal:
    """A job's signal: given at most once, with the reason that agent2 is told."""

    def __init__(self) -> None:
        self._given = asyncio.Event()
        self.reason = "user"

    @property
    def given(self) -> bool:
        """Whether the job is to end."""
        return self._given.is_set()

    def give(self, reason: str) -> None:
        """End the job; a second call changes nothing."""
        if not self.given:
            self.reason = reason
            self._given.set()

    async def wait(self) -> None:
        """Return when the signal is given."""
        await self._given.wait()

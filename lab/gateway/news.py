"""What a gateway's core tells of what happened, in order; content is in an `Answer` only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lab.gateway.jobs import Job
from lab.gateway.relay import Answer


@dataclass(frozen=True)
class SessionNews:
    """A session changed: ready, resumed, ended, v1, or peer-error. `detail` holds capabilities, numbers and codes."""

    conn: str
    agent_id: str
    state: str
    session_id: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class JobNews:
    """A job was answered, moved, or ended."""

    job: Job


@dataclass(frozen=True)
class ContentNews:
    """A content request is over."""

    answer: Answer


@dataclass(frozen=True)
class UndeliveredNews:
    """A data frame of this gateway has no ack, or went with its session."""

    conn: str
    type: str
    seq: int | None
    code: str
    job_id: str | None = None


News = SessionNews | JobNews | ContentNews | UndeliveredNews

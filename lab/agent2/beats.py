"""What a script is made of: beats, each a delay and one thing that agent2 then does."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

Scalar = str | int | bool
Payload = Mapping[str, object]

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

CANARY = re.compile(r"\{canary:([A-Za-z0-9_-]{1,64})\}")
"""A place in a line that takes a secret at run time, so that no file holds one."""


class LineType(StrEnum):
    """Types of content lines (A2-049)."""

    TEXT = "text"
    TOOL = "tool"
    ANSWER = "answer"
    DONE = "done"


class FrameType(StrEnum):
    """Types of metadata frames (A2-040)."""

    JOB_EVENT = "job.event"
    JOB_RESULT = "job.result"
    AUDIT_EVENT = "audit.event"


class StreamName(StrEnum):
    """A job's two streams, named as the last part of their paths (A2-014, A2-015)."""

    EVENTS = "events"
    STREAM = "stream"


@dataclass(frozen=True)
class EmitLine:
    """A content line; `source` is `file:line` of its text."""

    type: LineType
    members: tuple[tuple[str, Scalar], ...]
    source: str

    @property
    def canaries(self) -> tuple[str, ...]:
        """Names of the canaries that its text takes, in order."""
        return tuple(name for _, value in self.members for name in CANARY.findall(str(value)))

    def filled(self, canaries: Mapping[str, str]) -> EmitLine:
        """This line with each canary's value in its place."""
        members = tuple(
            (name, CANARY.sub(lambda match: canaries[match[1]], value) if isinstance(value, str) else value)
            for name, value in self.members
        )
        return EmitLine(self.type, members, self.source)

    def encoded(self) -> str:
        """The line as it stands in the stream: one JSON text, its members in the order of the script."""
        # A2-049: one JSON text in agent2's event format
        return _encode({"type": self.type, **dict(self.members)})


@dataclass(frozen=True)
class EmitFrame:
    """A metadata frame that does not end the job."""

    type: FrameType
    payload: Payload


@dataclass(frozen=True)
class AwaitApproval:
    """Stop until the approval is decided."""

    approval_id: str


@dataclass(frozen=True)
class End:
    """The job is over: with a job.result and a terminal job.event, or without one or both of them."""

    result: Payload | None
    state: str | None


Action = EmitLine | EmitFrame | AwaitApproval | End


@dataclass(frozen=True)
class Beat:
    """`action`, `delay` seconds after the beat before it."""

    delay: float
    action: Action

"""What a run's events add up to: its text, its tool calls and its end. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lab.partner.client.answers import json_untrusted
from lab.partner.client.members import BadShape
from lab.partner.client.shapes import (
    Timings,
    ToolError,
    Usage,
    timings_untrusted,
    tool_errors_untrusted,
    usage_untrusted,
)
from lab.partner.client.sse_reader import WireEvent
from lab.partner.client.words import TERMINAL


@dataclass(frozen=True, slots=True)
class RunEnd:
    """A terminal `run_status`: all that the driver needs of it are the type and the status (SSE-028)."""

    status: str
    reason: str | None
    tool_errors: tuple[ToolError, ...]
    timings: Timings | None
    usage: Usage | None


@dataclass(slots=True)
class ToolCall:
    """A tool call of the stream. `ok` None: its result has not come (SSE-041)."""

    id: str
    name: str
    ok: bool | None = None


@dataclass(slots=True)
class RunEvents:
    """Takes the events of one run, over all streams of it. `last` is the sequence of the last that was applied."""

    run_id: str
    last: int = 0
    applied: int = 0
    texts: list[str] = field(default_factory=lambda: [""], repr=False)
    """The text between tool calls, in order; the last is still open."""
    tools: list[ToolCall] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    """Types of the applied events, in order."""
    unknown: list[str] = field(default_factory=list)
    """Event names that the driver does not know; they are passed over (SSE-051)."""
    stop_reason: str | None = None
    error_code: str | None = None
    end: RunEnd | None = None

    @property
    def text(self) -> str:
        """All text events joined (SSE-012)."""
        return "".join(self.texts)

    @property
    def segments(self) -> tuple[str, ...]:
        """The text between tool calls, without empty ones: the text parts of history (HIS-011, HIS-012)."""
        return tuple(text for text in self.texts if text)

    @property
    def over(self) -> bool:
        """Whether a last event came: a terminal run_status, or error."""
        return self.end is not None or self.error_code is not None

    def take(self, event: WireEvent) -> bool:
        """Apply an event; False for one that was applied before (SSE-046) and for one whose id is not the run's."""
        sequence = sequence_untrusted(self.run_id, event.id)
        if sequence is None or sequence <= self.last:
            return False
        self.last = sequence
        data = None if event.data is None else json_untrusted(event.data.encode("utf-8", "surrogatepass"))
        if isinstance(data, dict):
            self.applied += 1
            self._apply(event.name, data)
        return True

    def _apply(self, name: str, data: dict[str, Any]) -> None:
        self.types.append(name)
        match name:
            case "text":
                self.texts[-1] += _text(data.get("text"))
            case "tool_call":
                self.tools.append(ToolCall(_text(data.get("id")), _text(data.get("name"))))
                self.texts.append("")
            case "tool_result":
                self._close_tool(_text(data.get("name")), data.get("ok") is True)
            case "done":
                self.stop_reason = _text(data.get("stopReason"))
            case "error":
                self.error_code = _text(data.get("code"))
            case "run_status":
                self._status(data)
            case "turn":
                pass
            case _:
                self.unknown.append(name)

    def _close_tool(self, name: str, ok: bool) -> None:
        """SSE-041: a result belongs to the oldest open call of its name."""
        open_call = next((tool for tool in self.tools if tool.name == name and tool.ok is None), None)
        if open_call is not None:
            open_call.ok = ok

    def _status(self, data: dict[str, Any]) -> None:
        status, reason = data.get("status"), data.get("reason")
        # SSE-029: a status that is not terminal says nothing.
        if isinstance(status, str) and status in TERMINAL:
            self.end = RunEnd(status, reason if isinstance(reason, str) else None, *_figures(data))


def sequence_untrusted(run_id: str, event_id: str | None) -> int | None:
    """The number in `<runId>:<sequence>`; None for an id that is not of this run."""
    if event_id is None or not event_id.startswith(f"{run_id}:"):
        return None
    number = event_id[len(run_id) + 1 :]
    return int(number) if number.isascii() and number.isdigit() and len(number) <= 16 else None


def _figures(data: dict[str, Any]) -> tuple[tuple[ToolError, ...], Timings | None, Usage | None]:
    """A run's figures; one in a form that the driver does not know is none, for the status alone decides (MSG-015)."""
    try:
        return (
            tool_errors_untrusted(data.get("toolErrors")),
            timings_untrusted(data.get("timings")),
            usage_untrusted(data.get("usage")),
        )
    except BadShape:
        return (), None, None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""

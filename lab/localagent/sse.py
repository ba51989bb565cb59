"""Reading server-sent events as agent2 writes them: bytes in, events out, no I/O."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from lab.errors import Agent2Error

# A2-020: bounds that the documents leave open.
MAX_SSE_LINE_BYTES = 256 * 1024
MAX_EVENT_CHARS = 1024 * 1024
DEFAULT_NAME = "message"


@dataclass(frozen=True)
class SseEvent:
    """One event; `data` is its data lines joined by LF, or None when it had none."""

    name: str
    data: str | None


class SseParser:
    """Feed what each read gave, then `end`. Both return the events that became complete.

    `feed` raises `Agent2Error("bad_response")` for a line or an event above its bound; the parser is then done for.
    """

    def __init__(self, max_line: int = MAX_SSE_LINE_BYTES, max_event: int = MAX_EVENT_CHARS) -> None:
        # A2-035, A2-062: decoded step by step; a leading byte order mark is swallowed, a torn last character lost.
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._limit = 2 * max_line
        self._max_event = max_event
        self._partial = ""
        self._name = DEFAULT_NAME
        self._data: list[str] = []
        self._size = 0

    def feed(self, raw: bytes) -> list[SseEvent]:
        """The events completed by `raw`."""
        # A2-024: only LF ends a line; one CR before it belongs to the line end.
        *lines, self._partial = (self._partial + self._decoder.decode(raw)).split("\n")
        events = [event for line in lines if (event := self._line(line.removesuffix("\r"))) is not None]
        # A2-029, A2-030: the bound is for the line that is still open.
        if len(self._partial) > self._limit:
            raise Agent2Error("bad_response")
        return events

    def end(self) -> list[SseEvent]:
        """The event that was pending when the stream ended cleanly, if it counts."""
        # A2-031: text after the last line end makes the pending event void.
        event = None if self._partial.strip() else self._dispatch()
        return [] if event is None else [event]

    def _line(self, line: str) -> SseEvent | None:
        if not line:
            return self._dispatch()
        # A2-025: the two fields that count; A2-026, A2-027: every other line means nothing.
        if line.startswith("event:"):
            self._name = line[6:].strip()
        elif line.startswith("data:"):
            self._data.append(line[5:].removeprefix(" "))
            self._size += len(line)
            if self._size > self._max_event:
                raise Agent2Error("bad_response")
        return None

    def _dispatch(self) -> SseEvent | None:
        name, data = self._name, self._data
        self._name, self._data, self._size = DEFAULT_NAME, [], 0
        # A2-028: without data only a name of its own makes an event.
        if not data and name == DEFAULT_NAME:
            return None
        return SseEvent(name, "\n".join(data) if data else None)

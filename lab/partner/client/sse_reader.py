"""Reading a run's events: bytes in as they come, whole events out. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from lab.errors import RemoteError

MOST_EVENT_BYTES = 8 * 1024 * 1024
"""An event, or a line of anything else, may have so many bytes; far above any legal one."""

CRLF = "crlf"
SEVERAL_DATA_LINES = "several-data-lines"
"""Notes on an event that is written in a legal but unusual way (SSE-002)."""

_LINE_END = re.compile(rb"\r\n|\n|\r")
_MARK = b"\xef\xbb\xbf"


class StreamTooLong(RemoteError):
    """A stream whose events have no bound."""


@dataclass(frozen=True, slots=True)
class WireEvent:
    """One event. `id` and `data` are None without such a line; `raw` has all its lines, joined by LF."""

    id: str | None
    name: str
    data: str | None = field(repr=False)
    notes: tuple[str, ...] = ()
    raw: bytes = field(default=b"", repr=False)


@dataclass(slots=True)
class _Block:
    """The lines since the last empty one."""

    id: bytes | None = None
    name: bytes = b""
    data: list[bytes] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    size: int = 0
    told: bool = False
    notes: dict[str, None] = field(default_factory=dict)


class SseReader:
    """Feed it what each read gave. An event counts only once its empty line came: a cut one is dropped (SSE-048)."""

    def __init__(self, most: int = MOST_EVENT_BYTES) -> None:
        self._most = most
        self._rest = bytearray()
        self._seen = 0
        self._after_cr = False
        self._begun = False
        self._block = _Block()

    @property
    def pending(self) -> bytes:
        """The lines and the part of a line that came behind the last whole event."""
        return b"\n".join([*self._block.lines, bytes(self._rest)])

    def feed(self, raw: bytes) -> list[WireEvent]:
        """The events that `raw` completes. Raises `StreamTooLong`; the reader is then done for."""
        self._rest += raw
        if not self._begun and not self._open():
            return []
        events: list[WireEvent] = []
        start = 0
        if self._after_cr and self._rest:
            # The CR before ended its line already; this LF belongs to it.
            self._after_cr = False
            start = 1 if self._rest[0] == 0x0A else 0
        for match in _LINE_END.finditer(self._rest, max(start, self._seen)):
            if (event := self._line(bytes(self._rest[start : match.start()]), match[0] != b"\n")) is not None:
                events.append(event)
            start = match.end()
            self._after_cr = match[0] == b"\r" and start == len(self._rest)
        del self._rest[:start]
        self._seen = len(self._rest)
        if self._seen > self._most:
            raise StreamTooLong(f"a line of more than {self._most} bytes")
        return events

    def _open(self) -> bool:
        """Swallow a byte order mark; False while it may still come whole."""
        if len(self._rest) < len(_MARK) and _MARK.startswith(self._rest):
            return False
        self._begun = True
        if self._rest.startswith(_MARK):
            del self._rest[: len(_MARK)]
        return True

    def _line(self, line: bytes, carriage_return: bool) -> WireEvent | None:
        block = self._block
        if carriage_return:
            block.notes[CRLF] = None
        if not line:
            self._block = _Block()
            return _event(block) if block.told else None
        block.lines.append(line)
        block.size += len(line) + 1
        if block.size > self._most:
            raise StreamTooLong(f"an event of more than {self._most} bytes")
        self._field(block, line)
        return None

    def _field(self, block: _Block, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        # SSE-039: comments, retry and unknown fields mean nothing.
        match name:
            case b"id":
                block.id = value
            case b"event":
                block.name = value
            case b"data":
                block.data.append(value)
            case _:
                return
        block.told = True


def _event(block: _Block) -> WireEvent:
    if len(block.data) > 1:
        block.notes[SEVERAL_DATA_LINES] = None
    return WireEvent(
        None if block.id is None else _text(block.id),
        _text(block.name),
        _text(b"\n".join(block.data)) if block.data else None,
        tuple(block.notes),
        b"\n".join(block.lines),
    )


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")

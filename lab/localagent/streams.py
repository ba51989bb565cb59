"""Recorded streams of chat jobs in memory, and reading them page by page through cursors.

No I/O and no clock: cursors come from the dice that are handed in, and whoever waits is told by a callback.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lab.draws import Draws
from lab.localagent.chatstore import TRUNCATED_LINE

MAX_EVENTS = 512
MAX_PAGE_BYTES = 64 * 32768
MAX_CURSORS = 4096
MAX_RECORDS = 32
# Bounds one job's record; what comes after it is dropped behind one marker.
MAX_RECORD_CHARS = 16 * 1024 * 1024


@dataclass(frozen=True)
class PageEvent:
    """One line at its 0-based position in the job's stream."""

    i: int
    e: str


@dataclass(frozen=True)
class Page:
    """A page of a job's stream: what `job.stream` answers (CHAT-032)."""

    events: tuple[PageEvent, ...]
    next_ref: str
    done: bool


@dataclass(frozen=True)
class Wait:
    """Nothing new yet. `recorded` is false for a job that has no record (yet, or at all)."""

    job_id: str
    recorded: bool


@dataclass(frozen=True)
class NotFound:
    """A cursor that this agent does not know (CHAT-043)."""


@dataclass(frozen=True)
class TooSmall:
    """The next event alone is above what the request allows."""


@dataclass
class _Record:
    workspace_id: str
    lines: list[str] = field(default_factory=list)
    chars: int = 0
    closed: bool = False


def encode_page(page: Page) -> bytes:
    """The body of a `job.stream` answer."""
    body = {"events": [{"i": item.i, "e": item.e} for item in page.events], "nextRef": page.next_ref, "done": page.done}
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def _event_bytes(event: PageEvent) -> int:
    return len(json.dumps({"i": event.i, "e": event.e}, ensure_ascii=False, separators=(",", ":")).encode()) + 1


_FRAME_BYTES = len(encode_page(Page((), "x" * 43, done=False)))


class StreamBook:
    """The streams of the chats that this agent knows, and the cursors into them.

    Cursors are random, so nobody reads a position from one (SEC-018), and asked again they give the same
    position (CHAT-046). They live in memory: after a restart they are not found.
    """

    def __init__(self, draws: Draws, max_cursors: int = MAX_CURSORS, max_records: int = MAX_RECORDS) -> None:
        self._draws = draws
        self._max_cursors = max_cursors
        self._max_records = max_records
        self._records: dict[str, _Record] = {}
        self._places: dict[str, tuple[str, int]] = {}
        self._cursors: dict[tuple[str, int], str] = {}
        self._watchers: dict[str, list[Callable[[], None]]] = {}

    def open(self, job_id: str, workspace_id: str, lines: Sequence[str] = (), *, closed: bool = False) -> None:
        """Begin a job's record, or put back one that was stored; the oldest closed record makes room."""
        finished = [name for name, record in self._records.items() if record.closed]
        for name in finished[: max(0, len(self._records) + 1 - self._max_records)]:
            del self._records[name]
        record = self._records[job_id] = _Record(workspace_id, closed=closed)
        for line in lines:
            _take(record, line)
        self._tell(job_id)

    def append(self, job_id: str, line: str) -> None:
        """A further line of an open record."""
        _take(self._records[job_id], line)
        self._tell(job_id)

    def is_full(self, job_id: str) -> bool:
        """Whether the record has reached its bound and takes no further line."""
        return self._records[job_id].chars > MAX_RECORD_CHARS

    def close(self, job_id: str) -> None:
        """No further line will come."""
        self._records[job_id].closed = True
        self._tell(job_id)

    def knows(self, job_id: str) -> bool:
        """Whether the job has a record."""
        return job_id in self._records

    def workspace_of(self, job_id: str) -> str | None:
        """The workspace of a job with a record."""
        record = self._records.get(job_id)
        return None if record is None else record.workspace_id

    def place(self, ref: str) -> tuple[str, int] | None:
        """The job and position that a ref stands for: a job's UUID is its beginning; None for an unknown cursor."""
        # CHAT-035: the first request names the job.
        if len(ref) == 36:
            return ref, 0
        return self._places.get(ref)

    def page(self, ref: str, max_bytes: int = MAX_PAGE_BYTES) -> Page | Wait | NotFound | TooSmall:
        """What there is at `ref` now."""
        place = self.place(ref)
        if place is None:
            return NotFound()
        job_id, start = place
        record = self._records.get(job_id)
        if record is None or (start >= len(record.lines) and not record.closed):
            return Wait(job_id, recorded=record is not None)
        events = _fitting(record.lines, start, min(max_bytes, MAX_PAGE_BYTES))
        end = start + len(events)
        if max_bytes < _FRAME_BYTES or (not events and start < len(record.lines)):
            return TooSmall()
        # CHAT-041: done says that no further event will come.
        return Page(events, self.cursor(job_id, end), done=record.closed and end >= len(record.lines))

    def empty_page(self, ref: str) -> Page:
        """A page without events at a ref that `place` knows: nothing came while the request was held (CHAT-036)."""
        place = self._places.get(ref, (ref, 0))
        return Page((), self.cursor(*place), done=False)

    def cursor(self, job_id: str, position: int) -> str:
        """The cursor of a position; the oldest ones are forgotten beyond the bound."""
        place = (job_id, position)
        cursor = self._cursors.pop(place, None)
        if cursor is None:
            cursor = self._draws.token()
            self._places[cursor] = place
        self._cursors[place] = cursor
        while len(self._cursors) > self._max_cursors:
            del self._places[self._cursors.pop(next(iter(self._cursors)))]
        return cursor

    def watch(self, job_id: str, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` at every change of a job's record; what is returned ends that."""
        self._watchers.setdefault(job_id, []).append(callback)

        def stop() -> None:
            watchers = self._watchers[job_id]
            watchers.remove(callback)
            if not watchers:
                del self._watchers[job_id]

        return stop

    def _tell(self, job_id: str) -> None:
        for callback in tuple(self._watchers.get(job_id, ())):
            callback()


def _take(record: _Record, line: str) -> None:
    record.chars += len(line)
    record.lines.append(line if record.chars <= MAX_RECORD_CHARS else TRUNCATED_LINE)


def _fitting(lines: Sequence[str], start: int, max_bytes: int) -> tuple[PageEvent, ...]:
    """CHAT-033, CHAT-049: as many lines as one page may carry."""
    events: list[PageEvent] = []
    # The first event has no comma in front of it.
    left = max_bytes - _FRAME_BYTES + 1
    for position in range(start, min(len(lines), start + MAX_EVENTS)):
        event = PageEvent(position, lines[position])
        left -= _event_bytes(event)
        if left < 0:
            break
        events.append(event)
    return tuple(events)

"""What a program says: cut into lines, judged, masked, kept within bounds.

The journal gets each line's digest and the canaries in it, both judged from the bytes as they came. The private
log file and what reports may quote get the line with every secret and canary hidden.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from lab.journal.events import SutOutput
from lab.sut.masking import Masker, spellings

LAST_LINES = 20
"""How many lines a report of a death may quote."""

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class OutputBounds:
    """How much of a program's output is kept. What goes beyond is read, judged for canaries, and let go."""

    line_bytes: int = 64 * 1024
    total_bytes: int = 64 * 1024 * 1024
    lines: int = 100_000


DEFAULT_BOUNDS = OutputBounds()


class OutputRecord:
    """Takes the lines of all streams of one program.

    Past the bounds the log ends with a note, and only a canary's first sight is still journalled.
    """

    def __init__(
        self,
        name: str,
        log: IO[str],
        now: Callable[[], float],
        journal: Callable[[SutOutput], object],
        secrets: Sequence[str],
        canaries: Mapping[str, str],
        bounds: OutputBounds,
    ) -> None:
        self.bounds = bounds
        self.masker = Masker((*secrets, *canaries.values()))
        self.canary_words = {canary: _words(value) for canary, value in canaries.items()}
        self._name = name
        self._log = log
        self._now = now
        self._journal = journal
        self._last: deque[str] = deque(maxlen=LAST_LINES)
        self._bytes = 0
        self._lines = 0
        self._full = False
        self._seen: set[str] = set()

    def take(self, stream: str, line: Line) -> None:
        """Record one line."""
        shown = self._shown(line)
        self._last.append(shown)
        canaries = tuple(line.canaries)
        if self._fits(shown):
            self._log.write(f"{self._now():.3f} {stream} {shown}\n")
        else:
            canaries = tuple(canary for canary in canaries if canary not in self._seen)
            if not canaries:
                return
        self._seen.update(canaries)
        self._journal(
            SutOutput(
                name=self._name,
                stream=stream,
                line={"kind": "sut.output", "bytes": line.size, "sha256": line.hash.hexdigest()},
                canaries=canaries,
            )
        )

    def flush(self) -> None:
        """Bring the log file up to date."""
        self._log.flush()

    def close(self) -> None:
        """Close the log file. Safe to call again."""
        self._log.close()

    def last_lines(self) -> tuple[str, ...]:
        """The last lines of all streams, secrets and canaries hidden."""
        return tuple(self._last)

    def _shown(self, line: Line) -> str:
        kept = bytes(line.kept)
        text = kept.decode("utf-8", "replace")
        end = len(kept[: self.bounds.line_bytes].decode("utf-8", "replace"))
        # A terminal must not obey what a program wrote, so control characters are spelled out.
        shown = _CONTROL.sub(lambda match: f"\\x{ord(match.group()):02x}", self.masker.mask(text, end))
        cut = line.size - self.bounds.line_bytes
        return f"{shown} [{cut} more bytes]" if cut > 0 else shown

    def _fits(self, shown: str) -> bool:
        """Count the line in; the first that does not fit leaves a note."""
        if self._full:
            return False
        self._bytes += len(shown.encode()) + 1
        self._lines += 1
        if self._bytes <= self.bounds.total_bytes and self._lines <= self.bounds.lines:
            return True
        self._full = True
        self._log.write(
            f"[the output goes on; no more is kept than {self.bounds.total_bytes} bytes "
            f"and {self.bounds.lines} lines]\n"
        )
        return False


class Line:
    """A line while it comes in: its beginning, and size, hash and canaries of the whole."""

    def __init__(self, record: OutputRecord) -> None:
        self._words = record.canary_words
        self._reach = max((len(word) for words in self._words.values() for word in words), default=1) - 1
        # Enough behind the cut that a secret which lies across it is still known as one.
        self._room = record.bounds.line_bytes + record.masker.reach
        self._tail = b""
        self.kept = bytearray()
        self.size = 0
        self.hash = hashlib.sha256()
        self.canaries: dict[str, None] = {}

    def add(self, part: bytes) -> None:
        """The line goes on with `part`."""
        self.size += len(part)
        self.hash.update(part)
        self.kept += part[: max(0, self._room - len(self.kept))]
        window = self._tail + part
        for canary, words in self._words.items():
            if canary not in self.canaries and any(word in window for word in words):
                self.canaries[canary] = None
        self._tail = window[-self._reach :] if self._reach else b""


class LineCutter:
    """Cuts one stream's bytes into lines, however they are split over reads."""

    def __init__(self, stream: str, record: OutputRecord) -> None:
        self._stream = stream
        self._record = record
        self._line = Line(record)

    def feed(self, data: bytes) -> None:
        """Take bytes; every line that they complete is recorded."""
        *complete, rest = data.split(b"\n")
        for part in complete:
            self._line.add(part)
            self._finish()
        self._line.add(rest)

    def end(self) -> None:
        """The stream is over: a last line without its newline is recorded too."""
        if self._line.size:
            self._finish()

    def _finish(self) -> None:
        self._record.take(self._stream, self._line)
        self._line = Line(self._record)


def _words(value: str) -> tuple[bytes, ...]:
    return tuple(word.encode("utf-8", "surrogatepass") for word in spellings(value))

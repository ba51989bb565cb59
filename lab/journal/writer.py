"""Appending to a journal: numbers, lab time and cause, in memory and on disk at once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO

from lab.errors import EnvironmentFault
from lab.journal.events import Event


@dataclass(frozen=True)
class Entry:
    """An event with its number (from 0), lab time in seconds, who recorded it, and the entry that led to it."""

    n: int
    t: float
    by: str
    event: Event
    cause: int | None = None


def entry_to_json(entry: Entry) -> str:
    """One line of `journal.jsonl`, without its newline."""
    record: dict[str, object] = {"n": entry.n, "t": round(entry.t, 6), "by": entry.by, "event": entry.event.kind}
    if entry.cause is not None:
        record["cause"] = entry.cause
    for member in fields(entry.event):
        value = getattr(entry.event, member.name)
        if value is not None and value != () and value != {}:
            record[member.name] = value
    return json.dumps(record, ensure_ascii=True, separators=(",", ":"))


class Journal:
    """An append-only journal. With a path each entry is on disk (mode 0600) before `record` returns."""

    def __init__(self, now: Callable[[], float], path: Path | None = None) -> None:
        self._now = now
        self._listeners: list[Callable[[Entry], None]] = []
        self._file: IO[str] | None = None
        self.entries: list[Entry] = []
        if path is not None:
            self._file = open_private(path)

    def record(self, by: str, event: Event, cause: int | None = None) -> Entry:
        """Append `event`, seen by `by`, then tell the listeners. A full disk raises `EnvironmentFault`."""
        entry = Entry(len(self.entries), self._now(), by, event, cause)
        self.entries.append(entry)
        if self._file is not None:
            try:
                self._file.write(entry_to_json(entry) + "\n")
                self._file.flush()
            except OSError as error:
                self._file = None
                raise EnvironmentFault(
                    f"the journal could not be written: {error.strerror}. "
                    "Free some space, or name another place with --out."
                ) from error
        for listener in tuple(self._listeners):
            listener(entry)
        return entry

    def listen(self, listener: Callable[[Entry], None]) -> Callable[[], None]:
        """Call `listener` with every further entry; what is returned ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def close(self) -> None:
        """Close the file; further entries stay in memory only. Safe to call again."""
        if self._file is not None:
            self._file.close()
            self._file = None


def open_private(path: Path) -> IO[str]:
    """A new text file that only its owner can read (mode 0600)."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    return os.fdopen(descriptor, "w", encoding="utf-8")

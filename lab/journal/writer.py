"""Appending to a journal: numbers, lab time and cause, in memory and on disk at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import MISSING, Field, dataclass, fields
from pathlib import Path
from typing import IO, Any

from lab.errors import EnvironmentFault
from lab.journal.events import Event
from lab.private_files import open_private


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
    record: dict[str, object] = {"n": entry.n, "t": round(entry.t, 6), "witness": entry.by, "event": entry.event.kind}
    if entry.cause is not None:
        record["cause"] = entry.cause
    for name, default in _members(type(entry.event)):
        value = getattr(entry.event, name)
        # What a reader would put there by itself is left out; MISSING equals nothing, so its member is always written.
        if value != default:
            record[name] = value
    return _encode(record)


_encode = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode


# Kept by class, because a run writes thousands of each.
_members_of: dict[type[Event], tuple[tuple[str, object], ...]] = {}


def _members(kind: type[Event]) -> tuple[tuple[str, object], ...]:
    """Each member of an event with its default."""
    members = _members_of.get(kind)
    if members is None:
        members = _members_of[kind] = tuple((member.name, _default(member)) for member in fields(kind))
    return members


def _default(member: Field[Any]) -> object:
    return member.default if member.default_factory is MISSING else member.default_factory()


class Journal:
    """An append-only journal. With a path each entry is on disk (mode 0600) before `record` returns.

    `keep` holds the entries in memory too; a server that runs for days goes without.
    """

    def __init__(self, now: Callable[[], float], path: Path | None = None, *, keep: bool = True) -> None:
        self._now = now
        self._keep = keep
        self._count = 0
        self._listeners: list[Callable[[Entry], None]] = []
        self._file: IO[str] | None = None
        self.entries: list[Entry] = []
        if path is not None:
            self._file = open_private(path)

    def record(self, by: str, event: Event, cause: int | None = None) -> Entry:
        """Append `event`, seen by `by`, then tell the listeners. A full disk raises `EnvironmentFault`."""
        # As precise as it is written, so that a verdict does not change when the journal is read back.
        entry = Entry(self._count, round(self._now(), 6), by, event, cause)
        self._count += 1
        if self._keep:
            self.entries.append(entry)
        if self._file is not None:
            try:
                self._file.write(entry_to_json(entry) + "\n")
                self._file.flush()
            except OSError as error:
                with suppress(OSError):
                    self._file.close()
                self._file = None
                raise EnvironmentFault(
                    f"the journal could not be written: {error.strerror}. "
                    "Free some space, or name another place with --out."
                ) from error
        for listener in tuple(self._listeners):
            listener(entry)
        return entry

    @property
    def count(self) -> int:
        """How many entries were recorded so far: the number that the next one gets."""
        return self._count

    def listen(self, listener: Callable[[Entry], None]) -> Callable[[], None]:
        """Call `listener` with every further entry; what is returned ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def close(self) -> None:
        """Close the file; further entries stay in memory only. Safe to call again."""
        if self._file is not None:
            self._file.close()
            self._file = None

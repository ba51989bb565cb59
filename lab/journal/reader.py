"""Reading `journal.jsonl` back into typed entries."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

from lab.errors import UsageError
from lab.journal.events import JOURNAL_VERSION, Event, RunStarted, event_kinds
from lab.journal.writer import Entry

_HEAD = frozenset({"n", "t", "by", "event", "cause"})


def read_journal(path: Path) -> list[Entry]:
    """The entries of a journal file; one that is no journal, or of another version, raises `UsageError`."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    entries = list(_entries(path, lines))
    if not entries or not isinstance(entries[0].event, RunStarted):
        raise UsageError(f"{path}: not a journal: its first entry must be run.started")
    if entries[0].event.version != JOURNAL_VERSION:
        raise UsageError(
            f"{path}: journal version {entries[0].event.version}; this lab reads version {JOURNAL_VERSION}"
        )
    return entries


def _entries(path: Path, lines: Iterable[str]) -> Iterable[Entry]:
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
            yield entry_from_json(record)
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{path}:{number}: not a journal entry: {error}") from error


def entry_from_json(record: dict[str, Any]) -> Entry:
    """An entry from one decoded line."""
    cls = event_kinds()[record["event"]]
    known = {member.name for member in fields(cls)}
    members = {name: _frozen(value) for name, value in record.items() if name in known}
    extra = sorted(set(record) - known - _HEAD)
    if extra:
        raise ValueError(f"{record['event']} has no member {extra[0]}")
    event: Event = cls(**members)
    return Entry(record["n"], record["t"], record["by"], event, record.get("cause"))


def _frozen(value: Any) -> Any:
    """Lists become tuples, as they were written."""
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, dict):
        return {name: _frozen(item) for name, item in value.items()}
    return value

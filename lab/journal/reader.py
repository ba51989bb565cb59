"""Reading `journal.jsonl` back into typed entries."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import lab.journal.partner_events  # noqa: F401  registers the events of the partner leg
from lab.errors import UsageError
from lab.journal.events import JOURNAL_VERSION, Event, RunStarted, event_kinds
from lab.journal.writer import Entry

HEAD = frozenset({"n", "t", "witness", "event", "cause"})
"""The members of every line; no event has one of these names."""


def read_journal(path: Path) -> list[Entry]:
    """The entries of a journal file; one that is no journal, or of another version, raises `UsageError`.

    A last line without its newline was cut off when the run was killed, and is left out.
    """
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not a journal: it is not UTF-8") from error
    entries: list[Entry] = []
    for number, line in enumerate(text.split("\n")[:-1], 1):
        entry = _entry(path, number, line)
        if not entries:
            _check_first(path, entry)
        entries.append(entry)
    if not entries:
        raise UsageError(f"{path}: not a journal: it is empty")
    return entries


def _entry(path: Path, number: int, line: str) -> Entry:
    try:
        return entry_from_json(_of_this_version(path, json.loads(line)))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(f"{path}:{number}: not a journal entry: {error}") from error


def _of_this_version(path: Path, record: Any) -> Any:
    """Before the members are read: those of another version may have other names."""
    if isinstance(record, dict) and record.get("event") == RunStarted.kind:
        version = record.get("version")
        if version != JOURNAL_VERSION:
            raise UsageError(f"{path}: journal version {version}; this lab reads version {JOURNAL_VERSION}")
    return record


def _check_first(path: Path, entry: Entry) -> None:
    if not isinstance(entry.event, RunStarted):
        raise UsageError(f"{path}: not a journal: its first entry must be run.started")


def entry_from_json(record: dict[str, Any]) -> Entry:
    """An entry from one decoded line."""
    cls = event_kinds().get(record["event"])
    if cls is None:
        raise ValueError(f"no event of kind {record['event']}")
    known = {member.name for member in fields(cls)}
    members = {name: _frozen(value) for name, value in record.items() if name in known}
    extra = sorted(set(record) - known - HEAD)
    if extra:
        raise ValueError(f"{record['event']} has no member {extra[0]}")
    event: Event = cls(**members)
    return Entry(record["n"], record["t"], record["witness"], event, record.get("cause"))


def _frozen(value: Any) -> Any:
    """Lists become tuples, as they were written."""
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, dict):
        return {name: _frozen(item) for name, item in value.items()}
    return value

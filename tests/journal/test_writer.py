"""Appending to a journal."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from lab.errors import EnvironmentFault
from lab.journal.events import Frame, LoopLag, RunEnded, SocketClosed
from lab.journal.writer import Entry, Journal, entry_to_json
from lab.private_files import open_private


def test_what_a_reader_adds_by_itself_is_not_written() -> None:
    line = entry_to_json(Entry(0, 0.1234567, "gw", Frame("c1", "la-to-cp", 3, "00")))
    assert json.loads(line) == {
        "n": 0,
        "t": 0.123457,
        "witness": "gw",
        "event": "frame",
        "conn": "c1",
        "direction": "la-to-cp",
        "size": 3,
        "sha256": "00",
    }


def test_a_member_without_a_default_is_written_even_if_none() -> None:
    assert '"code":null' in entry_to_json(Entry(0, 0.0, "gw", SocketClosed("c1", None, "none")))


def test_entries_are_numbered_timed_and_on_disk_at_once(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    now = iter([0.5, 1.00000049])
    journal = Journal(lambda: next(now), path)
    heard: list[Entry] = []
    stop = journal.listen(heard.append)
    first = journal.record("runner", LoopLag(0.2))
    assert path.read_text() == entry_to_json(first) + "\n"
    stop()
    second = journal.record("runner", RunEnded("completed"), cause=first.n)
    assert (first.n, first.t, second.n, second.t, second.cause) == (0, 0.5, 1, 1.0, 0)
    assert heard == [first]
    assert journal.entries == [first, second]
    journal.close()
    journal.close()
    assert path.read_text() == f"{entry_to_json(first)}\n{entry_to_json(second)}\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_older_file_becomes_private(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text("old")
    path.chmod(0o644)
    open_private(path).close()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text() == ""


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.StringIO):
        def flush(self) -> None:
            raise OSError(28, "No space left on device")

    full = Full()
    monkeypatch.setattr("lab.journal.writer.open_private", lambda _: full)
    journal = Journal(lambda: 0.0, tmp_path / "j")
    with pytest.raises(EnvironmentFault, match="No space left on device"):
        journal.record("runner", LoopLag(0.1))
    assert full.closed
    later: Any = journal.record("runner", RunEnded("lab-failed"))
    assert journal.entries[-1] == later

"""Reading a journal back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.errors import UsageError
from lab.journal.events import JOURNAL_VERSION, Frame, RunEnded, RunStarted, SocketClosed
from lab.journal.reader import read_journal
from lab.journal.writer import Journal
from lab.laws import judge_all
from tests.laws.journals import chat_with_resume

STARTED = RunStarted(JOURNAL_VERSION, "s", "about", 7, "real", 0, "0", "2.3")


def written(path: Path) -> Journal:
    journal = Journal(lambda: 0.25, path)
    journal.record("runner", STARTED)
    journal.record("gw", Frame("c1", "la-to-cp", 1, "00", payload={"a": ({"b": 1},)}))
    journal.record("gw", SocketClosed("c1", None, "none"), cause=1)
    journal.record("runner", RunEnded("completed"))
    journal.close()
    return journal


def test_what_is_read_is_what_was_recorded(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    entries = written(path).entries
    assert read_journal(path) == entries


def written_path(folder: Path) -> Path:
    path = folder / "journal.jsonl"
    written(path)
    return path


def test_the_laws_say_the_same_of_a_journal_that_was_read(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    tale = chat_with_resume()
    current = tale.entries[0].t

    def now() -> float:
        return current

    journal = Journal(now, path)
    for entry in tale.entries:
        current = entry.t
        journal.record(entry.by, entry.event)
    journal.close()
    read = judge_all(read_journal(path))
    assert [(one.law.id, one.judgement) for one in read] == [
        (one.law.id, one.judgement) for one in judge_all(tale.entries)
    ]


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    path = written_path(tmp_path)
    whole = path.read_text()
    path.write_text(whole[:-10])
    assert len(read_journal(path)) == 3


def line(**record: object) -> str:
    return json.dumps({"n": 0, "t": 0, "witness": "runner", **record}) + "\n"


FIRST = line(
    event="run.started", version=1, scenario="s", about="", seed=1, clock="real", epoch_ms=0, lab="0", contract="2.3"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "not a journal: it is empty"),
        (b"\xff\n", "not a journal: it is not UTF-8"),
        (b"{\n", r"journal\.jsonl:1: not a journal entry"),
        (b"[]\n", r"journal\.jsonl:1: not a journal entry"),
        (b"[" * 100_000 + b"\n", r"journal\.jsonl:1: not a journal entry"),
        (line(event="run.ended", end="completed").encode(), "its first entry must be run.started"),
        (line(event="run.started", version=2, other=1).encode(), "journal version 2; this lab reads version 1"),
        ((FIRST + line(event="nothing")).encode(), r"journal\.jsonl:2: .*no event of kind nothing"),
        ((FIRST + line(event="run.ended")).encode(), r"journal\.jsonl:2: not a journal entry: .*end"),
        ((FIRST + line(event="run.ended", end="x", more=1)).encode(), "run.ended has no member more"),
    ],
)
def test_what_is_no_journal(tmp_path: Path, text: bytes, message: str) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(text)
    with pytest.raises(UsageError, match=message):
        read_journal(path)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_journal(tmp_path / "none")

"""The life that every `lab serve` shares."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from lab.commands.serving import serve_until_stopped
from lab.context import RunContext
from lab.errors import EnvironmentFault
from lab.journal.writer import Journal
from lab.run.ending import Part


def test_a_start_that_fails_closes_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Journal] = []
    close = Journal.close

    def noted(self: Journal) -> None:
        closed.append(self)
        close(self)

    async def start(ctx: RunContext) -> Sequence[Part]:
        raise EnvironmentFault("the port is taken")

    monkeypatch.setattr(Journal, "close", noted)
    with pytest.raises(EnvironmentFault, match="the port is taken"):
        serve_until_stopped(start, tmp_path / "journal.jsonl", on_asyncio=True)
    assert len(closed) == 1


def test_a_journal_that_cannot_be_written(tmp_path: Path) -> None:
    async def start(ctx: RunContext) -> Sequence[Part]:
        raise AssertionError

    with pytest.raises(EnvironmentFault, match="--journal"):
        serve_until_stopped(start, tmp_path / "no" / "such" / "journal.jsonl", on_asyncio=True)

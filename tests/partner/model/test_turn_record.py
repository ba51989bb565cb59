from __future__ import annotations

from pathlib import Path

import pytest

from lab.partner.model import turn_record
from lab.partner.model.runs import find_run
from lab.partner.model.turn_record import CANCELLED, COMPLETED, RunGone, TurnRecord, finish_run
from tests.partner.model.played import SAYS, iterations, playing, virtually


@pytest.mark.req("US-025")
def test_a_crash_at_the_end_leaves_both_or_neither(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def torn(*_: object) -> None:
        raise OSError("disk")

    async def main() -> None:
        async with playing(tmp_path, iterations(SAYS), agent="agent-plain") as play:
            monkeypatch.setattr(turn_record, "_told_end", torn)
            run_id = await play.accepted()
            await play.until(lambda: bool(play.api.ctx.defects))
            run = await play.run(run_id)
            assert (run["status"], run["usage"]) == ("running", None)
            kinds = [row["type"] for row in play.api.server.core.parts.state.rows("SELECT type FROM events")]
            assert kinds == ["turn", "text"]

    virtually(main)


@pytest.mark.req("MSG-022", "SSE-029")
def test_an_ended_run_takes_nothing_more(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, iterations(SAYS), agent="agent-plain") as play:
            run, events = await play.played()
            parts = play.api.server.core.parts
            stored = find_run(parts.state, run["runId"])
            assert stored is not None
            record = TurnRecord(parts, stored)
            with pytest.raises(RunGone):
                record.claim()
            with pytest.raises(RunGone):
                record.text("late")
            with pytest.raises(RunGone):
                record.tool_result("late", "call_1", False)
            for ending in (CANCELLED, COMPLETED):
                assert record.end(ending, None, None) is None
            assert finish_run(parts, "unknown", CANCELLED, None, None) is None
            assert await play.run(run["runId"]) == run
            assert await play.events(run["runId"]) == events

    virtually(main)

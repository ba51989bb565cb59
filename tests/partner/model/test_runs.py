from __future__ import annotations

from pathlib import Path

import pytest

from lab.partner.model.runs import active_run, append_event, events_after, find_run, last_sequence
from tests.partner.model.played import SLOW, playing, virtually


@pytest.mark.req("SSE-030", "SSE-045")
def test_events_are_numbered_without_gaps_until_the_run_ends(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, SLOW, agent="agent-plain") as play:
            play.api.server.controls.hold_queue(True)
            run_id = await play.accepted()
            state = play.api.server.core.parts.state
            assert (last_sequence(state, run_id), active_run(state, play.conversation)) == (0, run_id)
            assert [append_event(state, run_id, "text", {"text": text}) for text in "abc"] == [1, 2, 3]
            assert append_event(state, "unknown", "text", {"text": "x"}) is None
            assert [event.data for event in events_after(state, run_id, 1, 1)] == ['{"type":"text","text":"b"}']
            assert [event.sequence for event in events_after(state, run_id, 0, -1)] == [1, 2, 3]
            play.api.server.controls.cancel_run(run_id)
            assert active_run(state, play.conversation) is None
            assert append_event(state, run_id, "text", {"text": "late"}) is None
            assert find_run(state, "unknown") is None

    virtually(main)


def test_a_run_shows_no_message_in_its_repr(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, SLOW, agent="agent-plain") as play:
            run_id = await play.accepted("PROMPT-MARKER")
            state = play.api.server.core.parts.state
            assert "PROMPT-MARKER" not in repr(find_run(state, run_id))
            append_event(state, run_id, "text", {"text": "ANSWER-MARKER"})
            assert "ANSWER-MARKER" not in repr(events_after(state, run_id, 0, -1))

    virtually(main)

from __future__ import annotations

from pathlib import Path

import pytest

from lab.journal.partner_events import fingerprint
from lab.partner.model.refusals import context_denied
from lab.partner.model.store_calls import told_grant
from tests.partner.model.played import LOOKS, playing, virtually


@pytest.mark.req("PRIV-015")
def test_a_grant_is_told_by_its_fingerprint() -> None:
    assert told_grant("tg1.s3cret") == fingerprint("tg1.s3cret")
    assert told_grant(context_denied()) is None


@pytest.mark.req("MCP-005")
def test_a_destination_that_is_not_mapped_is_reached_nowhere(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, LOOKS, destinations={}) as play:
            run, events = await play.played()
            assert (run["status"], run["reason"]) == ("failed", "CHAT_EXECUTION_FAILED")
            assert [event.name for event in events] == ["turn", "error"]
            assert not play.store.seen

    virtually(main)

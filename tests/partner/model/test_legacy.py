from __future__ import annotations

import pytest

from tests.partner.model.calls import running


@pytest.mark.req("HIS-021", "HIS-034", "HIS-038", "TM-005", "TM-043", "US-016")
async def test_a_legacy_turn_has_neither_parts_nor_timings_nor_usage() -> None:
    async with running() as api:
        conversation = await api.opened()
        run_ids = api.server.controls.seed_history(conversation, 2)
        items = (await api.history(conversation)).data["items"]
        assert [item["text"] for item in items] == [
            "legacy answer 2",
            "legacy question 2",
            "legacy answer 1",
            "legacy question 1",
        ]
        assert not any("parts" in item for item in items)
        run = (await api.run(conversation, run_ids[1])).data
        assert (run["status"], run["timings"], run["usage"], run["toolErrors"]) == ("completed", None, None, [])
        assert run["turnId"] == items[0]["turnId"]
        stream = (await api.events(conversation, run_ids[1])).body.decode()
        assert [line[7:] for line in stream.splitlines() if line.startswith("event: ")] == [
            "turn",
            "text",
            "done",
            "run_status",
        ]
        assert '"timings":null,"usage":null' in stream


async def test_a_message_follows_legacy_turns_at_once() -> None:
    async with running() as api:
        conversation = await api.opened("agent-plain")
        api.server.controls.seed_history(conversation, 1)
        assert (await api.message(conversation)).status == 202

from __future__ import annotations

from pathlib import Path

import pytest

from lab.partner.model.ledger import Ledger, add_billing, recorded
from lab.partner.model.runs import find_run
from lab.partner.model.usage import BillingEvent, TokenCounts
from tests.partner.model.played import SAYS, iterations, playing, virtually


@pytest.mark.req("US-004")
def test_what_was_queued_is_recorded_in_its_order(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, iterations(SAYS), agent="agent-plain") as play:
            run_id = (await play.played())[0]["runId"]
            parts = play.api.server.core.parts
            run = find_run(parts.state, run_id)
            assert run is not None
            parts.state.run("DELETE FROM billing")
            assert recorded(parts.state, run_id) == []
            ledger = Ledger()
            ledger.queue(BillingEvent("llm_tokens", 10**18, "m", TokenCounts(1, 2, 3, 4, 5), streamed=True))
            ledger.queue(BillingEvent("gpu_seconds", None))
            assert recorded(parts.state, run_id) == []
            ledger.write(parts, run)
            ledger.write(parts, run)
            assert recorded(parts.state, run_id) == [
                BillingEvent("llm_tokens", 10**18, "m", TokenCounts(1, 2, 3, 9), streamed=True),
                BillingEvent("gpu_seconds", None),
            ]
            add_billing(parts, "another", "turn", BillingEvent("gpu_seconds", 1))
            assert len(recorded(parts.state, run_id)) == 2

    virtually(main)

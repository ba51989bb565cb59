from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lab.journal.partner_events import PartnerTurn
from lab.partner.model.ledger import add_billing
from lab.partner.model.state import State, Value
from lab.partner.model.usage import BillingEvent
from tests.partner.model.played import FIXTURES, LOOKS, SAYS, SLOW, USAGE, iterations, playing, virtually
from tests.partner.model.standin import never

HELLO = FIXTURES / "hello.yaml"


@pytest.mark.req("MSG-010", "MSG-011", "MSG-035", "SSE-052", "HIS-033", "TM-004", "TM-053", "US-020")
def test_a_claimed_run_is_interrupted_by_a_crash_and_never_run_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, LOOKS, state_path=tmp_path / "state.db") as play:
            play.store.instead["tools/call"] = [never]
            reply = await play.say("hi", once="k1")
            run_id = reply.data["runId"]
            await play.until(lambda: "tool" in play.changes(run_id))
            await play.api.server.crash()
            before = len(play.store.seen)
            await play.api.server.start()
            run = await play.run(run_id)
            assert (run["status"], run["reason"], run["toolErrors"], run["usage"]) == ("interrupted", None, [], None)
            assert run["timings"]["complete"] is False
            events = await play.events(run_id)
            assert [event.name for event in events] == ["turn", "tool_call", "run_status"]
            assert events[-1].data["timings"] == run["timings"]
            assert "parts" not in (await play.history())["items"][0]
            again = await play.say("hi", once="k1")
            assert (again.data["runId"], again.data["status"]) == (run_id, "interrupted")
            other = await play.say("more")
            await play.events(other.data["runId"])
            assert play.api.server.controls.counts()["storeCalls"] == 1
            turns = {seen.headers["X-Agent-Turn-Id"] for seen in play.store.seen[before:]}
            assert turns == {other.data["turnId"]}

    virtually(main)


@pytest.mark.req("MSG-010", "HIS-009")
def test_what_an_interrupted_run_had_said_stays_in_the_history(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, SLOW, state_path=tmp_path / "state.db") as play:
            run_id = await play.accepted()
            async with play.stream(run_id) as response:
                await response.content.readuntil(b'"text":"a"}\n\n')
            await play.api.server.crash()
            await play.api.server.start()
            answer = (await play.history())["items"][0]
            assert (answer["text"], answer["parts"]) == ("a", [{"type": "text", "text": "a"}])

    virtually(main)


@pytest.mark.parametrize("runs", [1, 6])
def test_a_bell_costs_the_same_however_many_runs_go_on(
    runs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> tuple[int, int]:
        async with playing(tmp_path, SLOW, agent="agent-plain") as play:
            parts = play.api.server.core.parts
            for _ in range(runs):
                opened = await play.api.opened("agent-plain")
                assert (await play.api.message(opened)).status == 202
            await play.until(lambda: sum(turn.change == "model" for turn in play.seen(PartnerTurn)) == runs)
            asked: list[str] = []
            for name in ("row", "rows"):
                usual = getattr(State, name)

                def counted(self: State, sql: str, *values: Value, usual: Any = usual) -> Any:
                    asked.append(sql)
                    return usual(self, sql, *values)

                monkeypatch.setattr(State, name, counted)
            parts.bell.ring()
            monkeypatch.undo()
            plan = parts.state.rows(f"EXPLAIN QUERY PLAN {asked[0]}")
            assert "runs_active" in str([tuple(row) for row in plan])
            return len(asked), play.api.server.controls.counts()["activeTurns"]

    assert virtually(main) == (2, runs)


@pytest.mark.req("MSG-036")
def test_a_run_that_was_only_accepted_is_executed_after_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, HELLO, agent="agent-plain", state_path=tmp_path / "state.db") as play:
            play.api.server.controls.hold_queue(True)
            run_id = await play.accepted()
            await play.api.server.crash()
            await play.api.server.start()
            await play.events(run_id)
            assert (await play.run(run_id))["status"] == "completed"
            assert play.changes(run_id).count("claimed") == 1

    virtually(main)


@pytest.mark.req("MSG-036")
def test_a_rotation_lets_the_run_go_on_and_a_revocation_does_not(tmp_path: Path) -> None:
    async def main() -> None:
        script = iterations("- model: m\n  steps: [ { wait: 5s }, { tool: { name: catalog_get } } ]\n" + USAGE, SAYS)
        async with playing(tmp_path, script) as play:
            run_id = await play.accepted()
            await play.until(lambda: "model" in play.changes(run_id))
            play.api.server.controls.rotate_key("chat")
            await play.until(lambda: "ended" in play.changes(run_id))
            assert (await play.run(run_id))["status"] == "completed"
            run_id = await play.accepted()
            await play.until(lambda: "model" in play.changes(run_id))
            play.api.server.controls.revoke_key("chat")
            await play.until(lambda: "ended" in play.changes(run_id))
            assert len(play.store.of("tools/call")) == 1

    virtually(main)


@pytest.mark.req("US-026", "US-027", "US-028", "US-030")
def test_a_stored_usage_stays_whatever_becomes_of_ledger_and_prices(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, HELLO, agent="agent-plain") as play:
            run, events = await play.played()
            parts = play.api.server.core.parts
            add_billing(parts, run["runId"], run["turnId"], BillingEvent("worker_seconds", 10**12))
            assert await play.run(run["runId"]) == run
            parts.state.run("DELETE FROM billing")
            assert await play.run(run["runId"]) == run
            assert (await play.events(run["runId"]))[-1].raw == events[-1].raw

    virtually(main)


@pytest.mark.req("US-018", "US-019", "US-017", "US-023", "TM-040")
@pytest.mark.parametrize(
    "more",
    ["billing: [ { kind: gpu_seconds } ]\n", "flush: { fails: true }\n"],
)
def test_a_bill_that_is_not_whole_is_no_bill(tmp_path: Path, more: str) -> None:
    async def main() -> None:
        async with playing(tmp_path, iterations(SAYS, more=more), agent="agent-plain") as play:
            run, _ = await play.played()
            assert (run["status"], run["usage"]) == ("completed", None)

    virtually(main)


@pytest.mark.req("US-017", "TM-040")
def test_a_response_without_counters_leaves_the_usage_unknown(tmp_path: Path) -> None:
    async def main() -> None:
        script = iterations('- model: m\n  steps: [ { text: "a" } ]\n')
        async with playing(tmp_path, script, agent="agent-plain") as play:
            run, _ = await play.played()
            assert run["usage"] is None
            assert "usage" not in run["timings"]["iterations"][0]

    virtually(main)


@pytest.mark.req("US-024")
def test_the_end_waits_for_the_ledger(tmp_path: Path) -> None:
    async def main() -> None:
        script = iterations(SAYS, more="flush: { after: 20s }\n")
        async with playing(tmp_path, script, agent="agent-plain") as play:
            loop_time = play.api.ctx.now
            start = loop_time()
            run, _ = await play.played()
            assert 20 <= loop_time() - start < 21
            assert run["usage"] is not None
            assert run["timings"]["totalMs"] < 1000

    virtually(main)


@pytest.mark.req("TM-038", "TM-052")
def test_one_line_of_timings_a_turn(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, HELLO, agent="agent-plain") as play:
            runs = [(await play.played())[0] for _ in range(3)]
            lines = [json.loads(line) for line in play.api.server.controls.timing_lines()]
            assert [(line["event"], line["turnId"]) for line in lines] == [
                ("turn_timings", run["turnId"]) for run in runs
            ]
            assert [line["timings"] for line in lines] == [run["timings"] for run in runs]

    virtually(main)


def test_a_cancel_of_what_is_not_active_is_no_cancel(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, SLOW) as play:
            run_id = await play.accepted()
            await play.events(run_id)
            reply = await play.api.control("/runs/cancel", {"runId": run_id})
            assert reply.status >= 400
            assert (await play.run(run_id))["status"] == "completed"

    virtually(main)

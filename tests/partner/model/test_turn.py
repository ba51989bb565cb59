from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from lab.journal.partner_events import PartnerTurn
from lab.partner.model import turn as turn_module
from lab.partner.model.mcp_client import transport_url
from lab.partner.model.settings import AgentSettings
from tests.partner.model.calls import DESTINATION, STORE, TEAM, Json
from tests.partner.model.played import FIXTURES, SAYS, SLOW, TOOL, USAGE, iterations, playing, virtually
from tests.partner.model.standin import FAILURE, PRODUCT, answer, never, status

ADDENDS = ("queuedMs", "setupMs", "lockMs", "modelMs", "toolMs", "historyMs", "otherMs")
NAMES = ("turn", "text", "tool_call", "tool_result", "done", "run_status", "error")


def names(events: list[Any]) -> list[str]:
    return [event.name for event in events]


def reconciled(timings: Json) -> None:
    """TM-027 and its neighbours, on a complete snapshot."""
    assert timings["complete"] is True
    assert sum(timings[name] for name in ADDENDS) == pytest.approx(timings["totalMs"], abs=1e-6)
    assert timings["modelMs"] == pytest.approx(sum(one["modelMs"] for one in timings["iterations"]), abs=1e-6)
    assert timings["toolMs"] == pytest.approx(sum(one["toolMs"] for one in timings["iterations"]), abs=1e-6)
    for one in timings["iterations"]:
        assert 0 <= (one["firstTokenMs"] or 0) <= one["wallMs"]


@pytest.mark.req("SSE-040", "SSE-019", "SSE-024", "SSE-025", "TM-042", "US-001", "MSG-039", "SSE-042", "SSE-043")
@pytest.mark.parametrize("era", ["2025", "2026"])
def test_a_whole_turn_with_one_look_into_the_store(tmp_path: Path, era: str) -> None:
    async def main() -> None:
        async with playing(tmp_path, FIXTURES / "product-9001.yaml", mcp_era=era) as play:
            run, events = await play.played("Is product 9001 in stock?")
            assert names(events) == ["turn", "text", "tool_call", "tool_result", *["text"] * 5, "done", "run_status"]
            assert all(event.name == event.data["type"] for event in events)
            assert [event.id for event in events] == [f"{run['runId']}:{n}" for n in range(1, len(events) + 1)]
            assert (run["status"], run["reason"], run["toolErrors"]) == ("completed", None, [])
            last = events[-1].data
            assert {name: last[name] for name in ("toolErrors", "timings", "usage")} == {
                name: run[name] for name in ("toolErrors", "timings", "usage")
            }
            assert run["usage"]["costUsd"] == "0.033510000000"
            reconciled(run["timings"])
            (call,) = play.store.of("tools/call")
            assert events[2].data == {"type": "tool_call", "name": "catalog_get", "id": call.headers["X-Agent-Call-Id"]}
            assert re.fullmatch(r"call_[0-9a-f]{24}", events[2].data["id"])
            assert events[3].data == {"type": "tool_result", "name": "catalog_get", "ok": True}
            assert call.params["arguments"] == {"productId": 9001}
            assert call.headers["X-Store-Context-Grant"] == "tg1.s3cret-grant"
            assert call.headers["X-Agent-Conversation-Id"] == play.conversation
            answer, question = (await play.history())["items"]
            assert (question["role"], question["text"]) == ("user", "Is product 9001 in stock?")
            assert [part["type"] for part in answer["parts"]] == ["text", "tool_call", "text"]
            assert answer["parts"][1]["toolCallId"] == call.headers["X-Agent-Call-Id"]
            (line,) = play.api.server.controls.timing_lines()
            assert json.loads(line) == {"event": "turn_timings", "turnId": run["turnId"], "timings": run["timings"]}
            turn_ids = {events[0].data["turnId"], answer["turnId"], question["turnId"], call.headers["X-Agent-Turn-Id"]}
            assert turn_ids == {run["turnId"]}
            assert len(play.store.of("DELETE")) == (1 if era == "2025" else 0)
            changes = ["accepted", "claimed", "discovery", "model", "tool", "tool-ended", "model", "ended"]
            assert play.changes(run["runId"]) == changes

    virtually(main)


@pytest.mark.req("MSG-012", "MSG-016", "MSG-018", "MSG-041", "HIS-018", "HIS-020", "SSE-022", "MCP-009")
def test_failed_tools_leave_a_turn_completed_and_are_listed_in_order(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, FIXTURES / "failing-tool.yaml") as play:
            play.store.results["catalog_get"] = FAILURE
            run, events = await play.played()
            calls = [event.data["id"] for event in events if event.name == "tool_call"]
            results = [event.data for event in events if event.name == "tool_result"]
            assert results == [{"type": "tool_result", "name": "catalog_get", "ok": False, "error": "TOOL_FAILED"}] * 2
            assert run["status"] == "completed"
            assert run["toolErrors"] == events[-1].data["toolErrors"]
            assert run["toolErrors"] == [
                {"toolCallId": call, "name": "catalog_get", "errorCode": "TOOL_FAILED"} for call in calls
            ]
            (first, _) = run["timings"]["iterations"]
            assert len(first["tools"]) == 2
            parts = (await play.history())["items"][0]["parts"]
            assert [part["status"] for part in parts if part["type"] == "tool_call"] == ["failed", "failed"]
            assert "STORE-ERROR-MARKER" not in json.dumps([run, parts, [event.data for event in events]])

    virtually(main)


@pytest.mark.req("MSG-013", "MSG-046", "MCP-023", "US-021")
@pytest.mark.parametrize("how", ["is-error", "refused", "unlisted"])
def test_a_turn_that_stops_on_its_tool_is_tool_refused(tmp_path: Path, how: str) -> None:
    async def main() -> Json:
        async with playing(tmp_path, FIXTURES / "stop-on-refusal.yaml") as play:
            if how == "is-error":
                play.store.results["catalog_get"] = FAILURE
            elif how == "refused":
                play.store.instead["tools/call"] = [status(403)]
            else:
                play.store.tools = ("store_status",)
            run, events = await play.played()
            assert names(events) == ["turn", "text", "tool_call", "tool_result", "done", "run_status"]
            assert events[-2].data["stopReason"] == "tool_error"
            assert (run["status"], run["reason"]) == ("failed", "TOOL_REFUSED")
            assert run["usage"]["costUsd"] == "0.003000000000"
            assert len(play.store.of("tools/call")) == (0 if how == "unlisted" else 1)
            return [events[3].data, [{**error, "toolCallId": ""} for error in run["toolErrors"]]]

    # To the partner a refused, a failed and an unlisted tool look the same.
    assert virtually(main) == [
        {"type": "tool_result", "name": "catalog_get", "ok": False, "error": "TOOL_FAILED"},
        [{"toolCallId": "", "name": "catalog_get", "errorCode": "TOOL_FAILED"}],
    ]


@pytest.mark.req("MSG-014", "TM-048", "US-037", "SSE-027")
def test_an_endless_loop_is_limited(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, FIXTURES / "endless.yaml") as play:
            run, events = await play.played()
            assert (run["status"], run["reason"]) == ("limited", None)
            assert events[-2].data == {"type": "done", "stopReason": "max_iterations"}
            assert len(play.store.of("tools/call")) == len(run["timings"]["iterations"]) == 4
            assert run["usage"]["inputTokens"] == 2000
            reconciled(run["timings"])

    virtually(main)


@pytest.mark.req("PA-018", "SSE-017", "MSG-042", "US-020", "SSE-036", "PRIV-003", "TM-003")
@pytest.mark.parametrize("after_error", [False, True])
def test_a_provider_that_fails_says_nothing_to_the_partner(tmp_path: Path, after_error: bool) -> None:
    async def main() -> None:
        async with playing(tmp_path, FIXTURES / "exception.yaml", status_after_error=after_error) as play:
            run, events = await play.played()
            assert names(events) == ["turn", "text", "text", "error", *(["run_status"] if after_error else [])]
            assert events[3].data == {"type": "error", "code": "CHAT_EXECUTION_FAILED"}
            assert (run["status"], run["reason"], run["usage"]) == ("failed", "CHAT_EXECUTION_FAILED", None)
            reconciled(run["timings"])
            told = json.dumps([run, [event.data for event in events], await play.history()]) + play.everything()
            assert "RAW-PROVIDER-MARKER" not in told
            assert "RAW-PROVIDER-MARKER" not in "".join(play.api.server.controls.timing_lines())
            assert not play.api.ctx.defects

    virtually(main)


@pytest.mark.req("MCP-023", "MSG-042")
def test_a_failed_discovery_ends_the_turn_before_the_model_is_asked(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path) as play:
            play.store.instead["tools/list"] = [status(500)]
            run, events = await play.played()
            assert names(events) == ["turn", "error"]
            assert (run["status"], run["reason"], run["usage"]) == ("failed", "CHAT_EXECUTION_FAILED", None)
            assert play.changes(run["runId"]) == ["accepted", "claimed", "ended"]

    virtually(main)


@pytest.mark.req("US-008", "US-010", "US-011", "US-012", "US-013", "US-014", "US-024", "TM-036", "TM-051", "US-038")
def test_two_models_a_retry_and_a_runtime_are_all_on_the_bill(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, FIXTURES / "two-models.yaml") as play:
            run, _ = await play.played()
            usage, timings = run["usage"], run["timings"]
            assert usage["model"] == "synthetic-small"
            assert (usage["inputTokens"], usage["outputTokens"]) == (300 + 800 + 800 + 1000, 4 + 0 + 70 + 20)
            assert (usage["cacheReadTokens"], usage["cacheWriteTokens"]) == (800, 12)
            assert [model["model"] for model in usage["models"]] == ["synthetic-small", "synthetic-1"]
            assert [kind["kind"] for kind in usage["kinds"]] == ["llm_tokens", "runtime_seconds"]
            assert usage["kinds"][1]["costUsd"] == "0.000125000000"
            assert timings["classificationMs"] == pytest.approx(15, abs=0.5)
            assert timings["modelMs"] == pytest.approx(40, abs=0.5)
            first = timings["iterations"][0]
            assert first["usage"] == {
                "inputTokens": 800,
                "outputTokens": 70,
                "cacheWriteTokens": 7,
                "cacheWrite1hTokens": 5,
            }
            assert sum(one["usage"]["inputTokens"] for one in timings["iterations"]) < usage["inputTokens"]

    virtually(main)


@pytest.mark.req("TM-011", "TM-012", "TM-014", "TM-015", "TM-016", "TM-017", "TM-018", "TM-019", "TM-020", "TM-021")
@pytest.mark.req(
    "TM-006", "TM-022", "TM-023", "TM-024", "TM-025", "TM-030", "TM-031", "TM-032", "TM-033", "TM-008", "TM-010"
)
def test_each_wait_lands_in_its_own_stage(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, FIXTURES / "slow-stages.yaml") as play:
            run, _ = await play.played()
            timings = run["timings"]
            reconciled(timings)
            due = {
                "queuedMs": 30,
                "admissionMs": 11,
                "lockMs": 12,
                "agentMs": 13,
                "promptMs": 14,
                "workerMs": 16 + 19,
                "classificationMs": 17,
                "modelMs": 2 * (21 + 22) + 9 + 25,
                "historyMs": 23,
                "otherMs": 24 + 2 * 7,
            }
            assert {name: timings[name] for name in due} == pytest.approx(due, abs=1.1)
            # Discovery and the call take the little that the simulated network does.
            assert 15 <= timings["toolSetupMs"] < 25
            assert 0 < timings["toolMs"] < 10
            assert timings["totalMs"] < sum(due.values()) + 15 + 25
            first, second = timings["iterations"]
            assert first["firstTokenMs"] == pytest.approx(21 + 22 + 9, abs=0.5)
            assert first["wallMs"] == pytest.approx(21 + 22 + 9 + 2 * 7, abs=0.5)
            assert first["modelMs"] == pytest.approx(21 + 22 + 9, abs=0.5)
            assert (second["firstTokenMs"], second["tools"]) == (None, [])

    virtually(main)


@pytest.mark.req("SSE-020", "PRIV-004", "PRIV-005", "SSE-010", "PRIV-001", "SSE-021", "TM-041", "PRIV-006", "HIS-019")
@pytest.mark.req("SSE-023")
def test_what_is_private_stays_inside(tmp_path: Path) -> None:
    script = iterations(
        '- model: m\n  steps: [ { thinking: "THINKING-MARKER" }, '
        '{ tool: { name: catalog_get, input: { a: "ARGUMENT-MARKER" } } } ]\n' + USAGE,
        SAYS,
    )

    async def main() -> None:
        async with playing(tmp_path, script) as play:
            run, events = await play.played("PROMPT-MARKER")
            assert play.store.of("tools/call")[0].params["arguments"] == {"a": "ARGUMENT-MARKER"}
            outward = json.dumps([run, [event.data for event in events], await play.history()])
            inward = "".join(play.api.server.controls.timing_lines()) + play.everything()
            for marker in ("THINKING-MARKER", "ARGUMENT-MARKER", "STORE-RESULT-MARKER", "s3cret-grant", "static-cred"):
                assert marker not in outward + inward
            assert "PROMPT-MARKER" not in inward
            assert {event.name for event in events} <= set(NAMES)
            assert set(events[1].data) == {"type", "name", "id"}

    virtually(main)


@pytest.mark.req("MB-037", "PA-021")
def test_after_a_lapse_no_further_effect_begins(tmp_path: Path) -> None:
    script = iterations("- model: m\n  steps: [ { wait: 300s }, { tool: { name: catalog_get } } ]\n" + USAGE, SAYS)

    async def main() -> None:
        async with playing(tmp_path, script) as play:
            run_id = await play.accepted()
            # The lease is of four minutes, the model takes five: the stream ends with the lease.
            assert names(await play.events(run_id)) == ["turn"]
            assert "ended" not in play.changes(run_id)
            await play.until(lambda: "ended" in play.changes(run_id))
            assert (await play.api.member()).status == 200
            run = await play.run(run_id)
            assert (run["status"], run["reason"]) == ("failed", "EXECUTION_DENIED")
            assert not play.store.of("tools/call")
            events = await play.events(run_id)
            assert events[-1].data == {"type": "error", "code": "EXECUTION_DENIED"}
            assert (await play.history())["items"][0]["role"] == "user"

    virtually(main)


@pytest.mark.req("MB-037", "PA-021")
def test_no_model_is_asked_after_a_revocation(tmp_path: Path) -> None:
    async def main() -> None:
        script = iterations(SAYS, more="delays: { classification: 10s }\n")
        async with playing(tmp_path, script, agent="agent-plain") as play:
            run_id = await play.accepted()
            await play.until(lambda: "discovery" in play.changes(run_id))
            await play.api.member(active=False, seconds=None)
            await play.until(lambda: "ended" in play.changes(run_id))
            assert play.changes(run_id) == ["accepted", "claimed", "discovery", "ended"]
            (ended,) = [turn for turn in play.seen(PartnerTurn) if turn.change == "ended"]
            assert (ended.status, ended.reason) == ("failed", "EXECUTION_DENIED")

    virtually(main)


@pytest.mark.req("US-020", "US-023")
def test_after_a_providers_error_nothing_is_on_the_bill(tmp_path: Path) -> None:
    script = iterations(TOOL + USAGE, '- model: m\n  steps: []\n  fails: "raw"\n')

    async def main() -> None:
        async with playing(tmp_path, script) as play:
            run, _ = await play.played()
            assert run["timings"]["iterations"][0]["usage"]["inputTokens"] == 10
            assert (run["reason"], run["usage"]) == ("CHAT_EXECUTION_FAILED", None)

    virtually(main)


@pytest.mark.req("MSG-044")
def test_a_budget_that_is_spent_between_two_requests_ends_the_turn(tmp_path: Path) -> None:
    script = iterations("- model: m\n  steps: [ { wait: 2s }, { tool: { name: catalog_get } } ]\n" + USAGE, SAYS)

    async def main() -> None:
        async with playing(tmp_path, script) as play:
            run_id = await play.accepted()
            await play.until(lambda: "model" in play.changes(run_id))
            play.api.server.controls.spend_budget(True)
            events = await play.events(run_id)
            assert names(events) == ["turn", "tool_call", "tool_result", "error"]
            assert events[-1].data["code"] == "QUOTA_EXCEEDED"
            run = await play.run(run_id)
            assert (run["status"], run["reason"]) == ("failed", "QUOTA_EXCEEDED")
            assert (await play.say()).refusal == (429, "QUOTA_EXCEEDED")

    virtually(main)


@pytest.mark.req("CX-026")
def test_a_binding_that_is_revoked_in_mid_run_fails_the_next_call_without_sending_it(tmp_path: Path) -> None:
    call = "- model: m\n  steps: [ { wait: 2s }, { tool: { name: catalog_get } } ]\n" + USAGE

    async def main() -> None:
        async with playing(tmp_path, iterations(call, call, SAYS)) as play:
            run_id = await play.accepted()
            await play.until(lambda: "tool-ended" in play.changes(run_id))
            play.api.server.controls.revoke_binding(play.conversation)
            events = await play.events(run_id)
            assert [event.data["ok"] for event in events if event.name == "tool_result"] == [True, False]
            assert (await play.run(run_id))["status"] == "completed"
            assert len(play.store.of("tools/call")) == 1

    virtually(main)


@pytest.mark.req("CX-029")
def test_a_rebind_in_mid_run_counts_for_the_next_call(tmp_path: Path) -> None:
    call = "- model: m\n  steps: [ { wait: 2s }, { tool: { name: catalog_get } } ]\n" + USAGE

    async def main() -> None:
        async with playing(tmp_path, iterations(call, call, SAYS)) as play:
            run_id = await play.accepted()
            await play.until(lambda: "tool-ended" in play.changes(run_id))
            assert (await play.api.bind(play.conversation, 1, grant="tg1.newer")).status == 200
            await play.events(run_id)
            grants = [seen.headers["X-Store-Context-Grant"] for seen in play.store.of("tools/call")]
            assert grants == ["tg1.s3cret-grant", "tg1.newer"]

    virtually(main)


def test_a_binding_that_lapsed_in_the_queue_denies_the_context(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path) as play:
            play.api.server.controls.hold_queue(True)
            run_id = await play.accepted()
            play.api.server.controls.revoke_binding(play.conversation)
            play.api.server.controls.hold_queue(False)
            events = await play.events(run_id)
            assert [event.data for event in events[1:]] == [{"type": "error", "code": "MCP_CONTEXT_DENIED"}]
            assert (await play.run(run_id))["reason"] == "MCP_CONTEXT_DENIED"
            assert not play.store.seen

    virtually(main)


@pytest.mark.req("MSG-037", "TM-003", "US-020", "SSE-052", "HIS-033", "SSE-041")
def test_a_cancel_in_mid_tool_leaves_the_tool_open(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path) as play:
            play.store.instead["tools/call"] = [never]
            run_id = await play.accepted()
            await play.until(lambda: "tool" in play.changes(run_id))
            play.api.server.controls.cancel_run(run_id)
            events = await play.events(run_id)
            assert names(events) == ["turn", "tool_call", "run_status"]
            run = await play.run(run_id)
            assert (run["status"], run["reason"], run["toolErrors"], run["usage"]) == ("cancelled", None, [], None)
            reconciled(run["timings"])
            assert "parts" not in (await play.history())["items"][0]
            assert (await play.say("again")).status == 202

    virtually(main)


@pytest.mark.req("MSG-037")
def test_a_run_that_still_waits_can_be_cancelled(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path) as play:
            play.api.server.controls.hold_queue(True)
            run_id = await play.accepted()
            play.api.server.controls.cancel_run(run_id)
            assert names(await play.events(run_id)) == ["run_status"]
            play.api.server.controls.hold_queue(False)
            assert (await play.run(run_id))["status"] == "cancelled"
            assert play.changes(run_id) == ["accepted", "ended"]

    virtually(main)


@pytest.mark.req("PA-022", "PA-023")
def test_only_the_stores_tools_and_the_frozen_hands_are_offered(tmp_path: Path) -> None:
    path = tmp_path / "hands.yaml"
    path.write_text(iterations("- model: m\n  steps: [ { tool: { name: shell } } ]\n" + USAGE, SAYS), encoding="utf-8")

    async def main() -> None:
        for hands, ok in (((), False), (("shell",), True)):
            agent = AgentSettings("agent-mcp", TEAM, mcp=(STORE,), script=path, worker_tools=hands)
            async with playing(tmp_path, agents=(agent,)) as play:
                run, events = await play.played()
                offered = [turn.facts["tools"] for turn in play.seen(PartnerTurn) if turn.change == "model"]
                assert offered[0] == ["catalog_get", "store_status", *hands]
                assert [event.data["ok"] for event in events if event.name == "tool_result"] == [ok]
                assert not play.store.of("tools/call")
                assert run["usage"] is not None

    virtually(main)


@pytest.mark.req("CV-008")
def test_a_conversation_without_a_store_needs_no_grant(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, FIXTURES / "hello.yaml", agent="agent-plain") as play:
            run, events = await play.played()
            assert run["status"] == "completed"
            assert "".join(e.data["text"] for e in events if e.name == "text").startswith("Good day.")
            assert not play.store.seen

    virtually(main)


@pytest.mark.req("PA-024", "TM-010")
def test_authority_is_looked_at_again_when_the_worker_is_there(tmp_path: Path) -> None:
    script = iterations(
        "- model: m\n  steps: [ { tool: { name: catalog_get, worker: 10s } } ]\n" + USAGE,
        SAYS,
    )

    async def main() -> None:
        async with playing(tmp_path, script) as play:
            kept, _ = await play.played()
            assert kept["timings"]["workerMs"] == pytest.approx(10_000, abs=0.5)
            assert kept["timings"]["toolMs"] < 100
            run_id = await play.accepted()
            await play.until(lambda: "model" in play.changes(run_id))
            await play.api.member(active=False, seconds=None)
            await play.until(lambda: "ended" in play.changes(run_id))
            assert len(play.store.of("tools/call")) == 1
            (ended,) = [turn for turn in play.seen(PartnerTurn) if turn.run_id == run_id and turn.change == "ended"]
            assert (ended.status, ended.reason) == ("failed", "EXECUTION_DENIED")
            kinds = play.api.server.core.parts.state.rows("SELECT type FROM events WHERE run_id = ?", run_id)
            assert [row["type"] for row in kinds] == ["turn", "error"]

    virtually(main)


@pytest.mark.req("SSE-041", "MSG-041", "TM-029")
def test_parallel_calls_are_told_in_their_order_and_take_their_time_together(tmp_path: Path) -> None:
    both = "{ tools: [ { name: catalog_get }, { name: catalog_get } ] }"
    script = iterations(f"- model: m\n  steps: [ {both} ]\n" + USAGE, SAYS)

    async def slow(request: web.Request, message: Any) -> web.StreamResponse:
        await asyncio.sleep(5)
        return answer(message, PRODUCT)

    async def main() -> None:
        async with playing(tmp_path, script) as play:
            play.store.instead["tools/call"] = [slow, status(500)]
            run, events = await play.played()
            assert names(events) == ["turn", *["tool_call"] * 2, *["tool_result"] * 2, "text", "done", "run_status"]
            first, second = [event.data["id"] for event in events if event.name == "tool_call"]
            assert first != second
            assert [event.data["ok"] for event in events if event.name == "tool_result"] == [True, False]
            assert [error["toolCallId"] for error in run["toolErrors"]] == [second]
            assert run["timings"]["toolMs"] == pytest.approx(5000, abs=50)
            tools = run["timings"]["iterations"][0]["tools"]
            assert [set(tool) for tool in tools] == [{"durationMs"}] * 2
            assert tools[0]["durationMs"] >= 5000 > 100 > tools[1]["durationMs"]

    virtually(main)


@pytest.mark.req("MSG-042")
def test_an_error_of_the_models_own_ends_the_turn_and_is_told_as_a_defect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("INNER-MARKER")

    async def main() -> None:
        monkeypatch.setattr(turn_module, "prompt_of", broken)
        async with playing(tmp_path) as play:
            run, events = await play.played()
            assert (run["status"], run["reason"]) == ("failed", "CHAT_EXECUTION_FAILED")
            assert events[-1].data == {"type": "error", "code": "CHAT_EXECUTION_FAILED"}
            assert [type(defect) for defect in play.api.ctx.defects] == [RuntimeError]
            assert "INNER-MARKER" not in play.everything() + json.dumps(run)

    virtually(main)


@pytest.mark.req("MSG-037", "TM-034", "TM-049")
def test_a_cancel_in_mid_answer_keeps_what_was_measured(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, SLOW) as play:
            run_id = await play.accepted()
            async with play.stream(run_id) as response:
                await response.content.readuntil(b'"text":"a"}\n\n')
                assert await response.content.readuntil(b"\n\n") == b": keep-alive\n\n"
                play.api.server.controls.cancel_run(run_id)
                await response.read()
            run = await play.run(run_id)
            reconciled(run["timings"])
            (only,) = run["timings"]["iterations"]
            assert only["wallMs"] == pytest.approx(15_000, abs=100)
            assert (await play.history())["items"][0]["parts"] == [{"type": "text", "text": "a"}]

    virtually(main)


@pytest.mark.req("TM-026", "TM-039", "TM-050")
def test_iterations_stand_in_their_order_each_with_the_tools_it_asked_for(tmp_path: Path) -> None:
    counted = "  usage: { input: 20, output: 5, cache_read: 3, cache_write: 2, cache_write_1h: 1 }\n"
    script = iterations(TOOL + USAGE, '- model: m\n  steps: [ { text: "Hello." } ]\n' + counted)

    async def main() -> None:
        async with playing(tmp_path, script) as play:
            run, _ = await play.played()
            first, second = run["timings"]["iterations"]
            assert (len(first["tools"]), second["tools"]) == (1, [])
            assert set(first["tools"][0]) == {"durationMs"}
            assert set(first) == set(second) == {"wallMs", "modelMs", "firstTokenMs", "toolMs", "tools", "usage"}
            assert first["usage"] == {"inputTokens": 10, "outputTokens": 5}
            assert second["usage"] == {
                "inputTokens": 20,
                "outputTokens": 5,
                "cacheReadTokens": 3,
                "cacheWriteTokens": 2,
                "cacheWrite1hTokens": 1,
            }

    virtually(main)


@pytest.mark.req("SSE-009")
def test_ids_of_calls_are_the_servers_own(tmp_path: Path) -> None:
    """The store's ids of its requests, and the names of its answers, stay between the two."""
    script = iterations(TOOL + USAGE, TOOL + USAGE, SAYS)

    async def main() -> None:
        async with playing(tmp_path, script) as play:
            play.store.results["catalog_get"] = {**FAILURE, "_meta": {"id": "call_STORE-ID-MARKER"}}
            run, events = await play.played()
            minted = [event.data["id"] for event in events if event.name == "tool_call"]
            assert [bool(re.fullmatch(r"call_[0-9a-f]{24}", one)) for one in minted] == [True, True]
            assert len(set(minted)) == 2
            assert [error["toolCallId"] for error in run["toolErrors"]] == minted
            parts = (await play.history())["items"][0]["parts"]
            assert [part["toolCallId"] for part in parts if part["type"] == "tool_call"] == minted
            assert "STORE-ID-MARKER" not in json.dumps([run, parts, [event.data for event in events]])

    virtually(main)


@pytest.mark.req("PA-025")
def test_a_turn_with_hands_is_an_ordinary_turn(tmp_path: Path) -> None:
    """It needs its grant and its budget, keeps its model, and is on the bill."""
    path = tmp_path / "hands.yaml"
    path.write_text(iterations("- model: m\n  steps: [ { tool: { name: shell } } ]\n" + USAGE, SAYS), encoding="utf-8")
    agent = AgentSettings("agent-mcp", TEAM, mcp=(STORE,), script=path, worker_tools=("shell",))

    async def main() -> None:
        async with playing(tmp_path, bind=False, agents=(agent,)) as play:
            assert (await play.say()).refusal == (403, "MCP_CONTEXT_DENIED")
            assert (await play.api.bind(play.conversation)).status == 200
            run, _ = await play.played()
            models = [turn.facts["model"] for turn in play.seen(PartnerTurn) if turn.change == "model"]
            assert (models, run["usage"]["model"], run["usage"]["inputTokens"]) == (["m", "m"], "m", 20)
            play.api.server.controls.spend_budget(True)
            assert (await play.say()).refusal == (429, "QUOTA_EXCEEDED")

    virtually(main)


@pytest.mark.req("FX-016")
def test_only_the_tests_transport_knows_where_a_destination_leads(tmp_path: Path) -> None:
    """The partner sees the canonical one; one that is not mapped is reached by nobody."""

    async def main() -> None:
        async with playing(tmp_path) as play:
            assert (await play.api.conversation()).data["mcp"]["destination"] == DESTINATION != play.store.url
            run, _ = await play.played()
            assert (run["status"], bool(play.store.seen)) == ("completed", True)
        assert transport_url({}, DESTINATION) is None
        async with playing(tmp_path, destinations={}) as play:
            run, _ = await play.played()
            assert (run["reason"], play.store.seen) == ("CHAT_EXECUTION_FAILED", [])

    virtually(main)


@pytest.mark.req("MB-041")
@pytest.mark.parametrize("role", ["owner", "admin", "member"])
def test_every_role_has_the_same_turn(role: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path) as play:
            assert (await play.api.member(role=role)).data["role"] == role
            run, events = await play.played()
            assert (run["status"], names(events)[-1]) == ("completed", "run_status")
            assert len(play.store.of("tools/call")) == 1

    virtually(main)


@pytest.mark.req("TM-009")
def test_a_wall_clock_that_is_moved_changes_no_stage(tmp_path: Path) -> None:
    async def main() -> None:
        async with playing(tmp_path, SLOW) as play:
            run_id = await play.accepted()
            await play.until(lambda: "model" in play.changes(run_id))
            play.api.server.controls.move_clock(-3_600_000)
            await play.events(run_id)
            timings = (await play.run(run_id))["timings"]
            reconciled(timings)
            assert timings["modelMs"] == pytest.approx(60_000, abs=1)

    virtually(main)


async def test_a_turn_on_the_real_clock(tmp_path: Path) -> None:
    async with playing(tmp_path, FIXTURES / "product-9001.yaml") as play:
        run, events = await play.played()
        assert (run["status"], events[-1].name) == ("completed", "run_status")
        reconciled(run["timings"])
        assert 50 <= run["timings"]["modelMs"] < 5000

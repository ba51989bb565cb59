"""The reference agent as a whole: its work behind its link, between a gateway and an agent2 that tests hold."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lab.context import RunContext
from lab.localagent.agent import LocalAgent
from lab.protocol.contract import Contract, default_contract_folder
from tests.localagent.doubles import JOB, WORKSPACE, ScriptedAgent2, assign, config
from tests.localagent.hand_gateway import (
    SESSION,
    TRUSTED,
    HandGateway,
    Line,
    hand_gateway,
    running_context,
    until,
)

CONTRACT = Contract.load(default_contract_folder())
CANARY = "canary-of-content"
ALL = ["job.assign", "job.options", "job.chat", "job.inline.16k"]


class Bench:
    """An agent, its gateway and its agent2."""

    def __init__(
        self, ctx: RunContext, gateway: HandGateway, agent2: ScriptedAgent2, folder: Path, **changes: Any
    ) -> None:
        self.ctx = ctx
        self.gateway = gateway
        self.agent2 = agent2
        self.config = config(folder, agent2.url, gateway_ws_url=gateway.url, trusted_keys=TRUSTED, **changes)
        self.agent = LocalAgent(ctx, "agent", self.config, CONTRACT)

    async def ready(self) -> Line:
        line = await self.gateway.line()
        await line.handshake()
        return line


@contextlib.asynccontextmanager
async def living(folder: Path, start: bool = True, **changes: Any) -> AsyncIterator[Bench]:
    ctx = running_context()
    before = asyncio.all_tasks()
    async with ScriptedAgent2() as agent2, hand_gateway(ctx) as gateway:
        bench = Bench(ctx, gateway, agent2, folder, **changes)
        if start:
            await bench.agent.start()
        try:
            yield bench
        finally:
            await bench.agent.close()
    await until(lambda: asyncio.all_tasks() == before)
    assert ctx.defects == []


def page(frame: dict[str, Any]) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(base64.b64decode(frame["payload"]["data"]))
    return value


@pytest.mark.req("HS-003", "HS-004", "HS-005", "HS-033", "SEC-006", "CHAT-002", "CHAT-004")
async def test_it_registers_with_what_it_can_and_never_with_a_path(tmp_path: Path) -> None:
    async with living(tmp_path) as bench:
        line = await bench.gateway.line()
        register, hello = await line.handshake()
        assert register["capabilities"] == hello["capabilities"] == ALL
        space = bench.config.workspaces[0]
        assert register["workspaces"] == [{"workspaceId": WORKSPACE, "pathSha256": space.path_sha256}]
        assert str(tmp_path) not in json.dumps([register, hello])


@pytest.mark.req("CHAT-038", "SQ-027", "CHAT-035")
async def test_a_chat_from_its_assignment_to_its_last_page(tmp_path: Path) -> None:
    async with living(tmp_path) as bench:
        line = await bench.ready()
        bench.agent2.line(json.dumps({"type": "text", "text": CANARY}))
        bench.agent2.finish("no_change")
        await line.say("job.assign", assign("chat", JOB, "why?"))
        assert (await line.frame("ack"))["payload"]["status"] == "accepted"
        seen: list[dict[str, Any]] = []
        while not seen or seen[-1]["type"] != "job.result":
            seen.append(await line.frame())
            await line.ack(seen[-1])
        assert (seen[-1]["payload"]["jobId"], seen[-1]["payload"]["outcome"]) == (JOB, "no_change")
        # CHAT-028: content in its field alone.
        assert CANARY not in json.dumps(seen)
        request = await line.ask("job.stream", JOB)
        answer = await line.frame("content.response")
        assert answer["requestId"] == request
        assert [event["i"] for event in page(answer)["events"]] == list(range(len(page(answer)["events"])))
        assert CANARY in json.dumps(page(answer))
        assert page(answer)["done"] is True


@pytest.mark.req("LA-026")
async def test_a_result_waits_for_the_ack_of_an_audit_before_it(tmp_path: Path) -> None:
    async with living(tmp_path, start=False) as bench:
        bench.agent2.health = {"status": "up", "kinds": ["fix"]}
        await bench.agent.start()
        line = await bench.ready()
        audit = await line.frame("audit.event")
        bench.agent2.finish("no_change")
        await line.say("job.assign", assign("fix", JOB))
        await line.frame("ack")
        await bench.agent2.until(lambda: bench.agent2.opened["events"] == 1)
        for _ in range(20):
            await line.send("ping")
            while (message := await line.next()) != "pong":
                assert "job.result" not in str(message)
        await line.ack(audit)
        assert (await line.until("job.result"))["payload"]["outcome"] == "no_change"


@pytest.mark.req("SQ-009")
async def test_a_type_without_a_handler_is_rejected(tmp_path: Path) -> None:
    async with living(tmp_path) as bench:
        line = await bench.ready()
        await line.say("config.update", {"revision": 1, "values": {}})
        message = await line.frame()
        assert (message["type"], message["payload"].get("errorCode")) == ("ack", "protocol_unsupported")


@pytest.mark.req("CH-035")
async def test_a_kind_of_content_without_a_handler_is_rejected_and_never_answered(tmp_path: Path) -> None:
    async with living(tmp_path) as bench:
        line = await bench.ready()
        request = "4e4e4e4e-0000-4000-8000-000000000001"
        await line.say("content.request", {"kind": "diff", "ref": JOB}, requestId=request)
        assert (await line.frame("ack"))["payload"]["errorCode"] == "protocol_unsupported"
        await line.ask("chat.session", JOB, 2)
        assert (await line.frame("content.response"))["requestId"] != request


async def test_a_request_id_is_answered_once(tmp_path: Path) -> None:
    async with living(tmp_path) as bench:
        line = await bench.ready()
        request = await line.ask("chat.session", JOB)
        assert (await line.frame("content.response"))["payload"]["status"] == "not_found"
        await line.say("content.request", {"kind": "chat.session", "ref": JOB}, requestId=request)
        assert (await line.frame("ack"))["payload"]["errorCode"] == "chunk_out_of_order"
        await line.ask("chat.session", JOB, 2)
        assert (await line.frame("content.response"))["requestId"] != request


@pytest.mark.req("LA-031")
async def test_a_cancel_of_an_unknown_job_is_taken_and_a_bad_approval_is_not(tmp_path: Path) -> None:
    async with living(tmp_path) as bench:
        line = await bench.ready()
        await line.say("job.cancel", {"jobId": JOB})
        assert (await line.frame("ack"))["payload"]["status"] == "accepted"
        decision = {"approvalId": "ap-1", "jobId": JOB, "decision": "approve", "token": "vhapr1.YQ.Yg"}
        await line.say("approval.decision", decision)
        assert (await line.frame("ack"))["payload"]["errorCode"] == "unauthorized"


@pytest.mark.req("SEC-019", "CH-010", "CH-011", "WS-081")
async def test_a_defect_behind_an_answer_is_told_and_its_caller_gets_internal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError(CANARY)

    monkeypatch.setattr("lab.localagent.work.AgentWork.content", broken)
    async with living(tmp_path) as bench:
        line = await bench.ready()
        await line.ask("chat.session", JOB)
        answer = await line.frame("content.response")
        assert (answer["payload"]["status"], answer["payload"]["errorCode"]) == ("error", "internal")
        assert [type(defect) for defect in bench.ctx.defects] == [RuntimeError]
        assert CANARY not in json.dumps(answer)
        bench.ctx.defects.clear()


@pytest.mark.req("RS-015", "RS-001")
async def test_an_answer_that_was_held_over_a_drop_leaves_after_the_resume(tmp_path: Path) -> None:
    async with living(tmp_path, stream_hold=0.3) as bench:
        line = await bench.ready()
        await line.say("job.assign", assign("chat", JOB, "why?"))
        await line.frame("ack")
        await bench.agent2.until(lambda: bench.agent2.opened["stream"] == 1)
        request = await line.ask("job.stream", JOB)
        line.cut()
        again = await bench.gateway.line()
        register, _ = await again.handshake(resumed=True)
        assert register["resume"]["sessionId"] == SESSION
        assert (await again.until("content.response"))["requestId"] == request


@pytest.mark.req("CHAT-005")
async def test_agent2_is_asked_again_before_a_further_connection(tmp_path: Path) -> None:
    async with living(tmp_path) as bench:
        line = await bench.ready()
        bench.agent2.health = {"status": "up", "kinds": ["fix"]}
        line.cut()
        register, _ = await (await bench.gateway.line()).handshake()
        assert register["capabilities"] == [name for name in ALL if name != "job.chat"]


# The end


async def test_the_end_comes_while_answers_and_jobs_are_under_way(tmp_path: Path) -> None:
    async with living(tmp_path, stream_hold=30.0) as bench:
        line = await bench.ready()
        await line.say("job.assign", assign("chat", JOB, "why?"))
        await line.frame("ack")
        await bench.agent2.until(lambda: bench.agent2.opened["stream"] == 1)
        await line.ask("job.stream", JOB)
        async with asyncio.timeout(5):
            await bench.agent.close()
            await bench.agent.close()
        assert await line.end() == 1000


async def test_no_frame_meets_work_that_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = []
    for place in ("lab.localagent.gateway_link.GatewayLink", "lab.localagent.work.AgentWork"):
        name = place.rpartition(".")[2]
        module, _, _ = place.rpartition(".")
        cls = getattr(__import__(module, fromlist=[name]), name)
        close = cls.close

        async def noting(self: object, close: Any = close, name: str = name) -> None:
            await close(self)
            order.append(name)

        monkeypatch.setattr(cls, "close", noting)
    async with living(tmp_path) as bench:
        line = await bench.ready()
        # A stream of assignments that goes on until the agent hangs up.
        flood = asyncio.create_task(_flood(line))
        await line.frame("ack")
        await bench.agent.close()
        flood.cancel()
        await asyncio.gather(flood, return_exceptions=True)
        assert order == ["GatewayLink", "AgentWork"]


async def _flood(line: Line) -> None:
    for number in range(1, 1000):
        await line.say("job.assign", assign("fix", f"{JOB[:-4]}{number:04d}"))


@pytest.mark.parametrize("started", [True, False])
async def test_an_agent_that_never_connected_can_be_closed(tmp_path: Path, started: bool) -> None:
    async with living(tmp_path, start=started) as bench:
        await bench.agent.close()


async def test_an_agent_that_is_closed_while_it_starts_never_connects(tmp_path: Path) -> None:
    async with living(tmp_path, start=False) as bench:
        looked = asyncio.Event()
        bench.agent2.on_health = looked.set
        starting = asyncio.create_task(bench.agent.start())
        await looked.wait()
        await bench.agent.close()
        await asyncio.gather(starting, return_exceptions=True)
        for _ in range(20):
            await asyncio.sleep(0)
        assert bench.gateway.opened == 0

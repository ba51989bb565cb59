"""The facade: alone, and over the agent2 double."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from nacl.signing import SigningKey

from lab.agent2.engine import Engine
from lab.agent2.script import parse_script
from lab.agent2.server import Agent2Server
from lab.clock import Clock
from lab.context import RunContext
from lab.journal.writer import Journal
from lab.localagent.work import AgentWork
from tests.localagent.doubles import (
    EPOCH_MS,
    JOB,
    JOB_B,
    TENANT,
    WORKSPACE,
    RecordingUplink,
    ScriptedAgent2,
    assign,
    config,
    context,
)
from tests.refused_port import refused_port

KEY = SigningKey(bytes(32))
CANARY = "canary-0123456789"


def approval(job_id: str = JOB, approval_id: str = "ap-1", **claims: Any) -> dict[str, Any]:
    """An approval.decision payload whose token is right but for `claims`."""
    due = {"approvalId": approval_id, "jobId": job_id, "tenantId": TENANT, "decision": "approve"}
    raw = json.dumps({**due, "exp": EPOCH_MS // 1000 + 60} | claims).encode()
    head = "vhapr1." + base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
    seal = base64.urlsafe_b64encode(KEY.sign(head.encode()).signature).rstrip(b"=").decode()
    return {"approvalId": approval_id, "jobId": job_id, "decision": "approve", "token": f"{head}.{seal}"}


@pytest.fixture
async def agent2() -> AsyncIterator[ScriptedAgent2]:
    async with ScriptedAgent2() as scripted:
        yield scripted


@pytest.fixture
def uplink() -> RecordingUplink:
    return RecordingUplink()


async def started(tmp_path: Path, agent2: ScriptedAgent2, uplink: RecordingUplink, **changes: Any) -> AgentWork:
    settings = config(tmp_path, agent2.url, trusted_keys={"k1": bytes(KEY.verify_key)}, **changes)
    work = AgentWork(context(), settings, uplink, "agent")
    await work.start()
    return work


@pytest.mark.req("CHAT-002", "CHAT-003", "CHAT-004", "LA-009", "CHAT-062", "CHAT-064")
@pytest.mark.parametrize(
    ("chat", "health", "ready"),
    [
        (True, {"status": "up", "kinds": ["fix", "chat"]}, True),
        (True, {"status": "up", "kinds": ["fix"]}, False),
        (True, {"status": "down"}, False),
        (False, {"status": "up", "kinds": ["chat"]}, False),
    ],
)
async def test_what_is_announced(
    tmp_path: Path, agent2: ScriptedAgent2, uplink: RecordingUplink, chat: bool, health: Any, ready: bool
) -> None:
    agent2.health = health
    work = await started(tmp_path, agent2, uplink, chat=chat)
    middle = ("job.chat",) if ready else ()
    assert work.capabilities() == ("job.assign", "job.options", *middle, "job.inline.16k")
    assert work.kinds == (("fix", "implement", "chat") if ready else ("fix", "implement"))
    assert work.assign(assign("chat", JOB, "q"), WORKSPACE) == (None if ready else "protocol_unsupported")
    assert uplink.codes() == (["chat_probe_negative"] if chat and not ready else [])
    await work.close()


async def test_long_inputs_can_be_left_out(tmp_path: Path, agent2: ScriptedAgent2, uplink: RecordingUplink) -> None:
    """As by an agent that cannot take them."""
    work = await started(tmp_path, agent2, uplink, inline_16k=False)
    assert work.capabilities() == ("job.assign", "job.options", "job.chat")
    await work.close()


@pytest.mark.req("CHAT-003", "CHAT-020")
async def test_no_store_no_chat(tmp_path: Path, agent2: ScriptedAgent2, uplink: RecordingUplink) -> None:
    (tmp_path / "chats").write_text("")
    work = await started(tmp_path, agent2, uplink)
    assert "job.chat" not in work.capabilities()
    assert not work.serves("job.stream")
    assert uplink.codes() == ["chat_store_unavailable"]
    await work.close()


@pytest.mark.req("CHAT-064")
async def test_starting_without_agent2(tmp_path: Path, uplink: RecordingUplink) -> None:
    with refused_port() as port:
        work = AgentWork(context(), config(tmp_path, f"http://127.0.0.1:{port}"), uplink, "agent")
        await work.start()
        capabilities = work.capabilities()
        await work.close()
        await work.close()
    assert "job.chat" not in capabilities
    assert uplink.codes() == ["chat_probe_negative"]


@pytest.mark.req("CHAT-005", "CHAT-023")
async def test_chat_that_vanishes_and_comes_back(
    tmp_path: Path, agent2: ScriptedAgent2, uplink: RecordingUplink
) -> None:
    work = await started(tmp_path, agent2, uplink)
    good, agent2.health = agent2.health, {"status": "up", "kinds": ["fix"]}
    assert work.assign(assign("chat", JOB, "q"), WORKSPACE) is None
    assert (await uplink.until("job.result"))[0]["errorCode"] == "infra"
    assert work.assign(assign("chat", JOB_B, "q"), WORKSPACE) == "protocol_unsupported"
    assert "job.chat" in work.capabilities()
    agent2.health = good
    await work.reprobe()
    assert work.assign(assign("chat", JOB_B, "q"), WORKSPACE) is None
    await work.close()


@pytest.mark.req("TY-007")
async def test_heartbeats(tmp_path: Path, agent2: ScriptedAgent2, uplink: RecordingUplink) -> None:
    work = await started(tmp_path, agent2, uplink)
    assert work.state() == {"state": "idle", "jobsRunning": 0, "queueDepth": 0}
    for job_id in (JOB, JOB_B):
        work.assign(assign(job_id=job_id), WORKSPACE)
    await agent2.until(lambda: agent2.opened["events"] == 1)
    assert work.state() == {"state": "busy", "jobsRunning": 1, "queueDepth": 1}
    await work.close()


@pytest.mark.req("LA-031", "TY-019", "A2-013", "LA-028")
async def test_approvals(tmp_path: Path, agent2: ScriptedAgent2, uplink: RecordingUplink) -> None:
    work = await started(tmp_path, agent2, uplink)
    assert work.approve(approval()) == "unauthorized"
    work.assign(assign(), WORKSPACE)
    await agent2.until(lambda: agent2.opened["events"] == 1)
    refused = [
        approval(job_id=JOB_B),
        approval(tenantId="other"),
        approval(jobId=JOB_B),
        approval(decision="deny"),
        approval(exp=EPOCH_MS // 1000 - 1),
        approval() | {"token": "vhapr1.a.b"},
    ]
    assert [work.approve(payload) for payload in refused] == ["unauthorized"] * len(refused)
    assert [work.approve(approval()) for _ in range(2)] == [None, None]
    assert work.approve(approval(approval_id="ap-2")) is None
    await agent2.until(lambda: len(agent2.called("POST", "/approvals/ap-2")) == 1)
    assert agent2.called("POST", "/approvals/ap-1") == [{"jobId": JOB, "decision": "approve"}]
    agent2.finish("no_change")
    await uplink.until("job.result")
    assert work.approve(approval()) == "unauthorized"
    await work.close()


async def test_a_decision_that_agent2_did_not_take_may_come_again(
    tmp_path: Path, agent2: ScriptedAgent2, uplink: RecordingUplink
) -> None:
    work = await started(tmp_path, agent2, uplink)
    agent2.approval_status = 500
    work.assign(assign(), WORKSPACE)
    await agent2.until(lambda: agent2.opened["events"] == 1)
    while len(agent2.called("POST", "/approvals/ap-1")) < 2:
        assert work.approve(approval()) is None
        agent2.frame("job.event", {"state": "running"})
        await uplink.until("job.event", len(agent2.frames) + 1)
    await work.close()


@pytest.mark.req("A2-017")
async def test_a_new_token_of_agent2(tmp_path: Path, agent2: ScriptedAgent2, uplink: RecordingUplink) -> None:
    work = await started(tmp_path, agent2, uplink)
    agent2.finish("no_change")
    work.assign(assign(), WORKSPACE)
    await uplink.until("job.result")
    work.new_agent2_token("another")
    work.assign(assign(job_id=JOB_B), WORKSPACE)
    await uplink.until("job.result", 2)
    assert list(dict.fromkeys(agent2.tokens)) == [None, "Bearer agent2-secret", "Bearer another"]
    await work.close()


@pytest.mark.req("TY-012", "TY-013")
async def test_a_cancel_through_the_facade(tmp_path: Path, agent2: ScriptedAgent2, uplink: RecordingUplink) -> None:
    work = await started(tmp_path, agent2, uplink)
    agent2.on_cancel = lambda: agent2.finish("cancelled")
    work.assign(assign(), WORKSPACE)
    await agent2.until(lambda: agent2.opened["events"] == 1)
    work.cancel({"jobId": JOB})
    assert await uplink.until("job.result") == [{"jobId": JOB, "outcome": "cancelled"}]
    assert agent2.called("POST", "/cancel") == [{"reason": "user"}]
    await work.close()


SCRIPT = """
script: leak
about: A chat that quotes a key
steps:
  - event: { phase: context, filesChanged: 2 }
  - text: "It says Authorization: Bearer {canary:token} there. "
  - wait: 20ms
  - tool: { name: read_file, excerpt: "password={canary:token}" }
  - answer: Move 9001 into the store.
  - done
  - result: { outcome: no_change }
"""


@pytest.mark.req("CHAT-026", "CHAT-060", "CHAT-036", "CHAT-010")
async def test_a_chat_over_the_agent2_double(tmp_path: Path, uplink: RecordingUplink) -> None:
    clock = Clock(asyncio.get_running_loop().time, EPOCH_MS)
    ctx = RunContext(7, clock, Journal(clock.now))
    script = parse_script(SCRIPT, "leak.yaml")
    engine = Engine(("fix", "implement", "chat"), {"chat": script}, TENANT, {"token": CANARY})
    server = Agent2Server(ctx, "agent2", engine, "agent2-secret")
    await server.start()
    work = AgentWork(ctx, config(tmp_path, server.url, stream_hold=5.0), uplink, "agent")
    await work.start()
    assert work.assign(assign("chat", JOB, "Why 9001?"), WORKSPACE) is None
    events: list[dict[str, Any]] = []
    ref, done = JOB, False
    while not done:
        answer = await work.content("job.stream", ref, None, WORKSPACE)
        page = json.loads(answer.body)
        events += page["events"]
        ref, done = page["nextRef"], page["done"]
    assert [event["i"] for event in events] == list(range(4))
    assert [json.loads(event["e"])["type"] for event in events] == ["text", "tool", "answer", "done"]
    assert await uplink.until("job.result") == [{"jobId": JOB, "outcome": "no_change", "filesChangedCount": 2}]
    session = json.loads((await work.content("chat.session", JOB, None, WORKSPACE)).body)
    assert [turn["text"] for turn in session["turns"]] == ["Why 9001?", "Move 9001 into the store."]
    assert CANARY not in json.dumps([events, session, uplink.sent])
    assert json.dumps(events).count("[masked]") == 2
    await work.close()
    await server.close()

"""The control API over real sockets: what its callers get, with and without an agent."""

from __future__ import annotations

import asyncio
import io
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from lab.agent2.engine import Engine
from lab.agent2.server import Agent2Server
from lab.clock import Clock
from lab.context import RunContext
from lab.errors import EnvironmentFault
from lab.gateway.control import MAX_BODY_BYTES, ControlApi
from lab.gateway.server import GatewayServer
from lab.journal.writer import Journal
from lab.localagent.agent import LocalAgent
from lab.localagent.config import AgentConfig, Workspace
from lab.protocol.contract import Contract, default_contract_folder
from lab.run.conditions import until
from lab.run.identity import Identity, draw_identity
from lab.run.world import make_gateway
from lab.scenario.model import GatewaySpec

TOKEN = "control-token-of-the-test"
EPOCH_MS = 1_790_000_000_000


@dataclass
class Control:
    """A gateway with its control API, and a client that bears the token."""

    ctx: RunContext
    identity: Identity
    gateway: GatewayServer
    api: ControlApi
    client: aiohttp.ClientSession

    @property
    def agent_id(self) -> str:
        return self.identity.agents["local_agent"].agent_id

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        async with self.client.request(method, self.api.url + path, json=body) as answer:
            return answer.status, await answer.json()


@pytest.fixture
async def control() -> AsyncIterator[Control]:
    loop = asyncio.get_running_loop()
    # The epoch is the wall clock's at lab time 0: handshakes are judged by it.
    clock = Clock(loop.time, EPOCH_MS)
    ctx = RunContext(3, clock, Journal(clock.now))
    identity = draw_identity(ctx, ("local_agent",), ("agent2",), ("gateway",))
    gateway = make_gateway(ctx, GatewaySpec("gateway"), ("local_agent",), identity, default_contract_folder())
    await gateway.start()
    names = {identity.agents["local_agent"].agent_id: "local_agent"}
    api = ControlApi(gateway, names, TOKEN, ctx.draws("control", "jobId").uuid)
    await api.start()
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with aiohttp.ClientSession(headers=headers, timeout=aiohttp.ClientTimeout(10)) as client:
        yield Control(ctx, identity, gateway, api, client)
    await api.close()
    await gateway.close()


@pytest.fixture
async def agent(control: Control, tmp_path: Path) -> AsyncIterator[LocalAgent]:
    """The reference agent with an agent2 behind it, READY at the gateway."""
    identity, mine = control.identity, control.identity.agents["local_agent"]
    engine = Engine(("fix", "implement", "chat"), {}, identity.tenant_id, {})
    agent2 = Agent2Server(control.ctx, "agent2", engine, identity.agent2_tokens["agent2"])
    await agent2.start()
    host, port = control.gateway.address
    signer = identity.signers["gateway"]
    config = AgentConfig(
        tenant_id=identity.tenant_id,
        agent_id=mine.agent_id,
        gateway_ws_url=f"ws://{host}:{port}/agent",
        gateway_token=mine.gateway_token,
        agent2_url=agent2.url,
        agent2_token=identity.agent2_tokens["agent2"],
        workspaces=(Workspace("ws-main", str(tmp_path)),),
        trusted_keys={signer.key_id: signer.public_key},
        state_dir=tmp_path / "state",
        chat=True,
    )
    local_agent = LocalAgent(control.ctx, "local_agent", config, Contract.load(default_contract_folder()))
    await local_agent.start()
    await until(control.ctx, lambda: control.gateway.core.is_ready(control.agent_id))
    yield local_agent
    await local_agent.close()
    await agent2.close()


@pytest.mark.parametrize("header", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}])
async def test_without_the_token_nothing_is_told(control: Control, header: dict[str, str]) -> None:
    async with aiohttp.ClientSession(headers=header) as stranger, stranger.get(f"{control.api.url}/sessions") as answer:
        assert answer.status == 401
        assert (await answer.json())["error"] == "unauthorized"


async def test_without_an_agent_a_job_is_503(control: Control) -> None:
    status, body = await control.ask("POST", "/jobs", {"kind": "chat", "inputs": ["hello"]})
    assert (status, body["error"]) == (503, "AGENT_OFFLINE")
    assert await control.ask("GET", "/sessions") == (
        200,
        {"sessions": [{"agent": "local_agent", "agentId": control.agent_id, "ready": False}]},
    )


@pytest.mark.parametrize(
    "body",
    [
        {"inputs": ["x"]},
        {"kind": "ask", "inputs": ["x"]},
        {"kind": "chat", "inputs": "x"},
        {"kind": "chat", "inputs": [1]},
        {"kind": "chat", "inputs": ["x"], "options": []},
        {"kind": "chat", "inputs": ["x"], "llm": 7},
        ["chat"],
    ],
)
async def test_a_body_of_another_form_is_400(control: Control, body: object) -> None:
    status, answer = await control.ask("POST", "/jobs", body)
    assert (status, answer["error"]) == (400, "bad_request")


async def test_text_that_is_no_json_is_400(control: Control) -> None:
    async with control.client.post(f"{control.api.url}/jobs", data=b"{") as answer:
        assert answer.status == 400


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_body_that_is_not_coded_as_it_says_is_400(control: Control, coding: str) -> None:
    headers = {"Content-Encoding": coding}
    async with control.client.post(f"{control.api.url}/jobs", data=b"no coding", headers=headers) as answer:
        assert (answer.status, (await answer.json())["error"]) == (400, "bad_request")


async def test_a_body_beyond_the_bound_is_400(control: Control) -> None:
    """The bound is told."""
    async with control.client.post(f"{control.api.url}/jobs", data=io.BytesIO(b" " * (MAX_BODY_BYTES + 1))) as answer:
        assert (answer.status, (await answer.json())["error"]) == (400, "bad_request")
        assert str(MAX_BODY_BYTES) in (await answer.json())["message"]


@pytest.mark.parametrize("path", ["", "/stream", "/session"])
async def test_an_unknown_job_is_404(control: Control, path: str) -> None:
    status, body = await control.ask("GET", f"/jobs/11111111-1111-4111-8111-111111111111{path}")
    assert (status, body["error"]) == (404, "not_found")


@pytest.mark.req("CP-022")
async def test_a_chat_from_its_assignment_to_its_conversation(control: Control, agent: LocalAgent) -> None:
    status, body = await control.ask("POST", "/jobs", {"kind": "chat", "inputs": ["Where is the tax rate set?"]})
    assert status == 202
    job_id = body["jobId"]
    await until(control.ctx, lambda: control.gateway.core.jobs[job_id].results > 0)

    status, job = await control.ask("GET", f"/jobs/{job_id}")
    assert (status, job["state"], job["result"]["outcome"]) == (200, "ended", "no_change")

    events: list[str] = []
    page: dict[str, Any] = {"done": False, "nextRef": ""}
    while not page["done"]:
        status, page = await control.ask("GET", f"/jobs/{job_id}/stream?ref={page['nextRef']}")
        assert status == 200
        events += [event["e"] for event in page["events"]]
    assert len(events) > 1

    status, session = await control.ask("GET", f"/jobs/{job_id}/session")
    assert status == 200
    assert [turn["role"] for turn in session["turns"]] == ["user", "assistant"]
    assert session["turns"][0]["text"] == "Where is the tax rate set?"

    status, refused = await control.ask("GET", f"/jobs/{job_id}/stream?ref={'A' * 43}")
    assert (status, refused["error"]) == (404, "not_found")


@pytest.mark.req("CP-002")
async def test_a_chat_for_an_agent_that_cannot_chat_is_503(control: Control, agent: LocalAgent) -> None:
    control.gateway.core._agents[control.agent_id].announced = ("job.assign",)
    status, body = await control.ask("POST", "/jobs", {"kind": "chat", "inputs": ["hello"]})
    assert (status, body["error"]) == (503, "AGENT_UNSUPPORTED")


@pytest.mark.req("CP-029")
async def test_an_input_that_does_not_fit_the_frame_is_413(control: Control, agent: LocalAgent) -> None:
    status, body = await control.ask("POST", "/jobs", {"kind": "chat", "inputs": ["\u00e9" * 16384]})
    assert (status, body["error"]) == (413, "frame_too_large")
    status, body = await control.ask("POST", "/jobs", {"kind": "chat", "inputs": ["x" * 16385]})
    assert (status, body["error"]) == (400, "schema_violation")


async def test_a_cancel_is_sent_on(control: Control, agent: LocalAgent) -> None:
    _, body = await control.ask("POST", "/jobs", {"kind": "fix", "inputs": []})
    assert (await control.ask("POST", f"/jobs/{body['jobId']}/cancel", {"reason": "boredom"}))[0] == 400
    assert (await control.ask("POST", f"/jobs/{body['jobId']}/cancel", {"reason": "policy"}))[0] == 202


async def test_a_taken_port_is_told_by_its_number(control: Control) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        api = ControlApi(control.gateway, {}, TOKEN, lambda: "", port=port)
        with pytest.raises(EnvironmentFault, match=rf"--control-port.*127\.0\.0\.1:{port}"):
            await api.start()
        await api.close()

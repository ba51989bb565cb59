"""The lab's own doubles as live peers of a trace, over real sockets, and the door for somebody's Local Agent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nacl.signing import SigningKey

from lab.agent2.engine import Engine
from lab.agent2.server import Agent2Server
from lab.context import RunContext
from lab.contract.trace_filling import LiveIdentity
from lab.contract.trace_line import Gateway
from lab.contract.trace_listener import AgentListener
from lab.contract.trace_live import LivePeer
from lab.contract.traces import Side
from lab.errors import RemoteError
from lab.gateway.jobs import Order
from lab.gateway.server import GatewayServer
from lab.localagent.agent import LocalAgent
from lab.localagent.config import AgentConfig, Workspace
from lab.protocol.contract import contract_of
from lab.run.identity import WORKSPACE_ID, draw_identity
from lab.run.world import make_gateway
from lab.scenario.model import GatewaySpec

AGENT, GATEWAY, AGENT2 = "local_agent", "gateway", "agent2"
KINDS = ("fix", "implement", "chat")


@asynccontextmanager
async def reference_gateway(ctx: RunContext, folder: Path, revision: str, patience: float) -> AsyncIterator[LivePeer]:
    """The gateway double, for one Local Agent, which the lab plays."""
    identity = draw_identity(ctx, (AGENT,), (), (GATEWAY,))
    server = make_gateway(ctx, GatewaySpec(GATEWAY, revision=revision), (AGENT,), identity, folder)
    await server.start()
    try:
        host, port = server.address
        agent = identity.agents[AGENT]
        application = _Application(server, agent.agent_id)
        yield LivePeer(
            side=Side.CP,
            place=Gateway(f"ws://{host}:{port}/agent", agent.gateway_token, patience),
            identity=LiveIdentity(identity.tenant_id, agent.agent_id, WORKSPACE_ID),
            contract=contract_of(folder, revision),
            wall_ms=ctx.wall_ms,
            fresh=ctx.draws("traces", "ids").uuid,
            patience=patience,
            prompt=application.ask,
        )
    finally:
        await server.close()


class _Application:
    """Has the gateway double send what a trace's control plane sends."""

    def __init__(self, server: GatewayServer, agent_id: str) -> None:
        self._server = server
        self._agent_id = agent_id

    async def ask(self, type_name: str, payload: Mapping[str, Any]) -> bool:
        """See `lab.contract.trace_live.Prompt`."""
        core = self._server.core
        try:
            match type_name:
                case "job.assign":
                    self._server.after(lambda now: _ignore(core.assign(self._agent_id, _order(payload), now)))
                case "content.request":
                    kind, ref = payload["kind"], payload["ref"]
                    self._server.after(lambda now: _ignore(core.request_content(self._agent_id, kind, ref, now)))
                case _:
                    return False
        except RemoteError:
            return False
        return True


def _order(payload: Mapping[str, Any]) -> Order:
    return Order(
        job_id=payload["jobId"],
        kind=payload["kind"],
        inputs=tuple(entry["inline"] for entry in payload["inputs"] if "inline" in entry),
        options=payload.get("options", {}),
        llm=payload.get("llm", {}).get("alias"),
    )


def _ignore(_result: object) -> None:
    """What a call to the core returns is told by the frames that follow."""


@dataclass(frozen=True)
class AgentDoor:
    """What stands ready for a Local Agent: the gateway that plays the traces, and an agent2 double."""

    peer: LivePeer
    gateway_url: str
    gateway_token: str = field(repr=False)
    agent2_url: str
    agent2_token: str = field(repr=False)
    key_id: str
    public_key: bytes


@asynccontextmanager
async def door_for_agent(
    ctx: RunContext, folder: Path, revision: str, patience: float, port: int = 0
) -> AsyncIterator[AgentDoor]:
    """Wait for a Local Agent, whoever wrote it. A taken port raises `EnvironmentFault`."""
    identity = draw_identity(ctx, (AGENT,), (AGENT2,), (GATEWAY,))
    agent, token = identity.agents[AGENT], identity.agent2_tokens[AGENT2]
    key: SigningKey = identity.signing_keys[GATEWAY]
    key_id = identity.signers[GATEWAY].key_id
    agent2 = Agent2Server(ctx, AGENT2, Engine(KINDS, {}, identity.tenant_id, {}), token)
    listener = AgentListener(agent.gateway_token, patience, port)
    try:
        await listener.start()
        await agent2.start()
        peer = LivePeer(
            side=Side.LA,
            place=listener,
            identity=LiveIdentity(identity.tenant_id, agent.agent_id, key=(key_id, key)),
            contract=contract_of(folder, revision),
            wall_ms=ctx.wall_ms,
            fresh=ctx.draws("traces", "ids").uuid,
            patience=patience,
        )
        public = bytes(key.verify_key)
        yield AgentDoor(peer, listener.url, agent.gateway_token, agent2.url, token, key_id, public)
    finally:
        await listener.close()
        await agent2.close()


@asynccontextmanager
async def reference_agent(
    ctx: RunContext, folder: Path, revision: str, patience: float, home: Path
) -> AsyncIterator[LivePeer]:
    """The reference Local Agent, for which the lab plays the gateway. `home` is a folder that it may fill."""
    async with door_for_agent(ctx, folder, revision, patience) as door:
        identity = door.peer.identity
        workspace = home / "workspace"
        workspace.mkdir(mode=0o700)
        config = AgentConfig(
            tenant_id=identity.tenant,
            agent_id=identity.agent,
            gateway_ws_url=door.gateway_url,
            gateway_token=door.gateway_token,
            agent2_url=door.agent2_url,
            agent2_token=door.agent2_token,
            workspaces=(Workspace(WORKSPACE_ID, str(workspace)),),
            trusted_keys={door.key_id: door.public_key},
            state_dir=home / "state",
            chat=True,
        )
        agent = LocalAgent(ctx, AGENT, config, contract_of(folder, revision))
        try:
            await agent.start()
            yield door.peer
        finally:
            await agent.close()

"""The traces that a Local Agent can be judged by, played live against the one in Node."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lab.contract.trace_grades import CaseResult, Grade
from lab.contract.trace_live import play_live
from lab.contract.trace_peers import AgentDoor, door_for_agent
from lab.contract.trace_run import for_peer, new_context
from lab.contract.traces import Side, load_traces
from lab.protocol.contract import default_contract_folder
from tests.interop import test_node_agent

pytestmark = pytest.mark.timeout(120)
FOLDER = default_contract_folder()
MAIN = test_node_agent.AGENT / "src" / "main.js"
PATIENCE = 10.0
modules = test_node_agent.modules

REFUSED = {
    "invalid-frame-over-48kib": "frame_too_large",
    "invalid-params-raw-differs-from-payload": "params_mismatch",
    "invalid-seq-gap": "seq_gap",
    "invalid-sig-tenant-mismatch": "tenant_mismatch",
}
WELL = (
    "valid-chat-job-and-stream",
    "valid-handshake-and-job",
    "valid-resume-continues-seq",
    "valid-retransmit-is-idempotent",
)
UNSERVED = "valid-content-chunks-in-order"
"""It asks for file.list, which that agent leaves out, and says so."""


def environment(door: AgentDoor, modules: Path, home: Path) -> dict[str, str]:
    workspace = home / "workspace"
    workspace.mkdir()
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "NODE_PATH": str(modules),
        "LAB_GATEWAY_WS_URL": door.gateway_url,
        "LAB_GATEWAY_TOKEN": door.gateway_token,
        "LAB_AGENT2_URL": door.agent2_url,
        "LAB_AGENT2_TOKEN": door.agent2_token,
        "LAB_TENANT_ID": door.peer.identity.tenant,
        "LAB_AGENT_ID": door.peer.identity.agent,
        "LAB_TRUSTED_KEYS": f"{door.key_id}={base64.b64encode(door.public_key).decode()}",
        "LAB_WORKSPACES": json.dumps([{"workspaceId": "ws-node", "path": str(workspace)}]),
        "LOCAL_AGENT_CHAT": "true",
    }


@contextlib.asynccontextmanager
async def node_agent(door: AgentDoor, modules: Path, home: Path) -> AsyncIterator[None]:
    agent = await asyncio.create_subprocess_exec(
        *("node", str(MAIN)),
        env=environment(door, modules, home),
        cwd=test_node_agent.AGENT,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        agent.terminate()
        await agent.wait()


async def test_the_agent_is_judged_by_every_trace_that_fits(modules: Path, tmp_path: Path) -> None:
    results: dict[str, CaseResult] = {}
    async with door_for_agent(new_context(), FOLDER, "2.3", PATIENCE) as door, node_agent(door, modules, tmp_path):
        for trace in for_peer(load_traces(FOLDER).traces, Side.LA):
            results[trace.name] = await play_live(trace, door.peer)
    assert set(results) == {*REFUSED, *WELL, UNSERVED}
    unserved = results.pop(UNSERVED)
    assert (unserved.grade, "protocol_unsupported" in unserved.seen) == (Grade.NON_STRICT, True)
    assert {name: (one.grade, one.seen) for name, one in results.items()} == {
        **{name: (Grade.PASS, f"refused with {code}") for name, code in REFUSED.items()},
        **dict.fromkeys(WELL, (Grade.PASS, "went well")),
    }
    assert [one.name for one in (*results.values(), unserved) if not one.close_as_due] == []

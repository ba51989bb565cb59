"""What the gateway's witness writes down beside frames: credentials, reports, the log, and what is kept."""

from __future__ import annotations

import logging

import pytest
from websockets.asyncio.client import connect

from lab.gateway.server import GatewayServer
from lab.journal.events import GatewayKept, GatewayLogged, JobMoved, SessionChanged, SocketOpened, digest
from lab.run.identity import PROMPT_CANARY
from tests.gateway.server_bench import ServerBench, serving, until
from tests.gateway.test_server import JOB, chat


@pytest.mark.parametrize("credential", ["ok", "none", "unknown"])
async def test_a_credential_is_looked_at_apart_from_whoever_let_it_in(
    credential: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving() as bench:
        monkeypatch.setattr(GatewayServer, "_agent_of", lambda *_: bench.agent_id())
        token = bench.token("one" if credential == "ok" else "two")
        headers = {} if credential == "none" else {"Authorization": f"Bearer {token}"}
        host, port = bench.server.address
        async with connect(f"ws://{host}:{port}/agent", additional_headers=headers, proxy=None):
            await until(lambda: bool(bench.events(SocketOpened)))
        (opened,) = bench.events(SocketOpened)
        assert (opened.agent, opened.credential) == ("one", credential)


async def assigned(bench: ServerBench, acked: bool) -> None:
    peer = await bench.peer()
    bench.assign(chat(bench.identity.canaries[PROMPT_CANARY]))
    frame = await peer.next_frame()
    if acked:
        await peer.send(peer.hand.ack(frame))
        await until(lambda: bool(bench.events(JobMoved)))
    await peer.client.close()
    await until(lambda: len(bench.events(SessionChanged)) == 2)


async def test_how_often_a_caller_was_told() -> None:
    async with serving() as bench:
        await assigned(bench, acked=True)
        assert bench.events(JobMoved) == [JobMoved(JOB, "accepted", 0, 0)]


@pytest.mark.req("SEC-002")
@pytest.mark.parametrize("acked", [True, False])
async def test_a_prompt_is_not_kept_once_the_agent_has_it(acked: bool) -> None:
    """While its frame waits for an ack it must be held, and what is held then tells nothing."""
    async with serving() as bench:
        await assigned(bench, acked)
    assert bench.events(GatewayKept) == [GatewayKept(() if acked else None)]


async def test_what_is_held_of_a_connected_agent_tells_nothing() -> None:
    async with serving() as bench:
        await bench.peer()
        await bench.server.close()
        await bench.server.close()
    assert bench.events(GatewayKept) == [GatewayKept(None)]


async def test_what_gateways_log() -> None:
    async with serving() as bench:
        canary = bench.identity.canaries[PROMPT_CANARY]
        logging.getLogger("lab.gateway.anywhere").info("sent %s", canary)
    logging.getLogger("lab.gateway").warning("too late")
    assert bench.events(GatewayLogged) == [GatewayLogged(digest("log", f"sent {canary}"), (PROMPT_CANARY,))]

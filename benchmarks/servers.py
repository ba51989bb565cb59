"""The servers that are measured, each in a process of its own: doubles, fault proxies, and bare ones.

    python -m benchmarks.servers gateway|echo|agent2|stream|upstream|engine|toxiproxy|… ORDER

ORDER is JSON. The first line of output says where the server listens; the end of input ends it.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from benchmarks import bare_servers
from benchmarks.fault_servers import engine, toxiproxy, upstream

SEED = 7
TOKEN = "benchmark"  # noqa: S105  of a server on the loopback that lives for seconds
EVENT_TEXT = "The price rule looks for a product that the catalogue does not hold, and so the order fails. " + "{n}"

Order = Mapping[str, Any]
Said = Mapping[str, Any]


@asynccontextmanager
async def gateway(order: Order) -> AsyncIterator[Said]:
    """The gateway double as a run makes it; its journal is a file, and in memory too if `keep`."""
    from lab.clock import Clock
    from lab.context import RunContext
    from lab.journal.writer import Journal
    from lab.protocol.contract import default_contract_folder
    from lab.run.identity import draw_identity
    from lab.run.world import make_gateway
    from lab.scenario.model import GatewaySpec

    clock = Clock(asyncio.get_running_loop().time, time.time_ns() // 1_000_000)
    journal = Journal(clock.now, Path(order["journal"]), keep=order.get("keep", False))
    ctx = RunContext(SEED, clock, journal)
    names = tuple(f"agent-{number}" for number in range(order["agents"]))
    identity = draw_identity(ctx, names, (), ("gateway",))
    double = make_gateway(ctx, GatewaySpec("gateway"), names, identity, default_contract_folder())
    await double.start()
    host, port = double.address
    agents = [{"id": agent.agent_id, "token": agent.gateway_token} for agent in identity.agents.values()]
    try:
        yield {"url": f"ws://{host}:{port}/agent", "tenant": identity.tenant_id, "agents": agents}
    finally:
        await double.close()
        journal.close()
        if ctx.defects:
            raise ctx.defects[0]


@asynccontextmanager
async def echo(_order: Order) -> AsyncIterator[Said]:
    """A bare websockets server that sends every message back."""
    from websockets.asyncio.server import ServerConnection, serve

    async def answer(websocket: ServerConnection) -> None:
        async for message in websocket:
            await websocket.send(message)

    async with serve(answer, "127.0.0.1", 0, compression=None, ping_interval=None) as server:
        host, port = next(iter(server.sockets)).getsockname()[:2]
        yield {"url": f"ws://{host}:{port}/agent"}


@asynccontextmanager
async def agent2(order: Order) -> AsyncIterator[Said]:
    """The agent2 double with a script of `events` lines and no waits; its journal is a file."""
    from lab.agent2.engine import Engine
    from lab.agent2.script import parse_script
    from lab.agent2.server import Agent2Server
    from lab.clock import Clock
    from lab.context import RunContext
    from lab.journal.writer import Journal

    clock = Clock(asyncio.get_running_loop().time, time.time_ns() // 1_000_000)
    journal = Journal(clock.now, Path(order["journal"]), keep=False)
    ctx = RunContext(SEED, clock, journal)
    repeat = json.dumps({"count": order["events"], "text": EVENT_TEXT})
    script = parse_script(
        f"script: many\nabout: many lines at once\nsteps:\n  - repeat: {repeat}\n  - end: done\n", "many"
    )
    engine = Engine(("chat",), {"chat": script}, ctx.draws("run", "tenantId").uuid(), {})
    double = Agent2Server(ctx, "agent2", engine, TOKEN)
    await double.start()
    try:
        yield {"url": double.url, "token": TOKEN}
    finally:
        await double.close()
        journal.close()


@asynccontextmanager
async def stream(order: Order) -> AsyncIterator[Said]:
    """A bare aiohttp server that writes the same bytes, an event a write."""
    from aiohttp import web

    texts = (EVENT_TEXT.replace("{n}", str(n)) for n in range(1, order["events"] + 1))
    lines = (json.dumps({"type": "text", "text": text}, separators=(",", ":")) for text in texts)
    events = [f"data: {line}\n\n".encode() for line in lines]

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        for event in events:
            await response.write(event)
        await response.write_eof()
        return response

    app = web.Application()
    app.router.add_get("/stream", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        host, port = runner.addresses[0][:2]
        yield {"url": f"http://{host}:{port}"}
    finally:
        await runner.cleanup()


Kind = Callable[[Order], AbstractAsyncContextManager[Said]]
KINDS: Mapping[str, Kind] = {
    "gateway": gateway,
    "echo": echo,
    "agent2": agent2,
    "stream": stream,
    "upstream": upstream,
    "engine": engine,
    "toxiproxy": toxiproxy,
    **bare_servers.KINDS,
}


def _kind(name: str) -> Kind:
    if name in KINDS:
        return KINDS[name]
    from benchmarks.partner_servers import KINDS as OF_PARTNER  # loads more of the lab than the others need

    return OF_PARTNER[name]


async def _serve(kind: Kind, order: Order) -> None:
    async with kind(order) as said:
        # What start-up left behind is not of the load.
        gc.collect()
        print(json.dumps(said), flush=True)
        await _end_of_input()


def _end_of_input() -> Awaitable[None]:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()

    def look() -> None:
        if not os.read(sys.stdin.fileno(), 4096):
            loop.remove_reader(sys.stdin.fileno())
            ended.set_result(None)

    loop.add_reader(sys.stdin.fileno(), look)
    return ended


def raise_file_limit() -> None:
    """As many open files as this user may have: a thousand sockets are more than the usual soft limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


if __name__ == "__main__":
    raise_file_limit()
    order = json.loads(sys.argv[2])
    asyncio.run(_serve(_kind(sys.argv[1]), order))

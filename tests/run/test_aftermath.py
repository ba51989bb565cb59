"""What agents leave when they have ended."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

import pytest

from lab.clock import Clock
from lab.context import RunContext
from lab.faults.link import Link
from lab.journal.events import ConnectionLeft, SutFile
from lab.journal.writer import Journal
from lab.run.aftermath import LETTING_GO_SECONDS, look_back
from lab.run.suts import AttachedSut, Sut


class Holding(asyncio.Protocol):
    """A server's side that goes on when its client has said that it does not."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.connected = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.connected.set()

    def eof_received(self) -> bool:
        return True


class Bench:
    """A link to a server that holds on to what comes, and one client of it."""

    def __init__(self) -> None:
        clock = Clock(asyncio.get_running_loop().time, 1_700_000_000_000)
        self.ctx = RunContext(1, clock, Journal(clock.now))
        self.served = Holding()

    async def __aenter__(self) -> Bench:
        self._server = await asyncio.get_running_loop().create_server(lambda: self.served, "127.0.0.1", 0)
        self.link = Link(self.ctx, "agent2", self._server.sockets[0].getsockname())
        await self.link.start()
        _, self.writer = await asyncio.open_connection(*self.link.address)
        await self.served.connected.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()
        await self.writer.wait_closed()
        await self.link.close()
        self.served.transport.abort()
        self._server.close()
        await self._server.wait_closed()

    def left(self) -> list[object]:
        events = [entry.event for entry in self.ctx.journal.entries]
        return [event for event in events if isinstance(event, ConnectionLeft | SutFile)]


async def test_a_connection_that_is_still_held() -> None:
    async with Bench() as bench:
        await look_back(bench.ctx, (), (bench.link,), {})
        assert bench.left() == [ConnectionLeft("agent2", "agent2-1", LETTING_GO_SECONDS)]


async def test_a_client_that_has_let_go_is_enough() -> None:
    """What the other side does then is not the agent's."""
    async with Bench() as bench:
        bench.writer.write_eof()
        began = asyncio.get_running_loop().time()
        await look_back(bench.ctx, (), (bench.link,), {})
        assert bench.left() == []
        assert asyncio.get_running_loop().time() - began < LETTING_GO_SECONDS


async def test_an_attached_agent_goes_on() -> None:
    async with Bench() as bench:
        attached = AttachedSut(bench.ctx, "la", "", print)
        await look_back(bench.ctx, (attached,), (bench.link,), {})
        assert bench.left() == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The state of an agent: a queue with a key in it."""
    tmp_path.chmod(0o700)
    (tmp_path / "queue.json").write_text("the key", "utf-8")
    (tmp_path / "queue.json").chmod(0o600)
    return tmp_path


async def test_the_files_of_each_agent_that_has_any(folder: Path) -> None:
    class Kept:
        name = "la"
        state: Path | None = folder

    class Untold(Kept):
        state = None

    async with Bench() as bench:
        await look_back(bench.ctx, [cast(Sut, kind()) for kind in (Kept, Untold)], (), {"k": "the key"})
        assert bench.left() == [
            SutFile("la", "", folder=True, mode=0o700),
            SutFile("la", "queue.json", folder=False, mode=0o600, canaries=("k",)),
        ]

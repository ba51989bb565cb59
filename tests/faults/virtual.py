"""Proxies on the virtual clock, with no latency of the network's own: what happens to both peers, and exactly when."""

from __future__ import annotations

import asyncio
import functools
import gc
import socket
import struct
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from lab.draws import Draws
from lab.faults.engine import Engine
from lab.faults.proxy import Proxy
from lab.faults.specs import ProxySpec, ToxicSpec
from lab.sim.kernel import Network
from lab.sim.run import run_virtual

LATER = 50_000.0
"""Virtual seconds after which nothing is going on any more."""


def near(seconds: float) -> Any:
    """That time, but for the last digits of a float."""
    return pytest.approx(seconds, abs=1e-6)


class Peer(asyncio.Protocol):
    """One end of a connection: what it heard, and when."""

    def __init__(self) -> None:
        self.heard: list[tuple[float, object]] = []
        self.transport: asyncio.Transport = cast(asyncio.Transport, None)

    @property
    def read(self) -> bytes:
        """All bytes that came."""
        return b"".join(what for _, what in self.heard if isinstance(what, bytes))

    @property
    def ends(self) -> list[tuple[float, str]]:
        return [(when, what) for when, what in self.heard if isinstance(what, str)]

    def when(self, size: int) -> float:
        """When it had so many bytes."""
        total = 0
        for when, what in self.heard:
            total += len(what) if isinstance(what, bytes) else 0
            if total >= size:
                return when
        raise AssertionError(f"{total} bytes came, not {size}")

    def send(self, data: bytes) -> None:
        self.transport.write(data)

    def finish(self) -> None:
        self.transport.write_eof()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._hear(data)

    def eof_received(self) -> bool:
        self._hear("FIN")
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        if isinstance(exc, ConnectionResetError):
            self._hear("RST")

    def _hear(self, what: object) -> None:
        self.heard.append((asyncio.get_running_loop().time(), what))


@dataclass
class Rig:
    """An upstream, an engine, and the peers of connections through it. Time begins at 0."""

    engine: Engine
    upstream: str = ""
    servers: list[Peer] = field(default_factory=list)
    clients: list[Peer] = field(default_factory=list)

    def accept(self) -> Peer:
        self.servers.append(Peer())
        return self.servers[-1]

    async def proxy(self, *toxics: ToxicSpec, name: str = "p") -> Proxy:
        return await self.engine.create(ProxySpec(name, "127.0.0.1:0", self.upstream), toxics)

    async def client(self, proxy: Proxy) -> Peer:
        _, peer = await asyncio.get_running_loop().create_connection(Peer, *proxy.address)
        self.clients.append(peer)
        return peer

    async def pair(self, proxy: Proxy) -> tuple[Peer, Peer]:
        """A connection through the proxy, once its upstream has it too."""
        count = len(self.servers) + 1
        client = await self.client(proxy)
        while len(self.servers) < count or self.servers[-1].transport is None:  # noqa: ASYNC110 (it has no event)
            await asyncio.sleep(0)
        server = self.servers[-1]
        while proxy.connections()[-1].upstream_local is None:  # noqa: ASYNC110
            await asyncio.sleep(0)
        return client, server


def virtual(test: Callable[[Rig], Awaitable[None]], window: int = 1 << 20) -> Callable[[], None]:
    """A test as a plain function, which runs on the virtual clock and leaves nothing behind.

    `window` is what a direction of a simulated connection holds.
    """

    async def main() -> None:
        loop = asyncio.get_running_loop()
        failures: list[dict[str, Any]] = []
        loop.set_exception_handler(lambda _, failure: failures.append(failure))
        rig = Rig(Engine(loop, functools.partial(Draws, 7)))
        server = await loop.create_server(rig.accept, "127.0.0.1", 0)
        rig.upstream = "{}:{}".format(*server.sockets[0].getsockname())
        before = asyncio.all_tasks()
        try:
            await test(rig)
        finally:
            await rig.engine.close()
            server.close()
            for peer in (*rig.servers, *rig.clients):
                peer.transport.abort()
            await asyncio.sleep(1)
        assert asyncio.all_tasks() == before
        assert failures == []

    def run() -> None:
        body: Callable[[], Coroutine[Any, Any, None]] = main
        try:
            run_virtual(body, 7, network=Network(latency=0.0, jitter=0.0, window=window))
        finally:
            # What was dropped without being closed warns when it is collected.
            gc.collect()

    run.__name__ = getattr(test, "__name__", "run")
    run.__doc__ = test.__doc__
    run.__module__ = test.__module__
    return run


def reset(peer: Peer) -> None:
    """Have a peer break its connection with RST."""
    linger = struct.pack("ii", 1, 0)
    peer.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    peer.transport.abort()


async def at(time: float) -> None:
    """Sleep until that time."""
    await asyncio.sleep(time - asyncio.get_running_loop().time())


def toxic(
    type_: str, stream: str = "upstream", *, toxicity: float = 1.0, name: str | None = None, **attributes: object
) -> ToxicSpec:
    return ToxicSpec(type_, name, stream, toxicity, attributes)

"""What a listener's sockets are given to those that they accept."""

from __future__ import annotations

import asyncio
import socket

from tests.faults.bench import Bench, until


async def test_small_writes_go_at_once_on_both_sides(bench: Bench) -> None:
    """Else a delayed ack holds the end of a message back for 40 ms."""
    accepted: list[socket.socket] = []
    link = await bench.link()
    loop = asyncio.get_running_loop()
    client, _ = await bench.pair(link)
    address = client.raw.getsockname()
    await until(lambda: any(state.client == address for state in link.connections()))
    transports: list[asyncio.BaseTransport] = list(loop._transports.values())  # type: ignore[attr-defined]
    accepted += [one.get_extra_info("socket") for one in transports]
    assert len(accepted) == 2
    assert all(raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for raw in accepted)

"""What toxics and states do to connections, as seen from their two ends, on either server.

A time is asserted from below only: a busy machine makes everything later, nothing earlier.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.faults.api.target import Client, End, Upstream

PATTERN = bytes(range(251)) * 400
"""About 100 KB in which no two places near each other look the same."""


def lap() -> Callable[[], float]:
    """Seconds since this call."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    return lambda: loop.time() - start


async def pair(client: Client, upstream: Upstream, kind: str = "", /, **attributes: int) -> list[End]:
    """Through a proxy `a` with one toxic downstream or none: the far end, which sends that way, and the near one."""
    made = await client.create("a", upstream.address)
    if kind:
        await client.add_toxic("a", kind, **attributes)
    near, far = await upstream.pair(made["listen"])
    return [far, near]


async def test_no_toxic(client: Client, upstream: Upstream) -> None:
    """Every byte, both ways, and half-close."""
    far, near = await pair(client, upstream)
    for sender, receiver in ((far, near), (near, far)):
        sending = asyncio.create_task(sender.send(PATTERN))
        assert await receiver.read(len(PATTERN)) == PATTERN
        await sending
    near.send_fin()
    assert await far.read_to_fin() == b""
    await far.send(b"late")
    far.send_fin()
    assert await near.read_to_fin() == b"late"


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("noop", {}),
        ("latency", {"latency": 20, "jitter": 20}),
        ("bandwidth", {"rate": 5000}),
        ("slicer", {"average_size": 700, "size_variation": 300, "delay": 10}),
        ("slow_close", {"delay": 10}),
    ],
)
async def test_no_byte_is_lost(client: Client, upstream: Upstream, kind: str, attributes: dict[str, int]) -> None:
    """By toxics that only delay or cut into pieces."""
    far, near = await pair(client, upstream, kind, **attributes)
    sending = asyncio.create_task(far.send(PATTERN))
    assert await near.read(len(PATTERN)) == PATTERN
    await sending
    far.send_fin()
    assert await near.read_to_fin() == b""


async def test_latency(client: Client, upstream: Upstream) -> None:
    """One way only."""
    far, near = await pair(client, upstream, "latency", latency=300)
    gone = lap()
    await near.send(b"up")
    assert await far.read(2) == b"up"
    await far.send(b"down")
    assert await near.read(4) == b"down"
    assert gone() >= 0.29


async def test_bandwidth(client: Client, upstream: Upstream) -> None:
    """100 KB at 200 KB/s take half a second."""
    far, near = await pair(client, upstream, "bandwidth", rate=200)
    gone = lap()
    sending = asyncio.create_task(far.send(PATTERN))
    assert len(await near.read(len(PATTERN))) == len(PATTERN)
    assert gone() >= 0.35
    await sending


async def test_slicer(client: Client, upstream: Upstream) -> None:
    """A pause after each slice: nine pauses at least before the tenth slice."""
    far, near = await pair(client, upstream, "slicer", average_size=10, delay=20_000)
    gone = lap()
    await far.send(PATTERN[:100])
    assert await near.read(100) == PATTERN[:100]
    assert gone() >= 0.17


async def test_slow_close(client: Client, upstream: Upstream) -> None:
    """Bytes at once, the end later."""
    far, near = await pair(client, upstream, "slow_close", delay=300)
    gone = lap()
    await far.send(b"x")
    far.send_fin()
    assert await near.read_to_fin() == b"x"
    assert gone() >= 0.29


async def test_limit_data(client: Client, upstream: Upstream) -> None:
    """Exactly so many, then the end."""
    far, near = await pair(client, upstream, "limit_data", bytes=12_345)
    sending = asyncio.create_task(far.send(PATTERN[:20_000]))
    assert await near.read_to_fin() == PATTERN[:12_345]
    await sending


async def test_limit_data_of_nothing(client: Client, upstream: Upstream) -> None:
    """The first data ends it."""
    far, near = await pair(client, upstream, "limit_data", bytes=0)
    await far.send(b"x")
    assert await near.read_to_fin() == b""


async def test_timeout(client: Client, upstream: Upstream) -> None:
    """Data is dropped, and after the time it ends."""
    far, near = await pair(client, upstream, "timeout", timeout=200)
    gone = lap()
    await far.send(b"x")
    assert await near.read_to_fin() == b""
    assert gone() >= 0.19


@pytest.mark.parametrize("way", ["delete", "reset"])
async def test_a_timeout_that_is_taken_away(client: Client, upstream: Upstream, way: str) -> None:
    """Ends the connections under it, and the next one lives."""
    far, near = await pair(client, upstream, "timeout", timeout=0)
    await far.send(b"x")
    path = ("DELETE", "/proxies/a/toxics/timeout_downstream") if way == "delete" else ("POST", "/reset")
    assert (await client.call(*path)).status == 204
    assert await near.read_to_fin() == b""
    fresh, other = await upstream.pair((await client.get("/proxies/a"))["listen"])
    await other.send(b"y")
    assert await fresh.read(1) == b"y"


async def test_reset_peer(client: Client, upstream: Upstream) -> None:
    """RST, once data comes."""
    far, near = await pair(client, upstream, "reset_peer", timeout=0)
    await far.send(b"x")
    assert await near.ending() == "rst"


async def test_a_stall_that_is_taken_away(client: Client, upstream: Upstream) -> None:
    """What waits goes on."""
    far, near = await pair(client, upstream, "latency", latency=3_600_000)
    await far.send(b"x")
    assert (await client.call("DELETE", "/proxies/a/toxics/latency_downstream")).status == 204
    assert await near.read(1) == b"x"


async def test_toxicity_zero(client: Client, upstream: Upstream) -> None:
    """Touches nobody."""
    made = await client.create("a", upstream.address)
    body = {"type": "limit_data", "toxicity": 0}
    assert (await client.call("POST", "/proxies/a/toxics", body)).status == 200
    near, far = await upstream.pair(made["listen"])
    await far.send(b"x")
    assert await near.read(1) == b"x"


async def test_a_live_connection_meets_a_new_toxic(client: Client, upstream: Upstream) -> None:
    """In the stream it is for."""
    far, near = await pair(client, upstream)
    await client.add_toxic("a", "limit_data", "upstream", bytes=2)
    await far.send(b"down")
    assert await near.read(4) == b"down"
    await near.send(b"up!")
    assert await far.read_to_fin() == b"up"


async def test_disabled(client: Client, upstream: Upstream) -> None:
    """FIN to live connections, none new; on again at the same port."""
    made = await client.create("a", upstream.address)
    near, far = await upstream.pair(made["listen"])
    assert (await client.call("POST", "/proxies/a", {"enabled": False})).status == 200
    assert (await near.ending(), await far.ending()) == ("fin", "fin")
    with pytest.raises(ConnectionRefusedError):
        await upstream.connect(made["listen"])
    assert (await client.call("POST", "/proxies/a", {"enabled": True})).status == 200
    near, far = await upstream.pair(made["listen"])
    await near.send(b"x")
    assert await far.read(1) == b"x"


async def test_another_upstream(client: Client, upstream: Upstream) -> None:
    """Drops the connections, and leads new ones there."""
    made = await client.create("a", upstream.address)
    near, _ = await upstream.pair(made["listen"])
    other = Upstream()
    try:
        assert (await client.call("POST", "/proxies/a", {"upstream": other.address})).status == 200
        assert await near.ending() == "fin"
        fresh, far = await other.pair(made["listen"])
        await far.send(b"x")
        assert await fresh.read(1) == b"x"
    finally:
        other.close()


async def test_reset_keeps_connections(client: Client, upstream: Upstream) -> None:
    """And what a toxic held goes on."""
    far, near = await pair(client, upstream, "bandwidth", rate=0)
    await far.send(b"held")
    assert (await client.call("POST", "/reset")).status == 204
    assert await near.read(4) == b"held"
    await near.send(b"alive")
    assert await far.read(5) == b"alive"


async def test_deleted(client: Client, upstream: Upstream) -> None:
    """Ends its connections and gives the port back."""
    made = await client.create("a", upstream.address)
    near, far = await upstream.pair(made["listen"])
    assert (await client.call("DELETE", "/proxies/a")).status == 204
    assert "fin" in {await near.ending(), await far.ending()}
    assert (await client.call("POST", "/proxies", {**made, "name": "b"})).status == 201

"""The buffer that all connections of a loop read into."""

from __future__ import annotations

import random

from tests.faults.bench import Bench, JumpingClock, until
from tests.faults.virtual import Rig, at, virtual


async def test_connections_that_read_at_once_never_mix_their_bytes(bench: Bench, clock: JumpingClock) -> None:
    """Both ways, and while what was read before is still held."""
    link = await bench.link(delay=10)
    pairs = [await bench.pair(link) for _ in range(4)]
    dice = random.Random(5)
    sent = [(dice.randbytes(40_000), dice.randbytes(40_000)) for _ in pairs]
    for start in range(0, 40_000, 1000):
        for (client, server), (up, down) in zip(pairs, sent, strict=True):
            await client.send(up[start : start + 1000])
            await server.send(down[start : start + 1000])
    await until(lambda: all(state.up_held == state.down_held == 40_000 for state in link.connections()))
    await clock.jump(10)
    for (client, server), (up, down) in zip(pairs, sent, strict=True):
        assert await server.read(40_000) == up
        assert await client.read(40_000) == down


@virtual
async def test_idle_connections_have_no_buffers_of_their_own(rig: Rig) -> None:
    proxy, other = await rig.proxy(name="a"), await rig.proxy(name="b")
    for one in (proxy, proxy, other):
        await rig.pair(one)
    await at(1)
    live = [*proxy.live(), *other.live()]
    buffers = {id(side.get_buffer(-1).obj) for one in live for side in (one.client, one.upstream)}
    assert (len(live), len(buffers)) == (3, 1)

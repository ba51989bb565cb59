"""All toxics of a proxy together."""

from __future__ import annotations

import pytest

from lab.faults.refusals import TooManyToxics
from lab.faults.specs import STREAMS
from lab.faults.toxic_set import MOST_TOXICS
from tests.faults.virtual import Rig, at, near, toxic, virtual


@virtual
async def test_a_proxy_has_so_many_toxics_and_no_more(rig: Rig) -> None:
    proxy = await rig.proxy()
    client, server = await rig.pair(proxy)
    for number in range(MOST_TOXICS):
        proxy.add_toxic(toxic("noop", name=f"t{number}", toxicity=number % 2))
    for stream in STREAMS:
        with pytest.raises(TooManyToxics, match="has 1000 toxics, and may have no more; remove one first"):
            proxy.add_toxic(toxic("latency", stream))
    assert len(proxy.toxics) == MOST_TOXICS
    proxy.remove_toxic("t0")
    proxy.add_toxic(toxic("latency", latency=1000))
    client.send(b"late")
    await at(0.5)
    proxy.remove_toxics()
    assert proxy.toxics == ()
    assert proxy.connections()[0].toxics == ()
    await at(1)
    assert server.heard == [(near(0.5), b"late")]

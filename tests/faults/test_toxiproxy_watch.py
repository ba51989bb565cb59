"""The watch over a run's Toxiproxy server."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from lab.faults.toxiproxy_calls import ServerLost, ToxiproxyFault
from lab.faults.toxiproxy_link import ServerCalls
from lab.faults.toxiproxy_watch import ServerWatch
from tests.run.made import context


class Listing:
    """A server that tells the names of its proxies, or why it cannot."""

    def __init__(self, *names: str) -> None:
        self.there = names
        self.error: ToxiproxyFault | None = None
        self.asked = 0

    def names(self) -> tuple[str, ...]:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return self.there

    def delete(self, _name: str) -> None:
        """Nothing."""

    def gone(self, name: str) -> ToxiproxyFault:
        return ToxiproxyFault(f"{name} is gone")


class Bench:
    def __init__(self, *names: str) -> None:
        self.ctx = context()
        self.server = Listing(*names)
        self.calls = ServerCalls(self.ctx, cast(Any, self.server))
        self.watch = ServerWatch(self.ctx, self.calls, every=0.001)
        self._failed = asyncio.Event()
        self.ctx.journal.listen(lambda _: self._failed.set())

    async def failure(self) -> str:
        async with asyncio.timeout(20):
            await self._failed.wait()
        (defect,) = self.ctx.defects
        await self.watch.close()
        return str(defect)

    async def asked(self, times: int) -> None:
        async with asyncio.timeout(20):
            while self.server.asked < times:  # noqa: ASYNC110 (it is asked in a thread)
                await asyncio.sleep(0)


async def test_a_server_that_is_lost_ends_the_run() -> None:
    bench = Bench("a")
    bench.calls.standing["a"] = None
    await bench.asked(2)
    bench.server.error = ServerLost("it hangs")
    assert await bench.failure() == "it hangs"
    with pytest.raises(ServerLost):
        await bench.calls.begin(lambda: None)


async def test_a_proxy_that_is_gone_ends_the_run() -> None:
    """Others' names say nothing."""
    bench = Bench("a", "others")
    bench.calls.standing["a"] = None
    await bench.asked(2)
    bench.server.there = ("others",)
    assert await bench.failure() == "a is gone"


async def test_nothing_is_asked_before_there_is_a_proxy_and_after_the_last() -> None:
    bench = Bench("a")
    for _ in range(3):
        await asyncio.wait_for(bench.calls.begin(lambda: None), 20)
    assert bench.server.asked == 0
    bench.calls.standing["a"] = None
    await bench.asked(1)
    bench.server.error = ServerLost("it hangs")
    await bench.calls.remove("a")
    await bench.watch.close()
    assert bench.ctx.defects == []

"""Random calls against proxies under load: no hang, no leak, and a state equal to a model."""

from __future__ import annotations

import asyncio
import gc
from functools import partial
from pathlib import Path

import pytest

from lab.faults.connection import Connection
from lab.faults.engine import HIGH_WATER, Engine
from tests.faults.api.load import Load
from tests.faults.api.model import RandomCalls
from tests.faults.api.target import calling, embedded
from tests.refused_port import refused_port


def open_descriptors() -> int:
    """Of this process."""
    return len(list(Path("/dev/fd").iterdir()))


def listens(engine: Engine) -> list[str]:
    """Where its proxies can be reached."""
    return [proxy.listen for proxy in engine.proxies.values() if proxy.enabled]


@pytest.mark.parametrize(
    ("count", "seed"),
    [
        pytest.param(1_000, 1, marks=pytest.mark.timeout(120)),
        pytest.param(10_000, 2, marks=[pytest.mark.slow, pytest.mark.timeout(900)]),
    ],
)
async def test_random_calls(count: int, seed: int, nothing_left: None) -> None:
    """Each is answered as the model says; at the end nothing of any connection is left."""
    # What earlier tests left for the collector is not this one's.
    gc.collect()
    before = open_descriptors()
    with refused_port() as refused:
        async with embedded() as (engine, url), calling(url) as client:
            load = Load(partial(listens, engine))
            echo = await load.start()
            calls = RandomCalls(client, (echo, f"127.0.0.1:{refused}"), seed)
            try:
                for number in range(count):
                    await calls.one()
                    if number % 50 == 0:
                        await calls.compare()
                await calls.compare()
            finally:
                await load.end()
            # The proxies were busy, and some of their buffers full.
            assert load.carried > 0
            assert calls.most_held > HIGH_WATER // 2
            await calls.delete_all()
            assert await client.get("/proxies") == {}
    gc.collect()
    assert [found for found in gc.get_objects() if isinstance(found, Connection)] == []
    assert open_descriptors() == before


@pytest.mark.timeout(120)
async def test_random_calls_side_by_side(nothing_left: None) -> None:
    """Several callers at once: what one does to its proxies is not lost on what another does to its own."""
    async with embedded() as (engine, url), calling(url) as client:
        load = Load(partial(listens, engine))
        echo = await load.start()
        callers = [RandomCalls(client, (echo, "127.0.0.1:1"), seed, f"{seed}-") for seed in range(4)]

        async def call(calls: RandomCalls) -> None:
            for _ in range(200):
                await calls.one()
            await calls.compare()

        try:
            await asyncio.gather(*(call(calls) for calls in callers))
        finally:
            await load.end()
        await asyncio.gather(*(calls.delete_all() for calls in callers))
        assert await client.get("/proxies") == {}

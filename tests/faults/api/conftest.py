"""The servers that the conformance tests call: the embedded one always, Toxiproxy's own where its binary is named."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.faults.api.target import PATIENCE, Client, Upstream, calling, embedded, real

BINARY = "LAB_TOXIPROXY_BIN"


@pytest.fixture
async def nothing_left() -> AsyncIterator[None]:
    """After the test no task is left and nothing has failed in the loop."""
    failures: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, failure: failures.append(failure))
    before = asyncio.all_tasks()
    yield
    async with asyncio.timeout(PATIENCE):
        while not asyncio.all_tasks() <= before | {asyncio.current_task()}:  # noqa: ASYNC110 (tasks have no event)
            await asyncio.sleep(0)
    # What was dropped without being closed warns when it is collected.
    gc.collect()
    assert failures == []


@pytest.fixture(params=["embedded", "toxiproxy"])
async def client(request: pytest.FixtureRequest, nothing_left: None) -> AsyncIterator[Client]:
    """A client of either server."""
    if request.param == "embedded":
        async with embedded() as (_, url), calling(url) as made:
            yield made
        return
    binary = os.environ.get(BINARY)
    if binary is None:
        pytest.skip(f"{BINARY} does not name the binary of a Toxiproxy server")
    async with real(binary) as url, calling(url) as made:
        yield made


@pytest.fixture
async def own(nothing_left: None) -> AsyncIterator[Client]:
    """A client of the embedded server, for what Toxiproxy lacks."""
    async with embedded(metrics=True) as (_, url), calling(url) as made:
        yield made


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    """Where proxies lead to."""
    made = Upstream()
    yield made
    made.close()

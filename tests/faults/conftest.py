"""A bench and a clock for tests of links."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.faults.bench import (
    Bench,
    JumpingClock,
    no_open_transport,
)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    """A bench after whose end nothing is left in the loop and nothing has failed in it."""
    failures: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, failure: failures.append(failure))
    before = asyncio.all_tasks()
    made = Bench()
    yield made
    await made.end()
    assert no_open_transport()
    assert asyncio.all_tasks() <= before | {asyncio.current_task()}
    # What was dropped without being closed warns when it is collected.
    gc.collect()
    assert failures == []


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> JumpingClock:
    return JumpingClock(monkeypatch)

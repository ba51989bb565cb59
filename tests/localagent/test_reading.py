import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from lab.errors import Agent2Error
from lab.localagent.counters import Counters
from lab.localagent.reading import StreamLost, read_through


class Source:
    """Connections that end as listed: how much each reads, and the code it breaks with (None: a clean end)."""

    def __init__(self, *ends: tuple[int, str | None]) -> None:
        self._ends: Iterator[tuple[int, str | None]] = iter(ends)
        self.position = 0
        self.counters = Counters()

    async def connect(self) -> None:
        read, code = next(self._ends)
        self.position += read
        if code is not None:
            raise Agent2Error(code)

    async def read(self, attempts: int = 5) -> None:
        await read_through(self.connect, lambda: self.position, attempts=attempts, retry=0.25, counters=self.counters)


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were asked for, none of which is waited."""
    asked: list[float] = []

    async def nap(seconds: float, *_: Any) -> None:
        asked.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", nap)
    return asked


@pytest.mark.req("A2-042")
async def test_pauses_grow_with_the_attempt(naps: list[float]) -> None:
    source = Source((0, "stream_broken"), (0, "http_error"), (0, "bad_response"), (1, None))
    await source.read()
    assert naps == [0.25, 0.5, 0.75]
    assert source.counters.stream_reconnects == 3


@pytest.mark.req("A2-043")
async def test_the_budget_is_five_in_a_row(naps: list[float]) -> None:
    source = Source(*[(0, "stream_broken")] * 6)
    with pytest.raises(StreamLost):
        await source.read()
    assert len(naps) == 5


async def test_progress_gives_the_budget_back(naps: list[float]) -> None:
    source = Source(*[(0, "stream_broken")] * 5, (1, "stream_broken"), *[(0, "stream_broken")] * 4, (0, None))
    await source.read()
    assert naps == [0.25, 0.5, 0.75, 1.0, 1.25, 0.25, 0.5, 0.75, 1.0, 1.25]


async def test_a_stream_that_is_not_there_is_not_asked_for_again(naps: list[float]) -> None:
    with pytest.raises(StreamLost):
        await Source((0, "not_found")).read()
    assert naps == []

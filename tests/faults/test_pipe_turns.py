"""What a pipe holds, and what it forwards in one turn of the loop; by count, with a source and a sink that note."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from lab.faults.flow import LEAST_CHARGE, End, LastByte
from lab.faults.pipe import ITEMS_A_TURN, Pipe
from lab.faults.toxics.slicer import SLICES_AT_ONCE
from tests.faults.bench import PATIENCE, turns
from tests.faults.test_chain import stage


class NotingTransport:
    """A source that notes whether it is read, and a sink that takes everything at once."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.read = True
        self.looks = 0

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int, low: int) -> None:
        pass

    def pause_reading(self) -> None:
        self.read = False
        self.looks += 1

    def resume_reading(self) -> None:
        self.read = True
        self.looks += 1


def bare_pipe(high_water: int) -> tuple[Pipe, NotingTransport, NotingTransport]:
    """A pipe with its source and its sink."""
    pipe = Pipe(asyncio.get_running_loop(), lambda: 0.0, high_water, lambda _: None, lambda _: None, LastByte())
    source, sink = NotingTransport(), NotingTransport()
    pipe.attach_source(cast(asyncio.Transport, source))
    pipe.attach_sink(cast(asyncio.Transport, sink))
    return pipe, source, sink


@pytest.mark.parametrize("held_by", ["latency", "delay"])
async def test_single_bytes_are_bounded_by_what_they_cost(held_by: str) -> None:
    """And not by what they are: a chunk counts for 64 bytes at least."""
    if held_by == "latency":
        pipe, source, _ = bare_pipe(100 * LEAST_CHARGE)
        pipe.add_stage("slow", stage("latency", latency=10**9), active=True)
    else:
        loop = asyncio.get_running_loop()
        pipe = Pipe(loop, lambda: 1e6, 100 * LEAST_CHARGE, lambda _: None, lambda _: None, LastByte())
        source = NotingTransport()
        pipe.attach_source(cast(asyncio.Transport, source))
        pipe.attach_sink(cast(asyncio.Transport, NotingTransport()))
    while source.read:
        pipe.feed(b"x")
    assert pipe.pending == pipe.received == 100
    pipe.stop()


async def test_what_is_freed_goes_on_so_many_at_a_time_and_in_order() -> None:
    pipe, source, sink = bare_pipe(1 << 30)
    pipe.add_stage("hole", stage("black_hole"), active=True)
    count = 2 * ITEMS_A_TURN + 500
    for number in range(count):
        pipe.feed(number.to_bytes(2, "big"))
    pipe.remove_stage("hole")
    assert (len(sink.written), pipe.pending) == (ITEMS_A_TURN, 2 * (count - ITEMS_A_TURN))
    # There is no toxic any more, and yet these come behind.
    pipe.feed(b"last")
    pipe.finish(End.EOF)
    await turns(1)
    assert len(sink.written) == 2 * ITEMS_A_TURN
    await turns(1)
    assert sink.written == [number.to_bytes(2, "big") for number in range(count)] + [b"last"]
    assert pipe.pending == 0
    assert pipe.room == 1 << 30
    assert source.read


async def test_what_waits_for_its_turn_holds_up_the_source_and_is_lost_with_the_connection() -> None:
    pipe, source, sink = bare_pipe(ITEMS_A_TURN)
    pipe.add_stage("hole", stage("black_hole"), active=True)
    for _ in range(2 * ITEMS_A_TURN):
        pipe.feed(b"x")
    pipe.remove_stage("hole")
    assert not source.read
    pipe.stop()
    await turns(3)
    assert len(sink.written) == ITEMS_A_TURN
    assert pipe.pending == 0


@pytest.mark.parametrize("chunks", [1, 100])
async def test_a_slicer_has_its_turns_too(chunks: int) -> None:
    """One chunk, and many that come at one moment."""
    pipe, _, sink = bare_pipe(1 << 30)
    pipe.add_stage("hole", stage("black_hole"), active=True)
    pipe.add_stage("slices", stage("slicer", average_size=1), active=True)
    total = 3 * SLICES_AT_ONCE
    for _ in range(chunks):
        pipe.feed(b"x" * (total // chunks))
    pipe.remove_stage("hole")
    seen = 0
    async with asyncio.timeout(PATIENCE):
        while len(sink.written) < total:
            assert len(sink.written) - seen <= SLICES_AT_ONCE
            seen = len(sink.written)
            await asyncio.sleep(0)
    assert sink.written == [b"x"] * total


async def test_many_changes_at_once_look_at_the_source_once() -> None:
    pipe, source, _ = bare_pipe(1 << 20)
    before = source.looks
    with pipe.changing():
        for number in range(50):
            pipe.add_stage(str(number), stage("noop"), active=True)
        for number in range(50):
            pipe.remove_stage(str(number))
    assert source.looks == before + 1

"""What gets through a link, when, and up to which byte; over real loopback sockets."""

from __future__ import annotations

import asyncio
import gc
import random
import socket
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.errors import MisuseError
from lab.faults.link import HIGH_WATER, Direction, Link
from lab.journal.events import LinkChanged, LinkConnection
from tests.faults.bench import (
    Bench,
    End,
    JumpingClock,
    ends_of,
    fill,
    held_bytes,
    no_open_transport,
    turns,
    until,
)

# Bytes, and the bound on them


@settings(max_examples=20, deadline=None, database=None)
@given(
    seed=st.integers(0, 2**32),
    up=st.lists(st.integers(1, 90_000), max_size=8),
    down=st.lists(st.integers(1, 90_000), max_size=8),
    high_water=st.sampled_from([1, 7, 1000, HIGH_WATER]),
)
def test_bytes_are_equal_both_ways(seed: int, up: list[int], down: list[int], high_water: int) -> None:
    if high_water < 1000:
        up, down = [size % 500 + 1 for size in up], [size % 500 + 1 for size in down]
    dice = random.Random(seed)
    up_parts, down_parts = [dice.randbytes(size) for size in up], [dice.randbytes(size) for size in down]

    async def talk(end: End, parts: list[bytes]) -> bytes:
        async def say() -> None:
            for part in parts:
                await end.send(part)
            end.raw.shutdown(socket.SHUT_WR)

        heard, _ = await asyncio.gather(end.read_to_eof(), say())
        return heard

    async def scenario() -> None:
        bench = Bench()
        link = Link(bench.ctx, "gateway", bench.upstream.getsockname(), high_water=high_water)
        bench.links.append(link)
        await link.start()
        client, server = await bench.pair(link)
        at_client, at_server = await asyncio.gather(talk(client, up_parts), talk(server, down_parts))
        assert at_server == b"".join(up_parts)
        assert at_client == b"".join(down_parts)
        await until(lambda: not link.connections())
        ended = LinkConnection("gateway", "gateway-1", "closed", up_bytes=sum(up), down_bytes=sum(down))
        assert bench.events(LinkConnection)[-1] == ended
        await bench.end()
        assert no_open_transport()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        gc.collect()

    asyncio.run(scenario())


@pytest.mark.parametrize("direction", ["up", "down"])
async def test_a_reader_that_stops_stalls_the_writer_with_bounded_bytes(bench: Bench, direction: Direction) -> None:
    link = await bench.link()
    client, server = await bench.pair(link)
    writer, reader = (client, server) if direction == "up" else (server, client)
    sent = await fill(link, writer, lambda: held_bytes(link, direction))
    assert 0 < held_bytes(link, direction) <= HIGH_WATER
    assert writer.send_some() == 0
    writer.raw.shutdown(socket.SHUT_WR)
    assert len(await reader.read_to_eof()) == sent


# delay


async def test_delay_holds_and_keeps_order(bench: Bench, clock: JumpingClock) -> None:
    link = await bench.link()
    client, server = await bench.pair(link)
    link.set_delay(100)
    await client.send(b"one ")
    await until(lambda: link.connections()[0].up_held == 4)
    await clock.jump(60)
    link.set_delay(20)
    await client.send(b"two ")
    await until(lambda: link.connections()[0].up_held == 8)
    link.set_delay(0)
    await client.send(b"three")
    client.raw.shutdown(socket.SHUT_WR)
    await until(lambda: link.connections()[0].up_held == 13)
    await clock.jump(39)
    assert link.connections()[0].up_bytes == 0
    assert server.nothing_to_read()
    await clock.jump(1)
    assert await server.read_to_eof() == b"one two three"
    assert link.connections()[0].up_held == 0


async def test_delay_is_added_to_each_direction(bench: Bench, clock: JumpingClock) -> None:
    link = await bench.link(delay=10)
    client, server = await bench.pair(link)
    await client.send(b"ping")
    await until(lambda: link.connections()[0].up_held == 4)
    await clock.jump(9.9)
    assert server.nothing_to_read()
    await clock.jump(0.1)
    assert await server.read(4) == b"ping"
    await server.send(b"pong")
    await until(lambda: link.connections()[0].down_held == 4)
    await clock.jump(9.9)
    assert client.nothing_to_read()
    await clock.jump(0.1)
    assert await client.read(4) == b"pong"


async def test_a_delayed_end_stays_behind_its_bytes(bench: Bench, clock: JumpingClock) -> None:
    link = await bench.link(delay=10)
    client, server = await bench.pair(link)
    await client.send(b"bye")
    await until(lambda: link.connections()[0].up_held == 3)
    await clock.jump(5)
    client.raw.shutdown(socket.SHUT_WR)
    await turns(5)
    await clock.jump(5)
    assert await server.read(3) == b"bye"
    assert server.nothing_to_read()
    await clock.jump(5)
    assert await server.read_to_eof() == b""


async def test_delayed_bytes_are_bounded_and_the_writer_stalls(bench: Bench, clock: JumpingClock) -> None:
    link = await bench.link(delay=1000)
    client, server = await bench.pair(link)
    sent = await fill(link, client, lambda: held_bytes(link, "up"))
    assert link.connections()[0].up_held == HIGH_WATER
    assert link.connections()[0].up_bytes == 0
    client.raw.shutdown(socket.SHUT_WR)
    link.set_delay(0)
    await clock.jump(1000)
    assert len(await server.read_to_eof()) == sent


async def test_heal_ends_the_delay(bench: Bench, clock: JumpingClock) -> None:
    link = await bench.link(delay=50)
    client, server = await bench.pair(link)
    link.heal()
    await client.send(b"now")
    assert await server.read(3) == b"now"
    assert bench.events(LinkChanged) == [LinkChanged("gateway", "delayed", 50), LinkChanged("gateway", "healed")]


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
async def test_a_delay_that_is_no_time_is_refused(bench: Bench, seconds: float) -> None:
    link = await bench.link()
    with pytest.raises(MisuseError, match="finite number of seconds"):
        link.set_delay(seconds)
    with pytest.raises(MisuseError, match="finite number of seconds"):
        await bench.link(delay=seconds)


# cut_at


@pytest.mark.parametrize("direction", ["up", "down"])
@pytest.mark.parametrize("delay", [0.0, 10.0])
@pytest.mark.parametrize("offset", [1, 400, 999, 1000])
async def test_cut_at_is_exact_inside_one_read(
    bench: Bench, clock: JumpingClock, direction: Direction, delay: float, offset: int
) -> None:
    link = await bench.link(delay=delay)
    client, server = await bench.pair(link)
    writer, reader = ends_of(direction, client, server)
    calls: list[int] = []

    def then() -> None:
        state = link.connections()[0]
        calls.append(state.up_bytes if direction == "up" else state.down_bytes)
        link.cut()

    link.cut_at(server.peer_port, direction, offset, then)
    data = random.Random(offset).randbytes(1000)
    await writer.send(data)
    if delay:
        await until(lambda: held_bytes(link, direction) == 1000)
        await clock.jump(delay)
    assert await reader.read_to_eof() == data[:offset]
    assert await writer.read_to_eof() == b""
    assert calls == [offset]
    up, down = (offset, 0) if direction == "up" else (0, offset)
    assert bench.events(LinkConnection)[-1] == LinkConnection("gateway", "gateway-1", "cut", up, down)


@pytest.mark.parametrize("direction", ["up", "down"])
async def test_cut_at_counts_from_the_connections_start_over_reads(bench: Bench, direction: Direction) -> None:
    link = await bench.link()
    client, server = await bench.pair(link)
    writer, reader = ends_of(direction, client, server)
    await writer.send(b"a" * 300)
    await reader.read(300)
    link.cut_at(server.peer_port, direction, 450, link.cut)
    await writer.send(b"b" * 100)
    assert await reader.read(100) == b"b" * 100
    await writer.send(b"c" * 100)
    assert await reader.read_to_eof() == b"c" * 50


@pytest.mark.parametrize("direction", ["up", "down"])
@pytest.mark.parametrize("offset", [0, 9, 10])
async def test_cut_at_an_offset_already_passed_calls_at_once(bench: Bench, direction: Direction, offset: int) -> None:
    link = await bench.link()
    client, server = await bench.pair(link)
    writer, reader = ends_of(direction, client, server)
    await writer.send(b"0123456789")
    await reader.read(10)
    calls: list[str] = []
    link.cut_at(server.peer_port, direction, 11, lambda: calls.append("later"))
    link.cut_at(server.peer_port, direction, offset, lambda: calls.append("at once"))
    assert calls == ["at once"]


async def test_cut_at_calls_in_the_order_of_offsets_and_lets_everything_through(bench: Bench) -> None:
    link = await bench.link()
    client, server = await bench.pair(link)
    calls: list[tuple[str, int]] = []

    def note(word: str) -> Callable[[], None]:
        return lambda: calls.append((word, link.connections()[0].up_bytes))

    for word, offset in (("third", 7), ("first", 2), ("second", 2), ("never", 11)):
        link.cut_at(server.peer_port, "up", offset, note(word))
    await client.send(b"0123456789")
    assert await server.read(10) == b"0123456789"
    assert calls == [("first", 2), ("second", 2), ("third", 7)]


async def test_cut_at_watches_one_direction_of_one_connection(bench: Bench) -> None:
    link = await bench.link()
    client, server = await bench.pair(link)
    other, other_server = await bench.pair(link)
    calls: list[str] = []
    link.cut_at(other_server.peer_port, "up", 3, lambda: calls.append("up"))
    await client.send(b"12345")
    await server.read(5)
    await other_server.send(b"12345")
    await other.read(5)
    assert calls == []
    await other.send(b"12345")
    await other_server.read(5)
    assert calls == ["up"]


async def test_a_reset_at_an_offset_passes_nothing_behind_it(bench: Bench) -> None:
    link = await bench.link()
    client, server = await bench.pair(link)
    link.cut_at(server.peer_port, "up", 4, link.reset)
    await client.send(b"12345678")
    assert await server.read_to_reset() == b"1234"


async def test_a_delay_at_an_offset_holds_the_rest_of_the_same_read(bench: Bench, clock: JumpingClock) -> None:
    link = await bench.link()
    client, server = await bench.pair(link)
    link.cut_at(server.peer_port, "up", 4, lambda: link.set_delay(30))
    await client.send(b"12345678")
    assert await server.read(4) == b"1234"
    assert link.connections()[0].up_held == 4
    await clock.jump(29)
    assert server.nothing_to_read()
    await clock.jump(1)
    assert await server.read(4) == b"5678"


async def test_delayed_bytes_behind_a_watched_offset_keep_their_time(bench: Bench, clock: JumpingClock) -> None:
    link = await bench.link(delay=10)
    client, server = await bench.pair(link)
    calls: list[str] = []
    link.cut_at(server.peer_port, "up", 4, lambda: calls.append("passed"))
    await client.send(b"12345678")
    await until(lambda: link.connections()[0].up_held == 8)
    await clock.jump(10)
    assert calls == ["passed"]
    assert link.connections()[0].up_bytes == 8
    assert await server.read(8) == b"12345678"

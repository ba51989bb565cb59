"""Links over real loopback sockets: what a fault does to a connection, and what the journal says."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import struct
from collections.abc import Callable
from typing import Any

import pytest

from lab.errors import EnvironmentFault, MisuseError
from lab.faults.connection import PARTING_SECONDS
from lab.faults.link import Link
from lab.faults.listener import RETRY_SECONDS
from lab.journal.events import LinkChanged, LinkConnection, LinkOpened
from tests.faults.bench import (
    PATIENCE,
    Bench,
    End,
    JumpingClock,
    fill,
    held_bytes,
    listen,
    no_open_transport,
    turns,
    until,
)

# What gets through


async def test_asyncio_streams_pass_through_it(bench: Bench) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read())
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    link = await bench.link(upstream=server.sockets[0].getsockname())
    reader, writer = await asyncio.open_connection(*link.address)
    writer.write(b"x" * 300_000)
    writer.write_eof()
    async with asyncio.timeout(PATIENCE):
        assert await reader.read() == b"x" * 300_000
    writer.close()
    await writer.wait_closed()
    server.close()
    await server.wait_closed()
    await until(lambda: bench.changes("gateway-1") == ["opened", "closed"])


async def test_connections_tell_their_addresses_and_bytes(bench: Bench) -> None:
    link = await bench.link()
    client, server = await bench.pair(link)
    other, _ = await bench.pair(link)
    await client.send(b"12345")
    await server.read(5)
    await server.send(b"678")
    await client.read(3)
    first, second = link.connections()
    assert (first.id, second.id) == ("gateway-1", "gateway-2")
    assert first.client == client.raw.getsockname()
    assert first.upstream_local == server.raw.getpeername()
    assert (first.up_bytes, first.down_bytes, first.up_held, first.down_held) == (5, 3, 0, 0)
    assert second.client == other.raw.getsockname()
    assert (second.up_bytes, second.down_bytes) == (0, 0)


async def test_bytes_and_end_sent_before_the_upstream_is_connected_wait_for_it(bench: Bench) -> None:
    link = await bench.link()
    client = await bench.client(link)
    client.raw.sendall(b"early")
    client.raw.shutdown(socket.SHUT_WR)
    raw, _ = await asyncio.get_running_loop().sock_accept(bench.upstream)
    bench.sockets.append(raw)
    assert await End(raw).read_to_eof() == b"early"


@pytest.mark.parametrize("first", ["client", "server"])
async def test_half_close_is_passed_on_and_the_other_direction_lives(bench: Bench, first: str) -> None:
    link = await bench.link()
    client, server = await bench.pair(link)
    early, late = (client, server) if first == "client" else (server, client)
    await early.send(b"last words")
    early.raw.shutdown(socket.SHUT_WR)
    assert await late.read_to_eof() == b"last words"
    for text in (b"still", b"here!"):
        await late.send(text)
        assert await early.read(5) == text
    assert bench.changes("gateway-1") == ["opened"]
    late.raw.shutdown(socket.SHUT_WR)
    assert await early.read_to_eof() == b""
    await until(lambda: bench.changes("gateway-1") == ["opened", "closed"])


@pytest.mark.parametrize("first", ["client", "server"])
async def test_a_reset_by_one_peer_reaches_the_other_behind_its_bytes(bench: Bench, first: str) -> None:
    link = await bench.link()
    client, server = await bench.pair(link)
    breaker, other = (client, server) if first == "client" else (server, client)
    await breaker.send(b"bytes before")
    assert await other.read(12) == b"bytes before"
    breaker.raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    breaker.raw.close()
    with pytest.raises(ConnectionResetError):
        await other.read(1)
    await until(lambda: bench.changes("gateway-1") == ["opened", "closed"])


async def test_nothing_is_forwarded_to_a_peer_that_reset_its_connection(bench: Bench, clock: JumpingClock) -> None:
    link = await bench.link(delay=10)
    client, server = await bench.pair(link)
    await server.send(b"for nobody")
    await until(lambda: link.connections()[0].down_held == 10)
    await clock.jump(5)
    client.raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.raw.close()
    await until(lambda: link.connections()[0].down_held == 0)
    await clock.jump(5)
    assert server.nothing_to_read()
    await clock.jump(5)
    await until(lambda: bench.changes("gateway-1") == ["opened", "closed"])
    assert bench.events(LinkConnection)[-1] == LinkConnection("gateway", "gateway-1", "closed", 0, 0)


# cut


async def test_cut_gives_eof_to_both_and_then_refuses(bench: Bench) -> None:
    link = await bench.link()
    client, server = await bench.pair(link)
    await client.send(b"hello")
    assert await server.read(5) == b"hello"
    link.cut()
    assert link.connections() == []
    assert await client.read_to_eof() == b""
    assert await server.read_to_eof() == b""
    with pytest.raises(ConnectionRefusedError):
        await bench.client(link)


@pytest.mark.parametrize("cut", [False, True])
async def test_a_moved_link_ends_its_connections_and_leads_new_ones_elsewhere(bench: Bench, cut: bool) -> None:
    """One that is cut stays so until it heals; a delay goes on."""
    link = await bench.link(delay=0.001)
    client, server = await bench.pair(link)
    other = Bench()
    try:
        if cut:
            link.cut()
        link.move(other.upstream.getsockname())
        assert await client.read_to_eof() == b""
        assert await server.read_to_eof() == b""
        if cut:
            with pytest.raises(ConnectionRefusedError):
                await bench.client(link)
            link.heal()
        moved = await bench.client(link)
        raw, _ = await asyncio.wait_for(asyncio.get_running_loop().sock_accept(other.upstream), PATIENCE)
        other.sockets.append(raw)
        await moved.send(b"hello")
        assert await End(raw).read(5) == b"hello"
    finally:
        await other.end()
    assert LinkChanged("gateway", "moved", 0.001) in bench.events(LinkChanged)


async def test_a_cut_port_is_held_and_heal_listens_on_it_again(bench: Bench) -> None:
    link = await bench.link()
    await bench.pair(link)
    address = link.address
    link.cut()
    thief = bench.socket()
    thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    with pytest.raises(OSError, match="in use"):
        listen(thief, address)
    for _ in range(2):
        link.heal()
        assert link.address == address
        client, server = await bench.pair(link)
        await client.send(b"again")
        assert await server.read(5) == b"again"
        link.cut()
        with pytest.raises(ConnectionRefusedError):
            await bench.client(link)


async def test_what_is_written_is_flushed_before_the_fin(bench: Bench, clock: JumpingClock) -> None:
    link = await bench.link()
    client, server = await bench.pair(link)
    await fill(link, server, lambda: held_bytes(link, "down"))
    forwarded = link.connections()[0].down_bytes
    link.cut()
    assert len(await client.read_to_eof()) == forwarded


async def test_a_peer_with_unread_bytes_sees_fin_not_rst(bench: Bench, clock: JumpingClock) -> None:
    link = await bench.link()
    client, server = await bench.pair(link)
    await fill(link, client, lambda: held_bytes(link, "up"))
    forwarded = link.connections()[0].up_bytes
    link.cut()
    assert await client.read_to_eof() == b""
    # What it still sends is read and dropped until it closes.
    await until(lambda: client.send_some() > 0)
    client.raw.close()
    assert len(await server.read_to_eof()) == forwarded
    server.raw.close()
    await until(no_open_transport)


async def test_a_stalled_peer_is_aborted_after_a_bounded_time(bench: Bench, clock: JumpingClock) -> None:
    link = await bench.link()
    client, server = await bench.pair(link)
    await fill(link, server, lambda: held_bytes(link, "down"))
    state = link.connections()[0]
    assert state.down_held > 0
    link.cut()
    await clock.jump(PARTING_SECONDS * 0.9)
    assert client.raw.fileno() >= 0
    assert not no_open_transport()
    await clock.jump(PARTING_SECONDS * 0.2)
    assert no_open_transport()
    try:
        got = len(await client.read_to_eof())
    except ConnectionResetError:
        got = 0
    assert got < state.down_bytes


async def test_cut_loses_what_a_delay_holds(bench: Bench, clock: JumpingClock) -> None:
    link = await bench.link(delay=5)
    client, server = await bench.pair(link)
    await client.send(b"held")
    await until(lambda: link.connections()[0].up_held == 4)
    link.cut()
    assert await server.read_to_eof() == b""
    ended = LinkConnection("gateway", "gateway-1", "cut", up_bytes=0, down_bytes=0)
    assert bench.events(LinkConnection)[-1] == ended


async def test_a_second_cut_and_a_heal_of_a_healthy_link_change_nothing(bench: Bench) -> None:
    link = await bench.link()
    link.heal()
    link.cut()
    link.cut()
    link.heal()
    link.heal()
    assert bench.events(LinkChanged) == [LinkChanged("gateway", "cut"), LinkChanged("gateway", "healed")]
    await bench.pair(link)


# reset


async def test_reset_gives_rst_to_both_and_accepts_new_ones(bench: Bench) -> None:
    link = await bench.link()
    client, server = await bench.pair(link)
    link.reset()
    assert link.connections() == []
    for end in (client, server):
        with pytest.raises(ConnectionResetError):
            await end.read(1)
    client, server = await bench.pair(link)
    await client.send(b"fresh")
    assert await server.read(5) == b"fresh"
    assert bench.changes("gateway-1") == ["opened", "reset"]
    assert bench.changes("gateway-2") == ["opened"]


# Upstreams that are not there, and connects in flight


async def test_an_upstream_that_refuses_closes_the_client(bench: Bench) -> None:
    gone = socket.socket()
    gone.bind(("127.0.0.1", 0))
    with gone:
        link = await bench.link(upstream=gone.getsockname())
        client = await bench.client(link)
        await client.send(b"anybody?")
        assert await client.read_to_eof() == b""
    assert bench.changes("gateway-1") == ["opened", "refused"]
    assert link.connections() == []


@pytest.fixture
async def deaf(bench: Bench) -> tuple[str, int]:
    """The address of a listener whose queue is full: connects to it stay in flight."""
    listener = bench.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    address: tuple[str, int] = listener.getsockname()
    for _ in range(4):
        assert bench.socket().connect_ex(address) == errno.EINPROGRESS
    return address


@pytest.mark.parametrize("act", ["cut", "reset", "close"])
async def test_a_connect_in_flight_is_ended(bench: Bench, deaf: tuple[str, int], act: str) -> None:
    link = await bench.link(upstream=deaf)
    client = await bench.client(link)
    await until(lambda: bench.changes("gateway-1") == ["opened"])
    await turns(5)
    assert link.connections()[0].upstream_local is None
    tasks = len(asyncio.all_tasks())
    if act == "close":
        await link.close()
    else:
        (link.cut if act == "cut" else link.reset)()
    await until(lambda: len(asyncio.all_tasks()) == tasks - 1)
    if act == "reset":
        with pytest.raises(ConnectionResetError):
            await client.read(1)
    else:
        assert await client.read_to_eof() == b""
    assert bench.changes("gateway-1") == ["opened", "closed" if act == "close" else act]


@pytest.mark.parametrize("act", ["cut", "reset", "close"])
@pytest.mark.parametrize("count", range(8))
async def test_a_connection_met_at_any_stage_of_its_making_is_ended(bench: Bench, act: str, count: int) -> None:
    """From not yet accepted to connected on both sides: a turn of the loop later each time."""
    link = await bench.link()
    before = asyncio.all_tasks()
    client = End(bench.socket())
    client.raw.connect_ex(link.address)
    await turns(count)
    if act == "cut":
        link.cut()
        # One that was still in the listener's queue is reset by the kernel.
        with contextlib.suppress(ConnectionResetError):
            assert await client.read_to_eof() == b""
        assert link.connections() == []
    elif act == "reset":
        link.reset()
        if bench.changes("gateway-1"):
            with pytest.raises(ConnectionResetError):
                await client.read(1)
    else:
        await link.close()
        assert asyncio.all_tasks() == before
        assert no_open_transport()
    assert bench.changes("gateway-1") in ([], ["opened", "closed" if act == "close" else act])


async def test_a_cut_at_the_entry_of_a_new_connection_ends_its_connect(bench: Bench) -> None:
    link = await bench.link()

    def cut_at_once(entry: Any) -> None:
        if isinstance(entry.event, LinkConnection) and entry.event.change == "opened":
            link.cut()

    bench.ctx.journal.listen(cut_at_once)
    client = await bench.client(link)
    assert await client.read_to_eof() == b""
    client.raw.close()
    await until(no_open_transport)
    with pytest.raises(BlockingIOError):
        bench.upstream.accept()


# Ports and life


async def test_a_taken_port_is_named_with_what_to_do(bench: Bench) -> None:
    port = bench.upstream.getsockname()[1]
    with pytest.raises(EnvironmentFault, match=rf"127\.0\.0\.1:{port}: .*in use.*Stop the program .* or give"):
        await bench.link(port=port)
    assert bench.events(LinkOpened) == []


async def test_a_port_bound_by_somebody_who_then_listens_is_a_taken_port(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The port can be lost between bind and listen, too."""

    def listen(raw: socket.socket, backlog: int = 0) -> None:
        raise OSError(errno.EADDRINUSE, "Address already in use")

    with monkeypatch.context() as patch:
        patch.setattr(socket.socket, "listen", listen)
        with pytest.raises(EnvironmentFault, match="in use"):
            await bench.link()
    await bench.links[0].start()
    await bench.pair(bench.links[0])


async def test_heal_says_that_the_port_was_lost(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    link = await bench.link()
    thief = bench.socket()

    def bind(raw: socket.socket, address: tuple[str, int]) -> None:
        raise OSError(errno.EADDRINUSE, "Address already in use")

    with monkeypatch.context() as patch:
        patch.setattr(socket.socket, "bind", bind)
        link.cut()
    listen(thief, link.address)
    with pytest.raises(EnvironmentFault, match=f"{link.address[1]}: .*in use"):
        link.heal()
    thief.close()
    link.heal()
    await bench.pair(link)


async def test_a_lack_of_descriptors_is_waited_out(
    bench: Bench, clock: JumpingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = await bench.link()
    refused: list[str] = []

    def accept(raw: socket.socket) -> tuple[socket.socket, Any]:
        refused.append("once")
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(socket.socket, "accept", accept)
        await bench.client(link)
        await until(lambda: bool(refused))
        await turns(20)
        assert refused == ["once"]
    await clock.jump(RETRY_SECONDS)
    await until(lambda: bench.changes("gateway-1") == ["opened"])


async def test_close_ends_everything_and_gives_the_port_back(bench: Bench) -> None:
    before = asyncio.all_tasks()
    link = await bench.link(delay=1000)
    client, _ = await bench.pair(link)
    await bench.pair(link)
    await client.send(b"held")
    await until(lambda: link.connections()[0].up_held == 4)
    address = link.address
    await link.close()
    await link.close()
    assert asyncio.all_tasks() == before
    assert no_open_transport()
    loop: Any = asyncio.get_running_loop()
    assert [handle for handle in loop._scheduled if not handle.cancelled() and "Pipe" in repr(handle)] == []
    assert await client.read_to_eof() == b""
    assert bench.changes("gateway-1") == bench.changes("gateway-2") == ["opened", "closed"]
    heir = bench.socket()
    heir.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listen(heir, address)


async def test_close_while_cut_gives_the_port_back_and_ends_what_still_parts(bench: Bench) -> None:
    link = await bench.link()
    await bench.pair(link)
    address = link.address
    link.cut()
    assert not no_open_transport()
    await link.close()
    assert no_open_transport()
    assert bench.changes("gateway-1") == ["opened", "cut"]
    heir = bench.socket()
    heir.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listen(heir, address)


async def test_a_link_is_used_only_between_start_and_close(bench: Bench) -> None:
    link = Link(bench.ctx, "gateway", ("127.0.0.1", 1))
    uses: list[Callable[[], Any]] = [link.cut, link.reset, link.heal, lambda: link.set_delay(1), lambda: link.address]
    await link.close()
    for use in uses:
        with pytest.raises(MisuseError, match="start it first"):
            use()
    await link.start()
    with pytest.raises(MisuseError, match="twice"):
        await link.start()
    await link.close()
    with pytest.raises(MisuseError, match="start it first"):
        link.heal()


# The journal


async def test_the_journal_tells_every_change_and_its_cause(bench: Bench) -> None:
    link = await bench.link(delay=2)
    link.heal()
    client, server = await bench.pair(link)
    await client.send(b"12345")
    await server.read(5)
    await server.send(b"678")
    await client.read(3)
    link.set_delay(0)
    link.set_delay(0.5)
    link.reset()
    await bench.pair(link)
    link.cut()
    link.heal()
    client, server = await bench.pair(link)
    client.raw.close()
    server.raw.close()
    await until(lambda: not link.connections())
    entries = bench.ctx.journal.entries
    assert {entry.by for entry in entries} == {"link.gateway"}
    assert [(entry.event, entry.cause) for entry in entries] == [
        (LinkOpened("gateway"), None),
        (LinkChanged("gateway", "delayed", 2), None),
        (LinkChanged("gateway", "healed"), None),
        (LinkConnection("gateway", "gateway-1", "opened"), None),
        (LinkChanged("gateway", "delayed", 0.5), None),
        (LinkChanged("gateway", "reset"), None),
        (LinkConnection("gateway", "gateway-1", "reset", up_bytes=5, down_bytes=3), 5),
        (LinkConnection("gateway", "gateway-2", "opened"), None),
        (LinkChanged("gateway", "cut"), None),
        (LinkConnection("gateway", "gateway-2", "cut"), 8),
        (LinkChanged("gateway", "healed"), None),
        (LinkConnection("gateway", "gateway-3", "opened"), None),
        (LinkConnection("gateway", "gateway-3", "closed"), None),
    ]


async def test_a_client_that_has_said_its_last_is_told(bench: Bench) -> None:
    """Its connection lives on for as long as the other side has something to say."""
    link = await bench.link()
    client, _ = await bench.pair(link)
    other, _ = await bench.pair(link)
    assert [state.client_ended for state in link.connections()] == [False, False]
    client.raw.shutdown(socket.SHUT_WR)
    await until(lambda: [state.client_ended for state in link.connections()] == [True, False])
    other.raw.close()
    await until(lambda: all(state.client_ended for state in link.connections()))

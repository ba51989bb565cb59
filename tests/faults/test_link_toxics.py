"""Links with toxics: what the journal says, on the virtual clock, and FIN and RST on real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from lab.errors import MisuseError
from lab.faults.link import HIGH_WATER, Link
from lab.faults.refusals import BadToxic, ToxicNotFound
from lab.faults.specs import ToxicSpec
from lab.journal.events import LinkChanged, LinkConnection
from tests.faults.bench import Bench, JumpingClock, context, fill, held_bytes, until
from tests.faults.virtual import Peer, Rig, at, near, toxic, virtual


async def _link(rig: Rig, delay: float = 0.0) -> Link:
    host, port = rig.upstream.split(":")
    link = Link(context(), "gateway", (host, int(port)), delay=delay)
    await link.start()
    return link


async def _pair(rig: Rig, link: Link) -> tuple[Peer, Peer]:
    _, client = await asyncio.get_running_loop().create_connection(Peer, *link.address)
    rig.clients.append(client)
    while link.connections()[-1:] == [] or link.connections()[-1].upstream_local is None:  # noqa: ASYNC110
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    return client, rig.servers[-1]


# The journal


@virtual
async def test_each_change_is_an_entry_and_what_it_ends_has_it_as_cause(rig: Rig) -> None:
    link = await _link(rig, delay=2.0)
    client, _ = await _pair(rig, link)
    added = link.add_toxic(ToxicSpec("timeout", "mine", "upstream"))
    assert link.toxics == (added,)
    link.update_toxic("mine", {"timeout": 0}, 1.0)
    with pytest.raises(BadToxic):
        link.add_toxic(ToxicSpec("lag"))
    with pytest.raises(ToxicNotFound):
        link.remove_toxic("other")
    assert [one.toxics for one in link.touched()] == [("mine",)]
    link.set_delay(0)
    link.remove_toxic("mine")
    await at(1)
    assert client.ends == [(near(0), "FIN")]
    entries = link._ctx.journal.entries
    changes = [(e.n, e.event) for e in entries if isinstance(e.event, LinkChanged)]
    # A delay goes on, and each entry says so.
    assert [(event.change, event.seconds, event.toxic) for _, event in changes[1:]] == [
        ("toxic-added", 2.0, "mine"),
        ("toxic-updated", 2.0, "mine"),
        ("delayed", 0.0, ""),
        ("toxic-removed", 0.0, "mine"),
    ]
    assert entries[-1].event == LinkConnection("gateway", "gateway-1", "cut")
    assert entries[-1].cause == changes[-1][0]
    await link.close()


@virtual
async def test_what_a_toxic_ends_is_cut_or_reset(rig: Rig) -> None:
    link = await _link(rig)
    for kind, change in (("limit_data", "cut"), ("reset_peer", "reset")):
        client, _ = await _pair(rig, link)
        link.add_toxic(ToxicSpec(kind, "t", "upstream"))
        client.send(b"x")
        await asyncio.sleep(1)
        link.remove_toxic("t")
        event = next(e.event for e in reversed(link._ctx.journal.entries) if isinstance(e.event, LinkConnection))
        assert event == LinkConnection("gateway", event.conn, change)
    await link.close()


@virtual
async def test_toxics_add_to_the_delay_and_outlast_cut_and_heal(rig: Rig) -> None:
    link = await _link(rig, delay=1.0)
    link.add_toxic(toxic("latency", latency=500))
    client, server = await _pair(rig, link)
    client.send(b"x")
    await at(3)
    assert server.heard == [(near(1.5), b"x")]
    link.cut()
    link.heal()
    assert [one.name for one in link.toxics] == ["latency_upstream"]
    client, server = await _pair(rig, link)
    client.send(b"x")
    await at(5)
    assert server.heard == [(near(3.5), b"x")]
    await link.close()


@virtual
async def test_one_seed_gives_one_link(rig: Rig) -> None:
    seen = []
    for _ in range(2):
        link = await _link(rig)
        link.add_toxic(toxic("packet_loss", loss_rate=0.2))
        client, server = await _pair(rig, link)
        start = asyncio.get_running_loop().time()
        client.send(bytes(100_000))
        await asyncio.sleep(1000)
        seen.append([(round(when - start, 6), len(what)) for when, what in server.heard if isinstance(what, bytes)])
        await link.close()
    assert seen[0] == seen[1]
    assert sum(size for _, size in seen[0]) == 100_000


async def test_toxics_are_changed_only_between_start_and_close(bench: Bench) -> None:
    link = Link(bench.ctx, "gateway", ("127.0.0.1", 1))
    uses: list[Callable[[], object]] = [
        lambda: link.add_toxic(ToxicSpec("noop")),
        lambda: link.update_toxic("noop", None, None),
        lambda: link.remove_toxic("noop"),
    ]
    for use in uses:
        with pytest.raises(MisuseError, match="start it first"):
            use()


# The exact byte


@pytest.mark.parametrize("act", ["remove", "update"])
@pytest.mark.parametrize("delay", [0.0, 1.0])
def test_a_watch_that_changes_the_toxics_reorders_nothing(act: str, delay: float) -> None:
    """What the change frees comes behind the rest of what is being forwarded, when the delay ends with it too."""

    async def scenario(rig: Rig) -> None:
        link = await _link(rig, delay)
        client, server = await _pair(rig, link)
        link.add_toxic(toxic("latency", latency=1000))
        port = link.connections()[0].upstream_local
        assert port is not None

        def change() -> None:
            link.set_delay(0)
            if act == "remove":
                link.remove_toxic("latency_upstream")
            else:
                link.update_toxic("latency_upstream", {"latency": 0}, None)

        link.cut_at(port[1], "up", 3, change)
        client.send(b"01234567")
        for moment, data in ((0.5 + delay, b"89"), (0.75 + delay, b"ab")):
            await at(moment)
            client.send(data)
        await at(9)
        assert server.read == b"0123456789ab"
        await link.close()

    virtual(scenario)()


@virtual
async def test_a_cut_behind_a_toxic_is_exact(rig: Rig) -> None:
    link = await _link(rig)
    link.add_toxic(toxic("slicer", average_size=3, delay=1000))
    client, server = await _pair(rig, link)
    port = link.connections()[0].upstream_local
    assert port is not None
    link.cut_at(port[1], "up", 7, link.cut)
    client.send(b"0123456789")
    await at(1)
    assert server.read == b"0123456"
    assert [end for _, end in server.ends] == ["FIN"]
    await link.close()


# Real sockets: FIN and RST, and the bound


async def test_limit_data_is_fin_on_both_sides(bench: Bench) -> None:
    link = await bench.link()
    client, server = await bench.pair(link)
    link.add_toxic(toxic("limit_data", bytes=5))
    await client.send(b"0123456789")
    assert await server.read_to_eof() == b"01234"
    assert await client.read_to_eof() == b""


async def test_reset_peer_is_rst_on_both_sides(bench: Bench) -> None:
    link = await bench.link()
    client, server = await bench.pair(link)
    link.add_toxic(toxic("reset_peer", "downstream"))
    await server.send(b"x")
    assert await client.read_to_reset() == b""
    assert await server.read_to_reset() == b""


async def test_timeout_removed_is_fin_on_both_sides(bench: Bench) -> None:
    link = await bench.link()
    client, server = await bench.pair(link)
    link.add_toxic(toxic("timeout"))
    await client.send(b"lost")
    await server.send(b"heard")
    assert await client.read(5) == b"heard"
    link.remove_toxic("timeout_upstream")
    assert await client.read_to_eof() == b""
    assert await server.read_to_eof() == b""


async def test_cut_after_is_fin_one_way(bench: Bench) -> None:
    link = await bench.link()
    client, server = await bench.pair(link)
    link.add_toxic(toxic("cut_after", bytes=2))
    await client.send(b"0123")
    assert await server.read_to_eof() == b"01"
    await server.send(b"on")
    assert await client.read(2) == b"on"
    await client.send(b"lost")
    server.raw.close()
    assert await client.read_to_eof() == b""
    await until(lambda: bench.changes("gateway-1") == ["opened", "closed"])


async def test_accept_then_drop_is_fin_without_the_upstream(bench: Bench) -> None:
    link = await bench.link()
    link.add_toxic(toxic("accept_then_drop"))
    client = await bench.client(link)
    await client.send(b"anybody?")
    assert await client.read_to_eof() == b""
    with pytest.raises(BlockingIOError):
        bench.upstream.accept()
    assert bench.changes("gateway-1") == ["opened", "cut"]


async def test_bytes_in_a_toxic_count_for_the_links_bound(bench: Bench, clock: JumpingClock) -> None:
    link = await bench.link()
    client, server = await bench.pair(link)
    link.add_toxic(toxic("black_hole"))
    sent = await fill(link, client, lambda: held_bytes(link, "up"))
    assert held_bytes(link, "up") == HIGH_WATER
    link.remove_toxic("black_hole_upstream")
    client.raw.close()
    assert len(await server.read_to_eof()) == sent


# What has fired


@pytest.mark.parametrize(
    ("kind", "attributes", "touches"),
    [
        ("latency", {"latency": 5}, True),
        ("bandwidth", {"rate": 10**9}, True),
        ("packet_loss", {"loss_rate": 0.001}, True),
        ("black_hole", {}, True),
        ("timeout", {}, True),
        ("limit_data", {"bytes": 2}, True),
        ("limit_data", {"bytes": 20}, False),
        ("cut_after", {"bytes": 2}, True),
        ("cut_after", {"bytes": 20}, False),
        ("slow_close", {"delay": 5}, False),
        ("idle_close", {"timeout": 60_000}, False),
        ("noop", {}, False),
        ("slow_connect", {"delay": 5}, False),
    ],
)
def test_a_toxic_tells_that_it_touched_a_byte(kind: str, attributes: dict[str, object], *, touches: bool) -> None:
    """Once; one that bides its moment tells it then, and one that acts before the connect is too late."""

    @virtual
    async def test(rig: Rig) -> None:
        link = await _link(rig)
        client, _ = await _pair(rig, link)
        told: list[str] = []
        link.add_toxic(ToxicSpec(kind, "t", "upstream", 1.0, attributes), lambda: told.append(kind))
        await at(1)
        assert told == []
        client.send(b"12345")
        client.send(b"67890")
        await at(2)
        assert told == [kind] * touches
        await link.close()

    test()


@virtual
async def test_a_moment_that_comes_is_told(rig: Rig) -> None:
    """And an end that a latency lets through is not touched."""
    link = await _link(rig)
    client, _ = await _pair(rig, link)
    told: list[str] = []
    biding: dict[str, dict[str, object]] = {"slow_close": {"delay": 5}, "idle_close": {"timeout": 9000}, "latency": {}}
    for kind, attributes in biding.items():
        spec = ToxicSpec(kind, kind, "upstream", 1.0, attributes)
        link.add_toxic(spec, lambda kind=kind: told.append(kind))  # type: ignore[misc]
    client.finish()
    await at(1)
    assert told == ["slow_close"]
    await at(20)
    assert told == ["slow_close", "idle_close"]
    await link.close()


@virtual
async def test_a_stream_without_a_byte_and_a_connection_that_is_spared_are_not_touched(rig: Rig) -> None:
    link = await _link(rig)
    told: list[str] = []
    link.add_toxic(ToxicSpec("latency", "other", "downstream", 1.0, {"latency": 5}), lambda: told.append("other"))
    link.add_toxic(ToxicSpec("latency", "spared", "upstream", 0.0, {"latency": 5}), lambda: told.append("spared"))
    link.add_toxic(ToxicSpec("slow_connect", "door", attributes={"delay": 5}), lambda: told.append("door"))
    assert told == []
    client, _ = await _pair(rig, link)
    client.send(b"12345")
    await at(2)
    assert told == ["door"]
    await link.close()


@virtual
async def test_a_delay_tells_that_it_holds_something_back(rig: Rig) -> None:
    link = await _link(rig)
    told: list[str] = []
    client, _ = await _pair(rig, link)
    link.set_delay(3, lambda: told.append("first"))
    link.set_delay(3, lambda: told.append("second"))
    assert told == []
    client.send(b"1")
    client.send(b"2")
    await at(1)
    assert told == ["second"]
    link.set_delay(4, lambda: told.append("third"))
    link.heal()
    client.send(b"3")
    await at(10)
    assert told == ["second"]
    await link.close()


@virtual
async def test_a_toxic_that_is_refused_tells_nothing(rig: Rig) -> None:
    link = await _link(rig)
    with pytest.raises(BadToxic):
        link.add_toxic(ToxicSpec("slicer", "t"), lambda: None)
    assert link._on_touched == {}
    await link.close()

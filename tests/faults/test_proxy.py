"""Proxies on the virtual clock: toxics of live connections, back-pressure, toxicity, and the state rules."""

from __future__ import annotations

import asyncio
import functools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.draws import Draws
from lab.faults.engine import Engine
from lab.faults.proxy import Proxy
from lab.faults.refusals import BadToxic, ToxicExists, ToxicNotFound
from lab.faults.specs import ProxySpec, Toxic, ToxicSpec, Traffic
from lab.faults.toxics import KINDS
from tests.faults.test_chain import KEEPING, PATTERN
from tests.faults.virtual import LATER, Peer, Rig, at, near, reset, toxic, virtual

# Toxics by name


@virtual
async def test_toxics_are_listed_upstream_first_with_their_defaults(rig: Rig) -> None:
    proxy = await rig.proxy()
    proxy.add_toxic(ToxicSpec("latency", attributes={"latency": 5}))
    proxy.add_toxic(ToxicSpec("noop", "mine", "upstream", 0.5))
    proxy.add_toxic(ToxicSpec("noop"))
    assert proxy.toxics == (
        Toxic("mine", "noop", "upstream", 0.5, {}),
        Toxic("latency_downstream", "latency", "downstream", 1.0, {"latency": 5, "jitter": 0}),
        Toxic("noop_downstream", "noop", "downstream", 1.0, {}),
    )
    assert proxy.toxic("mine") == proxy.toxics[0]


@virtual
async def test_a_name_is_unique_over_both_streams(rig: Rig) -> None:
    proxy = await rig.proxy(toxic("noop", name="mine"))
    with pytest.raises(ToxicExists, match="proxy 'p' has a toxic named 'mine' already"):
        proxy.add_toxic(toxic("latency", "downstream", name="mine"))
    assert len(proxy.toxics) == 1


@virtual
async def test_what_cannot_be_is_refused_and_changes_nothing(rig: Rig) -> None:
    proxy = await rig.proxy(toxic("slicer", average_size=10))
    client, server = await rig.pair(proxy)
    for spec, what in (
        (ToxicSpec("lag"), "type"),
        (ToxicSpec("noop", stream="sideways"), "stream"),
        (ToxicSpec("bandwidth", attributes={"rate": -1}), "attributes"),
        (ToxicSpec("noop", toxicity=float("nan")), "attributes"),
    ):
        with pytest.raises(BadToxic) as refusal:
            proxy.add_toxic(spec)
        assert refusal.value.what == what
    before = proxy.toxics
    with pytest.raises(BadToxic):
        proxy.update_toxic("slicer_upstream", {"average_size": 0}, 0.5)
    with pytest.raises(BadToxic):
        proxy.update_toxic("slicer_upstream", {"average_size": 5}, float("inf"))
    for missing in (lambda: proxy.remove_toxic("x"), lambda: proxy.update_toxic("x", None, None)):
        with pytest.raises(ToxicNotFound, match="no toxic named 'x'"):
            missing()
    assert proxy.toxics == before
    client.send(b"0123456789ab")
    await at(1)
    assert server.read == b"0123456789ab"


@virtual
async def test_an_update_merges_attributes_and_leaves_what_is_not_given(rig: Rig) -> None:
    proxy = await rig.proxy(toxic("latency", latency=5, jitter=7, toxicity=0.5))
    assert proxy.update_toxic("latency_upstream", {"jitter": 1}, None).attributes == {"latency": 5, "jitter": 1}
    assert proxy.update_toxic("latency_upstream", None, 1.0).toxicity == 1.0
    assert proxy.toxic("latency_upstream") == Toxic(
        "latency_upstream", "latency", "upstream", 1.0, {"latency": 5, "jitter": 1}
    )


@virtual
async def test_toxics_stand_in_the_order_in_which_they_were_added(rig: Rig) -> None:
    """A limit behind a latency counts what comes late; one before it counts at once."""
    proxy = await rig.proxy(toxic("latency", latency=1000), toxic("limit_data", bytes=3))
    client, server = await rig.pair(proxy)
    client.send(b"12345")
    await at(5)
    assert server.heard == [(near(1), b"123"), (near(1), "FIN")]


# Live connections


@virtual
async def test_a_toxic_acts_on_what_comes_after_it_and_its_removal_frees_the_rest(rig: Rig) -> None:
    proxy = await rig.proxy()
    client, server = await rig.pair(proxy)
    client.send(b"before ")
    await at(1)
    proxy.add_toxic(toxic("latency", latency=10_000))
    client.send(b"held ")
    await at(2)
    proxy.update_toxic("latency_upstream", {"latency": 3000}, None)
    await at(5)
    client.send(b"freed")
    await at(6)
    proxy.remove_toxic("latency_upstream")
    await at(7)
    assert server.heard == [(near(0), b"before "), (near(4), b"held "), (near(6), b"freed")]


@virtual
async def test_connections_tell_which_toxics_touch_them(rig: Rig) -> None:
    proxy = await rig.proxy(
        toxic("noop", "downstream", name="down"), toxic("noop", name="up"), toxic("noop", name="never", toxicity=0.0)
    )
    client, server = await rig.pair(proxy)
    client.send(b"12345")
    server.send(b"678")
    await at(1)
    proxy.add_toxic(toxic("black_hole", name="hole"))
    client.send(b"9")
    await at(2)
    (one,) = proxy.connections()
    assert one.toxics == ("up", "hole", "down")
    assert (one.upstream_sent, one.downstream_sent, one.upstream_held, one.downstream_held) == (5, 3, 1, 0)
    assert one.client == client.transport.get_extra_info("sockname")
    assert one.upstream_local == server.transport.get_extra_info("peername")
    proxy.remove_toxic("up")
    assert proxy.connections()[0].toxics == ("hole", "down")


@virtual
async def test_doors_touch_who_stands_before_them(rig: Rig) -> None:
    proxy = await rig.proxy()
    await rig.pair(proxy)
    proxy.add_toxic(toxic("slow_connect", delay=1000))
    await rig.client(proxy)
    await at(0.5)
    assert [one.toxics for one in proxy.connections()] == [(), ("slow_connect_upstream",)]
    proxy.update_toxic("slow_connect_upstream", None, 0.0)
    await at(0.75)
    assert [one.toxics for one in proxy.connections()] == [(), ()]
    assert len(rig.servers) == 2


@virtual
async def test_traffic_counts_connections_of_before_too(rig: Rig) -> None:
    proxy = await rig.proxy(toxic("limit_data", bytes=4))
    for _ in range(2):
        client, server = await rig.pair(proxy)
        server.send(b"abc")
        await at(1)
        client.send(b"123456")
        await at(2)
        client.transport.close()
        server.transport.close()
    await at(5)
    assert proxy.traffic("upstream") == Traffic(received=12, sent=8)
    assert proxy.traffic("downstream") == Traffic(received=6, sent=6)


# Toxicity


async def _struck(rig: Rig, seed: int, count: int = 60) -> list[bool]:
    """Which of so many connections a toxic of toxicity 0.3 strikes."""
    engine = Engine(rig.engine._loop, functools.partial(Draws, seed))
    proxy = await engine.create(ProxySpec("dice", "127.0.0.1:0", rig.upstream), [toxic("noop", toxicity=0.3)])
    for _ in range(count):
        await rig.pair(proxy)
    struck = [bool(one.toxics) for one in proxy.connections()]
    await engine.close()
    return struck


@virtual
async def test_toxicity_is_rolled_for_each_connection_from_the_seed(rig: Rig) -> None:
    first = await _struck(rig, 1)
    assert first == await _struck(rig, 1)
    assert first != await _struck(rig, 2)
    assert 8 <= sum(first) <= 30


@virtual
async def test_toxicity_is_rolled_again_at_an_update_and_for_each_direction(rig: Rig) -> None:
    proxy = await rig.proxy(toxic("noop", toxicity=0.5), toxic("noop", "downstream", toxicity=0.5))
    for _ in range(20):
        await rig.pair(proxy)
    before = [one.toxics for one in proxy.connections()]
    assert {len(toxics) for toxics in before} == {0, 1, 2}
    proxy.update_toxic("noop_upstream", {}, None)
    after = [one.toxics for one in proxy.connections()]
    assert [("noop_upstream" in one) for one in before] != [("noop_upstream" in one) for one in after]
    assert [("noop_downstream" in one) for one in before] == [("noop_downstream" in one) for one in after]
    proxy.update_toxic("noop_upstream", None, 1.0)
    assert all("noop_upstream" in one.toxics for one in proxy.connections())


@virtual
async def test_one_roll_holds_for_all_chunks_of_a_direction(rig: Rig) -> None:
    proxy = await rig.proxy(toxic("latency", latency=1000, toxicity=0.5))
    seen = set()
    for _ in range(12):
        client, server = await rig.pair(proxy)
        start = now = asyncio.get_running_loop().time()
        for _ in range(5):
            client.send(b"x")
            await at(now + 10)
            now += 10
        late = {round(when - start, 3) % 10 for when, what in server.heard if what == b"x"}
        assert late in ({0.0}, {1.0})
        seen |= late
    assert seen == {0.0, 1.0}


# Back-pressure


@settings(max_examples=40, deadline=None, database=None)
@given(data=st.data())
def test_changes_under_back_pressure_neither_hang_nor_lose_a_byte(data: st.DataObject) -> None:
    async def scenario(rig: Rig) -> None:
        bound = 30_000
        rig.engine._high_water = bound
        proxy = await rig.proxy()
        client, server = await rig.pair(proxy)
        server.transport.pause_reading()
        sent = PATTERN[:250_000]
        client.send(sent)
        client.finish()
        now, reads = 0.0, False
        for step in range(data.draw(st.integers(1, 20))):
            match data.draw(st.sampled_from(["wait", "reader", "add", "update", "remove"])):
                case "wait":
                    now += data.draw(st.floats(0.001, 2))
                    await at(now)
                case "reader":
                    (server.transport.pause_reading if reads else server.transport.resume_reading)()
                    reads = not reads
                case "add":
                    kind = data.draw(st.sampled_from(sorted(KEEPING)))
                    given_now = data.draw(st.sampled_from(KEEPING[kind]))
                    toxicity = data.draw(st.sampled_from([0.5, 1.0]))
                    proxy.add_toxic(ToxicSpec(kind, str(step), "upstream", toxicity, given_now))
                case "update" if proxy.toxics:
                    one = data.draw(st.sampled_from(proxy.toxics))
                    proxy.update_toxic(one.name, data.draw(st.sampled_from(KEEPING[one.type])), None)
                case "remove" if proxy.toxics:
                    proxy.remove_toxic(data.draw(st.sampled_from(proxy.toxics)).name)
            assert all(one.up.pending <= bound for one in proxy.live())
        if not reads:
            server.transport.resume_reading()
        proxy.remove_toxics()
        await at(now + 100)
        assert server.read == sent
        # Whoever reads on behind a FIN hears it again.
        assert {end for _, end in server.ends} == {"FIN"}

    virtual(scenario, window=20_000)()


@virtual
async def test_a_stalled_toxic_stalls_the_sender_within_the_bound(rig: Rig) -> None:
    rig.engine._high_water = 50_000
    proxy = await rig.proxy(toxic("bandwidth"), toxic("latency", latency=1000))
    client, server = await rig.pair(proxy)
    sent = PATTERN * 4
    client.send(sent)
    await at(10)
    assert proxy.connections()[0].upstream_held == 50_000
    assert client.transport.get_write_buffer_size() > 0
    proxy.remove_toxic("bandwidth_upstream")
    await at(LATER)
    assert server.read == sent


# Disabling, resetting, ends of life


@virtual
async def test_disabling_refuses_new_ends_live_and_loses_what_is_held(rig: Rig) -> None:
    proxy = await rig.proxy(toxic("latency", latency=1000))
    client, server = await rig.pair(proxy)
    listen = proxy.listen
    client.send(b"lost")
    await at(0.5)
    await rig.engine.update("p", enabled=False)
    assert not proxy.enabled
    assert proxy.connections() == ()
    with pytest.raises(ConnectionRefusedError):
        await rig.client(proxy)
    await at(5)
    assert client.ends == server.ends == [(near(0.5), "FIN")]
    assert server.read == b""
    await rig.engine.update("p", enabled=True)
    assert proxy.listen == listen
    assert [one.name for one in proxy.toxics] == ["latency_upstream"]
    await rig.pair(proxy)


@virtual
async def test_a_proxy_created_disabled_refuses_until_it_is_enabled(rig: Rig) -> None:
    proxy = await rig.engine.create(ProxySpec("off", "localhost:21000", rig.upstream, enabled=False))
    assert (proxy.listen, proxy.enabled) == ("127.0.0.1:21000", False)
    with pytest.raises(ConnectionRefusedError):
        await rig.client(proxy)
    await rig.engine.update("off", enabled=True)
    await rig.pair(proxy)


@virtual
async def test_an_upstream_that_is_not_there_gives_the_client_fin(rig: Rig) -> None:
    for number, upstream in enumerate(("127.0.0.1:1", "no address", "host:99999", "host:" + "9" * 5000)):
        proxy = await rig.engine.create(ProxySpec(str(number), "127.0.0.1:0", upstream))
        client = await rig.client(proxy)
        await at(number + 1)
        assert client.ends == [(near(number), "FIN")]
        assert proxy.connections() == ()
        assert proxy.upstream == upstream
        await rig.engine.delete(proxy.name)


@virtual
async def test_a_toxics_removal_touches_its_own_connections_alone(rig: Rig) -> None:
    """A timeout whose toxicity spared a connection does not close it."""
    proxy = await rig.proxy(toxic("timeout", toxicity=0.5))
    pairs: list[tuple[Peer, Peer]] = [await rig.pair(proxy) for _ in range(12)]
    struck = [bool(one.toxics) for one in proxy.connections()]
    assert {True, False} == set(struck)
    proxy.remove_toxic("timeout_upstream")
    await at(1)
    assert [bool(client.ends) for client, _ in pairs] == struck
    assert len(proxy.connections()) == struck.count(False)


def test_every_kind_can_stand_in_a_proxy() -> None:
    least: dict[str, dict[str, object]] = {"slicer": {"average_size": 1}}

    @virtual
    async def scenario(rig: Rig) -> None:
        proxy: Proxy = await rig.proxy()
        for kind in KINDS:
            added = proxy.add_toxic(ToxicSpec(kind, attributes=least.get(kind, {})))
            assert added.name == f"{kind}_downstream"
        proxy.remove_toxics()
        assert proxy.toxics == ()

    scenario()


@virtual
async def test_silence_is_that_of_both_directions(rig: Rig) -> None:
    """Whichever of them the toxic is in, and whoever spoke last."""
    for number, stream in enumerate(("upstream", "downstream")):
        proxy = await rig.proxy(toxic("idle_close", stream, timeout=1000), name=stream)
        client, server = await rig.pair(proxy)
        begin = 10.0 * number
        for beat in range(4):
            await at(begin + beat * 0.75)
            (client if beat % 2 else server).send(b"x")
        await at(begin + 9)
        assert client.ends == server.ends == [(near(begin + 2.25 + 1), "FIN")]
        await at(begin + 10)


@virtual
async def test_peers_that_have_both_closed_are_not_known_to_be_gone_while_their_fin_is_held(rig: Rig) -> None:
    """An RST of both is."""
    proxy = await rig.proxy(toxic("black_hole"), toxic("black_hole", "downstream"))
    pairs = [await rig.pair(proxy), await rig.pair(proxy)]
    for peer in pairs[0]:
        peer.transport.close()
    for peer in pairs[1]:
        reset(peer)
    await at(LATER)
    assert [one.id for one in proxy.connections()] == ["p-1"]
    proxy.remove_toxics()
    await at(LATER + 1)
    assert proxy.connections() == ()

"""The engine: proxies by name, and the state rules of the server that it stands in for."""

from __future__ import annotations

import asyncio
import functools
import socket

import pytest

from lab.draws import Draws
from lab.errors import ExitStatus
from lab.faults.engine import Engine
from lab.faults.refusals import BadToxic, ListenFailed, PopulateFailed, ProxyExists, ProxyNotFound, ToxicExists
from lab.faults.specs import ProxySpec
from tests.faults.bench import End, no_open_transport, until
from tests.faults.virtual import Rig, at, near, toxic, virtual

# Creating


@virtual
async def test_a_proxy_and_its_toxics_are_made_in_one_step(rig: Rig) -> None:
    proxy = await rig.proxy(toxic("noop"), toxic("latency", "downstream", latency=5))
    assert rig.engine.proxies == {"p": proxy}
    assert rig.engine.proxy("p") is proxy
    assert proxy.enabled
    assert proxy.listen.startswith("127.0.0.1:")
    assert not proxy.listen.endswith(":0")
    assert [one.name for one in proxy.toxics] == ["noop_upstream", "latency_downstream"]


@virtual
async def test_what_cannot_be_made_leaves_nothing(rig: Rig) -> None:
    spec = ProxySpec("p", "127.0.0.1:21000", rig.upstream)
    with pytest.raises(BadToxic):
        await rig.engine.create(spec, [toxic("noop"), toxic("lag")])
    with pytest.raises(ToxicExists):
        await rig.engine.create(spec, [toxic("noop"), toxic("noop")])
    assert rig.engine.proxies == {}
    await rig.engine.create(spec)
    with pytest.raises(ProxyExists, match="'p' exists already"):
        await rig.engine.create(ProxySpec("p", "127.0.0.1:0", rig.upstream))
    with pytest.raises(ListenFailed, match=r"'q' cannot listen on 127\.0\.0\.1:21000: .*in use.*Give it another"):
        await rig.engine.create(ProxySpec("q", "127.0.0.1:21000", rig.upstream))
    assert list(rig.engine.proxies) == ["p"]


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "example.com:0", "nonsense"])
async def test_an_address_that_cannot_be_listened_on_is_refused(listen: str) -> None:
    engine = Engine(asyncio.get_running_loop(), functools.partial(Draws, 1))
    with pytest.raises(ListenFailed) as refusal:
        await engine.create(ProxySpec("p", listen, "127.0.0.1:1"))
    assert refusal.value.exit_status is ExitStatus.LAB_FAILED
    assert refusal.value.listen == listen


async def test_names_that_nobody_has_are_told() -> None:
    engine = Engine(asyncio.get_running_loop(), functools.partial(Draws, 1))
    with pytest.raises(ProxyNotFound, match="no proxy is named 'x'"):
        engine.proxy("x")
    with pytest.raises(ProxyNotFound):
        await engine.update("x", enabled=True)
    with pytest.raises(ProxyNotFound):
        await engine.delete("x")


# Updating


@virtual
async def test_another_upstream_drops_connections_and_keeps_port_and_toxics(rig: Rig) -> None:
    proxy = await rig.proxy(toxic("noop"))
    client, server = await rig.pair(proxy)
    listen = proxy.listen
    await at(1)
    assert await rig.engine.update("p", upstream="127.0.0.1:1") is proxy
    await at(2)
    assert client.ends == server.ends == [(near(1), "FIN")]
    assert (proxy.upstream, proxy.listen, len(proxy.toxics)) == ("127.0.0.1:1", listen, 1)
    await rig.engine.update("p", upstream=rig.upstream)
    await rig.pair(proxy)


@virtual
async def test_another_listen_drops_connections_and_gives_the_old_port_up(rig: Rig) -> None:
    proxy = await rig.proxy()
    client, _ = await rig.pair(proxy)
    old = proxy.address
    await rig.engine.update("p", listen="127.0.0.1:21001")
    await at(1)
    assert client.ends == [(near(0), "FIN")]
    assert proxy.listen == "127.0.0.1:21001"
    await rig.pair(proxy)
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(*old)


@virtual
async def test_an_update_that_changes_nothing_drops_nothing(rig: Rig) -> None:
    proxy = await rig.proxy()
    client, _ = await rig.pair(proxy)
    same = proxy.listen.replace("127.0.0.1", "localhost")
    await rig.engine.update("p", listen=same, upstream=rig.upstream, enabled=True)
    await rig.engine.update("p")
    await at(1)
    assert client.ends == []
    assert len(proxy.connections()) == 1


@virtual
async def test_a_listen_of_port_0_is_another_port_each_time(rig: Rig) -> None:
    proxy = await rig.proxy()
    await rig.pair(proxy)
    old = proxy.listen
    await rig.engine.update("p", listen="127.0.0.1:0")
    assert proxy.listen != old
    assert proxy.connections() == ()


@virtual
async def test_a_disabled_proxy_can_be_moved_and_stays_disabled(rig: Rig) -> None:
    proxy = await rig.proxy()
    await rig.engine.update("p", listen="127.0.0.1:21002", enabled=False)
    assert (proxy.listen, proxy.enabled) == ("127.0.0.1:21002", False)
    await rig.engine.update("p", listen="127.0.0.1:21003")
    assert (proxy.listen, proxy.enabled) == ("127.0.0.1:21003", False)
    await rig.engine.update("p", enabled=True)
    await rig.pair(proxy)


async def test_a_failed_update_changes_nothing() -> None:
    taken, upstream = socket.create_server(("127.0.0.1", 0)), socket.create_server(("127.0.0.1", 0))
    upstream.setblocking(False)
    loop = asyncio.get_running_loop()
    engine = Engine(loop, functools.partial(Draws, 1))
    try:
        target = "{}:{}".format(*upstream.getsockname())
        proxy = await engine.create(ProxySpec("p", "127.0.0.1:0", target))
        raw = socket.socket()
        raw.setblocking(False)
        client = End(raw)
        await loop.sock_connect(raw, proxy.address)
        accepted, _ = await loop.sock_accept(upstream)
        listen = proxy.listen
        busy = "{}:{}".format(*taken.getsockname())
        for enabled in (True, None):
            with pytest.raises(ListenFailed, match="in use"):
                await engine.update("p", listen=busy, upstream="127.0.0.1:1", enabled=enabled)
            assert (proxy.listen, proxy.upstream, proxy.enabled) == (listen, target, True)
        await client.send(b"still")
        assert await End(accepted).read(5) == b"still"
        await engine.update("p", enabled=False)
        with pytest.raises(ListenFailed, match="in use"):
            await engine.update("p", listen=busy, enabled=True)
        assert (proxy.listen, proxy.enabled) == (listen, False)
        with pytest.raises(OSError, match="in use"):
            # The port is held as it was.
            socket.create_server(proxy.address)
        await engine.update("p", enabled=True)
        raw.close()
        accepted.close()
        await engine.close()
        await until(no_open_transport)
    finally:
        taken.close()
        upstream.close()


# Deleting, populating, resetting


@virtual
async def test_a_deleted_proxy_is_gone_with_its_connections_and_its_port(rig: Rig) -> None:
    spec = ProxySpec("p", "127.0.0.1:21004", rig.upstream)
    proxy = await rig.engine.create(spec, [toxic("latency", latency=1000)])
    client, server = await rig.pair(proxy)
    client.send(b"lost")
    await at(0.5)
    await rig.engine.delete("p")
    await at(5)
    assert client.ends == server.ends == [(near(0.5), "FIN")]
    assert rig.engine.proxies == {}
    again = await rig.engine.create(spec)
    assert again.toxics == ()
    await rig.pair(again)


@virtual
async def test_populate_leaves_what_is_the_same_and_replaces_what_differs(rig: Rig) -> None:
    same = ProxySpec("same", "127.0.0.1:21005", rig.upstream)
    untouched = await rig.engine.create(same, [toxic("noop")])
    moved = await rig.engine.create(ProxySpec("moved", "127.0.0.1:21006", rig.upstream), [toxic("noop")])
    other = await rig.engine.create(ProxySpec("other", "127.0.0.1:0", rig.upstream))
    client, _ = await rig.pair(untouched)
    gone, _ = await rig.pair(moved)
    await rig.engine.update("same", enabled=True)
    done = await rig.engine.populate(
        [
            ProxySpec("same", "localhost:21005", rig.upstream, enabled=False),
            ProxySpec("moved", "127.0.0.1:21006", "127.0.0.1:1"),
            ProxySpec("new", "127.0.0.1:0", rig.upstream, enabled=False),
        ]
    )
    await at(1)
    assert [proxy.name for proxy in done] == ["same", "moved", "new"]
    assert done[0] is untouched
    assert (untouched.enabled, len(untouched.toxics), client.ends) == (True, 1, [])
    assert done[1] is not moved
    assert (done[1].upstream, done[1].toxics, gone.ends) == ("127.0.0.1:1", (), [(near(0), "FIN")])
    assert not done[2].enabled
    assert rig.engine.proxies["other"] is other


@virtual
async def test_populate_with_port_0_always_replaces(rig: Rig) -> None:
    spec = ProxySpec("p", "127.0.0.1:0", rig.upstream)
    (first,) = await rig.engine.populate([spec])
    (second,) = await rig.engine.populate([spec])
    assert first is not second
    assert first.listen != second.listen
    for name, enabled in (("off", False), ("off", False)):
        (proxy,) = await rig.engine.populate([ProxySpec(name, "127.0.0.1:0", rig.upstream, enabled)])
        assert proxy not in (first, second)
        first = proxy


@virtual
async def test_populate_stops_at_the_first_failure_and_tells_what_is_done(rig: Rig) -> None:
    await rig.engine.create(ProxySpec("there", "127.0.0.1:21007", rig.upstream))
    with pytest.raises(PopulateFailed) as failure:
        await rig.engine.populate(
            [
                ProxySpec("first", "127.0.0.1:0", rig.upstream),
                ProxySpec("second", "127.0.0.1:21007", rig.upstream),
                ProxySpec("third", "127.0.0.1:0", rig.upstream),
            ]
        )
    assert [proxy.name for proxy in failure.value.done] == ["first"]
    assert failure.value.cause.listen == "127.0.0.1:21007"
    assert list(rig.engine.proxies) == ["there", "first"]


@pytest.mark.parametrize("listen", ["127.0.0.1:21007", "10.0.0.1:5", "nowhere"])
def test_populate_leaves_what_it_could_not_replace(listen: str) -> None:
    """Its port, its toxics and its connections; and one that was disabled keeps its port as well."""

    @virtual
    async def test(rig: Rig) -> None:
        await rig.engine.create(ProxySpec("taken", "127.0.0.1:21007", rig.upstream))
        old = await rig.engine.create(
            ProxySpec("old", "127.0.0.1:21008", rig.upstream), [toxic("latency", latency=500)]
        )
        off = await rig.engine.create(ProxySpec("off", "127.0.0.1:21009", rig.upstream))
        off.disable()
        client, server = await rig.pair(old)
        for name in ("old", "off"):
            with pytest.raises(PopulateFailed, match=f"'{name}' cannot listen"):
                await rig.engine.populate([ProxySpec(name, listen, rig.upstream)])
        assert [rig.engine.proxy(name) for name in ("old", "off")] == [old, off]
        assert (old.enabled, old.listen, len(old.toxics), len(old.connections())) == (True, "127.0.0.1:21008", 1, 1)
        assert (off.enabled, off.listen) == (False, "127.0.0.1:21009")
        client.send(b"through")
        await at(1)
        assert server.read == b"through"
        off.enable()
        await rig.pair(old)
        await rig.pair(off)

    test()


@virtual
async def test_populate_replaces_what_has_the_same_port(rig: Rig) -> None:
    old = await rig.engine.create(ProxySpec("p", "127.0.0.1:21007", "127.0.0.1:1"), [toxic("black_hole")])
    (new,) = await rig.engine.populate([ProxySpec("p", "127.0.0.1:21007", rig.upstream)])
    assert (old.enabled, new.enabled, new.listen, new.toxics) == (False, True, "127.0.0.1:21007", ())
    await rig.pair(new)


@virtual
async def test_a_disabled_proxy_may_have_any_listen(rig: Rig) -> None:
    """Also one elsewhere than on loopback, which is refused when it is to listen."""
    proxy = await rig.engine.create(ProxySpec("p", "10.0.0.1:5", rig.upstream, enabled=False))
    with pytest.raises(ListenFailed, match="only loopback"):
        proxy.enable()
    with pytest.raises(ListenFailed, match="only loopback"):
        _ = proxy.address
    assert (proxy.listen, proxy.enabled, proxy.is_led("10.0.0.1:5", rig.upstream)) == ("10.0.0.1:5", False, True)
    proxy.change(listen="nowhere", enabled=False)
    assert (proxy.listen, proxy.is_led("10.0.0.1:5", rig.upstream)) == ("nowhere", False)
    with pytest.raises(ListenFailed):
        proxy.change(listen="elsewhere", enabled=True)
    assert proxy.listen == "nowhere"
    proxy.change(listen="127.0.0.1:0", enabled=True)
    await rig.pair(proxy)
    proxy.change(listen="nowhere", enabled=False)
    assert (proxy.listen, proxy.enabled) == ("nowhere", False)


@virtual
async def test_reset_enables_and_cleans_and_lets_connections_live(rig: Rig) -> None:
    proxy = await rig.proxy(toxic("latency", latency=5000), toxic("limit_data", "downstream", bytes=100))
    doomed = await rig.proxy(toxic("timeout"), name="doomed")
    off = await rig.proxy(name="off")
    await rig.engine.update("off", enabled=False)
    client, server = await rig.pair(proxy)
    lost, _ = await rig.pair(doomed)
    client.send(b"held")
    await at(1)
    await rig.engine.reset()
    await at(2)
    assert server.heard == [(near(1), b"held")]
    assert client.ends == []
    assert lost.ends == [(near(1), "FIN")]
    assert off.enabled
    assert [one.toxics for one in (proxy, doomed, off)] == [(), (), ()]


@virtual
async def test_close_ends_everything_and_can_be_called_again(rig: Rig) -> None:
    proxy = await rig.proxy(toxic("black_hole"))
    client, _ = await rig.pair(proxy)
    waiting = await rig.client(await rig.proxy(toxic("slow_connect", delay=1_000_000), name="slow"))
    client.send(b"x")
    await at(1)
    await rig.engine.close()
    await rig.engine.close()
    await at(2)
    assert rig.engine.proxies == {}
    assert client.ends == waiting.ends == [(near(1), "FIN")]

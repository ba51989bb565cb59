"""What each toxic does to a connection through a proxy, on the virtual clock: times, bytes, FIN, RST and half-close."""

from __future__ import annotations

import asyncio

from tests.faults.virtual import LATER, Rig, at, near, reset, toxic, virtual


@virtual
async def test_without_a_toxic_bytes_take_no_time(rig: Rig) -> None:
    client, server = await rig.pair(await rig.proxy())
    client.send(b"ping")
    await at(1)
    server.send(b"pong")
    await at(2)
    assert server.heard == [(near(0), b"ping")]
    assert client.heard == [(near(1), b"pong")]


@virtual
async def test_latency_is_added_in_its_stream_alone(rig: Rig) -> None:
    client, server = await rig.pair(await rig.proxy(toxic("latency", "downstream", latency=250)))
    client.send(b"ping")
    await at(1)
    server.send(b"pong")
    server.finish()
    await at(2)
    assert server.heard == [(near(0), b"ping")]
    assert client.heard == [(near(1.25), b"pong"), (near(1.25), "FIN")]


@virtual
async def test_latencies_add_up(rig: Rig) -> None:
    proxy = await rig.proxy(toxic("latency", latency=250), toxic("latency", name="second", latency=500))
    client, server = await rig.pair(proxy)
    client.send(b"x")
    await at(1)
    assert server.heard == [(near(0.75), b"x")]


@virtual
async def test_bandwidth_is_exact_over_much_data(rig: Rig) -> None:
    client, server = await rig.pair(await rig.proxy(toxic("bandwidth", rate=100)))
    data = bytes(range(256)) * 4096
    client.send(data)
    client.finish()
    await at(LATER)
    assert server.read == data
    assert server.when(len(data)) == near(len(data) / 100_000)
    assert server.when(500_000) <= 500_000 / 100_000 + 0.2


@virtual
async def test_shared_bandwidth_is_split_over_connections(rig: Rig) -> None:
    proxy = await rig.proxy(toxic("bandwidth", rate=100, shared=True))
    first, first_server = await rig.pair(proxy)
    second, second_server = await rig.pair(proxy)
    for client in (first, second):
        client.send(bytes(100_000))
    await at(LATER)
    ends = sorted((first_server.when(100_000), second_server.when(100_000)))
    assert ends[1] == near(2.0)
    assert ends[0] > 1.8


@virtual
async def test_a_new_rate_of_a_shared_line_frees_what_was_reserved_at_the_old_one(rig: Rig) -> None:
    proxy = await rig.proxy(toxic("bandwidth", rate=1, shared=True))
    pairs = [await rig.pair(proxy) for _ in range(2)]
    for client, _ in pairs:
        client.send(bytes(100))
    await at(0.05)
    proxy.update_toxic("bandwidth_upstream", {"rate": 100}, None)
    await at(1)
    assert [server.when(100) for _, server in pairs] == [near(0.051), near(0.052)]


@virtual
async def test_slow_close_delays_one_half_and_not_the_other(rig: Rig) -> None:
    client, server = await rig.pair(await rig.proxy(toxic("slow_close", delay=2000)))
    client.send(b"bye")
    client.finish()
    server.finish()
    await at(1)
    assert server.heard == [(near(0), b"bye")]
    assert client.ends == [(near(0), "FIN")]
    await at(3)
    assert server.ends == [(near(2), "FIN")]


@virtual
async def test_timeout_loses_bytes_and_closes_both_sides_with_fin(rig: Rig) -> None:
    client, server = await rig.pair(await rig.proxy(toxic("timeout", timeout=500)))
    await at(0.25)
    client.send(b"lost")
    server.send(b"heard")
    await at(3)
    assert server.heard == [(near(0.75), "FIN")]
    assert client.heard == [(near(0.25), b"heard"), (near(0.75), "FIN")]


@virtual
async def test_timeout_0_closes_when_it_is_removed(rig: Rig) -> None:
    proxy = await rig.proxy(toxic("timeout"))
    client, server = await rig.pair(proxy)
    client.send(b"lost")
    client.finish()
    await at(1000)
    assert (client.heard, server.heard) == ([], [])
    assert len(proxy.connections()) == 1
    proxy.remove_toxic("timeout_upstream")
    await at(1001)
    assert client.heard == [(near(1000), "FIN")]
    assert server.heard == [(near(1000), "FIN")]
    assert proxy.connections() == ()


@virtual
async def test_reset_peer_resets_both_sides_the_time_after_the_first_byte(rig: Rig) -> None:
    client, server = await rig.pair(await rig.proxy(toxic("reset_peer", timeout=500)))
    await at(1)
    assert (client.heard, server.heard) == ([], [])
    client.send(b"lost")
    await at(3)
    assert client.heard == [(near(1.5), "RST")]
    assert server.heard == [(near(1.5), "RST")]


@virtual
async def test_reset_peer_strikes_connections_that_were_there_before(rig: Rig) -> None:
    proxy = await rig.proxy()
    client, server = await rig.pair(proxy)
    proxy.add_toxic(toxic("reset_peer"))
    client.send(b"x")
    await at(1)
    assert client.heard == server.heard == [(near(0), "RST")]


@virtual
async def test_reset_peer_with_toxicity_0_does_nothing(rig: Rig) -> None:
    client, server = await rig.pair(await rig.proxy(toxic("reset_peer", toxicity=0.0)))
    client.send(b"x")
    await at(1)
    assert server.heard == [(near(0), b"x")]
    assert client.heard == []


@virtual
async def test_slicer_sends_slices_with_pauses(rig: Rig) -> None:
    client, server = await rig.pair(await rig.proxy(toxic("slicer", average_size=4, delay=100_000)))
    client.send(b"0123456789")
    await at(1)
    assert server.heard == [(near(0), b"0123"), (near(0.1), b"4567"), (near(0.2), b"89")]


@virtual
async def test_limit_data_closes_both_sides_behind_the_exact_byte(rig: Rig) -> None:
    client, server = await rig.pair(await rig.proxy(toxic("limit_data", bytes=5)))
    client.send(b"0123456789")
    await at(3)
    assert server.heard == [(near(0), b"01234"), (near(0), "FIN")]
    assert client.heard == [(near(0), "FIN")]


@virtual
async def test_cut_after_is_a_fin_one_way_and_the_other_lives(rig: Rig) -> None:
    proxy = await rig.proxy(toxic("cut_after", bytes=5))
    client, server = await rig.pair(proxy)
    client.send(b"0123456789")
    await at(1)
    client.send(bytes(3_000_000))
    server.send(b"go on")
    await at(2)
    assert server.heard == [(near(0), b"01234"), (near(0), "FIN")]
    assert client.heard == [(near(1), b"go on")]
    server.finish()
    await at(3)
    assert client.ends == [(near(2), "FIN")]
    assert proxy.connections() == ()


@virtual
async def test_a_reset_behind_a_cut_still_ends_the_connection(rig: Rig) -> None:
    proxy = await rig.proxy(toxic("cut_after", bytes=2))
    client, server = await rig.pair(proxy)
    client.send(b"0123")
    await at(1)
    assert [end for _, end in server.ends] == ["FIN"]
    reset(client)
    await at(2)
    assert proxy.connections() == ()


@virtual
async def test_cut_after_0_is_a_fin_at_once(rig: Rig) -> None:
    proxy = await rig.proxy()
    client, server = await rig.pair(proxy)
    await at(1)
    proxy.add_toxic(toxic("cut_after", "downstream"))
    server.send(b"lost")
    client.send(b"heard")
    await at(2)
    assert client.heard == [(near(1), "FIN")]
    assert server.heard == [(near(1), b"heard")]


@virtual
async def test_packet_loss_is_a_stall_and_no_byte_is_missing(rig: Rig) -> None:
    client, server = await rig.pair(await rig.proxy(toxic("packet_loss", loss_rate=0.1)))
    data = bytes(range(256)) * 1024
    client.send(data)
    await at(LATER)
    assert server.read == data
    assert server.when(len(data)) >= 0.2
    whole = {round(when * 5, 6) for when, _ in server.heard}
    # Every stall is a time-out of 200 ms or its doubles.
    assert all(fifths == int(fifths) for fifths in whole)


@virtual
async def test_packet_loss_of_everything_lets_nothing_pass_until_it_ends(rig: Rig) -> None:
    proxy = await rig.proxy(toxic("packet_loss", loss_rate=1.0))
    client, server = await rig.pair(proxy)
    client.send(b"late")
    await at(1000)
    assert server.heard == []
    proxy.remove_toxic("packet_loss_upstream")
    await at(1001)
    assert server.heard == [(near(1000), b"late")]


@virtual
async def test_noop_changes_nothing(rig: Rig) -> None:
    client, server = await rig.pair(await rig.proxy(toxic("noop")))
    client.send(b"x")
    client.finish()
    await at(1)
    assert server.heard == [(near(0), b"x"), (near(0), "FIN")]


@virtual
async def test_black_hole_holds_one_way_and_delivers_when_it_is_gone(rig: Rig) -> None:
    proxy = await rig.proxy(toxic("black_hole"))
    client, server = await rig.pair(proxy)
    client.send(b"held")
    client.finish()
    server.send(b"passes")
    await at(1000)
    assert server.heard == []
    assert client.heard == [(near(0), b"passes")]
    proxy.remove_toxic("black_hole_upstream")
    await at(1001)
    assert server.heard == [(near(1000), b"held"), (near(1000), "FIN")]


@virtual
async def test_two_black_holes_are_a_partition(rig: Rig) -> None:
    client, server = await rig.pair(await rig.proxy(toxic("black_hole"), toxic("black_hole", "downstream")))
    client.send(b"x")
    server.send(b"y")
    await at(LATER)
    assert client.heard == server.heard == []


@virtual
async def test_slow_connect_asks_the_upstream_late(rig: Rig) -> None:
    client = await rig.client(await rig.proxy(toxic("slow_connect", delay=1500)))
    client.send(b"early")
    await at(1.25)
    assert rig.servers == []
    await at(2)
    assert rig.servers[0].heard == [(near(1.5), b"early")]


@virtual
async def test_slow_connects_add_up_and_a_change_holds_for_those_who_wait(rig: Rig) -> None:
    proxy = await rig.proxy(toxic("slow_connect", delay=1000), toxic("slow_connect", name="more", delay=1000))
    first = await rig.client(proxy)
    first.send(b"x")
    await at(1)
    proxy.update_toxic("more", {"delay": 500}, None)
    await at(2)
    assert rig.servers[0].heard == [(near(1.5), b"x")]
    second = await rig.client(proxy)
    second.send(b"x")
    await at(2.25)
    proxy.remove_toxic("more")
    proxy.remove_toxic("slow_connect_upstream")
    await at(3)
    assert rig.servers[1].heard == [(near(2.25), b"x")]


@virtual
async def test_a_client_that_is_reset_while_it_waits_is_forgotten(rig: Rig) -> None:
    proxy = await rig.proxy(toxic("slow_connect", delay=1_000_000))
    client = await rig.client(proxy)
    await at(1)
    assert len(proxy.connections()) == 1
    proxy.reset()
    await at(2)
    assert client.ends == [(near(1), "RST")]
    gone = await rig.client(proxy)
    await at(3)
    gone.send(b"x")
    await at(4)
    reset(gone)
    await at(5)
    assert proxy.connections() == ()
    await asyncio.wait_for(proxy.gone(), 1)
    assert rig.servers == []


@virtual
async def test_a_toxic_can_end_a_connection_whose_upstream_was_not_asked_yet(rig: Rig) -> None:
    proxy = await rig.proxy(toxic("slow_connect", delay=9000), toxic("limit_data"))
    client = await rig.client(proxy)
    await at(1)
    client.send(b"x")
    await at(20)
    assert client.heard == [(near(1), "FIN")]
    assert rig.servers == []


@virtual
async def test_accept_then_drop_never_asks_the_upstream(rig: Rig) -> None:
    proxy = await rig.proxy(toxic("accept_then_drop", delay=500), toxic("slow_connect", delay=100))
    client = await rig.client(proxy)
    client.send(b"anybody?")
    await at(3)
    assert client.heard == [(near(0.5), "FIN")]
    assert rig.servers == []
    proxy.remove_toxic("accept_then_drop_upstream")
    proxy.remove_toxic("slow_connect_upstream")
    await rig.pair(proxy)

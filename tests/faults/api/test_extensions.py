"""What the embedded server has and Toxiproxy 2.12.0 lacks, or crashes on, or hangs in."""

from __future__ import annotations

import asyncio

import pytest

import lab
from tests.faults.api.target import TEXT, Client, Upstream, calling, embedded


async def test_the_bytes_are_those_of_toxiproxy(own: Client, upstream: Upstream) -> None:
    """With the logger that it shows; who serves stands in a header."""
    reply = await own.call("POST", "/proxies", {"name": "a", "listen": "127.0.0.1:0", "upstream": upstream.address})
    listen = reply.json["listen"]
    shown = (
        f'{{"name":"a","listen":"{listen}","upstream":"{upstream.address}","enabled":true,"Logger":{{}},"toxics":[]}}'
    )
    assert reply.body == shown.encode()
    assert (await own.call("GET", "/proxies")).body == f'{{"a":{shown}}}'.encode()
    assert {(await own.call("GET", path)).server for path in ("/version", "/none")} == {f"lab/{lab.__version__}"}
    assert (await own.call("GET", "/version")).content_type == "application/json;charset=utf-8"
    refused = await own.call("GET", "/version", User_Agent="Mozilla/5.0")
    assert (refused.status, refused.body, refused.content_type) == (403, b"User agent not allowed\n", TEXT)


async def test_a_proxy_with_its_toxics(own: Client, upstream: Upstream) -> None:
    """In one step: no connection goes by without them."""
    toxics = [
        {"type": "limit_data", "attributes": {"bytes": 1}},
        {"type": "latency", "stream": "upstream", "name": "l"},
    ]
    made = await own.create("a", upstream.address, toxics=toxics)
    assert [(toxic["name"], toxic["stream"]) for toxic in made["toxics"]] == [
        ("l", "upstream"),
        ("limit_data_downstream", "downstream"),
    ]
    near, far = await upstream.pair(made["listen"])
    await far.send(b"xy")
    assert await near.read_to_fin() == b"x"
    assert await own.create("b", upstream.address, toxics=None)
    # What a client was shown it may send again.
    assert (await own.create("c", upstream.address, toxics=made["toxics"]))["toxics"] == made["toxics"]


@pytest.mark.parametrize(
    ("toxics", "status", "told"),
    [
        ([{"type": "none"}], 400, "invalid toxic type"),
        ([{"type": "noop"}, {"type": "noop", "stream": "x"}], 400, "stream was invalid"),
        ([{"type": "noop"}, {"type": "noop"}], 409, "toxic already exists"),
        ([{"type": "latency", "attributes": {"latency": "x"}}], 400, "LatencyToxic.toxics.attributes.latency of"),
        ({}, 400, "json: cannot unmarshal object into Go struct field Proxy.toxics of type []toxics.ToxicWrapper"),
    ],
)
async def test_a_proxy_whose_toxics_cannot_be(
    own: Client, upstream: Upstream, toxics: object, status: int, told: str
) -> None:
    """There is neither."""
    body = {"name": "a", "listen": "127.0.0.1:0", "upstream": upstream.address, "toxics": toxics}
    reply = await own.call("POST", "/proxies", body)
    assert reply.status == status
    assert told in reply.error[1]
    assert await own.get("/proxies") == {}


async def test_connections(own: Client, upstream: Upstream) -> None:
    """Each with the toxics that touch it, and what it holds."""
    made = await own.create("a", upstream.address)
    assert await own.get("/proxies/a/connections") == []
    await own.add_toxic("a", "bandwidth", rate=0)
    await own.call("POST", "/proxies/a/toxics", {"type": "noop", "toxicity": 0})
    near, far = await upstream.pair(made["listen"])
    await near.send(b"up")
    assert await far.read(2) == b"up"
    await far.send(b"down")
    async with asyncio.timeout(20):
        while True:
            (shown,) = await own.get("/proxies/a/connections")
            if shown["downstream"]["held"]:
                break
    host, port = near.raw.getsockname()
    local, local_port = far.raw.getpeername()
    assert shown == {
        "id": shown["id"],
        "client": f"{host}:{port}",
        "upstream_local": f"{local}:{local_port}",
        "toxics": ["bandwidth_downstream"],
        "upstream": {"sent": 2, "held": 0},
        "downstream": {"sent": 0, "held": 4},
    }
    assert (await own.call("GET", "/proxies/b/connections")).error == (404, "proxy not found", TEXT)
    assert (await own.call("DELETE", "/proxies/a/connections")).status == 405


async def test_metrics(own: Client, upstream: Upstream) -> None:
    """Bytes each way, under Toxiproxy's names, also of connections that are gone."""
    assert (await own.call("GET", "/metrics")).body == b""
    made = await own.create('a"\\', upstream.address)
    near, far = await upstream.pair(made["listen"])
    await near.send(b"up")
    assert await far.read(2) == b"up"
    near.send_fin()
    await far.send(b"down")
    far.send_fin()
    assert await near.read_to_fin() == b"down"
    reply = await own.call("POST", "/metrics")
    assert (reply.status, reply.content_type) == (200, "text/plain; version=0.0.4; charset=utf-8")
    labels = f'{{direction="%s",listener="{made["listen"]}",proxy="a\\"\\\\",upstream="{upstream.address}"}}'
    names = ("toxiproxy_proxy_received_bytes_total", "toxiproxy_proxy_sent_bytes_total")
    rows = [row for row in reply.body.decode().splitlines() if not row.startswith("#")]
    ways = (("downstream", 4), ("upstream", 2))
    assert rows == [f"{name}{labels % way} {size}" for name in names for way, size in ways]
    assert [row for row in reply.body.decode().splitlines() if row.startswith("# TYPE")] == [
        f"# TYPE {name} counter" for name in names
    ]


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("bandwidth", {"rate": -1}),
        ("slicer", {}),
        ("slicer", {"average_size": 0}),
        ("slicer", {"average_size": 5, "size_variation": 6}),
    ],
)
async def test_values_that_crash_toxiproxy(
    own: Client, upstream: Upstream, kind: str, attributes: dict[str, int]
) -> None:
    """400 in a sentence, and the connections live."""
    made = await own.create("a", upstream.address)
    near, far = await upstream.pair(made["listen"])
    reply = await own.call("POST", "/proxies/a/toxics", {"type": kind, "attributes": attributes})
    assert reply.status == 400
    assert reply.error[1].startswith(f"bad request body: {kind} cannot have ")
    good = {"bandwidth": {"rate": 1000}, "slicer": {"average_size": 10}}[kind]
    name = await own.add_toxic("a", kind, **good)
    if attributes:
        assert (await own.call("POST", f"/proxies/a/toxics/{name}", {"attributes": attributes})).status == 400
    assert (await own.get(f"/proxies/a/toxics/{name}"))["attributes"].items() >= good.items()
    await far.send(b"x")
    assert await near.read(1) == b"x"


@pytest.mark.parametrize("kind", ["packet_loss", "slow_connect", "accept_then_drop", "black_hole", "cut_after"])
async def test_kinds_of_our_own(own: Client, kind: str) -> None:
    """Can be had by their names."""
    await own.create("a", "u:1", enabled=False)
    reply = await own.call("POST", "/proxies/a/toxics", {"type": kind})
    assert (reply.status, reply.json["type"]) == (200, kind)


async def test_shared_bandwidth(own: Client) -> None:
    """Listed where it says something."""
    await own.create("a", "u:1", enabled=False)
    name = await own.add_toxic("a", "bandwidth", rate=1, shared=True)
    assert (await own.get(f"/proxies/a/toxics/{name}"))["attributes"] == {"rate": 1, "shared": True}
    told = "bad request body: json: cannot unmarshal string into Go struct field BandwidthToxic.attributes.shared"
    reply = await own.call("POST", f"/proxies/a/toxics/{name}", {"attributes": {"shared": "x"}})
    assert reply.error[1].startswith(told)


async def test_a_stream_in_capitals(own: Client) -> None:
    """Is that stream."""
    await own.create("a", "u:1", enabled=False)
    reply = await own.call("POST", "/proxies/a/toxics", {"type": "noop", "stream": "UPSTREAM"})
    assert (reply.json["name"], reply.json["stream"]) == ("noop_UPSTREAM", "upstream")


async def test_no_listen_means_loopback(own: Client, upstream: Upstream) -> None:
    """Where the Go server listens for everybody."""
    for body in ({}, {"listen": ""}, {"listen": None}):
        reply = await own.call("POST", "/proxies", {"name": "a", "upstream": upstream.address, **body})
        assert reply.json["listen"].startswith("127.0.0.1:")
        near, far = await upstream.pair(reply.json["listen"])
        await far.send(b"x")
        assert await near.read(1) == b"x"
        assert (await own.call("POST", "/proxies/a", {"listen": ""})).json["listen"].startswith("127.0.0.1:")
        assert (await own.call("POST", "/proxies/a", {"upstream": ""})).error[0] == 400
        await own.call("DELETE", "/proxies/a")


async def test_a_port_for_everybody_is_refused(own: Client, upstream: Upstream) -> None:
    """The lab listens on loopback only."""
    reply = await own.call("POST", "/proxies", {"name": "a", "listen": "0.0.0.0:0", "upstream": upstream.address})
    told = "listen tcp 0.0.0.0:0: only loopback addresses may be listened on"
    assert reply.error == (500, told, TEXT)
    assert await own.get("/proxies") == {}


async def test_a_body_that_is_too_long(own: Client) -> None:
    """413; one of just the length is read."""
    for size, status in ((1 << 20, 400), ((1 << 20) + 1, 413)):
        reply = await own.call("POST", "/proxies", b" " * size)
        assert reply.error[0] == status


async def test_a_body_that_says_it_is_packed(own: Client) -> None:
    """Is taken as it stands, as the Go server does: nothing grows."""
    reply = await own.call("POST", "/proxies", b"\x1f\x8b", Content_Encoding="gzip")
    assert reply.error[1] == r"bad request body: invalid character '\x1f' looking for beginning of value"


async def test_changes_under_back_pressure(own: Client, upstream: Upstream) -> None:
    """Every change is answered while nobody reads and all buffers are full."""
    made = await own.create("a", upstream.address)
    _near, far = await upstream.pair(made["listen"])
    full = 0
    while full < 3:
        try:
            far.raw.send(bytes(1 << 16))
            full = 0
        except BlockingIOError:
            full += 1
            await own.get("/proxies/a/connections")
    for kind, attributes in [
        ("bandwidth", {"rate": 0}),
        ("latency", {"latency": 10_000}),
        ("slicer", {"average_size": 1}),
        ("slow_close", {"delay": 10_000}),
        ("limit_data", {"bytes": 1 << 40}),
    ]:
        name = await own.add_toxic("a", kind, **attributes)
        assert (await own.call("PATCH", f"/proxies/a/toxics/{name}", {"toxicity": 0.5})).status == 200
    await own.call("DELETE", "/proxies/a/toxics/bandwidth_downstream")
    assert (await own.call("POST", "/reset")).status == 204
    assert await own.get("/proxies/a/toxics") == []
    assert (await own.call("POST", "/proxies/a", {"enabled": False})).status == 200
    assert (await own.call("DELETE", "/proxies/a")).status == 204


async def test_the_words_of_a_port_that_is_taken(own: Client, upstream: Upstream) -> None:
    """Are Go's."""
    body = {"name": "a", "listen": upstream.address, "upstream": upstream.address}
    told = f"listen tcp {upstream.address}: bind: address already in use"
    assert (await own.call("POST", "/proxies", body)).error == (500, told, TEXT)


async def touched(seed: int, upstream: Upstream) -> list[bool]:
    """Which of some connections a toxic touches that half of them meet."""
    async with embedded(seed=seed) as (_, url), calling(url) as client:
        made = await client.create("a", upstream.address, toxics=[{"type": "noop", "toxicity": 0.5}])
        for _ in range(24):
            await upstream.pair(made["listen"])
        shown = await client.get("/proxies/a/connections")
        assert len(shown) == 24
        return [bool(connection["toxics"]) for connection in shown]


async def test_a_seed_gives_one_life(upstream: Upstream, nothing_left: None) -> None:
    """The same toxics touch the same connections; another seed, others."""
    first = await touched(1, upstream)
    assert set(first) == {True, False}
    assert await touched(1, upstream) == first
    assert await touched(2, upstream) != first


async def test_two_at_once(own: Client, upstream: Upstream) -> None:
    """One of several creations of a name succeeds, and deletions too."""
    body = {"name": "a", "listen": "127.0.0.1:0", "upstream": upstream.address}
    made = await asyncio.gather(*(own.call("POST", "/proxies", body) for _ in range(8)))
    assert sorted(reply.status for reply in made) == [201] + [409] * 7
    gone = await asyncio.gather(*(own.call("DELETE", "/proxies/a") for _ in range(8)))
    assert sorted(reply.status for reply in gone) == [204] + [404] * 7


async def test_no_metrics_unless_asked() -> None:
    """As an unknown path."""
    async with embedded() as (_, url), calling(url) as client:
        assert (await client.call("GET", "/metrics")).status == 404


EDGE = (1 << 63) - 1


@pytest.mark.parametrize("value", [-EDGE - 1, -1, 0, 1, EDGE])
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("latency", "latency"),
        ("latency", "jitter"),
        ("bandwidth", "rate"),
        ("slow_close", "delay"),
        ("timeout", "timeout"),
        ("reset_peer", "timeout"),
        ("slicer", "average_size"),
        ("slicer", "size_variation"),
        ("slicer", "delay"),
        ("limit_data", "bytes"),
    ],
)
async def test_values_at_the_edge(own: Client, upstream: Upstream, kind: str, name: str, value: int) -> None:
    """Are refused, or carried out while data flows and ends: nothing fails, and the toxic can be taken away."""
    made = await own.create("a", upstream.address)
    whole = {"average_size": 1 << 62, "size_variation": 1, "delay": 1} if kind == "slicer" else {}
    body = {"type": kind, "name": "t", "attributes": {**whole, name: value}}
    status = (await own.call("POST", "/proxies/a/toxics", body)).status
    assert status in (200, 400)
    near = await upstream.connect(made["listen"])
    await near.send(b"up")
    near.send_fin()
    far = await upstream.accept()
    assert await far.read_to_fin() == b"up"
    await far.send(b"down")
    far.send_fin()
    await own.get("/proxies/a/connections")
    gone = await own.call("DELETE", "/proxies/a/toxics/t")
    assert gone.status == (204 if status == 200 else 404)
    assert await near.ending() in ("fin", "rst")


async def test_a_proxy_has_a_thousand_toxics_at_most(own: Client, upstream: Upstream) -> None:
    """However they come."""
    toxics = [{"type": "noop", "name": str(number)} for number in range(1001)]
    body = {"name": "a", "listen": "127.0.0.1:0", "upstream": upstream.address}
    told = "bad request body: proxy 'a' has 1000 toxics, and may have no more; remove one first"
    reply = await own.call("POST", "/proxies", {**body, "toxics": toxics})
    assert reply.error == (400, told, TEXT)
    assert await own.get("/proxies") == {}
    assert (await own.call("POST", "/proxies", {**body, "toxics": toxics[:1000]})).status == 201
    reply = await own.call("POST", "/proxies/a/toxics", toxics[1000])
    assert reply.error == (400, told, TEXT)
    assert len(await own.get("/proxies/a/toxics")) == 1000
    assert (await own.call("POST", "/reset")).status == 204
    assert await own.get("/proxies/a/toxics") == []

"""The HTTP API as Toxiproxy 2.12.0 has it: on the embedded server, and on a real one where its binary is named."""

from __future__ import annotations

import socket

import pytest

from tests.faults.api.target import TEXT, Client, Upstream
from tests.refused_port import refused_port

JSON = "application/json"


async def test_the_version(client: Client) -> None:
    """To the byte: clients compare it."""
    reply = await client.call("GET", "/version")
    assert (reply.status, reply.body) == (200, b'{"version": "2.12.0"}\n')


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/proxy"),
        ("GET", "/proxies/"),
        ("GET", "/proxies/a/toxic"),
        ("POST", "/proxies/a/toxics/b/c"),
        ("GET", "/metrics"),
    ],
)
async def test_an_unknown_path(client: Client, method: str, path: str) -> None:
    """Not JSON, whoever asks."""
    for agent in ("curl/8", "Mozilla/5.0"):
        reply = await client.call(method, path, User_Agent=agent)
        assert (reply.status, reply.body, reply.content_type) == (404, b"404 page not found\n", TEXT)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/version"),
        ("HEAD", "/version"),
        ("DELETE", "/proxies"),
        ("PUT", "/proxies/a"),
        ("OPTIONS", "/proxies"),
        ("PATCH", "/proxies/a/toxics"),
        ("PUT", "/proxies/a/toxics/b"),
        ("GET", "/populate"),
        ("GET", "/reset"),
    ],
)
async def test_a_wrong_method(client: Client, method: str, path: str) -> None:
    """Without a word."""
    reply = await client.call(method, path)
    assert (reply.status, reply.body) == (405, b"")


async def test_browsers_are_refused(client: Client, upstream: Upstream) -> None:
    """On every route, before anything is done; who only mentions one is none."""
    await client.create("a", upstream.address)
    for method, path in [("GET", "/version"), ("DELETE", "/proxies/a"), ("POST", "/reset"), ("GET", "/proxies/none")]:
        assert (await client.call(method, path, User_Agent="Mozilla/5.0 (X11)")).status == 403
    assert list(await client.get("/proxies")) == ["a"]
    assert (await client.call("GET", "/version", User_Agent="not Mozilla/5.0")).status == 200


async def test_the_life_of_a_proxy(client: Client, upstream: Upstream) -> None:
    """Created, shown, listed, deleted."""
    assert await client.get("/proxies") == {}
    made = await client.create("a", upstream.address)
    host, _, port = made["listen"].rpartition(":")
    assert host == "127.0.0.1"
    assert int(port) > 0
    due = {"name": "a", "listen": made["listen"], "upstream": upstream.address, "enabled": True, "toxics": []}
    assert {key: made[key] for key in due} == due
    assert await client.get("/proxies/a") == made
    assert await client.get("/proxies") == {"a": made}
    deleted = await client.call("DELETE", "/proxies/a")
    assert (deleted.status, deleted.body) == (204, b"")
    assert await client.get("/proxies") == {}
    for method in ("GET", "POST", "PATCH", "DELETE"):
        assert (await client.call(method, "/proxies/a", {})).error == (404, "proxy not found", TEXT)
    assert (await client.call("GET", "/proxies/a/toxics")).error == (404, "proxy not found", TEXT)
    assert (await client.call("POST", "/proxies/a/toxics", {"type": "noop"})).error == (404, "proxy not found", TEXT)
    for method in ("GET", "POST", "PATCH", "DELETE"):
        assert (await client.call(method, "/proxies/a/toxics/t", {})).error == (404, "proxy not found", TEXT)


async def test_the_bytes_of_a_proxy(client: Client) -> None:
    """In the order of the Go struct, without spaces, markup escaped."""
    reply = await client.call(
        "POST", "/proxies", {"name": "<&>é", "upstream": "u:1", "listen": "127.0.0.1:1", "enabled": False}
    )
    assert (reply.status, reply.content_type) == (201, JSON)
    head = '{"name":"\\u003c\\u0026\\u003eé","listen":"127.0.0.1:1","upstream":"u:1","enabled":false,'.encode()
    assert reply.body.startswith(head)
    assert reply.body.endswith(b',"toxics":[]}')
    toxic = await client.call("POST", "/proxies/%3C%26%3E%C3%A9/toxics", {"type": "latency", "toxicity": 0.3})
    assert toxic.body == (
        b'{"attributes":{"latency":0,"jitter":0},"name":"latency_downstream",'
        b'"type":"latency","stream":"downstream","toxicity":0.3}'
    )


async def test_names_that_are_taken(client: Client, upstream: Upstream) -> None:
    """409, and the first stays."""
    made = await client.create("a", upstream.address)
    again = {"name": "a", "listen": "127.0.0.1:0", "upstream": "other:1"}
    assert (await client.call("POST", "/proxies", again)).error == (409, "proxy already exists", TEXT)
    assert await client.get("/proxies/a") == made


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "bad request body: EOF"),
        (b"{", "bad request body: unexpected EOF"),
        (b"x", "bad request body: invalid character 'x' looking for beginning of value"),
        (
            b'{"name":1}',
            "bad request body: json: cannot unmarshal number into Go struct field Proxy.name of type string",
        ),
        (b"[]", "bad request body: json: cannot unmarshal array into Go value of type toxiproxy.Proxy"),
        (b"{}", "missing required field: name"),
        (b"null", "missing required field: name"),
        (b'{"name":"","upstream":"u:1"}', "missing required field: name"),
        (b'{"name":"a"}', "missing required field: upstream"),
        (b'{"name":"a","upstream":null}', "missing required field: upstream"),
    ],
)
async def test_a_proxy_that_cannot_be(client: Client, body: bytes, told: str) -> None:
    """In the words of Go's decoder."""
    assert (await client.call("POST", "/proxies", body)).error == (400, told, TEXT)
    assert await client.get("/proxies") == {}


async def test_the_habits_of_the_decoder(client: Client) -> None:
    """Case, unknown keys, null and what is behind."""
    body = b'{"NAME":"a","Upstream":"u:1","LISTEN":"127.0.0.1:0","enabled":null,"more":{"name":1}} trailing {'
    reply = await client.call("POST", "/proxies", body)
    assert reply.status == 201
    assert reply.json["enabled"] is True


async def test_a_port_that_is_taken(client: Client, upstream: Upstream) -> None:
    """500, and there is no such proxy."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        reply = await client.call("POST", "/proxies", {"name": "a", "listen": listen, "upstream": upstream.address})
        assert reply.status == 500
        assert listen in reply.error[1]
        assert await client.get("/proxies") == {}
        disabled = {"name": "a", "listen": listen, "upstream": upstream.address, "enabled": False}
        assert (await client.call("POST", "/proxies", disabled)).status == 201
        assert (await client.call("POST", "/proxies/a", {"enabled": True})).status == 500
        assert (await client.get("/proxies/a"))["enabled"] is False


@pytest.mark.parametrize("method", ["POST", "PATCH"])
async def test_updates_of_a_proxy(client: Client, upstream: Upstream, method: str) -> None:
    """What a body leaves out stays, and a name in it says nothing."""
    made = await client.create("a", upstream.address)
    await client.add_toxic("a", "latency", latency=1)
    shown = await client.get("/proxies/a")
    for body in ({}, {"name": "b"}, {"enabled": True}, {"listen": made["listen"], "upstream": None}):
        reply = await client.call(method, "/proxies/a", body)
        assert (reply.status, reply.content_type, reply.json) == (200, JSON, shown)
    off = await client.call(method, "/proxies/a", {"enabled": False})
    assert off.json == {**shown, "enabled": False}
    elsewhere = await client.call(method, "/proxies/a", {"upstream": "u:1"})
    assert elsewhere.json == {**shown, "enabled": False, "upstream": "u:1"}
    on = await client.call(method, "/proxies/a", {"enabled": True})
    assert on.json == {**shown, "upstream": "u:1"}
    refused = await client.call(method, "/proxies/a", {"enabled": "yes"})
    told = "bad request body: json: cannot unmarshal string into Go struct field Proxy.enabled of type bool"
    assert refused.error == (400, told, TEXT)
    assert list(await client.get("/proxies")) == ["a"]


DEFAULTS = {
    "latency": {"latency": 0, "jitter": 0},
    "bandwidth": {"rate": 0},
    "slow_close": {"delay": 0},
    "timeout": {"timeout": 0},
    "reset_peer": {"timeout": 0},
    "limit_data": {"bytes": 0},
    "noop": {},
}


async def test_the_life_of_a_toxic(client: Client) -> None:
    """Each kind with its defaults, listed upstream first, shown, changed, removed."""
    await client.create("a", "u:1", enabled=False)
    due = []
    for kind, attributes in DEFAULTS.items():
        reply = await client.call("POST", "/proxies/a/toxics", {"type": kind})
        named = {"name": f"{kind}_downstream", "type": kind, "stream": "downstream", "toxicity": 1}
        assert (reply.status, reply.content_type, reply.json) == (200, JSON, {"attributes": attributes, **named})
        due.append(reply.json)
    body = {"type": "latency", "name": "first", "stream": "upstream", "toxicity": 0.25, "attributes": {"latency": 7}}
    reply = await client.call("POST", "/proxies/a/toxics", body)
    assert reply.json == {**body, "attributes": {"latency": 7, "jitter": 0}}
    due.insert(0, reply.json)
    assert await client.get("/proxies/a/toxics") == due
    assert (await client.get("/proxies/a"))["toxics"] == due
    assert await client.get("/proxies/a/toxics/first") == due[0]
    gone = await client.call("DELETE", "/proxies/a/toxics/first")
    assert (gone.status, gone.body) == (204, b"")
    assert await client.get("/proxies/a/toxics") == due[1:]
    for method in ("GET", "POST", "PATCH", "DELETE"):
        assert (await client.call(method, "/proxies/a/toxics/first", {})).error == (404, "toxic not found", TEXT)


async def test_a_slicer(client: Client) -> None:
    """Which has no defaults that work."""
    await client.create("a", "u:1", enabled=False)
    sizes = {"average_size": 10, "size_variation": 2}
    reply = await client.call("POST", "/proxies/a/toxics", {"type": "slicer", "attributes": sizes})
    assert reply.json["attributes"] == {**sizes, "delay": 0}


async def test_names_of_toxics(client: Client) -> None:
    """One name a proxy, whatever the stream."""
    await client.create("a", "u:1", enabled=False)
    await client.add_toxic("a", "noop", "upstream")
    await client.add_toxic("a", "noop", "downstream")
    taken = {"type": "latency", "name": "noop_upstream", "stream": "downstream"}
    for body in (taken, {"type": "noop", "name": ""}, {**taken, "attributes": {"latency": "x"}}):
        assert (await client.call("POST", "/proxies/a/toxics", body)).error == (409, "toxic already exists", TEXT)
    assert len(await client.get("/proxies/a/toxics")) == 2


FIELD = "bad request body: json: cannot unmarshal {} into Go struct field {} of type {}"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "bad request body: EOF"),
        (b"{}", "invalid toxic type"),
        (b'{"type":"none"}', "invalid toxic type"),
        (b'{"type":"Latency"}', "invalid toxic type"),
        (b'{"type":"none","stream":"x"}', "stream was invalid, can be either upstream or downstream"),
        (b'{"type":"noop","stream":""}', "stream was invalid, can be either upstream or downstream"),
        (b'{"type":"noop","toxicity":"1"}', FIELD.format("string", "ToxicWrapper.toxicity", "float32")),
        (b'{"type":"noop","attributes":[]}', FIELD.format("array", "ToxicWrapper.attributes", "toxics.NoopToxic")),
        (
            b'{"type":"latency","attributes":{"latency":1.5}}',
            FIELD.format("number 1.5", "LatencyToxic.attributes.latency", "int64"),
        ),
        (
            b'{"type":"latency","attributes":{"jitter":"5"}}',
            FIELD.format("string", "LatencyToxic.attributes.jitter", "int64"),
        ),
        (
            b'{"type":"reset_peer","attributes":{"timeout":true}}',
            FIELD.format("bool", "ResetToxic.attributes.timeout", "int64"),
        ),
        (
            b'{"type":"slicer","attributes":{"average_size":"1"}}',
            FIELD.format("string", "SlicerToxic.attributes.average_size", "int"),
        ),
        (
            b'{"type":"limit_data","attributes":{"bytes":9223372036854775808}}',
            FIELD.format("number 9223372036854775808", "LimitDataToxic.attributes.bytes", "int64"),
        ),
    ],
)
async def test_a_toxic_that_cannot_be(client: Client, body: bytes, told: str) -> None:
    """The stream is judged before the type, the attributes last; nothing is added."""
    await client.create("a", "u:1", enabled=False)
    assert (await client.call("POST", "/proxies/a/toxics", body)).error == (400, told, TEXT)
    assert await client.get("/proxies/a/toxics") == []


async def test_attributes_as_the_decoder_takes_them(client: Client) -> None:
    """Case, unknown keys and null."""
    await client.create("a", "u:1", enabled=False)
    body = b'{"TYPE":"latency","attributes":{"Latency":5,"JITTER":null,"more":"x"},"toxicity":null,"more":1}'
    reply = await client.call("POST", "/proxies/a/toxics", body)
    assert reply.json["attributes"] == {"latency": 5, "jitter": 0}
    assert reply.json["toxicity"] == 1


@pytest.mark.parametrize("method", ["POST", "PATCH"])
async def test_updates_of_a_toxic(client: Client, method: str) -> None:
    """Attributes are merged, toxicity is set, the rest stays."""
    await client.create("a", "u:1", enabled=False)
    name = await client.add_toxic("a", "latency", latency=5, jitter=6)
    path = f"/proxies/a/toxics/{name}"
    due = await client.get(path)
    steps: list[tuple[dict[str, object], dict[str, object]]] = [
        ({"attributes": {"latency": 7}}, {"attributes": {"latency": 7, "jitter": 6}}),
        ({"toxicity": 0.5}, {"toxicity": 0.5}),
        ({"name": "other", "type": "noop", "stream": "upstream"}, {}),
        ({"attributes": None, "toxicity": None}, {}),
        ({"attributes": {"JITTER": 1, "more": 2}}, {"attributes": {"latency": 7, "jitter": 1}}),
        ({"toxicity": 0}, {"toxicity": 0}),
    ]
    for body, change in steps:
        due = {**due, **change}
        reply = await client.call(method, path, body)
        assert (reply.status, reply.content_type, reply.json) == (200, JSON, due)
        assert await client.get(path) == due
    refused = await client.call(method, path, {"attributes": {"latency": 8, "jitter": "x"}})
    assert refused.error == (400, FIELD.format("string", "LatencyToxic.attributes.jitter", "int64"), TEXT)


async def test_populate(client: Client, upstream: Upstream) -> None:
    """An equal one is untouched, one that differs is replaced, the others stay."""
    same = await client.create("same", upstream.address)
    await client.create("moved", upstream.address)
    other = await client.create("other", upstream.address)
    for name in ("same", "moved"):
        await client.add_toxic(name, "latency", latency=1)
    listens = {name: (await client.get(f"/proxies/{name}"))["listen"] for name in ("same", "moved")}
    rows = [
        {"name": "same", "listen": listens["same"], "upstream": upstream.address, "enabled": False},
        {"name": "moved", "listen": listens["moved"], "upstream": "u:1", "toxics": [{"type": "noop"}]},
        {"name": "new", "listen": "127.0.0.1:0", "upstream": "u:2", "enabled": False},
    ]
    reply = await client.call("POST", "/populate", rows)
    assert (reply.status, reply.content_type) == (201, JSON)
    assert list(reply.json) == ["proxies"]
    assert [row["name"] for row in reply.json["proxies"]] == ["same", "moved", "new"]
    now = await client.get("/proxies")
    assert sorted(now) == ["moved", "new", "other", "same"]
    assert now["same"]["enabled"]
    assert [toxic["name"] for toxic in now["same"]["toxics"]] == ["latency_downstream"]
    assert now["same"]["listen"] == same["listen"]
    assert (now["moved"]["upstream"], now["moved"]["enabled"], now["moved"]["toxics"]) == ("u:1", True, [])
    assert now["moved"]["listen"] == listens["moved"]
    assert (now["new"]["enabled"], now["new"]["toxics"]) == (False, [])
    assert now["other"] == other


async def test_populate_with_any_port(client: Client, upstream: Upstream) -> None:
    """Always differs."""
    made = await client.create("a", upstream.address)
    await client.add_toxic("a", "noop")
    row = {"name": "a", "listen": "127.0.0.1:0", "upstream": upstream.address}
    assert (await client.call("POST", "/populate", [row])).status == 201
    now = await client.get("/proxies/a")
    assert now["toxics"] == []
    assert now["listen"].rpartition(":")[0] == made["listen"].rpartition(":")[0]


@pytest.mark.parametrize("body", [b"[]", b"null", b"[] x"])
async def test_populate_with_nothing(client: Client, body: bytes) -> None:
    """Null, since the Go server never made its list."""
    reply = await client.call("POST", "/populate", body)
    assert (reply.status, reply.body, reply.content_type) == (201, b'{"proxies":null}', JSON)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "bad request body: EOF"),
        (b'[{"name":"a","upstream":"u:1"},{"upstream":"u:1"}]', "missing required field: name at proxy 2"),
        (b'[{"name":"a"}]', "missing required field: upstream at proxy 1"),
        (b"[null]", "missing required field: name at proxy 1"),
    ],
)
async def test_populate_with_what_cannot_be(client: Client, body: bytes, told: str) -> None:
    """In JSON, which here says that it is; nothing is created."""
    reply = await client.call("POST", "/populate", body)
    assert (reply.status, reply.content_type) == (400, JSON)
    assert reply.json == {"error": told, "status": 400, "proxies": None}
    assert await client.get("/proxies") == {}


async def test_populate_that_fails_half_way(client: Client, upstream: Upstream) -> None:
    """Those before the one that failed are told, and stand."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        rows = [
            {"name": name, "listen": where, "upstream": upstream.address}
            for name, where in [("a", "127.0.0.1:0"), ("b", listen), ("c", "127.0.0.1:0")]
        ]
        reply = await client.call("POST", "/populate", rows)
    assert (reply.status, reply.content_type) == (500, JSON)
    assert list(reply.json) == ["error", "status", "proxies"]
    assert [row["name"] for row in reply.json["proxies"]] == ["a"]
    assert list(await client.get("/proxies")) == ["a"]


async def test_reset(client: Client, upstream: Upstream) -> None:
    """All on, no toxic left, each where it was."""
    made = {name: await client.create(name, upstream.address) for name in ("a", "b")}
    for name in made:
        await client.add_toxic(name, "latency", "upstream", latency=1)
        await client.add_toxic(name, "timeout", timeout=1)
    await client.call("POST", "/proxies/b", {"enabled": False})
    reply = await client.call("POST", "/reset")
    assert (reply.status, reply.body) == (204, b"")
    assert await client.get("/proxies") == made


async def test_an_upstream_that_refuses(client: Client, upstream: Upstream) -> None:
    """The client is accepted, and gets FIN."""
    with refused_port() as port:
        made = await client.create("a", f"127.0.0.1:{port}")
        end = await upstream.connect(made["listen"])
        assert await end.read_to_fin() == b""

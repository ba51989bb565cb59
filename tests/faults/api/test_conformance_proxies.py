"""Proxies over the HTTP API, as Toxiproxy 2.12.0 has it; on a real server too where its binary is named."""

from __future__ import annotations

import socket

import pytest

from tests.faults.api.target import TEXT, Client, Upstream
from tests.refused_port import refused_port

JSON = "application/json"


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


@pytest.mark.parametrize("listen", ["nowhere", "127.0.0.1:99999", "127.0.0.1"])
async def test_a_disabled_proxy_may_have_any_listen(client: Client, upstream: Upstream, listen: str) -> None:
    """It is asked for when the proxy is to listen, and then refused; a change to it waits for that too."""
    made = await client.create("a", upstream.address, listen=listen, enabled=False)
    assert (made["listen"], made["enabled"]) == (listen, False)
    reply = await client.call("POST", "/proxies/a", {"enabled": True})
    assert (reply.status, reply.json["error"].startswith("listen tcp")) == (500, True)
    good = await client.call("POST", "/proxies/a", {"listen": "127.0.0.1:0", "enabled": True})
    assert (good.status, good.json["enabled"]) == (200, True)
    bad = await client.call("POST", "/proxies/a", {"listen": listen, "enabled": False})
    assert (bad.status, bad.json["listen"], bad.json["enabled"]) == (200, listen, False)
    again = await client.call(
        "POST", "/populate", [{"name": "b", "upstream": "u:1", "listen": listen, "enabled": False}]
    )
    assert (again.status, again.json["proxies"][0]["listen"]) == (201, listen)


async def test_an_upstream_that_refuses(client: Client, upstream: Upstream) -> None:
    """The client is accepted, and gets FIN."""
    with refused_port() as port:
        made = await client.create("a", f"127.0.0.1:{port}")
        end = await upstream.connect(made["listen"])
        assert await end.read_to_fin() == b""

"""Populate and reset over the HTTP API, as Toxiproxy 2.12.0 has it; on a real server too where its binary is named."""

from __future__ import annotations

import socket

import pytest

from tests.faults.api.target import Client, Upstream

JSON = "application/json"


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

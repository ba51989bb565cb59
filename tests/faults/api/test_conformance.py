"""The HTTP API as Toxiproxy 2.12.0 has it: on the embedded server, and on a real one where its binary is named."""

from __future__ import annotations

import pytest

from tests.faults.api.target import TEXT, Client, Upstream


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


@pytest.mark.parametrize(
    ("name", "path"), [("50%", "50%25"), ("a%2Fb", "a%252Fb"), ("a+b?", "a+b%3F"), ("ä b", "%C3%A4%20b")]
)
async def test_a_name_that_has_to_be_escaped(client: Client, upstream: Upstream, name: str, path: str) -> None:
    """A path is decoded once, and then taken apart."""
    await client.create(name, upstream.address)
    await client.add_toxic(path, "noop", "upstream")
    assert (await client.call("DELETE", f"/proxies/{path}/toxics/noop_upstream")).status == 204
    reply = await client.call("PATCH", f"/proxies/{path}", {"enabled": False})
    assert (reply.status, reply.json["name"], reply.json["enabled"]) == (200, name, False)
    assert (await client.call("DELETE", f"/proxies/{path}")).status == 204
    assert await client.get("/proxies") == {}


@pytest.mark.parametrize("path", ["a/b", "a%2Fb"])
async def test_a_slash_in_a_name_is_one_in_the_path(client: Client, upstream: Upstream, path: str) -> None:
    """So such a proxy is there for good: no route leads to it."""
    await client.create("a/b", upstream.address)
    reply = await client.call("DELETE", f"/proxies/{path}")
    assert (reply.status, reply.body) == (404, b"404 page not found\n")
    assert list(await client.get("/proxies")) == ["a/b"]

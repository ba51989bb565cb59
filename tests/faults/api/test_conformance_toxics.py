"""Toxics over the HTTP API, as Toxiproxy 2.12.0 has it; on a real server too where its binary is named."""

from __future__ import annotations

import pytest

from tests.faults.api.target import TEXT, Client

JSON = "application/json"


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

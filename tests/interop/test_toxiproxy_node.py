"""The fault API under a client that others wrote: toxiproxy-node-client, on the lab's server and on Toxiproxy's own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.faults.toxiproxy_servers import SERVERS
from tests.interop import environments

CLIENT = environments.HERE / "toxiproxy-node"
WORDS = "twelve bytes"

pytestmark = pytest.mark.timeout(150)


@pytest.fixture(params=list(SERVERS))
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Of a server in a child."""
    environments.node(CLIENT)
    with SERVERS[request.param]() as (host, port):
        yield f"http://{host}:{port}"


async def told(part: str, url: str) -> Any:
    """What came of one part of the client's program."""
    done = await environments.run(environments.node(CLIENT), CLIENT / "src" / "drive.js", part, url)
    assert done.status == 0, done.err
    return json.loads(done.out)


async def test_the_life_of_proxies(url: str) -> None:
    """Created, turned off, left alone by a list that names it as it is, turned on by a reset, removed."""
    seen = await told("proxies", url)
    made = seen["made"]
    host, _, port = made["listen"].rpartition(":")
    assert (host, int(port) > 0) == ("127.0.0.1", True)
    assert made == {"name": "a", "listen": made["listen"], "upstream": "127.0.0.1:1", "enabled": True}
    assert seen["off"] == seen["untouched"] == {**made, "enabled": False}
    assert seen["on"] == made
    assert (seen["populated"], seen["left"]) == (["a", "b"], ["a"])
    assert set(seen["version"]) == {"version"}


async def test_each_toxic(url: str) -> None:
    """Added, found, given another toxicity, removed; without a name it is called by its kind and stream."""
    told_of = await told("toxics", url)
    for toxic in told_of["seen"]:
        kind, attributes = toxic["asked"]["type"], toxic["asked"]["attributes"]
        due = {"type": kind, "name": f"my {kind}", "stream": "upstream", "toxicity": 1, "attributes": attributes}
        assert toxic["found"] == due
        assert toxic["changed"] == {**due, "toxicity": 0.5}
        assert toxic["afterwards"] == 404
    assert len(told_of["seen"]) == 8
    assert (told_of["unnamed"]["name"], told_of["unnamed"]["stream"]) == ("latency_downstream", "downstream")
    assert told_of["unnamed"]["attributes"] == {"latency": 0, "jitter": 0}


async def test_what_toxics_do(url: str) -> None:
    """To an echo behind the proxy, as the program hears it; a time is asserted from below only."""
    talks = await told("effects", url)
    heard = {name: (talk["heard"], talk["how"]) for name, talk in talks.items()}
    whole = (WORDS, "FIN")
    assert heard == {
        "none": whole,
        "latency": whole,
        "slow_close": whole,
        "slicer": whole,
        "limit_data": (WORDS[:6], "FIN"),
        "timeout": ("", "FIN"),
        "reset_peer": ("", "ECONNRESET"),
        "off": ("", "ECONNREFUSED"),
        "reset": whole,
    }
    for name in ("latency", "slow_close", "slicer", "timeout"):
        assert talks[name]["seconds"] >= 0.19, name


async def test_what_is_refused(url: str) -> None:
    """With the status that the client's own error names."""
    assert await told("refusals", url) == {
        "a proxy that is not there": 404,
        "a name that is taken": 409,
        "a proxy without a name": 400,
        "a port that is taken": 500,
        "a type that is none": 400,
        "a stream that is none": 400,
        "a toxic that is taken": 409,
        "a list with a bad proxy": 400,
    }


def test_the_lock_pins_the_client_and_names_no_registry() -> None:
    packages = json.loads((CLIENT / "package-lock.json").read_text())["packages"]
    dependencies = {name: entry for name, entry in packages.items() if name}
    assert list(dependencies) == ["node_modules/toxiproxy-node-client"]
    assert all("integrity" in entry and "resolved" not in entry for entry in dependencies.values())

"""The Python client that others wrote, against the embedded server. Skipped where it is not installed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.faults.api.target import PATIENCE, embedded

toxiproxy: Any = pytest.importorskip("toxiproxy", reason="toxiproxy-python is not installed")
exceptions: Any = pytest.importorskip("toxiproxy.exceptions")


async def with_client(act: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `act` use a client in a thread: a call from the loop that serves would wait for itself."""
    # The client obeys HTTP_PROXY, and remembers its server in its class.
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    async with embedded() as (_, url):
        client = toxiproxy.Toxiproxy()
        host, _, port = url.removeprefix("http://").partition(":")
        client.update_api_consumer(host, int(port))
        async with asyncio.timeout(PATIENCE):
            await asyncio.to_thread(act, client)


async def test_the_life_of_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Created, found, turned off and on, listed, destroyed."""

    def act(client: Any) -> None:
        assert client.running() is True
        assert json.loads(client.version()) == {"version": "2.12.0"}
        made = client.create(upstream="127.0.0.1:1", name="a", enabled=False)
        assert (made.name, made.upstream, made.enabled) == ("a", "127.0.0.1:1", False)
        with pytest.raises(exceptions.ProxyExists):
            client.create(upstream="127.0.0.1:1", name="a")
        made.enable()
        assert client.get_proxy("a").enabled is True
        made.disable()
        assert client.get_proxy("a").enabled is False
        assert client.get_proxy("none") is None
        client.populate([{"name": "b", "upstream": "127.0.0.1:1", "listen": "127.0.0.1:0"}])
        assert sorted(client.proxies()) == ["a", "b"]
        assert client.destroy(client.get_proxy("a")) is True
        assert sorted(client.proxies()) == ["b"]
        client.destroy_all()
        assert client.proxies() == {}

    await with_client(act, monkeypatch)


async def test_the_life_of_toxics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Added, found, refused, destroyed, reset."""

    def act(client: Any) -> None:
        proxy = client.create(upstream="127.0.0.1:1", name="a")
        proxy.add_toxic(type="latency", attributes={"latency": 123})
        found = proxy.get_toxic("latency_downstream")
        assert (found.attributes, found.stream, found.toxicity) == ({"latency": 123, "jitter": 0}, "downstream", 1)
        with pytest.raises(exceptions.InvalidToxic):
            proxy.add_toxic(type="none")
        with pytest.raises(exceptions.InvalidToxic):
            proxy.add_toxic(type="latency", stream="sideways")
        proxy.add_toxic(type="timeout", stream="upstream", name="t", toxicity=0.5, attributes={"timeout": 1})
        assert sorted(proxy.toxics()) == ["latency_downstream", "t"]
        proxy.destroy_toxic("latency_downstream")
        assert sorted(proxy.toxics()) == ["t"]
        client.reset()
        assert proxy.toxics() == {}

    await with_client(act, monkeypatch)

"""What the fault API is to say after any calls: proxies and toxics as plain data, and random calls on both."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from lab.faults.engine import HIGH_WATER
from tests.faults.api.target import Client

ANY_PORT = "127.0.0.1:0"
NAMES = ("a", "b", "c", "d", "busy")
TOXIC_NAMES = ("", "t1", "t2")
TOXICITIES = (0, 0.25, 0.5, 1)
VALUES: dict[str, dict[str, tuple[int, ...]]] = {
    "latency": {"latency": (0, 5, 3_600_000), "jitter": (0, 5)},
    "bandwidth": {"rate": (0, 1, 100_000)},
    "slow_close": {"delay": (0, 5, 3_600_000)},
    "timeout": {"timeout": (0, 5)},
    "reset_peer": {"timeout": (0, 5)},
    "slicer": {"average_size": (100, 4000), "size_variation": (0, 100), "delay": (0, 10)},
    "limit_data": {"bytes": (0, 100_000, 1 << 40)},
    "noop": {},
}
"""Attributes of each kind in the order in which they are shown, each with values that can be."""
STREAMS = ("upstream", "downstream")


@dataclass
class ModelProxy:
    """A proxy as it is to be shown."""

    name: str
    listen: str
    upstream: str
    enabled: bool
    toxics: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def shown(self) -> dict[str, Any]:
        """Toxics upstream first, each stream in the order of addition."""
        toxics = [toxic for stream in STREAMS for toxic in self.toxics.values() if toxic["stream"] == stream]
        return {
            "name": self.name,
            "listen": self.listen,
            "upstream": self.upstream,
            "enabled": self.enabled,
            "Logger": {},
            "toxics": toxics,
        }

    def settle(self, shown: dict[str, Any]) -> None:
        """A port that the server was to choose is the one it shows."""
        if self.enabled and self.listen == ANY_PORT:
            host, _, port = shown["listen"].rpartition(":")
            assert (host, int(port) > 0) == ("127.0.0.1", True)
            self.listen = shown["listen"]


class RandomCalls:
    """Makes one random call at a time, and asserts that its answer is the model's.

    With a `prefix` it is one of several on a server: it calls only proxies whose name begins so, and never resets.
    """

    def __init__(self, client: Client, upstreams: tuple[str, ...], seed: int, prefix: str = "") -> None:
        self._client = client
        self._upstreams = upstreams
        self._dice = random.Random(seed)
        self._prefix = prefix
        self._names = tuple(prefix + name for name in NAMES)
        self.proxies: dict[str, ModelProxy] = {}
        self.most_held = 0
        """Bytes that a connection was seen to hold one way."""
        self._kinds: dict[Callable[[], Awaitable[None]], int] = {
            self._create: 3,
            self._refused_port: 1,
            self._bad: 2,
            self._delete: 1,
            self._update: 5,
            self._add_toxic: 12,
            self._update_toxic: 6,
            self._remove_toxic: 8,
            self._populate: 2,
            self._reset: 0 if prefix else 1,
            self._show: 2,
            self._connections: 2,
        }

    async def one(self) -> None:
        """A call."""
        (kind,) = self._dice.choices(list(self._kinds), list(self._kinds.values()))
        await kind()

    async def compare(self) -> None:
        """The whole state."""
        shown = await self._client.get("/proxies")
        mine = {name: proxy for name, proxy in shown.items() if name.startswith(self._prefix)}
        assert mine == {name: proxy.shown for name, proxy in self.proxies.items()}

    async def delete_all(self) -> None:
        """What is left."""
        for name in sorted(self.proxies):
            assert (await self._client.call("DELETE", f"/proxies/{name}")).status == 204

    async def _create(self) -> None:
        name, upstream = self._dice.choice(self._names), self._dice.choice(self._upstreams)
        enabled = self._dice.random() < 0.8
        body = {"name": name, "listen": ANY_PORT, "upstream": upstream, "enabled": enabled}
        reply = await self._client.call("POST", "/proxies", body)
        if name in self.proxies:
            assert reply.error[:2] == (409, "proxy already exists")
            return
        proxy = self.proxies[name] = ModelProxy(name, ANY_PORT, upstream, enabled)
        assert reply.status == 201
        proxy.settle(reply.json)
        assert reply.json == proxy.shown

    async def _refused_port(self) -> None:
        taken = [proxy.listen for proxy in self.proxies.values() if proxy.enabled]
        if taken:
            body = {"name": f"{self._prefix}other", "listen": self._dice.choice(taken), "upstream": self._upstreams[0]}
            assert (await self._client.call("POST", "/proxies", body)).status == 500

    async def _bad(self) -> None:
        proxy = self._dice.choice(self._names)
        method, path, body = self._dice.choice(
            [
                ("POST", "/proxies", b'{"name"'),
                ("POST", "/proxies", b"{}"),
                ("POST", f"/proxies/{proxy}", b'{"enabled":1}'),
                ("POST", f"/proxies/{proxy}/toxics", b'{"type":"none"}'),
                ("POST", f"/proxies/{proxy}/toxics", b'{"type":"noop","stream":"x"}'),
                ("POST", f"/proxies/{proxy}/toxics", b'{"type":"latency","name":"new","attributes":{"latency":"x"}}'),
                ("POST", f"/proxies/{proxy}/toxics", b'{"type":"slicer","name":"new"}'),
                ("POST", "/populate", b'[{"name":"a"}]'),
            ]
        )
        reply = await self._client.call(method, path, body)
        here = proxy in self.proxies or not path.startswith("/proxies/")
        assert reply.status == (400 if here else 404)

    async def _delete(self) -> None:
        name = self._dice.choice(self._names)
        reply = await self._client.call("DELETE", f"/proxies/{name}")
        assert reply.status == (204 if self.proxies.pop(name, None) else 404)

    async def _update(self) -> None:
        name = self._dice.choice(self._names)
        body: dict[str, Any] = {}
        if self._dice.random() < 0.7:
            body["enabled"] = self._dice.random() < 0.6
        if self._dice.random() < 0.3:
            body["upstream"] = self._dice.choice(self._upstreams)
        if self._dice.random() < 0.2:
            body["listen"] = ANY_PORT
        reply = await self._client.call(self._dice.choice(["POST", "PATCH"]), f"/proxies/{name}", body)
        proxy = self.proxies.get(name)
        if proxy is None:
            assert reply.status == 404
            return
        for key, value in body.items():
            setattr(proxy, key, value)
        proxy.settle(reply.json)
        assert (reply.status, reply.json) == (200, proxy.shown)

    async def _add_toxic(self) -> None:
        name, kind = self._dice.choice(self._names), self._dice.choice(list(VALUES))
        stream, toxicity = self._dice.choice(STREAMS), self._dice.choice(TOXICITIES)
        body = {
            "name": self._dice.choice(TOXIC_NAMES),
            "type": kind,
            "stream": stream,
            "toxicity": toxicity,
            "attributes": self._attributes(kind, whole=True),
        }
        reply = await self._client.call("POST", f"/proxies/{name}/toxics", body)
        proxy = self.proxies.get(name)
        toxic = {**body, "name": body["name"] or f"{kind}_{stream}"}
        if proxy is None or toxic["name"] in proxy.toxics:
            assert reply.status == (404 if proxy is None else 409)
            return
        proxy.toxics[str(toxic["name"])] = toxic
        assert (reply.status, reply.json) == (200, toxic)

    async def _update_toxic(self) -> None:
        proxy, name = self._some_toxic()
        toxic = self.proxies[proxy].toxics.get(name) if proxy in self.proxies else None
        body: dict[str, Any] = {}
        if self._dice.random() < 0.7:
            body["attributes"] = self._attributes(toxic["type"] if toxic else "latency", whole=False)
        if self._dice.random() < 0.5:
            body["toxicity"] = self._dice.choice(TOXICITIES)
        reply = await self._client.call(self._dice.choice(["POST", "PATCH"]), f"/proxies/{proxy}/toxics/{name}", body)
        if toxic is None:
            assert reply.status == 404
            return
        toxic["attributes"].update(body.get("attributes", {}))
        toxic["toxicity"] = body.get("toxicity", toxic["toxicity"])
        assert (reply.status, reply.json) == (200, toxic)

    async def _remove_toxic(self) -> None:
        proxy, name = self._some_toxic()
        reply = await self._client.call("DELETE", f"/proxies/{proxy}/toxics/{name}")
        there = proxy in self.proxies and name in self.proxies[proxy].toxics
        assert reply.status == (204 if there else 404)
        if there:
            del self.proxies[proxy].toxics[name]

    async def _populate(self) -> None:
        rows = []
        for name in self._dice.sample(self._names, self._dice.randrange(4)):
            proxy, upstream = self.proxies.get(name), self._dice.choice(self._upstreams)
            keeps = proxy is not None and self._dice.random() < 0.7
            listen = proxy.listen if proxy is not None and keeps else ANY_PORT
            rows.append({"name": name, "listen": listen, "upstream": upstream})
        reply = await self._client.call("POST", "/populate", rows)
        assert (reply.status, list(reply.json)) == (201, ["proxies"])
        assert len(reply.json["proxies"] or ()) == len(rows)
        for row, shown in zip(rows, reply.json["proxies"] or (), strict=True):
            proxy = self.proxies.get(row["name"])
            same = proxy is not None and (proxy.listen, proxy.upstream) == (row["listen"], row["upstream"])
            if proxy is None or row["listen"] == ANY_PORT or not same:
                proxy = self.proxies[row["name"]] = ModelProxy(row["name"], row["listen"], row["upstream"], True)
            proxy.settle(shown)
            assert shown == proxy.shown

    async def _reset(self) -> None:
        assert (await self._client.call("POST", "/reset")).status == 204
        shown = await self._client.get("/proxies")
        for name, proxy in self.proxies.items():
            proxy.enabled = True
            proxy.toxics.clear()
            proxy.settle(shown[name])
        await self.compare()

    async def _show(self) -> None:
        name = self._dice.choice(self._names)
        reply = await self._client.call("GET", f"/proxies/{name}")
        if name in self.proxies:
            assert (reply.status, reply.json) == (200, self.proxies[name].shown)
        else:
            assert reply.status == 404

    async def _connections(self) -> None:
        name = self._dice.choice(self._names)
        reply = await self._client.call("GET", f"/proxies/{name}/connections")
        if name not in self.proxies:
            assert reply.status == 404
            return
        for row in reply.json:
            assert set(row["toxics"]) <= set(self.proxies[name].toxics)
            held = max(row[stream]["held"] for stream in STREAMS)
            assert held <= HIGH_WATER
            self.most_held = max(self.most_held, held)

    def _some_toxic(self) -> tuple[str, str]:
        """Mostly one that is there."""
        there = [(proxy.name, toxic) for proxy in self.proxies.values() for toxic in proxy.toxics]
        if there and self._dice.random() < 0.9:
            return self._dice.choice(there)
        return self._dice.choice(self._names), "none"

    def _attributes(self, kind: str, *, whole: bool) -> dict[str, int]:
        return {
            name: self._dice.choice(values)
            for name, values in VALUES[kind].items()
            if whole or self._dice.random() < 0.7
        }

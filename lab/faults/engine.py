"""The engine: every fault proxy of a server or a run, by name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from lab.draws import Draws
from lab.faults.proxy import Proxy
from lab.faults.refusals import ListenFailed, PopulateFailed, ProxyExists, ProxyNotFound
from lab.faults.specs import ProxySpec, ToxicSpec

HIGH_WATER = 1024 * 1024
"""Bytes that a proxy holds at most in each direction of a connection."""


class Engine:
    """Proxies by name. `draws` gives the dice, by actor and purpose: `RunContext.draws`, or a partial of `Draws`.

    No lock is held and nothing waits for traffic: changes are made at once, also under back-pressure.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        draws: Callable[[str, str], Draws],
        *,
        loopback_only: bool = True,
        high_water: int = HIGH_WATER,
    ) -> None:
        self._loop = loop
        self._draws = draws
        self._loopback_only = loopback_only
        self._high_water = high_water
        self._proxies: dict[str, Proxy] = {}

    @property
    def proxies(self) -> Mapping[str, Proxy]:
        """All proxies, in the order they were created; a live view."""
        return MappingProxyType(self._proxies)

    def proxy(self, name: str) -> Proxy:
        """The proxy of that name. Raises `ProxyNotFound`."""
        try:
            return self._proxies[name]
        except KeyError:
            raise ProxyNotFound(name) from None

    async def create(self, spec: ProxySpec, toxics: Sequence[ToxicSpec] = ()) -> Proxy:
        """A new proxy with its toxics, in one step. It listens unless it is not enabled; then `listen` may be any text.

        Raises `ProxyExists`, `ListenFailed`, `BadToxic`, `ToxicExists`, `TooManyToxics`; there is no new proxy then.
        """
        if spec.name in self._proxies:
            raise ProxyExists(spec.name)
        proxy = self._new(spec)
        for toxic in toxics:
            proxy.add_toxic(toxic)
        if spec.enabled:
            proxy.enable()
        self._proxies[spec.name] = proxy
        return proxy

    async def update(
        self, name: str, listen: str | None = None, upstream: str | None = None, enabled: bool | None = None
    ) -> Proxy:
        """Change a proxy; None leaves a part as it is. Another `listen` or `upstream` drops its connections.

        Disabling refuses new connections, gives live ones FIN and loses what is buffered; the port and the toxics
        are kept. Raises `ProxyNotFound`, and `ListenFailed`, after which everything is as it was.
        """
        proxy = self.proxy(name)
        proxy.change(listen, upstream, enabled)
        return proxy

    async def delete(self, name: str) -> None:
        """End a proxy and its connections, and give its port back. Raises `ProxyNotFound`."""
        proxy = self.proxy(name)
        del self._proxies[name]
        proxy.end()
        await proxy.gone()

    async def populate(self, specs: Sequence[ProxySpec]) -> list[Proxy]:
        """Have these proxies. One with the same listen and upstream is left untouched, its toxics and `enabled` too.

        One that differs is replaced and loses its toxics; port 0 always differs. Others stay. Raises
        `PopulateFailed` at the first that cannot listen; those before it stand, and the one that it was to replace
        goes on as it was, with its toxics and connections.
        """
        done: list[Proxy] = []
        for spec in specs:
            try:
                done.append(await self._populate_one(spec))
            except ListenFailed as error:
                raise PopulateFailed(tuple(done), error) from error
        return done

    async def reset(self) -> None:
        """Enable every proxy and remove every toxic; connections live on, except those under a `timeout`.

        Raises `ListenFailed` at the first that cannot listen; those behind it are left as they were.
        """
        for proxy in tuple(self._proxies.values()):
            proxy.enable()
            proxy.remove_toxics()

    async def close(self) -> None:
        """End every proxy; returns when nothing of them is left in the loop. Safe to call again."""
        proxies = tuple(self._proxies.values())
        self._proxies.clear()
        for proxy in proxies:
            proxy.end()
        for proxy in proxies:
            await proxy.gone()

    async def _populate_one(self, spec: ProxySpec) -> Proxy:
        there = self._proxies.get(spec.name)
        if there is None:
            return await self.create(spec)
        if there.is_led(spec.listen, spec.upstream):
            return there
        proxy = self._new(spec)
        if spec.enabled:
            with there.giving_way():
                proxy.enable()
        self._proxies[spec.name] = proxy
        there.end()
        await there.gone()
        return proxy

    def _new(self, spec: ProxySpec) -> Proxy:
        return Proxy(self._loop, self._draws, spec, high_water=self._high_water, loopback_only=self._loopback_only)

"""The routes of the fault API: a request in, an answer out, an engine between them.

GET    /version
GET    /proxies                       POST        /proxies           also with `toxics`, which the Go server ignores
GET    /proxies/{proxy}               POST, PATCH /proxies/{proxy}   DELETE /proxies/{proxy}
GET    /proxies/{proxy}/toxics        POST        /proxies/{proxy}/toxics
GET    /proxies/{proxy}/toxics/{toxic}    POST, PATCH and DELETE
GET    /proxies/{proxy}/connections   not in the Go server: which toxics touch which connection
POST   /populate
POST   /reset
any    /metrics                       when it is switched on
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lab.errors import LabError
from lab.faults.api import bodies
from lab.faults.api.answers import (
    BROWSER_REFUSED,
    METHOD_NOT_ALLOWED,
    METRICS_TEXT,
    NO_CONTENT,
    PAGE_NOT_FOUND,
    VERSION_JSON,
    Answer,
    ApiError,
    error_answer,
    json_answer,
    refused,
)
from lab.faults.api.metrics import metrics_text
from lab.faults.engine import Engine
from lab.faults.go_json import GoJsonError, decode_untrusted
from lab.faults.proxy import Proxy
from lab.faults.refusals import PopulateFailed

VERSION = "2.12.0"
"""The version of Toxiproxy whose answers these are; clients choose by it what they ask for."""
BROWSERS = "Mozilla/"
"""How the User-Agent of one begins: a page that somebody visits must not rule the proxies."""


@dataclass(frozen=True)
class Call:
    """A request on its route: the names in its path, and its body."""

    names: tuple[str, ...]
    body: bytes


@dataclass(frozen=True)
class _Route:
    pattern: tuple[str, ...]
    methods: tuple[str, ...]
    """Empty for any."""
    handle: Callable[[Call], Awaitable[Answer]]

    def names(self, parts: Sequence[str]) -> tuple[str, ...] | None:
        """What stands in the pattern's blanks, or None when the path is another."""
        if len(parts) != len(self.pattern):
            return None
        pairs = list(zip(self.pattern, parts, strict=True))
        if not all(part if blank == "{}" else part == blank for blank, part in pairs):
            return None
        return tuple(part for blank, part in pairs if blank == "{}")


class Api:
    """Answers requests by the proxies of an engine. It awaits nothing but the engine, so no call hangs on traffic."""

    def __init__(self, engine: Engine, *, metrics: bool = False) -> None:
        self._engine = engine
        change = ("POST", "PATCH")
        proxies, proxy = ("proxies",), ("proxies", "{}")
        toxics, toxic = (*proxy, "toxics"), (*proxy, "toxics", "{}")
        self._routes = [
            _Route(("version",), ("GET",), self._version),
            _Route(proxies, ("GET",), self._list),
            _Route(proxies, ("POST",), self._create),
            _Route(proxy, ("GET",), self._show),
            _Route(proxy, change, self._update),
            _Route(proxy, ("DELETE",), self._delete),
            _Route(toxics, ("GET",), self._toxics),
            _Route(toxics, ("POST",), self._add_toxic),
            _Route(toxic, ("GET",), self._show_toxic),
            _Route(toxic, change, self._update_toxic),
            _Route(toxic, ("DELETE",), self._remove_toxic),
            _Route((*proxy, "connections"), ("GET",), self._connections),
            _Route(("populate",), ("POST",), self._populate),
            _Route(("reset",), ("POST",), self._reset),
        ]
        if metrics:
            self._routes.append(_Route(("metrics",), (), self._metrics))

    async def answer(self, method: str, path: str, user_agent: str, body: bytes) -> Answer:
        """The answer to a request; `path` is decoded. Raises nothing that a request can cause."""
        parts = path.removeprefix("/").split("/")
        found = [(route, names) for route in self._routes if (names := route.names(parts)) is not None]
        if not found:
            return PAGE_NOT_FOUND
        for route, names in found:
            if not route.methods or method in route.methods:
                if user_agent.startswith(BROWSERS):
                    return BROWSER_REFUSED
                try:
                    return await route.handle(Call(names, body))
                except LabError as error:
                    return error_answer(refused(error))
        return METHOD_NOT_ALLOWED

    # Proxies

    async def _version(self, _call: Call) -> Answer:
        return Answer(200, f'{{"version": "{VERSION}"}}\n'.encode(), VERSION_JSON)

    async def _list(self, _call: Call) -> Answer:
        return json_answer({name: bodies.proxy_json(proxy) for name, proxy in sorted(self._engine.proxies.items())})

    async def _create(self, call: Call) -> Answer:
        body = decode_untrusted(call.body, bodies.PROXY)
        made = await self._engine.create(bodies.proxy_spec(body), bodies.toxic_specs(body))
        return json_answer(bodies.proxy_json(made), 201)

    async def _show(self, call: Call) -> Answer:
        return json_answer(bodies.proxy_json(self._proxy(call)))

    async def _update(self, call: Call) -> Answer:
        proxy = self._proxy(call)
        change = bodies.proxy_change(decode_untrusted(call.body, bodies.PROXY_UPDATE))
        return json_answer(bodies.proxy_json(await self._engine.update(proxy.name, **change)))

    async def _delete(self, call: Call) -> Answer:
        await self._engine.delete(self._proxy(call).name)
        return NO_CONTENT

    async def _connections(self, call: Call) -> Answer:
        return json_answer([bodies.connection_json(connection) for connection in self._proxy(call).connections()])

    async def _populate(self, call: Call) -> Answer:
        try:
            rows = decode_untrusted(call.body, bodies.POPULATE)
            specs = [bodies.proxy_spec(row, f" at proxy {n}") for n, row in enumerate(rows, start=1)]
            done: Sequence[Proxy] = await self._engine.populate(specs)
        except PopulateFailed as failure:
            return _populated(failure.done, refused(failure))
        except (ApiError, GoJsonError) as error:
            return _populated((), refused(error))
        return _populated(done)

    async def _reset(self, _call: Call) -> Answer:
        await self._engine.reset()
        return NO_CONTENT

    async def _metrics(self, _call: Call) -> Answer:
        return Answer(200, metrics_text(self._engine.proxies.values()).encode(), METRICS_TEXT)

    def _proxy(self, call: Call) -> Proxy:
        return self._engine.proxy(call.names[0])

    # Toxics

    async def _toxics(self, call: Call) -> Answer:
        return json_answer([bodies.toxic_json(toxic) for toxic in self._proxy(call).toxics])

    async def _add_toxic(self, call: Call) -> Answer:
        proxy = self._proxy(call)
        spec = bodies.toxic_spec(proxy, decode_untrusted(call.body, bodies.TOXIC))
        # 200 and not 201, as the Go server has it.
        return json_answer(bodies.toxic_json(proxy.add_toxic(spec)))

    async def _show_toxic(self, call: Call) -> Answer:
        return json_answer(bodies.toxic_json(self._proxy(call).toxic(call.names[1])))

    async def _update_toxic(self, call: Call) -> Answer:
        proxy = self._proxy(call)
        toxic = proxy.toxic(call.names[1])
        body = decode_untrusted(call.body, bodies.TOXIC_UPDATE)
        changed = bodies.attributes(toxic.type, body)
        return json_answer(bodies.toxic_json(proxy.update_toxic(toxic.name, changed, body.get("toxicity"))))

    async def _remove_toxic(self, call: Call) -> Answer:
        self._proxy(call).remove_toxic(call.names[1])
        return NO_CONTENT


def _populated(done: Sequence[Proxy], error: ApiError | None = None) -> Answer:
    shown: dict[str, Any] = {} if error is None else dict(error.members)
    # An empty list is null: the Go server's slice was never made.
    shown["proxies"] = [bodies.proxy_json(proxy) for proxy in done] or None
    return json_answer(shown, 201 if error is None else error.status)

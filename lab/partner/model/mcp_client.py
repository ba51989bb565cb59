"""A small MCP client over Streamable HTTP, as the partner API has it: discover the tools, call one.

It follows no redirect, waits and reads only so much, begins a lost session anew within the call that met the loss
(TM-037), and resumes a stream that was cut, where the wire has ids for it. It shares no code with the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import aiohttp

from lab.partner.model.mcp_wire import (
    CLIENT_INFO,
    MAX_PAGES,
    NEWEST,
    RESUME_HEADER,
    SESSION_HEADER,
    CallContext,
    Era,
    McpFault,
    SseReader,
    answers,
    body,
    headers_of,
    message_untrusted,
    result_untrusted,
    session_untrusted,
    succeeded_untrusted,
    tool_names_untrusted,
    version_untrusted,
)
from lab.partner.model.words import TURN_HEADER


@dataclass(frozen=True, slots=True)
class McpLimits:
    """What an operation may take: seconds in all, bytes of one answer, and how often a cut stream is taken up again."""

    seconds: float = 30.0
    bytes: int = 1 << 20
    resumes: int = 3


@dataclass(frozen=True, slots=True)
class _Wire:
    """What the store settled at the begin of a session; empty on the stateless wire, and before the begin."""

    session: str | None = None
    version: str | None = None


class _SessionLost(Exception):
    """The store no longer knows the session (HTTP 404 on the wire with sessions)."""


def open_http() -> aiohttp.ClientSession:
    """The session for all of a model's store calls; whoever opens it closes it.

    Each request has a connection of its own: one that the store has closed meanwhile would fail a call that is never
    sent twice.
    """
    timeout = aiohttp.ClientTimeout(total=None)
    connector = aiohttp.TCPConnector(force_close=True, limit=0)
    return aiohttp.ClientSession(connector=connector, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar())


class McpClient:
    """One turn's way to a store. Call `discover` first, then `call`, then `close`. Not for use by two tasks at once
    before `discover` is done; calls may run in parallel. Every method raises `McpFault` only."""

    def __init__(
        self, http: aiohttp.ClientSession, url: str, credential: str, era: Era, turn_id: str, limits: McpLimits
    ) -> None:
        self._http = http
        self._url = url
        self._era = era
        self._limits = limits
        self._common = {"Authorization": f"Bearer {credential}", TURN_HEADER: turn_id}
        self._number = 0
        self._wire = _Wire()
        self._renewal = asyncio.Lock()

    async def discover(self) -> tuple[str, ...]:
        """The names of the store's tools, with the static credential alone (MCP-001)."""
        async with self._limit():
            await self._begin()
            names: list[str] = []
            params: dict[str, object] = {}
            for _ in range(MAX_PAGES):
                page, cursor = tool_names_untrusted(await self._renewing("tools/list", params, dict))
                names += page
                if not cursor:
                    return tuple(names)
                params = {"cursor": cursor}
        raise McpFault("too-large")

    async def call(self, tool: str, arguments: Mapping[str, object], context: Callable[[], CallContext]) -> bool:
        """Whether `tool` did what it was asked; False is the store's own word for a failure.

        `context` is asked before each sending, so that one in a new session bears what counts by then (PA-021); what it
        raises is raised here, and nothing is sent.
        """
        async with self._limit():
            params = {"name": tool, "arguments": arguments}
            result = await self._renewing("tools/call", params, lambda: context().headers(), tool)
            return succeeded_untrusted(self._era, result)

    async def close(self) -> None:
        """End the session, if there is one; a store that does not care is left alone."""
        wire, self._wire = self._wire, _Wire()
        if wire.session is None:
            return
        headers = self._common | headers_of(self._era, "", None, wire.session, wire.version)
        try:
            async with (
                self._limit(),
                self._http.delete(self._url, headers=headers, allow_redirects=False),
            ):
                return
        except McpFault:
            return

    def _limit(self) -> _Limit:
        return _Limit(self._limits.seconds)

    async def _begin(self) -> None:
        if self._era is Era.STATELESS:
            version_untrusted(self._era, await self._exchange("server/discover", {}, {}))
            return
        params = {"protocolVersion": NEWEST[self._era], "capabilities": {}, "clientInfo": CLIENT_INFO}
        number, response = await self._post("initialize", params, {}, _Wire())
        async with response:
            result = await self._answer(response, number, _Wire())
            session = session_untrusted(response.headers.get(SESSION_HEADER))
        wire = _Wire(session, version_untrusted(self._era, result))
        await self._notify("notifications/initialized", wire)
        self._wire = wire

    async def _renewing(
        self,
        method: str,
        params: Mapping[str, object],
        headers: Callable[[], Mapping[str, str]],
        name: str | None = None,
    ) -> Mapping[str, object]:
        """An exchange; when its session is lost, once more in a new one."""
        wire = self._wire
        try:
            return await self._exchange(method, params, headers(), name)
        except _SessionLost:
            async with self._renewal:
                # Another call may have begun the new session already.
                if self._wire is wire:
                    await self._begin()
        try:
            return await self._exchange(method, params, headers(), name)
        except _SessionLost:
            raise McpFault("session") from None

    async def _exchange(
        self, method: str, params: Mapping[str, object], headers: Mapping[str, str], name: str | None = None
    ) -> Mapping[str, object]:
        wire = self._wire
        number, response = await self._post(method, params, headers, wire, name)
        async with response:
            return await self._answer(response, number, wire)

    async def _post(
        self,
        method: str,
        params: Mapping[str, object],
        headers: Mapping[str, str],
        wire: _Wire,
        name: str | None = None,
    ) -> tuple[int, aiohttp.ClientResponse]:
        self._number += 1
        number = self._number
        own = headers_of(self._era, method, name, wire.session, wire.version)
        return number, await self._send(body(self._era, number, method, params), own, headers)

    async def _send(self, sent: bytes, own: Mapping[str, str], headers: Mapping[str, str]) -> aiohttp.ClientResponse:
        every = {**self._common, **own, **headers}
        return await self._http.post(self._url, data=sent, headers=every, allow_redirects=False)

    async def _notify(self, method: str, wire: _Wire) -> None:
        own = headers_of(self._era, method, None, wire.session, wire.version)
        async with await self._send(body(self._era, None, method, {}), own, {}) as response:
            if response.status not in (200, 202, 204):
                raise McpFault(f"status-{response.status}")

    async def _answer(self, response: aiohttp.ClientResponse, number: int, wire: _Wire) -> Mapping[str, object]:
        _check(response, wire)
        if response.content_type == "application/json":
            return result_untrusted(message_untrusted(await self._bounded(response)), number)
        if response.content_type != "text/event-stream":
            raise McpFault("shape")
        return await self._follow(response, number, wire)

    async def _bounded(self, response: aiohttp.ClientResponse) -> bytes:
        raw = bytearray()
        async for chunk in response.content.iter_any():
            raw += chunk
            if len(raw) > self._limits.bytes:
                raise McpFault("too-large")
        return bytes(raw)

    async def _follow(self, response: aiohttp.ClientResponse, number: int, wire: _Wire) -> Mapping[str, object]:
        """The answer on a stream, which a cut with an event id does not end on the wire with sessions."""
        events = SseReader()
        allowance = self._limits.bytes
        for left in range(self._limits.resumes, -1, -1):
            try:
                async for chunk in response.content.iter_any():
                    allowance -= len(chunk)
                    if allowance < 0:
                        raise McpFault("too-large")
                    for data in events.feed(chunk):
                        message = message_untrusted(data)
                        if answers(message, number):
                            return result_untrusted(message, number)
            except aiohttp.ClientError:
                pass  # a stream that was torn is as good as one that ended early
            response.close()
            if self._era is Era.STATELESS or events.last_id is None or left == 0:
                break
            response = await self._resume(events, wire)
        raise McpFault("cut")

    async def _resume(self, events: SseReader, wire: _Wire) -> aiohttp.ClientResponse:
        events.restart()
        headers = headers_of(self._era, "", None, wire.session, wire.version)
        headers.update({"Accept": "text/event-stream", RESUME_HEADER: events.last_id or ""})
        del headers["Content-Type"]
        response = await self._http.get(self._url, headers={**self._common, **headers}, allow_redirects=False)
        try:
            _check(response, wire)
        except (McpFault, _SessionLost):
            response.close()
            raise McpFault("cut") from None
        return response


def _check(response: aiohttp.ClientResponse, wire: _Wire) -> None:
    if response.status == 404 and wire.session is not None:
        raise _SessionLost
    if response.status != 200:
        raise McpFault(f"status-{response.status}")


class _Limit:
    """A block that takes no longer than `seconds` and raises nothing but `McpFault`."""

    def __init__(self, seconds: float) -> None:
        self._timeout = asyncio.timeout(seconds)

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            await self._timeout.__aexit__(kind, error, None)
        except TimeoutError:
            raise McpFault("timeout") from None
        if isinstance(error, aiohttp.ClientConnectorError):
            raise McpFault("unreachable") from None
        if isinstance(error, (aiohttp.ClientError, OSError)):
            raise McpFault("cut") from None
        if isinstance(error, (ValueError, _SessionLost)):
            raise McpFault("shape") from None


def transport_url(destinations: Mapping[str, str], destination: str) -> str | None:
    """Where the test transport reaches a canonical destination; None: nowhere (MCP-005, FX-016)."""
    return destinations.get(destination)

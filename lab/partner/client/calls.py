"""Making calls: tried again while that is safe, each try bounded, judged by the tap and told to the journal."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import aiohttp
from yarl import URL

from lab.context import RunContext
from lab.journal.partner_events import PartnerCall, fingerprint
from lab.partner.client.answers import Raw, data_untrusted
from lab.partner.client.asking import Ask
from lab.partner.client.members import BadShape
from lab.partner.client.outcomes import ApiRefusal, Done, Outcome, TransportError
from lab.partner.client.words import CODES, IDEMPOTENCY_KEY, POST_GRANT, POST_REGISTRATION
from lab.tap.partner import PartnerTap, Verdict

T = TypeVar("T")

READ_STEP = 64 * 1024
OF_ISSUER = frozenset({POST_GRANT, POST_REGISTRATION})

_LOST = frozenset({"refused", "reset", "timeout", "cut"})
_GATEWAY_STATUSES: Final = frozenset({502, 503, 504})

Decode = Callable[[Raw], Any]
"""Gives the data of an answer, an `ApiRefusal`, or a `TransportError`."""


@dataclass(frozen=True, slots=True)
class CallSettings:
    """Bounds of a call; seconds and bytes."""

    timeout_s: float = 10.0
    """Of one try, from the connection to the last byte."""
    most_tries: int = 8
    first_wait_s: float = 0.25
    """Before the second try; it doubles each time."""
    longest_wait_s: float = 2.0
    most_bytes: int = 16 * 1024 * 1024
    """A longer answer is not read on."""


class Calls:
    """The calls of one driver. The session is the driver's; the tap sees each answer before anything else does."""

    def __init__(
        self, ctx: RunContext, name: str, session: aiohttp.ClientSession, tap: PartnerTap, settings: CallSettings
    ) -> None:
        self._ctx = ctx
        self._name = name
        self._session = session
        self._tap = tap
        self._settings = settings
        self._count = 0

    async def call(self, ask: Ask, read: Callable[[Any], T], decode: Decode = data_untrusted) -> Outcome[T]:
        """Ask until an answer comes that is final (PA-043). Never raises for what the API or the network does.

        The same bytes and the same Idempotency-Key go out at each try. Only what got no answer, or a gateway's 502, 503
        or 504 without a code of the contract, is tried again.
        """
        self._count += 1
        call, wait = f"{self._name}-{self._count}", self._settings.first_wait_s
        for attempt in range(1, self._settings.most_tries + 1):
            outcome = replace(await self._try(ask, call, attempt, read, decode), attempts=attempt)
            if not ask.repeat or not passing(outcome) or attempt == self._settings.most_tries:
                break
            await asyncio.sleep(wait)
            wait = min(2 * wait, self._settings.longest_wait_s)
        return outcome

    async def _try(self, ask: Ask, call: str, attempt: int, read: Callable[[Any], T], decode: Decode) -> Outcome[T]:
        began, start = self._ctx.journal.count, self._ctx.now()
        raw = await self._exchange(ask)
        verdict = Verdict() if isinstance(raw, TransportError) else self._judge(ask, raw)
        outcome = raw if isinstance(raw, TransportError) else _read(raw, read, decode)
        self._ctx.journal.record(
            self._name,
            PartnerCall(
                call,
                ask.route,
                0 if isinstance(raw, TransportError) else raw.status,
                code=verdict.code,
                attempt=attempt,
                seconds=round(self._ctx.now() - start, 6),
                key=None if ask.key is None else fingerprint(ask.key),
                idempotency_key=None if ask.idempotency_key is None else fingerprint(ask.idempotency_key),
                request=ask.input,
                conversation_id=ask.conversation_id,
                run_id=ask.run_id,
                facts={"sent": ask.sent, "answer": verdict.facts, **ask.marks},
                misses=verdict.misses,
                leaks=verdict.leaks,
                error=outcome.kind if isinstance(outcome, TransportError) else None,
                began=began,
            ),
        )
        return outcome

    def _judge(self, ask: Ask, raw: Raw) -> Verdict:
        if ask.route in OF_ISSUER:
            return self._tap.issuer(raw.status, raw.headers, raw.body)
        return self._tap.answer(ask.route, raw.status, raw.headers, raw.body)

    async def _exchange(self, ask: Ask) -> Raw | TransportError:
        status = 0
        try:
            async with asyncio.timeout(self._settings.timeout_s), self.request(ask) as response:
                status = response.status
                body = await bounded_body(response, self._settings.most_bytes)
                return Raw(status, lower(response.headers), body)
        except TooLong:
            return TransportError("too-long", status)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            return TransportError(kind_of(error))

    def request(self, ask: Ask) -> Any:
        """The exchange as a context manager of aiohttp; redirects are not followed, nothing is decompressed."""
        return self._session.request(
            ask.method,
            URL(ask.url, encoded=True),
            # A stream of bytes, as aiohttp writes that in pieces and lets others run between them.
            data=None if ask.body is None else io.BytesIO(ask.body),
            headers=headers_of(ask),
            allow_redirects=False,
            middlewares=(_Once(),),
        )


class _Once:
    """Lets a request out a single time: aiohttp sends a GET or PUT again by itself when the connection was lost.

    Such a second request would stand in no journal, and bind a grant twice.
    """

    def __init__(self) -> None:
        self._sent = False

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        if self._sent:
            raise aiohttp.ServerDisconnectedError
        self._sent = True
        return await handler(request)


class TooLong(Exception):
    """An answer above the bound."""


def headers_of(ask: Ask) -> dict[str, str]:
    """The headers of a request."""
    headers = {"Accept": "*/*", "Accept-Encoding": "identity"}
    if ask.key is not None:
        # PA-005
        headers["Authorization"] = f"Bearer {ask.key}"
    if ask.content_type is not None:
        headers["Content-Type"] = ask.content_type
    if ask.idempotency_key is not None:
        headers[IDEMPOTENCY_KEY] = ask.idempotency_key
    return headers | dict(ask.headers)


def lower(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers by lower-case name."""
    return {name.lower(): value for name, value in headers.items()}


async def bounded_body(response: aiohttp.ClientResponse, most: int) -> bytes:
    """The whole body; one above `most` bytes raises `TooLong`."""
    body = bytearray()
    while part := await response.content.read(READ_STEP):
        body += part
        if len(body) > most:
            raise TooLong
    return bytes(body)


def kind_of(error: BaseException) -> str:
    """The kind of a `TransportError` for what a client raised."""
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, aiohttp.ClientConnectorError):
        return "refused"
    return "cut" if isinstance(error, aiohttp.ClientPayloadError) else "reset"


def passing(outcome: Outcome[T]) -> bool:
    """Whether it may be otherwise at the next try: no answer, or a gateway that spoke in the API's place (PA-043)."""
    if isinstance(outcome, TransportError):
        return outcome.kind in _LOST or outcome.status in _GATEWAY_STATUSES
    return isinstance(outcome, ApiRefusal) and outcome.status in _GATEWAY_STATUSES and outcome.code not in CODES


def _read(raw: Raw, read: Callable[[Any], T], decode: Decode) -> Outcome[T]:
    data = decode(raw)
    if isinstance(data, ApiRefusal | TransportError):
        return data
    try:
        return Done(read(data), raw.status)
    except BadShape:
        return TransportError("not-envelope", raw.status)


def open_session() -> aiohttp.ClientSession:
    """A session for one driver: no proxy, no cookies (PA-004), no timeouts but the calls' own; the caller closes it.

    Each call has a connection of its own, so that none meets one that a break has left dead.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(force_close=True),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),
        auto_decompress=False,
        trust_env=False,
    )

"""Calling agent2's local HTTP API.

Failures are `Agent2Error` with the codes not_found, unauthorized, http_error (a status, or none for no answer),
bad_response and stream_broken; no text of agent2 is ever in one. A caller that is cancelled gets its
`CancelledError`, and the request is closed with it.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import aiohttp
from yarl import URL

from lab.errors import Agent2Error, EnvironmentFault
from lab.localagent.sse import SseEvent, SseParser

# A2-020: bounds that the documents leave open.
MAX_JSON_BYTES = 1024 * 1024
READ_STEP = 16 * 1024
HEALTH_TIMEOUT = 3.0
MAX_KINDS = 16
_BASE = "/local/v1"
_KIND = re.compile(r"[a-z][a-z0-9._-]{0,31}")
_PLAIN = {"accept-encoding": "identity"}


@dataclass(frozen=True)
class Health:
    """Whether agent2 is up, and the kinds of job it lists."""

    up: bool
    kinds: tuple[str, ...] = ()


def health_from(body: object) -> Health:
    """What a body of /health says; anything unexpected is down or without kinds."""
    if not isinstance(body, dict) or body.get("status") != "up":
        return Health(up=False)
    kinds = body.get("kinds")
    listed = kinds if isinstance(kinds, list) else []
    # A2-004: filtered first, then cut.
    known = [kind for kind in listed if isinstance(kind, str) and _KIND.fullmatch(kind)]
    return Health(up=True, kinds=tuple(known[:MAX_KINDS]))


class Agent2Client:
    """One agent2, reached at `url`. `token` is asked at each call, since it changes when agent2 starts again."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        url: str,
        token: Callable[[], str],
        request_timeout: float = 10.0,
        stream_idle: float = 0.0,
    ) -> None:
        self._session = session
        self._url = url.rstrip("/")
        self._token = token
        self._timeout = request_timeout
        self._idle = stream_idle

    async def health(self) -> Health:
        """Whether agent2 is up; never raises for what agent2 or the network does (A2-005)."""
        try:
            # A2-002: without a token, and not for long.
            async with asyncio.timeout(min(self._timeout, HEALTH_TIMEOUT)):
                async with self._session.get(
                    self._address("/health"), headers=_PLAIN, allow_redirects=False
                ) as response:
                    if response.status != 200:
                        return Health(up=False)
                    return health_from(await _bounded_json(response))
        except (aiohttp.ClientError, OSError, TimeoutError):
            return Health(up=False)

    async def post_job(self, body: Mapping[str, object]) -> object:
        """Start a job; the decoded answer, None when it is no JSON. A2-009: any 2xx is a success."""
        return await self._call("POST", "/jobs", body)

    async def cancel(self, job_id: str, reason: str = "user") -> None:
        """Ask agent2 to end a job."""
        await self._call("POST", f"/jobs/{quote(job_id, safe='')}/cancel", {"reason": reason})

    async def job_state(self, job_id: str) -> object:
        """agent2's view of a job, None when the answer is no JSON."""
        return await self._call("GET", f"/jobs/{quote(job_id, safe='')}")

    async def approve(self, approval_id: str, job_id: str, decision: str) -> None:
        """Hand over a decision whose token was checked."""
        body = {"jobId": job_id, "decision": decision}
        await self._call("POST", f"/approvals/{quote(approval_id, safe='')}", body)

    async def events(self, job_id: str, on_frame: Callable[[object], None]) -> None:
        """Read a job's metadata frames from the first on, until the stream ends cleanly."""

        def take(event: SseEvent) -> None:
            # A2-036: only frames with data; what is no JSON is passed over.
            if event.name == "frame" and event.data is not None:
                try:
                    frame = json.loads(event.data)
                except (ValueError, RecursionError):
                    return
                on_frame(frame)

        await self._read_sse(f"/jobs/{quote(job_id, safe='')}/events", take)

    async def stream(self, job_id: str, on_line: Callable[[str], None]) -> None:
        """Read a job's content lines from the first on, until the stream ends cleanly."""

        def take(event: SseEvent) -> None:
            # A2-037: every event with data is one line, whatever its name.
            if event.data is not None:
                on_line(event.data)

        await self._read_sse(f"/jobs/{quote(job_id, safe='')}/stream", take)

    def _address(self, path: str) -> URL:
        # A2-001, A2-016: what is encoded stays as it is.
        return URL(f"{self._url}{_BASE}{path}", encoded=True)

    def _headers(self) -> dict[str, str]:
        # A2-017: the token of the agent2 that runs now.
        return {**_PLAIN, "authorization": f"Bearer {self._token()}"}

    async def _call(self, method: str, path: str, body: Mapping[str, object] | None = None) -> object:
        try:
            # A2-018: one bound for the whole call.
            async with asyncio.timeout(self._timeout):
                async with self._session.request(
                    method, self._address(path), json=body, headers=self._headers(), allow_redirects=False
                ) as response:
                    if not 200 <= response.status < 300:
                        raise _status_error(response.status)
                    return await _bounded_json(response)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            # A2-063: what went wrong in words stays here.
            raise Agent2Error("http_error") from error

    async def _read_sse(self, path: str, take: Callable[[SseEvent], None]) -> None:
        headers = {**self._headers(), "accept": "text/event-stream"}
        try:
            async with asyncio.timeout(None) as guard:
                self._rearm(guard)
                # A2-061: leaving this block closes a request whose answer was not read to its end.
                async with self._session.get(self._address(path), headers=headers, allow_redirects=False) as response:
                    if response.status != 200:
                        raise _status_error(response.status)
                    # A2-023: nothing to read.
                    if response.content_length == 0:
                        raise Agent2Error("bad_response", 200)
                    parser = SseParser()
                    while raw := await response.content.read(READ_STEP):
                        for event in parser.feed(raw):
                            take(event)
                        self._rearm(guard)
                    for event in parser.end():
                        take(event)
        except (Agent2Error, EnvironmentFault):
            raise
        except Exception as error:
            # A2-033, A2-034: a break, silence, or a consumer that failed.
            raise Agent2Error("stream_broken") from error

    def _rearm(self, guard: asyncio.Timeout) -> None:
        # A2-032: the idle guard starts before the request and anew at each read.
        if self._idle > 0:
            guard.reschedule(asyncio.get_running_loop().time() + self._idle)


def _status_error(status: int) -> Agent2Error:
    # A2-022: the status alone; the body is dropped.
    code = {404: "not_found", 401: "unauthorized"}.get(status, "http_error")
    return Agent2Error(code, status)


async def _bounded_json(response: aiohttp.ClientResponse) -> Any:
    """A2-019: the decoded body, None when it is above the bound or no JSON."""
    raw = bytearray()
    while part := await response.content.read(READ_STEP):
        raw += part
        if len(raw) > MAX_JSON_BYTES:
            return None
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def open_session() -> aiohttp.ClientSession:
    """A session of its own for agent2: no proxy, no cookies, no timeouts but the client's; the caller closes it.

    Each call has a connection of its own, so that none meets one that a break has left dead.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(force_close=True),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),
        trust_env=False,
    )

"""A stand-in for the partner API and the issuer that answers by script, and a driver of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from lab.clock import Clock, timestamp
from lab.context import RunContext
from lab.journal.events import Event
from lab.journal.partner_events import PartnerAnswerText, PartnerCall, PartnerEvent, PartnerStream
from lab.journal.writer import Journal
from lab.partner.api_schema import api_schema
from lab.partner.client.calls import CallSettings
from lab.partner.client.driver import PartnerDriver
from lab.partner.client.follow import FollowSettings
from lab.partner.client.issuer import IssuerTarget
from lab.partner.client.settings import DriverSettings, Target
from lab.sim.run import run_virtual
from lab.tap.partner import PartnerTap
from tests.partner.samples import CONVERSATION, MEMBERSHIP, RUN, failure, wrapped

T = TypeVar("T")
E = TypeVar("E", bound=Event)

EPOCH_MS = 1_767_225_600_000
KEYS = {"chat-key": "chat-key-0001", "issuer-key": "issuer-key-0001", "register-key": "register-key-0001"}
BASE = "/v1/orgs/org/chat"
QUICK = DriverSettings(
    calls=CallSettings(timeout_s=0.3, most_tries=4, first_wait_s=0.01, longest_wait_s=0.02),
    following=FollowSettings(first_wait_s=0.01, longest_wait_s=0.02, open_s=0.3, idle_s=0.3, linger_s=0.3),
    renews_leases=False,
)
"""For a real clock: whatever is waited for comes at once."""


@dataclass(frozen=True)
class Request:
    """A request as it came."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]

    @property
    def json(self) -> Any:
        """The body's value."""
        return json.loads(self.body)

    @property
    def line(self) -> str:
        """Method and path below the base."""
        return f"{self.method} {self.path.removeprefix(BASE)}"


@dataclass(frozen=True)
class Reply:
    """What is written back, and how it ends: close, keep (silence), or abort (a reset).

    `pause_s` lies between its pieces; for the virtual clock alone.
    """

    pieces: tuple[bytes, ...] = ()
    end: str = "close"
    pause_s: float = 0.0


LOST = Reply(end="abort")
"""The request was taken, its answer never comes."""

SILENT = Reply(end="keep")


def plain(status: int, body: bytes, content_type: str = "application/json", **headers: str) -> Reply:
    """A whole answer."""
    lines = {"content-type": content_type, "content-length": str(len(body)), **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return Reply((f"HTTP/1.1 {status} X\r\n{head}\r\n".encode() + body,))


def answer(status: int, body: object) -> Reply:
    """A JSON answer."""
    return plain(status, json.dumps(body).encode())


def good(data: object, status: int = 200) -> Reply:
    """A success."""
    return answer(status, wrapped(data))


def bad(status: int, code: str, **extra: object) -> Reply:
    """A refusal."""
    return answer(status, failure(code, **extra))


STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-store\r\n"
    b"x-accel-buffering: no\r\ntransfer-encoding: chunked\r\n\r\n"
)
LAST_CHUNK = b"0\r\n\r\n"


def stream(*pieces: bytes, end: str = "close") -> Reply:
    """A stream in chunks; `end` close ends it cleanly, cut and keep do not."""
    chunks = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces if piece]
    if end == "close":
        chunks.append(LAST_CHUNK)
    return Reply((STREAM_HEAD, *chunks), "close" if end == "cut" else end)


Script = Reply | Callable[[Request], Reply]


@dataclass
class ScriptedApi:
    """Answers each route's requests with its replies in order, the last one again and again."""

    requests: list[Request] = field(default_factory=list)
    url: str = ""
    _replies: dict[str, list[Script]] = field(default_factory=dict)
    _server: asyncio.Server | None = None
    _open: list[asyncio.StreamWriter] = field(default_factory=list)

    def on(self, line: str, *replies: Script) -> None:
        """Set the replies of `METHOD /path-below-the-base`, or of an issuer's `POST /grants`."""
        self._replies[line] = list(replies)

    def lines(self) -> list[str]:
        """All requests, by method and path."""
        return [request.line for request in self.requests]

    def of(self, line: str) -> list[Request]:
        """The requests of one route."""
        return [request for request in self.requests if request.line == line]

    async def start(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        """Listen no more, and end what is open."""
        assert self._server is not None
        self._server.close()
        for writer in self._open:
            writer.transport.abort()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.append(writer)
        request = await _request(reader)
        self.requests.append(request)
        replies = self._replies.get(request.line, [bad(404, "CHAT_UNAVAILABLE")])
        reply = replies.pop(0) if len(replies) > 1 else replies[0]
        told = reply if isinstance(reply, Reply) else reply(request)
        for piece in told.pieces:
            writer.write(piece)
            await writer.drain()
            if told.pause_s:
                await asyncio.sleep(told.pause_s)
        if told.end == "abort":
            writer.transport.abort()
        elif told.end == "keep":
            await reader.read()
        writer.close()


async def _request(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.rstrip("\r\n").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    method, target, _ = first.split(" ")
    return Request(method, target, headers, body)


class Bench:
    """A driver of a scripted API that serves one employee's conversation `c` and its run `r`."""

    def __init__(self, api: ScriptedApi, driver: PartnerDriver, ctx: RunContext) -> None:
        self.api = api
        self.driver = driver
        self.ctx = ctx

    def seen(self, kind: type[E]) -> list[E]:
        """What the driver recorded of one kind."""
        return [entry.event for entry in self.ctx.journal.entries if isinstance(entry.event, kind)]

    @property
    def calls(self) -> list[PartnerCall]:
        """The calls that it recorded."""
        return self.seen(PartnerCall)

    @property
    def streams(self) -> list[PartnerStream]:
        """The turns of its streams."""
        return self.seen(PartnerStream)

    @property
    def events(self) -> list[PartnerEvent]:
        """The events that it recorded."""
        return self.seen(PartnerEvent)

    @property
    def texts(self) -> list[PartnerAnswerText]:
        """The whole texts that it recorded."""
        return self.seen(PartnerAnswerText)

    async def with_run(self) -> None:
        """Go as far as a run."""
        await self.with_conversation()
        await self.driver.message("c", "r", "hello")

    async def with_conversation(self) -> None:
        """Go as far as a conversation."""
        await self.driver.membership("anna")
        await self.driver.conversation("c", "anna")


@asynccontextmanager
async def bench(
    settings: DriverSettings = QUICK, *, secrets: Mapping[str, str] | None = None, agent: str | None = "agent"
) -> AsyncIterator[Bench]:
    """A bench under whichever loop runs."""
    loop = asyncio.get_running_loop()
    clock = Clock(loop.time, EPOCH_MS)
    ctx = RunContext(7, clock, Journal(clock.now))
    api = ScriptedApi()
    await api.start()
    usual(api)
    target = Target(api.url, "org", KEYS["chat-key"], "team-1", agent)
    issuer = IssuerTarget(f"{api.url}/grants", KEYS["issuer-key"], f"{api.url}/conversations", KEYS["register-key"])
    tap = PartnerTap(api_schema(), KEYS if secrets is None else secrets)
    driver = PartnerDriver(ctx, "driver", target, issuer, tap, settings)
    await driver.start()
    try:
        yield Bench(api, driver, ctx)
    finally:
        await driver.close()
        await api.stop()
        assert ctx.defects == []


def usual(api: ScriptedApi) -> None:
    """Let everything go well."""
    grants = iter(range(1, 1000))
    api.on("PUT /memberships", good(MEMBERSHIP))
    api.on("POST /conversations", lambda request: _created(request))
    api.on("POST /grants", lambda _: answer(200, {"grant": f"tg1.grant-{next(grants)}", "expiresAt": iso(300)}))
    api.on("GET /conversations/c/context", good({"version": 3, "expiresAt": iso(300), "active": True}))
    api.on("PUT /conversations/c/context", lambda request: good({"version": request.json["expectedVersion"] + 1}))
    api.on("POST /conversations/c/messages", good({**RUN, "status": "accepted"}, 202))
    api.on("GET /conversations/c/runs/r", good(RUN))


def _created(request: Request) -> Reply:
    """The API's create call and the issuer's registration share the end of their paths."""
    return good(CONVERSATION, 201) if request.path.startswith(BASE) else answer(200, {})


def iso(seconds: float) -> str:
    """A time after the run's beginning."""
    return timestamp(EPOCH_MS + int(seconds * 1000))


def virtually(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run on the virtual clock."""
    return run_virtual(main, 1)

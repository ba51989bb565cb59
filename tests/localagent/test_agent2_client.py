import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import aiohttp
import pytest

from lab.errors import Agent2Error, EnvironmentFault
from lab.localagent.agent2_client import MAX_JSON_BYTES, Agent2Client, Health, health_from, open_session
from tests.refused_port import refused_port

CANARY = "canary-token"
SSE_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(raw: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(raw), raw)


END = b"0\r\n\r\n"


def answer(body: bytes, status: str = "200 OK") -> bytes:
    return b"HTTP/1.1 %s\r\ncontent-length: %d\r\n\r\n%s" % (status.encode(), len(body), body)


class RawServer:
    """Answers each request with the same bytes, then closes, or stays silent."""

    def __init__(self) -> None:
        self.reply = answer(b"{}")
        self.stay_open = False
        self.heads: list[str] = []
        self.bodies: list[bytes] = []
        self.gone = asyncio.Event()
        self.asked = asyncio.Event()
        self._server: asyncio.Server | None = None

    async def start(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head)
        length = [line.split(":")[1] for line in head.lower().split("\r\n") if line.startswith("content-length")]
        self.bodies.append(await reader.readexactly(int(length[0]) if length else 0))
        self.asked.set()
        writer.write(self.reply)
        await writer.drain()
        if self.stay_open:
            await reader.read()
            self.gone.set()
        writer.close()


@pytest.fixture
async def server() -> AsyncIterator[RawServer]:
    raw = RawServer()
    yield raw
    await raw.stop()


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with open_session() as opened:
        yield opened


async def perform(client: Agent2Client, call: str) -> None:
    if call == "post_job":
        await client.post_job({})
    elif call == "events":
        await client.events("j", print)
    else:
        await client.stream("j", print)


Make = Callable[..., Awaitable[Agent2Client]]


@pytest.fixture
def make(server: RawServer, session: aiohttp.ClientSession) -> Make:
    async def client(**options: float) -> Agent2Client:
        return Agent2Client(session, await server.start(), lambda: CANARY, **options)

    return client


@pytest.fixture
def nobody(session: aiohttp.ClientSession) -> Iterator[Agent2Client]:
    """A client of a port that nobody listens on."""
    with refused_port() as port:
        yield Agent2Client(session, f"http://127.0.0.1:{port}", lambda: CANARY)


@pytest.mark.req("A2-003", "A2-004", "A2-005")
@pytest.mark.parametrize(
    ("body", "health"),
    [
        ({"status": "up", "kinds": ["fix", "chat"]}, Health(True, ("fix", "chat"))),
        ({"status": "up"}, Health(True)),
        ({"status": "up", "kinds": "chat"}, Health(True)),
        ({"status": "up", "kinds": [1, "Chat", "a b", "chat", None, "x" * 33]}, Health(True, ("chat",))),
        (
            {"status": "up", "kinds": ["NO", *[f"k{number}" for number in range(20)]]},
            Health(True, tuple(f"k{number}" for number in range(16))),
        ),
        ({"status": "down", "kinds": ["chat"]}, Health(False)),
        (["up"], Health(False)),
        (None, Health(False)),
    ],
)
def test_what_health_says(body: object, health: Health) -> None:
    assert health_from(body) == health


@pytest.mark.req("A2-001", "A2-002")
async def test_health_carries_no_token(make: Make, server: RawServer) -> None:
    client = await make()
    server.reply = answer(b'{"status":"up","kinds":["chat"]}')
    assert await client.health() == Health(True, ("chat",))
    assert server.heads[0].startswith("GET /local/v1/health HTTP/1.1\r\n")
    assert "authorization" not in server.heads[0].lower()


@pytest.mark.req("A2-005", "A2-019")
@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"no http\r\n\r\n",
        answer(b"{"),
        answer(b'{"status":"up"}', "500 No"),
        answer(b'{"status":"up"}', "204 Fine"),
        b"HTTP/1.1 302 Found\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n",
        answer(b'{"status":"up","x":"' + b"x" * MAX_JSON_BYTES + b'"}'),
        answer(b"[" * 100_000),
    ],
)
async def test_any_other_answer_of_health_is_down(make: Make, server: RawServer, reply: bytes) -> None:
    client = await make()
    server.reply = reply
    assert await client.health() == Health(False)


@pytest.mark.req("A2-005")
async def test_health_of_nobody(nobody: Agent2Client) -> None:
    assert await nobody.health() == Health(False)


@pytest.mark.req("A2-002")
@pytest.mark.parametrize(("request_timeout", "due"), [(10.0, 3.0), (2.0, 2.0)])
async def test_the_time_that_health_has(
    make: Make, monkeypatch: pytest.MonkeyPatch, request_timeout: float, due: float
) -> None:
    client = await make(request_timeout=request_timeout)
    asked: list[float | None] = []

    def timeout(delay: float | None) -> asyncio.Timeout:
        asked.append(delay)
        return asyncio.timeouts.timeout(delay)

    monkeypatch.setattr(asyncio, "timeout", timeout)
    await client.health()
    assert asked[0] == due


@pytest.mark.req("A2-002")
async def test_health_does_not_wait_longer_than_a_request_may(make: Make, server: RawServer) -> None:
    client = await make(request_timeout=0.05)
    server.reply, server.stay_open = b"", True
    assert await client.health() == Health(False)


@pytest.mark.req("A2-007", "A2-010", "A2-011", "A2-013", "A2-016")
async def test_the_calls(make: Make, server: RawServer) -> None:
    client = await make()
    await client.post_job({"jobId": "j"})
    await client.cancel("a/b c")
    await client.cancel("j", "timeout")
    assert await client.job_state("j") == {}
    await client.approve("ap/1", "j", "deny")
    assert [head.split(" HTTP")[0] for head in server.heads] == [
        "POST /local/v1/jobs",
        "POST /local/v1/jobs/a%2Fb%20c/cancel",
        "POST /local/v1/jobs/j/cancel",
        "GET /local/v1/jobs/j",
        "POST /local/v1/approvals/ap%2F1",
    ]
    assert [json.loads(body or b"null") for body in server.bodies] == [
        {"jobId": "j"},
        {"reason": "user"},
        {"reason": "timeout"},
        None,
        {"jobId": "j", "decision": "deny"},
    ]
    assert all(f"authorization: bearer {CANARY}" in head.lower() for head in server.heads)


@pytest.mark.req("A2-017")
async def test_the_token_is_read_for_each_call(server: RawServer, session: aiohttp.ClientSession) -> None:
    tokens = iter(["one", "two"])
    client = Agent2Client(session, await server.start(), lambda: next(tokens))
    await client.job_state("j")
    await client.job_state("j")
    assert ["Bearer one" in server.heads[0], "Bearer two" in server.heads[1]] == [True, True]


@pytest.mark.req("A2-009")
@pytest.mark.parametrize("status", ["200 OK", "201 Made", "202 Taken"])
async def test_any_2xx_takes_the_job(make: Make, server: RawServer, status: str) -> None:
    client = await make()
    server.reply = answer(b'{"state":"running"}', status)
    assert await client.post_job({}) == {"state": "running"}


@pytest.mark.req("A2-019")
@pytest.mark.parametrize("body", [b"", b"{", b'"' + b"x" * MAX_JSON_BYTES + b'"'])
async def test_unreadable_json_is_no_value(make: Make, server: RawServer, body: bytes) -> None:
    client = await make()
    server.reply = answer(body)
    assert await client.job_state("j") is None


@pytest.mark.req("A2-022", "A2-063")
@pytest.mark.parametrize(
    ("status", "code"), [(404, "not_found"), (401, "unauthorized"), (500, "http_error"), (307, "http_error")]
)
@pytest.mark.parametrize("call", ["post_job", "events", "stream"])
async def test_a_status_is_an_error_without_words(
    make: Make, server: RawServer, status: int, code: str, call: str
) -> None:
    client = await make()
    server.reply = answer(b'{"error":"canary"}', f"{status} canary")
    with pytest.raises(Agent2Error) as caught:
        await perform(client, call)
    assert (caught.value.code, caught.value.status) == (code, status)
    assert "canary" not in str(caught.value)


@pytest.mark.req("A2-018")
async def test_a_call_without_answer(make: Make, server: RawServer) -> None:
    client = await make(request_timeout=0.05)
    server.reply, server.stay_open = b"", True
    with pytest.raises(Agent2Error) as caught:
        await client.post_job({})
    assert (caught.value.code, caught.value.status) == ("http_error", None)


async def test_a_call_to_nobody(nobody: Agent2Client) -> None:
    client = nobody
    with pytest.raises(Agent2Error, match="http_error"):
        await client.post_job({})
    with pytest.raises(Agent2Error, match="stream_broken"):
        await client.events("j", print)


@pytest.mark.req("A2-014", "A2-015", "A2-021", "A2-036", "A2-037")
async def test_what_the_two_streams_yield(make: Make, server: RawServer) -> None:
    client = await make()
    server.reply = (
        SSE_HEAD
        + chunk(
            b": hi\n\nevent: frame\ndata: {\ndata: }\n\nevent: frame\n\nevent: ping\ndata: 1\n\n"
            b"event: frame\ndata: {no\n\ndata: plain\n\nevent: frame\ndata: 7\n\n"
        )
        + END
    )
    frames: list[object] = []
    await client.events("a/b", frames.append)
    assert frames == [{}, 7]
    lines: list[str] = []
    await client.stream("a/b", lines.append)
    assert lines == ["{\n}", "1", "{no", "plain", "7"]
    assert [head.split(" HTTP")[0] for head in server.heads] == [
        "GET /local/v1/jobs/a%2Fb/events",
        "GET /local/v1/jobs/a%2Fb/stream",
    ]
    assert all("accept: text/event-stream" in head.lower() for head in server.heads)
    assert all(f"Bearer {CANARY}" in head for head in server.heads)


@pytest.mark.req("A2-033")
@pytest.mark.parametrize(
    "rest", [chunk(b"data: x\n\n"), chunk(b"data: x\n\n") + b"ff\r\nshort", chunk(b"data: x\n\n") + b"zz\r\n"]
)
async def test_a_cut_is_no_end(make: Make, server: RawServer, rest: bytes) -> None:
    client = await make()
    server.reply = SSE_HEAD + rest
    lines: list[str] = []
    with pytest.raises(Agent2Error, match="stream_broken"):
        await client.stream("j", lines.append)
    assert lines in (["x"], [])


@pytest.mark.req("A2-023")
async def test_a_stream_without_a_body(make: Make, server: RawServer) -> None:
    client = await make()
    server.reply = answer(b"")
    with pytest.raises(Agent2Error, match="bad_response"):
        await client.events("j", print)


@pytest.mark.req("A2-020", "A2-029")
async def test_an_endless_line(make: Make, server: RawServer) -> None:
    client = await make()
    server.reply = SSE_HEAD + chunk(b"x" * 600_000) + END
    with pytest.raises(Agent2Error, match="bad_response"):
        await client.stream("j", print)


@pytest.mark.req("A2-030")
async def test_a_burst_of_short_lines(make: Make, server: RawServer) -> None:
    client = await make()
    server.reply = SSE_HEAD + chunk(b"data: x\n\n" * 100_000) + END
    lines: list[str] = []
    await client.stream("j", lines.append)
    assert len(lines) == 100_000


@pytest.mark.req("A2-032")
@pytest.mark.parametrize("reply", [b"", SSE_HEAD, SSE_HEAD + chunk(b"data: x\n\n")])
async def test_the_idle_guard(make: Make, server: RawServer, reply: bytes) -> None:
    client = await make(stream_idle=0.05)
    server.reply, server.stay_open = reply, True
    with pytest.raises(Agent2Error, match="stream_broken"):
        await client.stream("j", print)


@pytest.mark.req("A2-032")
@pytest.mark.parametrize(("idle", "armed"), [(3600.0, True), (0.0, False)])
async def test_the_idle_guard_starts_anew_at_each_read(
    make: Make, server: RawServer, monkeypatch: pytest.MonkeyPatch, idle: float, armed: bool
) -> None:
    client = await make(stream_idle=idle)
    server.reply = SSE_HEAD + chunk(b"data: x\n\n") + END
    guards: list[asyncio.Timeout] = []
    reschedule = asyncio.Timeout.reschedule

    def recorded(guard: asyncio.Timeout, when: float | None) -> None:
        if when is not None:
            guards.append(guard)
        reschedule(guard, when)

    monkeypatch.setattr(asyncio.Timeout, "reschedule", recorded)
    await client.stream("j", print)
    assert any(guards.count(guard) >= 2 for guard in guards) is armed


@pytest.mark.req("A2-033", "A2-061")
async def test_a_cancelled_reader_closes_its_request(make: Make, server: RawServer) -> None:
    client = await make()
    server.reply, server.stay_open = SSE_HEAD, True
    task = asyncio.create_task(client.stream("j", print))
    await server.asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await server.gone.wait()


@pytest.mark.req("A2-034", "A2-061")
async def test_a_consumer_that_fails(make: Make, server: RawServer) -> None:
    client = await make()
    server.reply, server.stay_open = SSE_HEAD + chunk(b"data: x\n\n"), True

    def fail(_: str) -> None:
        raise KeyError("canary")

    with pytest.raises(Agent2Error, match="stream_broken"):
        await client.stream("j", fail)
    await server.gone.wait()


async def test_a_full_disk_is_not_agent2s_fault(make: Make, server: RawServer) -> None:
    client = await make()
    server.reply = SSE_HEAD + chunk(b"data: x\n\n") + END

    def fail(_: str) -> None:
        raise EnvironmentFault("full")

    with pytest.raises(EnvironmentFault):
        await client.stream("j", fail)

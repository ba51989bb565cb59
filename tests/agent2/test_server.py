from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import BytesIO
from itertools import pairwise
from typing import TypeVar
from urllib.parse import urlsplit

import aiohttp
import pytest

from lab.agent2 import server as server_module
from lab.agent2.engine import Engine
from lab.agent2.script import Script
from lab.agent2.server import MAX_BODY_BYTES, Agent2Server
from lab.clock import Clock
from lab.context import RunContext
from lab.errors import EnvironmentFault, MisuseError
from lab.journal.events import Agent2Frame, Agent2Job, Agent2Line, Agent2Request, Agent2Stream, Event
from lab.journal.writer import Journal, entry_to_json
from tests.agent2.written import NO_CHANGE, script_of

E = TypeVar("E", bound=Event)
TOKEN = "t0ken-of-the-double"
KINDS = ("fix", "implement", "chat")
SHORT = script_of('- text: "né ✓"', "- event: { phase: plan }", "- done", NO_CHANGE)
ENDLESS = script_of('- text: "a"', "- wait: 24h", NO_CHANGE)
JOB = {"jobId": "j1", "kind": "fix", "requestText": "pr0mpt"}


@dataclass
class Double:
    """A running server with a client, and what its journal holds."""

    server: Agent2Server
    http: aiohttp.ClientSession
    journal: Journal
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    def seen(self, kind: type[E]) -> list[E]:
        return [entry.event for entry in self.journal.entries if isinstance(entry.event, kind)]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until `condition` holds, looking again after each entry."""
        changed = asyncio.Event()
        end = self.journal.listen(lambda entry: changed.set())
        try:
            while not condition():
                changed.clear()
                await changed.wait()
        finally:
            end()

    async def post(self, path: str, body: object = None) -> tuple[int, object]:
        async with self.http.post(self.server.url + path, json=body) as response:
            return response.status, await response.json()

    async def get(self, path: str) -> tuple[int, object]:
        async with self.http.get(self.server.url + path) as response:
            return response.status, await response.json()

    async def read(self, path: str) -> str:
        """The whole text of a stream; one that is torn raises `aiohttp.ClientPayloadError`."""
        async with self.http.get(self.server.url + path, headers={"Accept": "text/event-stream"}) as response:
            assert response.status == 200
            assert response.content_type == "text/event-stream"
            return (await response.read()).decode()

    async def raw(self, request: bytes) -> asyncio.StreamReader:
        """What comes back on a socket of its own for these bytes."""
        address = urlsplit(self.server.url)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        self.writers.append(writer)
        writer.write(request)
        return reader


def raw_get(path: str, version: str = "1.1") -> bytes:
    return f"GET {path} HTTP/{version}\r\nHost: agent2\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()


def context() -> RunContext:
    clock = Clock(asyncio.get_running_loop().time, 1_700_000_000_000)
    return RunContext(7, clock, Journal(clock.now))


@asynccontextmanager
async def running(
    script: Script = SHORT, canaries: dict[str, str] | None = None, health_delay: float = 0.0
) -> AsyncIterator[Double]:
    ctx = context()
    engine = Engine(KINDS, dict.fromkeys(KINDS, script), "tenant-1", canaries or {})
    server = Agent2Server(ctx, "agent2", engine, TOKEN, health_delay=health_delay)
    await server.start()
    try:
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {TOKEN}"}) as http:
            double = Double(server, http, ctx.journal)
            yield double
            for writer in double.writers:
                writer.close()
    finally:
        await server.close()


@pytest.mark.req("A2-001", "A2-002", "A2-003", "A2-006")
@pytest.mark.parametrize("path", ["/health", "/local/v1/health"])
async def test_health_answers_without_a_token_and_tells_of_one(path: str) -> None:
    async with running() as double:
        async with aiohttp.ClientSession() as bare, bare.get(double.server.url + path) as response:
            assert (response.status, await response.json()) == (200, {"status": "up", "kinds": list(KINDS)})
        await double.get(path)
        assert double.seen(Agent2Request) == [
            Agent2Request("GET", path, 200, facts={"authorization": False, "kinds": list(KINDS)}),
            Agent2Request("GET", path, 200, facts={"authorization": True, "kinds": list(KINDS)}),
        ]


@pytest.mark.parametrize(
    "header", [None, "", TOKEN, "Bearer", "Bearer x", f"bearer {TOKEN}x", f"Bearer {TOKEN}x", "Bearer é"]
)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/local/v1/jobs"),
        ("GET", "/local/v1/jobs/j1"),
        ("POST", "/local/v1/jobs/j1/cancel"),
        ("POST", "/local/v1/approvals/ap"),
        ("GET", "/local/v1/jobs/j1/events"),
        ("GET", "/local/v1/jobs/j1/stream"),
        ("GET", "/unknown"),
    ],
)
async def test_all_but_health_need_the_token(method: str, path: str, header: str | None) -> None:
    async with running() as double, aiohttp.ClientSession() as bare:
        headers = {} if header is None else {"Authorization": header}
        async with bare.request(method, double.server.url + path, json=JOB, headers=headers) as response:
            assert (response.status, await response.json()) == (401, {"error": "unauthorized"})
        assert [request.status for request in double.seen(Agent2Request)] == [401]
        assert not double.seen(Agent2Job)


@pytest.mark.req("A2-007", "A2-011", "A2-044")
async def test_a_job_is_started_once_and_journalled() -> None:
    async with running(ENDLESS) as double:
        assert await double.post("/local/v1/jobs", JOB) == (202, {"jobId": "j1", "state": "accepted"})
        assert await double.post("/local/v1/jobs", {**JOB, "jobId": "j2"}) == (409, {"error": "busy"})
        await double.until(lambda: bool(double.seen(Agent2Line)))
        assert await double.get("/local/v1/jobs/j1") == (200, {"jobId": "j1", "state": "running"})
        assert double.seen(Agent2Request) == [
            Agent2Request("POST", "/local/v1/jobs", 202, "j1", {"kind": "fix"}),
            Agent2Request("POST", "/local/v1/jobs", 409, "j2", {"kind": "fix"}),
            Agent2Request("GET", "/local/v1/jobs/{id}", 200, "j1"),
        ]
        assert [job.state for job in double.seen(Agent2Job)] == ["accepted", "running"]


async def test_what_a_request_did_names_it_as_cause() -> None:
    async with running(ENDLESS) as double:
        await double.post("/local/v1/jobs", JOB)
        request, accepted = double.journal.entries[:2]
        assert isinstance(accepted.event, Agent2Job)
        assert (request.by, accepted.by, accepted.cause) == ("agent2", "agent2", request.n)


@pytest.mark.parametrize(
    ("path", "raw", "status", "code"),
    [
        ("/local/v1/jobs", b"{", 400, "bad_request"),
        ("/local/v1/jobs", b"\xff", 400, "bad_request"),
        ("/local/v1/jobs", b"", 400, "bad_request"),
        ("/local/v1/jobs", b"[" * 100_000, 400, "bad_request"),
        ("/local/v1/jobs", b"[]", 400, "not_an_object"),
        ("/local/v1/jobs", b'{"jobId":"j2","kind":"quality"}', 422, "unsupported_kind"),
        ("/local/v1/jobs", b" " * (MAX_BODY_BYTES + 1), 413, "too_large"),
        ("/local/v1/jobs/j1/cancel", b"{", 400, "bad_request"),
        ("/local/v1/jobs/j2/cancel", b"{}", 404, "not_found"),
        ("/local/v1/approvals/ap", b"{}", 400, "bad_decision"),
        ("/local/v1/approvals/ap", b'{"jobId":"j1","decision":"deny"}', 404, "not_found"),
        ("/jobs", b"{}", 404, "not_found"),
    ],
)
async def test_a_request_that_cannot_be_served_is_refused(path: str, raw: bytes, status: int, code: str) -> None:
    async with running() as double:
        async with double.http.post(double.server.url + path, data=BytesIO(raw)) as response:
            assert (response.status, await response.json()) == (status, {"error": code})
        assert [request.status for request in double.seen(Agent2Request)] == [status]


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_body_whose_compression_is_broken_is_refused(coding: str, caplog: pytest.LogCaptureFixture) -> None:
    async with running() as double:
        for path in ("/local/v1/jobs", "/local/v1/jobs/j1/cancel"):
            url, headers = double.server.url + path, {"Content-Encoding": coding}
            async with double.http.post(url, data=b"no such stream", headers=headers) as response:
                assert (response.status, await response.json()) == (400, {"error": "bad_request"})
    assert not caplog.records


async def test_a_body_of_the_largest_size_is_read() -> None:
    async with running() as double:
        body = json.dumps({**JOB, "pad": ""}).encode()
        body = body[:-2] + b"x" * (MAX_BODY_BYTES - len(body)) + body[-2:]
        async with double.http.post(double.server.url + "/local/v1/jobs", data=BytesIO(body)) as response:
            assert (len(body), response.status) == (MAX_BODY_BYTES, 202)


@pytest.mark.parametrize("method", ["HEAD", "PUT", "DELETE"])
async def test_another_method_is_405(method: str) -> None:
    async with running() as double, double.http.request(method, double.server.url + "/local/v1/jobs/j1") as response:
        assert response.status == 405


@pytest.mark.req("A2-014", "A2-038", "A2-040", "A2-060")
async def test_events_are_frames_named_frame_and_replayed_after_the_end() -> None:
    async with running() as double:
        await double.post("/local/v1/jobs", JOB)
        first = await double.read("/local/v1/jobs/j1/events")
        assert await double.read("/local/v1/jobs/j1/events") == first
        blocks = first.split("\n\n")
        assert blocks.pop() == ""
        assert all(block.startswith("event: frame\ndata: {") for block in blocks)
        frames = [json.loads(block.partition("data: ")[2]) for block in blocks]
        assert [(frame["seq"], frame["type"]) for frame in frames] == [
            (1, "job.event"),
            (2, "job.result"),
            (3, "job.event"),
        ]
        assert all(frame["ts"].startswith("2023-11-14T22:13:2") for frame in frames)
        assert [frame.type for frame in double.seen(Agent2Frame)] == ["job.event", "job.result", "job.event"]


@pytest.mark.req("A2-015", "A2-038", "A2-049", "A2-060")
async def test_the_stream_is_lines_as_produced_and_replayed_after_the_end() -> None:
    async with running() as double:
        await double.post("/local/v1/jobs", JOB)
        first = await double.read("/local/v1/jobs/j1/stream")
        assert first == 'data: {"type":"text","text":"né ✓"}\n\ndata: {"type":"done"}\n\n'
        assert await double.read("/local/v1/jobs/j1/stream") == first
        assert double.seen(Agent2Stream) == [
            Agent2Stream("j1", "stream", change, reader, sent)
            for reader in (1, 2)
            for change, sent in (("opened", 0), ("ended", 2))
        ]
        requests = [request for request in double.seen(Agent2Request) if request.method == "GET"]
        assert requests == [
            Agent2Request("GET", "/local/v1/jobs/{id}/stream", 200, "j1", {"accepts_sse": True}) for _ in range(2)
        ]


async def test_timers_carry_a_script_to_its_end() -> None:
    async with running(script_of('- repeat: { count: 5, every: 1ms, text: "{n}" }', NO_CHANGE)) as double:
        await double.post("/local/v1/jobs", JOB)
        text = await double.read("/local/v1/jobs/j1/stream")
        assert text == "".join(f'data: {{"type":"text","text":"{n}"}}\n\n' for n in range(1, 6))
        times = [entry.t for entry in double.journal.entries if isinstance(entry.event, Agent2Line)]
        assert all(later - earlier > 0 for earlier, later in pairwise(times))


async def test_a_timer_that_fires_a_little_early_still_does_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Clock, "now", lambda self: 0.0)
    async with running(script_of("- wait: 1ms", "- done", NO_CHANGE)) as double:
        await double.post("/local/v1/jobs", JOB)
        await double.until(lambda: double.seen(Agent2Job)[-1].state == "done")


async def test_a_reader_that_waits_leaves_the_loop_to_the_timers() -> None:
    script = script_of("- approval: { id: ap }", "- done", "- wait: 1ms", "- done", NO_CHANGE)
    async with running(script) as double:
        await double.post("/local/v1/jobs", JOB)
        reader = await double.raw(raw_get("/local/v1/jobs/j1/stream"))
        await reader.readuntil(b"\r\n\r\n")
        await double.post("/local/v1/approvals/ap", {"jobId": "j1", "decision": "approve"})
        assert (await reader.readuntil(b"0\r\n\r\n")).count(b"data: ") == 2


@pytest.mark.req("A2-050")
async def test_a_reader_gets_what_comes_later_and_a_cancel_ends_its_stream() -> None:
    async with running(ENDLESS) as double:
        await double.post("/local/v1/jobs", JOB)
        async with double.http.get(double.server.url + "/local/v1/jobs/j1/events") as response:
            await double.until(lambda: bool(double.seen(Agent2Stream)))
            answer = await double.post("/local/v1/jobs/j1/cancel", {"reason": "timeout"})
            assert answer == (202, {"jobId": "j1", "state": "cancelled"})
            text = (await response.read()).decode()
        assert '"payload":{"outcome":"cancelled"}' in text
        assert double.seen(Agent2Request)[-1].facts == {"reason": "timeout"}
        assert await double.read("/local/v1/jobs/j1/stream") == 'data: {"type":"text","text":"a"}\n\n'


@pytest.mark.req("A2-010")
async def test_a_cancel_without_a_body_is_by_the_user() -> None:
    async with running(ENDLESS) as double:
        await double.post("/local/v1/jobs", JOB)
        async with double.http.post(double.server.url + "/local/v1/jobs/j1/cancel") as response:
            assert response.status == 202
        assert double.seen(Agent2Request)[-1].facts == {"reason": None}
        await double.post("/local/v1/jobs/j1/cancel", {"reason": "Because."})
        assert double.seen(Agent2Request)[-1].facts == {"reason": "other"}


async def test_a_workspace_is_told_by_its_hash() -> None:
    async with running(ENDLESS) as double:
        await double.post("/local/v1/jobs", {**JOB, "workspaceRoot": "/w"})
        assert double.seen(Agent2Request)[-1].facts == {"kind": "fix", "root": hashlib.sha256(b"/w").hexdigest()}


@pytest.mark.req("A2-013")
async def test_a_decision_lets_the_job_go_on() -> None:
    async with running(script_of("- approval: { id: ap }", NO_CHANGE)) as double:
        await double.post("/local/v1/jobs", JOB)
        await double.until(lambda: double.seen(Agent2Job)[-1].state == "waiting_approval")
        given = {"jobId": "j1", "decision": "approve"}
        assert (await double.post("/local/v1/approvals/ap", given))[0] == 200
        await double.until(lambda: double.seen(Agent2Job)[-1].state == "done")
        assert Agent2Request(
            "POST", "/local/v1/approvals/{id}", 200, "j1", {"approvalId": "ap", "decision": "approve"}
        ) in double.seen(Agent2Request)


async def test_an_encoded_job_id_is_decoded() -> None:
    async with running(ENDLESS) as double:
        await double.post("/local/v1/jobs", {**JOB, "jobId": "a/b"})
        reader = await double.raw(raw_get("/local/v1/jobs/a%2Fb"))
        assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("stream", ["events", "stream"])
async def test_an_unknown_job_has_no_streams(stream: str) -> None:
    async with running() as double:
        assert await double.get(f"/local/v1/jobs/j1/{stream}") == (404, {"error": "not_found"})


async def test_a_stream_is_chunked_and_ends_with_the_last_chunk() -> None:
    async with running() as double:
        await double.post("/local/v1/jobs", JOB)
        reader = await double.raw(raw_get("/local/v1/jobs/j1/stream"))
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        assert "transfer-encoding: chunked" in head
        assert "content-type: text/event-stream" in head
        assert "content-length" not in head
        body = await reader.readuntil(b"0\r\n\r\n")
        first = 'data: {"type":"text","text":"né ✓"}\n\n'.encode()
        assert body.startswith(b"%x\r\n%s\r\n" % (len(first), first))


@pytest.mark.parametrize("version", ["1.0"])
async def test_a_reader_that_knows_no_chunks_is_refused(version: str) -> None:
    async with running(ENDLESS) as double:
        await double.post("/local/v1/jobs", JOB)
        reader = await double.raw(raw_get("/local/v1/jobs/j1/stream", version))
        assert b" 505 " in await reader.readline()


@pytest.mark.parametrize(("stream", "total"), [("events", 3), ("stream", 3)])
async def test_a_broken_stream_delivers_its_part_and_is_no_clean_end(stream: str, total: int) -> None:
    orders = f"break_stream: {{ stream: {stream}, after: 2 }}\n"
    script = script_of('- text: "a"', '- text: "b"', "- event: { phase: plan }", "- done", NO_CHANGE, orders=orders)
    async with running(script) as double:
        await double.post("/local/v1/jobs", JOB)
        await double.until(lambda: double.seen(Agent2Job)[-1].state == "done")
        reader = await double.raw(raw_get(f"/local/v1/jobs/j1/{stream}"))
        raw = await reader.read()
        assert raw.count(b"data: ") == 2
        assert raw.endswith(b"\n\n\r\n")
        assert b"0\r\n\r\n" not in raw
        assert (await double.read(f"/local/v1/jobs/j1/{stream}")).count("data: ") == total
        assert [(change.change, change.sent) for change in double.seen(Agent2Stream)] == [
            ("opened", 0),
            ("broken", 2),
            ("opened", 0),
            ("ended", total),
        ]


async def test_a_client_sees_that_a_stream_was_torn() -> None:
    script = script_of("- done", NO_CHANGE, orders="break_stream: { stream: stream, after: 1 }\n")
    async with running(script) as double:
        await double.post("/local/v1/jobs", JOB)
        with pytest.raises(aiohttp.ClientPayloadError):
            await double.read("/local/v1/jobs/j1/stream")


async def test_a_reader_that_goes_away_is_forgotten() -> None:
    async with running(ENDLESS) as double:
        await double.post("/local/v1/jobs", JOB)
        await double.raw(raw_get("/local/v1/jobs/j1/stream"))
        await double.until(lambda: bool(double.seen(Agent2Stream)))
        double.writers[0].close()
        await double.until(lambda: double.seen(Agent2Stream)[-1].change == "broken")


async def test_a_silent_stream_is_kept_alive_by_comments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "KEEP_ALIVE_SECONDS", 0.001)
    async with running(script_of("- wait: 24h", NO_CHANGE)) as double:
        await double.post("/local/v1/jobs", JOB)
        reader = await double.raw(raw_get("/local/v1/jobs/j1/stream"))
        await reader.readuntil(b": keep-alive\n\n")
        await reader.readuntil(b": keep-alive\n\n")


async def test_close_tears_open_streams_and_may_be_repeated() -> None:
    async with running(ENDLESS) as double:
        await double.post("/local/v1/jobs", JOB)
        reader = await double.raw(raw_get("/local/v1/jobs/j1/stream"))
        await reader.readuntil(b'"text":"a"}\n\n')
        await double.server.close()
        assert double.seen(Agent2Stream)[-1] == Agent2Stream("j1", "stream", "broken", 1, 1)
        assert b"0\r\n\r\n" not in await reader.read()
        await double.server.close()
        with pytest.raises(MisuseError, match="before start"):
            _ = double.server.url


async def test_a_crash_tears_everything_and_what_comes_back_knows_no_job() -> None:
    """It is back at the same address and takes the same token."""
    async with running(ENDLESS) as double:
        url = double.server.url
        await double.post("/local/v1/jobs", JOB)
        reader = await double.raw(raw_get("/local/v1/jobs/j1/stream"))
        await reader.readuntil(b'"text":"a"}\n\n')
        await double.server.crash()
        assert b"0\r\n\r\n" not in await reader.read()
        with pytest.raises(aiohttp.ClientConnectorError):
            await double.http.get(url + "/health")
        await double.server.start()
        assert double.server.url == url
        assert await double.get("/local/v1/jobs/j1") == (404, {"error": "not_found"})
        assert (await double.post("/local/v1/jobs", JOB))[0] == 202
        await double.until(lambda: [job.state for job in double.seen(Agent2Job)][-1] == "running")


async def test_health_takes_its_time_and_nothing_waits_for_it() -> None:
    async with running(health_delay=0.05) as double:
        began = asyncio.get_running_loop().time()
        asked = asyncio.create_task(double.get("/health"))
        await double.post("/local/v1/jobs", JOB)
        assert not double.seen(Agent2Request)[-1].route.endswith("/health")
        assert (await asked)[0] == 200
        assert asyncio.get_running_loop().time() - began >= 0.05


async def test_a_crash_answers_no_health_call() -> None:
    async with running(health_delay=60.0) as double:
        reader = await double.raw(raw_get("/health"))
        await double.post("/local/v1/jobs", JOB)
        await double.server.crash()
        assert await reader.read() == b""


async def test_nothing_happens_after_close() -> None:
    async with running(script_of("- wait: 5ms", "- done", NO_CHANGE)) as double:
        url = double.server.url
        await double.post("/local/v1/jobs", JOB)
        await double.until(lambda: double.seen(Agent2Job)[-1].state == "running")
        later = asyncio.Event()
        asyncio.get_running_loop().call_later(0.006, later.set)
        await double.server.close()
        count = len(double.journal.entries)
        await later.wait()
        with pytest.raises(aiohttp.ClientConnectorError):
            await double.http.get(url + "/health")
        assert len(double.journal.entries) == count


async def test_a_taken_port_is_named() -> None:
    async with running() as double:
        port = urlsplit(double.server.url).port
        assert port is not None
        second = Agent2Server(context(), "agent2-b", Engine(KINDS, {}, "t", {}), TOKEN, port=port)
        with pytest.raises(EnvironmentFault, match=rf"agent2-b cannot listen on 127\.0\.0\.1:{port}: .*port 0 takes"):
            await second.start()
        await second.close()


@pytest.mark.req("SEC-012")
async def test_the_journal_holds_no_content() -> None:
    script = script_of('- text: "fixture-words {canary:key}"', '- answer: "{canary:key}"', "- done", NO_CHANGE)
    async with running(script, {"key": "s3cret"}) as double:
        await double.post("/local/v1/jobs", {**JOB, "kind": "chat"})
        await double.post("/local/v1/jobs", {"jobId": "s3cret job", "kind": "S3CRET"})
        await double.post("/local/v1/jobs/j1/cancel", {"reason": "the s3cret reason"})
        await double.get("/local/v1/jobs/s3cret%20job")
        await double.post("/local/v1/approvals/s3cret%20ap", {"jobId": "j1", "decision": "s3cret one"})
        assert "s3cret" in await double.read("/local/v1/jobs/j1/stream")
        text = "\n".join(entry_to_json(entry) for entry in double.journal.entries)
        for secret in ("s3cret", "S3CRET", "pr0mpt", "fixture-words", TOKEN):
            assert secret not in text
        assert [line.secret for line in double.seen(Agent2Line)] == [True, True, False]

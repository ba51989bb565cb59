"""The socket shell of the fault API, called by a raw socket: what is no proper request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from lab.errors import EnvironmentFault, MisuseError
from lab.faults.api import server
from lab.faults.api.server import ApiServer
from tests.faults.api.target import PATIENCE, Client, calling, embedded


@asynccontextmanager
async def talking(client: Client) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A raw connection to the server."""
    host, _, port = client.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        async with asyncio.timeout(PATIENCE):
            yield reader, writer
    finally:
        writer.close()
        await writer.wait_closed()


async def test_a_body_in_chunks(own: Client) -> None:
    """Is read whole."""
    async with talking(own) as (reader, writer):
        head = b"POST /proxies HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        body = b'{"name":"a","upstream":"u:1","enabled":false}'
        for part in (body[:10], body[10:]):
            head += b"%x\r\n%s\r\n" % (len(part), part)
        writer.write(head + b"0\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 201 Created\r\n")


async def test_a_client_that_waits_to_be_asked(own: Client) -> None:
    """`Expect: 100-continue` is answered, or its body would come late."""
    async with talking(own) as (reader, writer):
        head = b"POST /proxies HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n"
        writer.write(head + b"Expect: 100-continue\r\n\r\n")
        assert await reader.readline() == b"HTTP/1.1 100 Continue\r\n"
        writer.write(b"{}")
        assert b"HTTP/1.1 400 Bad Request\r\n" in await reader.read()


async def test_a_body_that_does_not_come(own: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is waited for a bounded time."""
    monkeypatch.setattr(server, "READ_SECONDS", 0.01)
    async with talking(own) as (reader, writer):
        writer.write(b"POST /reset HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n{")
        assert await reader.readline() == b"HTTP/1.1 400 Bad Request\r\n"
        await reader.readuntil(b"\r\n\r\n")
        assert await reader.readline() == b'{"error":"bad request body: it did not come within 0.01 s","status":400}\n'


@pytest.mark.parametrize(
    "sent",
    [
        b"POST /proxies HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{",
        b"POST /proxies HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01 no HTTP\r\n\r\n",
        b"GET /proxies",
    ],
)
async def test_a_client_that_goes_away_or_talks_nonsense(
    own: Client, sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing fails, and the next one is served."""
    with caplog.at_level(logging.WARNING):
        async with talking(own) as (reader, writer):
            writer.write(sent)
            writer.write_eof()
            await reader.read()
        assert await own.get("/proxies") == {}
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_a_defect_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the client by its kind alone, and to who owns the loop."""
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, failure: failures.append(failure["exception"]))
    async with embedded() as (engine, url), calling(url) as client:
        monkeypatch.setattr(engine, "reset", lambda: 1 / 0)
        reply = await client.call("POST", "/reset")
        assert reply.error == (500, "a defect of the lab: ZeroDivisionError", "text/plain; charset=utf-8")
    assert [type(failure) for failure in failures] == [ZeroDivisionError]


async def test_its_life() -> None:
    """An address while it serves, and an end that may come twice."""
    async with embedded() as (engine, url):
        second = ApiServer(engine)
        with pytest.raises(MisuseError):
            _ = second.url
        await second.close()
        await second.start()
        async with calling(second.url) as other, calling(url) as client:
            await other.create("a", "u:1")
            assert list(await client.get("/proxies")) == ["a"]
        taken = ApiServer(engine, port=int(url.rpartition(":")[2]))
        with pytest.raises(EnvironmentFault, match="End the program that holds this port"):
            await taken.start()
        await second.close()
        await second.close()
        assert list(engine.proxies) == ["a"]

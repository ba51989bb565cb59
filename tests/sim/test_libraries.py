"""The libraries that the lab's shells are made of, on the virtual clock."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
import websockets
from aiohttp import web
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosedError, ConnectionClosedOK

from lab.sim.kernel import Network
from lab.sim.run import run_virtual
from lab.sim.sockets import LOOPBACK

pytestmark = pytest.mark.usefixtures("collected")

Main = Callable[[], Coroutine[Any, Any, list[object]]]

FRAGMENTED = Network(latency=0.01, jitter=0.02, fragments=True)


def run(main: Main, network: Network | None = None) -> list[object]:
    """What it saw, and that it sees the same in a second run."""
    first = run_virtual(main, 1, network=network)
    assert run_virtual(main, 1, network=network) == first
    return first


def now() -> float:
    return asyncio.get_running_loop().time()


# websockets


async def echo(connection: ServerConnection) -> None:
    async for message in connection:
        await connection.send(message)


@asynccontextmanager
async def echoing() -> AsyncIterator[str]:
    async with serve(echo, LOOPBACK, 0, compression=None) as server:
        yield f"ws://{LOOPBACK}:{server.sockets[0].getsockname()[1]}"


async def echo_trip() -> list[object]:
    large = "x" * 300_000
    async with echoing() as url, connect(url, proxy=None, compression=None) as client:
        seen: list[object] = []
        for message in ("text", b"bytes", "", large):
            await client.send(message)
            answer = await client.recv()
            seen.append(answer if len(answer) < 10 else hashlib.sha256(str(answer).encode()).hexdigest())
        await client.close()
        return [*seen, client.close_code, now()]


@pytest.mark.parametrize("network", [None, FRAGMENTED], ids=["whole", "fragments"])
def test_a_websocket_echoes(network: Network | None) -> None:
    large = hashlib.sha256(b"x" * 300_000).hexdigest()
    *seen, code, _ = run(echo_trip, network)
    assert seen == ["text", b"bytes", "", large]
    assert code == 1000


def test_a_websocket_that_says_nothing_is_kept_alive_for_an_hour() -> None:
    """Pings by the library's own timers."""

    async def main() -> list[object]:
        async with echoing() as url, connect(url, proxy=None, ping_interval=20, ping_timeout=20) as client:
            await asyncio.sleep(3600)
            await client.send("still here")
            return [await client.recv(), client.latency > 0]

    assert run(main) == ["still here", True]


def test_a_peer_that_answers_no_ping_is_given_up() -> None:
    async def main() -> list[object]:
        async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            """Shakes hands, and hears nothing after it."""
            request = await reader.readuntil(b"\r\n\r\n")
            key = next(line.split(b": ")[1] for line in request.split(b"\r\n") if line.startswith(b"Sec-WebSocket-Key"))
            writer.write(
                b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                b"Sec-WebSocket-Accept: " + websockets.utils.accept_key(key.decode()).encode() + b"\r\n\r\n"
            )
            await reader.read()
            writer.close()
            gone.set()

        gone = asyncio.Event()
        server = await asyncio.start_server(deaf, LOOPBACK, 0)
        url = f"ws://{LOOPBACK}:{server.sockets[0].getsockname()[1]}"
        client = await connect(url, proxy=None, ping_interval=20, ping_timeout=20, close_timeout=1)
        with pytest.raises(ConnectionClosedError):
            await client.recv()
        told: list[object] = [client.close_code, round(now())]
        await gone.wait()
        server.close()
        await asyncio.sleep(1)
        return told

    assert run(main) == [1006, 41]


@pytest.mark.parametrize("cut", [False, True])
def test_an_end_in_good_order_and_a_torn_one_are_told_apart(cut: bool) -> None:
    async def main() -> list[object]:
        async def leave(connection: ServerConnection) -> None:
            await connection.recv()
            if cut:
                connection.transport.abort()
            else:
                await connection.close(4000, "enough")

        async with serve(leave, LOOPBACK, 0) as server:
            url = f"ws://{LOOPBACK}:{server.sockets[0].getsockname()[1]}"
            async with connect(url, proxy=None) as client:
                await client.send("go")
                with pytest.raises(ConnectionClosedError if cut else (ConnectionClosedError, ConnectionClosedOK)):
                    await client.recv()
                return [client.close_code, client.close_reason]

    assert run(main) == ([1006, ""] if cut else [4000, "enough"])


# aiohttp


class Site:
    """A small site that remembers who called."""

    def __init__(self) -> None:
        self.peers: list[object] = []
        self.cut = asyncio.Event()

    async def hello(self, request: web.Request) -> web.Response:
        assert request.transport is not None
        self.peers.append(request.transport.get_extra_info("peername"))
        return web.json_response({"said": await request.text()})

    async def events(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        for number in range(600):
            await response.write(b"id: %d\ndata: line %d\n\n" % (number, number))
            await asyncio.sleep(1)
            if self.cut.is_set():
                assert request.transport is not None
                request.transport.abort()
                break
        return response

    async def slow(self, _request: web.Request) -> web.Response:
        await asyncio.sleep(3600)
        return web.Response()


@asynccontextmanager
async def site() -> AsyncIterator[tuple[Site, aiohttp.ClientSession, str]]:
    """The site, and a client that has its address."""
    pages, app = Site(), web.Application()
    routes = [web.post("/hello", pages.hello), web.get("/events", pages.events), web.get("/slow", pages.slow)]
    app.add_routes(routes)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, LOOPBACK, 0).start()
    connector = aiohttp.TCPConnector(resolver=aiohttp.ThreadedResolver())
    async with aiohttp.ClientSession(connector=connector) as session:
        yield pages, session, f"http://{LOOPBACK}:{runner.addresses[0][1]}"
    await runner.cleanup()


@pytest.mark.parametrize("network", [None, FRAGMENTED], ids=["whole", "fragments"])
def test_a_connection_is_used_again_while_it_is_kept_alive(network: Network | None) -> None:
    """15 s by the client's own pool, which reads the monotonic clock."""

    async def main() -> list[object]:
        async with site() as (pages, session, url):
            seen: list[object] = []
            for pause in (0, 5, 20):
                await asyncio.sleep(pause)
                async with session.post(f"{url}/hello", data=b"x" * 100_000) as answer:
                    seen += [answer.status, len((await answer.json())["said"])]
            return [*seen, [pages.peers.index(peer) for peer in pages.peers]]

    assert run(main, network) == [200, 100_000] * 3 + [[0, 0, 2]]


@pytest.mark.parametrize("network", [None, FRAGMENTED], ids=["whole", "fragments"])
def test_server_sent_events_of_ten_minutes(network: Network | None) -> None:
    async def main() -> list[object]:
        async with site() as (_, session, url), session.get(f"{url}/events", timeout=NO_TIMEOUT) as answer:
            text = await answer.text()
            return [text.count("\n\n"), text.startswith("id: 0\n"), text.endswith("data: line 599\n\n"), now() > 600]

    assert run(main, network) == [600, True, True, True]


NO_TIMEOUT = aiohttp.ClientTimeout(total=None)


def test_a_stream_that_is_cut_never_looks_like_a_clean_end() -> None:
    async def main() -> list[object]:
        async with site() as (pages, session, url), session.get(f"{url}/events", timeout=NO_TIMEOUT) as answer:
            for _ in range(10):
                await answer.content.readuntil(b"\n\n")
            pages.cut.set()
            with pytest.raises(aiohttp.ClientPayloadError):
                await answer.content.read()
            return ["torn", round(now())]

    assert run(main) == ["torn", 10]


def test_a_clients_timeout_is_simulated_too() -> None:
    async def main() -> list[object]:
        async with site() as (_, session, url):
            with pytest.raises(TimeoutError):
                await session.get(f"{url}/slow", timeout=aiohttp.ClientTimeout(total=30))
            return [round(now())]

    assert run(main) == [30]


def test_dates_are_simulated() -> None:
    async def main() -> list[object]:
        async with site() as (_, session, url):
            await asyncio.sleep(86_400 - 3600)
            async with session.post(f"{url}/hello") as answer:
                return [answer.headers["Date"]]

    assert run(main) == ["Thu, 01 Jan 2026 23:00:00 GMT"]

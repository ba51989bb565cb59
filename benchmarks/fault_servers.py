"""The servers of the benchmark of fault proxies: a bare upstream, the lab's engine, and Toxiproxy's own server."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import socket
import struct
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any

HEAD = struct.Struct("!cI")
"""What a client says first: what it wants of the upstream, and a number of bytes."""
DOWNLOAD, ECHO = b"d", b"e"
"""`DOWNLOAD` sends so many bytes; `ECHO` sends back each message of so many bytes."""
BLOCK = bytes(1 << 18)
LOOPBACK = "127.0.0.1"
START_SECONDS = 10.0
SEED = 7

Said = Mapping[str, Any]
Toxics = Sequence[Mapping[str, Any]]


def receive(connection: socket.socket, view: memoryview) -> bool:
    """Fill `view`; False when the peer ended first."""
    got = 0
    while got < len(view):
        part = connection.recv_into(view[got:])
        if not part:
            return False
        got += part
    return True


@asynccontextmanager
async def upstream(_order: Said) -> AsyncIterator[Said]:
    """A thread for each connection, so that it is never what is slow."""
    with socket.create_server((LOOPBACK, 0), backlog=1024) as listener:
        threading.Thread(target=_accept, args=(listener,), daemon=True).start()
        yield {"port": listener.getsockname()[1]}


def _accept(listener: socket.socket) -> None:
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_answer, args=(connection,), daemon=True).start()


def _answer(connection: socket.socket) -> None:
    head = bytearray(HEAD.size)
    with connection, suppress(ConnectionError):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not receive(connection, memoryview(head)):
            return
        wanted, size = HEAD.unpack(head)
        if wanted == DOWNLOAD:
            for start in range(0, size, len(BLOCK)):
                connection.sendall(memoryview(BLOCK)[: size - start])
        message = memoryview(bytearray(size if wanted == ECHO else 1))
        while receive(connection, message):
            connection.sendall(message)


@asynccontextmanager
async def engine(order: Said) -> AsyncIterator[Said]:
    """The lab's engine with one proxy before the port `upstream`, and its toxics."""
    from lab.draws import Draws
    from lab.faults.engine import Engine
    from lab.faults.specs import ProxySpec, ToxicSpec

    made = Engine(asyncio.get_running_loop(), partial(Draws, SEED))
    toxics = [ToxicSpec(toxic["type"], attributes=toxic["attributes"]) for toxic in order["toxics"]]
    proxy = await made.create(ProxySpec("bench", f"{LOOPBACK}:0", f"{LOOPBACK}:{order['upstream']}"), toxics)
    try:
        yield {"port": proxy.address[1]}
    finally:
        await made.close()


@asynccontextmanager
async def toxiproxy(order: Said) -> AsyncIterator[Said]:
    """The server that `binary` names, with the same proxy."""
    with _running(order["binary"]) as call:
        proxy = {"name": "bench", "listen": f"{LOOPBACK}:0", "upstream": f"{LOOPBACK}:{order['upstream']}"}
        port = int(call("/proxies", proxy)["listen"].rpartition(":")[2])
        for toxic in order["toxics"]:
            call("/proxies/bench/toxics", toxic)
        yield {"port": port}


@contextmanager
def _running(binary: str) -> Iterator[Callable[[str, Said], Said]]:
    with socket.create_server((LOOPBACK, 0)) as probe:
        port = probe.getsockname()[1]
    command = (binary, "-host", LOOPBACK, "-port", str(port))
    # It logs each connection to its standard output.
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=quiet, stdout=quiet) as server:  # noqa: S603  the caller's own
        try:
            _until_up(port)
            yield partial(_post, port)
        finally:
            server.terminate()


def _until_up(port: int) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection((LOOPBACK, port), 1).close()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
        else:
            return


def _post(port: int, path: str, body: Said) -> Said:
    with contextlib.closing(http.client.HTTPConnection(LOOPBACK, port, timeout=START_SECONDS)) as connection:
        connection.request("POST", path, json.dumps(body))
        answer = connection.getresponse()
        text = answer.read().decode()
        if answer.status not in (200, 201):
            raise RuntimeError(f"POST {path}: {answer.status} {text.strip()}")
        said: Said = json.loads(text)
        return said

"""The client that loads a fault proxy: `python -m benchmarks.fault_load`, a line of JSON in, a line out, until its end.

It uses blocking sockets and nothing else, so that it is never what is slow.
"""

from __future__ import annotations

import json
import socket
import statistics
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.fault_servers import BLOCK, DOWNLOAD, ECHO, HEAD, LOOPBACK, receive

Json = Mapping[str, Any]

WARM = 20
"""Round trips before those that count."""


def download(order: Json) -> float:
    """Bytes a second over one connection."""
    size = order["bytes"]
    buffer = bytearray(len(BLOCK))
    with _connected(order["port"]) as connection:
        began = time.perf_counter()
        connection.sendall(HEAD.pack(DOWNLOAD, size))
        left = size
        while left:
            got = connection.recv_into(buffer)
            if not got:
                raise RuntimeError(f"{left} bytes are missing")
            left -= got
        return float(size / (time.perf_counter() - began))


def echo(order: Json) -> float:
    """Median seconds of a round trip of `bytes` each way."""
    message = bytes(range(256)) * (order["bytes"] // 256)
    view = memoryview(bytearray(len(message)))
    took = []
    with _connected(order["port"]) as connection:
        connection.sendall(HEAD.pack(ECHO, len(message)))
        for number in range(WARM + order["count"]):
            began = time.perf_counter()
            connection.sendall(message)
            if not receive(connection, view):
                raise RuntimeError("the echo ended")
            if number >= WARM:
                took.append(time.perf_counter() - began)
            if view != message:
                raise RuntimeError("an echo that differs")
    return statistics.median(took)


def connect(order: Json) -> float:
    """Connections a second: each one opened, one byte there and back, closed; `at_once` of them side by side."""
    each = order["count"] // order["at_once"]
    failures: list[BaseException] = []

    def some() -> None:
        try:
            for _ in range(each):
                with _connected(order["port"]) as connection:
                    connection.sendall(HEAD.pack(ECHO, 1) + b"x")
                    if connection.recv(1) != b"x":
                        raise RuntimeError("a connection without an echo")
        except BaseException as failure:  # noqa: BLE001  of a thread: told to the one that waits for it
            failures.append(failure)

    threads = [threading.Thread(target=some) for _ in range(order["at_once"])]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return float(each * len(threads) / (time.perf_counter() - began))


def _connected(port: int) -> socket.socket:
    connection = socket.create_connection((LOOPBACK, port), timeout=60)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


KINDS: Mapping[str, Callable[[Json], float]] = {"download": download, "echo": echo, "connect": connect}

if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps({"value": KINDS[asked["kind"]](asked)}), flush=True)

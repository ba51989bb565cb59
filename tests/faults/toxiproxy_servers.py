"""Servers that the Toxiproxy driver is put to the test against: `lab serve faults` in a child, and the real one."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from lab.faults.address import Address
from tests.command_line import PATIENCE, Child

BINARY = "LAB_TOXIPROXY_BIN"
READY = "fault API, as Toxiproxy 2.12.0 has it, at http://"


@contextmanager
def lab_server() -> Iterator[Address]:
    """The lab's own server in a child."""
    with lab_server_in_child() as (address, _):
        yield address


@contextmanager
def lab_server_in_child() -> Iterator[tuple[Address, Child]]:
    """The lab's own server with its child, which may be stopped or killed."""
    with Child(["serve", "faults", "--port", "0", "--seed", "7"]) as child:
        host, _, port = child.until(READY).removeprefix(READY).split(" ")[0].rpartition(":")
        yield (host, int(port)), child


@contextmanager
def real_server() -> Iterator[Address]:
    """Toxiproxy's own in a child, where its binary is named."""
    binary = os.environ.get(BINARY)
    if binary is None:
        pytest.skip(f"{BINARY} does not name the binary of a Toxiproxy server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address: Address = free.getsockname()
    command = [binary, "-host", address[0], "-port", str(address[1])]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        try:
            end = time.monotonic() + PATIENCE
            while not _listens(address):
                assert child.poll() is None, f"{binary} ended with {child.returncode}"
                assert time.monotonic() < end
            yield address
        finally:
            child.kill()


SERVERS = {"lab": lab_server, "toxiproxy": real_server}


def call(address: Address, path: str, body: object = None) -> Any:
    """The JSON that a server answers a GET, or a POST where there is a body; past the driver."""
    data = None if body is None else json.dumps(body).encode()
    request = Request(f"http://{address[0]}:{address[1]}{path}", data)
    with build_opener(ProxyHandler({})).open(request, timeout=PATIENCE) as response:
        return json.loads(response.read() or b"null")


def _listens(address: Address) -> bool:
    with socket.socket() as client:
        return client.connect_ex(address) == 0

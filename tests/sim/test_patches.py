"""What is the simulation's while a run lasts, and is the machine's again afterwards."""

from __future__ import annotations

import importlib
import os
import random
import secrets
import socket
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from lab.sim.kernel import Kernel
from lab.sim.patches import EPOCH_SECONDS, simulated
from lab.sim.sockets import SimSocket

TAKEN_OVER = {
    "time.time": lambda: time.time,
    "time.time_ns": lambda: time.time_ns,
    "time.monotonic": lambda: time.monotonic,
    "time.monotonic_ns": lambda: time.monotonic_ns,
    "monotonic, imported by name": lambda: monotonic,
    "os.urandom": lambda: os.urandom,
    "random's own urandom": lambda: random._urandom,  # type: ignore[attr-defined]
    "socket.socket": lambda: socket.socket,
    "socket.socketpair": lambda: socket.socketpair,
    "socket.create_connection": lambda: socket.create_connection,
    "socket.getaddrinfo": lambda: socket.getaddrinfo,
}


@pytest.mark.parametrize("read", TAKEN_OVER.values(), ids=TAKEN_OVER)
@pytest.mark.parametrize("fails", [False, True])
def test_it_is_given_back(read: Callable[[], object], fails: bool) -> None:
    """Also when the run fails."""
    before = read()
    try:
        with simulated(Kernel(1)):
            assert read() is not before
            if fails:
                raise KeyError
    except KeyError:
        assert fails
    assert read() is before


@pytest.fixture
def imported_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that is first imported while a run lasts."""
    (tmp_path / "imported_late.py").write_text(
        "from time import monotonic\nfrom os import urandom\nfrom socket import socket, getaddrinfo\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "imported_late", raising=False)
    return "imported_late"


def test_a_module_imported_meanwhile_keeps_nothing(imported_late: str) -> None:
    kernel = Kernel(1)
    with simulated(kernel):
        late: Any = importlib.import_module(imported_late)
        kernel.advance(5.0)
        assert late.monotonic() == 5.0
    assert late.monotonic is time.monotonic
    assert late.urandom is os.urandom
    assert late.socket is socket.socket
    assert late.getaddrinfo is socket.getaddrinfo


def test_a_second_run_takes_over_as_the_first_did() -> None:
    for _ in range(2):
        with simulated(Kernel(1)):
            assert monotonic() == 0.0
            with pytest.raises(OSError, match="no place"):
                socket.getaddrinfo("localhost", 80)


def test_clocks_are_the_kernels() -> None:
    kernel = Kernel(1)
    with simulated(kernel):
        kernel.advance(1.5)
        assert time.monotonic() == monotonic() == 1.5
        assert time.monotonic_ns() == 1_500_000_000
        assert time.time() == EPOCH_SECONDS + 1.5
        assert time.time_ns() == (EPOCH_SECONDS * 10 + 15) * 10**8


DICE: dict[str, Callable[[], object]] = {
    "urandom": lambda: os.urandom(16),
    "uuid4": uuid.uuid4,
    "secrets": secrets.token_hex,
    "random": random.random,
    "getrandbits": lambda: random.getrandbits(64),
    "SystemRandom": lambda: random.SystemRandom().random(),
}


@pytest.mark.parametrize("throw", DICE.values(), ids=DICE)
def test_dice_are_the_seeds(throw: Callable[[], object]) -> None:
    def thrown(seed: int) -> list[object]:
        with simulated(Kernel(seed)):
            return [throw() for _ in range(3)]

    first = thrown(1)
    assert first == thrown(1)
    assert len({*first, *thrown(2)}) == 6


def test_the_global_dice_go_on_afterwards_as_if_nothing_had_been() -> None:
    random.seed(5)
    due = [random.random(), random.random()]
    random.seed(5)
    seen = [random.random()]
    with simulated(Kernel(1)):
        random.random()
    assert [*seen, random.random()] == due


def test_sockets_are_simulated() -> None:
    with simulated(Kernel(1)):
        made: list[object] = [
            socket.socket(),
            socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK),
            socket.socket(socket.AF_INET6),
        ]
    assert [type(one) for one in made] == [SimSocket] * 3


@pytest.mark.parametrize(
    "refused",
    [
        lambda: socket.socketpair(),
        lambda: socket.create_connection(("127.0.0.1", 80)),
        lambda: socket.getaddrinfo("localhost", 80),
        lambda: socket.socket(fileno=0),
        lambda: socket.socket(socket.AF_UNIX),
        lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
    ],
)
def test_what_blocks_or_leaves_the_process_is_refused(refused: Callable[[], object]) -> None:
    with simulated(Kernel(1)), pytest.raises(OSError, match="simulated"):
        refused()

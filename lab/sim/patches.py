"""What libraries take from the machine behind the loop's back, taken from the simulation while a run lasts."""

from __future__ import annotations

import os
import random
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lab.draws import Draws
from lab.sim.kernel import Kernel
from lab.sim.sockets import SimSocket

EPOCH_SECONDS = 1_767_225_600
"""What the wall clock reads at the start of a simulated run: 2026-01-01 UTC."""

_Replaced = tuple[Callable[..., Any], Callable[..., Any]]
"""What is replaced, and by what."""


@contextmanager
def simulated(kernel: Kernel) -> Iterator[None]:
    """Sockets, the system's clocks and its dice are the kernel's until the block ends."""
    draws = Draws(kernel.seed, "libraries", "urandom")
    everywhere: list[_Replaced] = [
        (time.time, lambda: EPOCH_SECONDS + kernel.now),
        (time.time_ns, lambda: EPOCH_SECONDS * 10**9 + round(kernel.now * 10**9)),
        (time.monotonic, lambda: kernel.now),
        (time.monotonic_ns, lambda: round(kernel.now * 10**9)),
        (os.urandom, draws.bytes),
    ]
    in_socket: dict[str, _Replaced] = {
        "socket": (socket.socket, _maker(kernel)),
        "socketpair": (socket.socketpair, _refusal()),
        "create_connection": (socket.create_connection, _refusal()),
        "getaddrinfo": (socket.getaddrinfo, _refusal()),
    }
    state = random.getstate()
    try:
        random.seed(kernel.seed)
        _replace_everywhere(everywhere)
        for name, (_, stand_in) in in_socket.items():
            setattr(socket, name, stand_in)
        yield
    finally:
        for name, (original, _) in in_socket.items():
            setattr(socket, name, original)
        # A module that was imported meanwhile may have taken a stand-in by name.
        _replace_everywhere([(stand_in, original) for original, stand_in in (*everywhere, *in_socket.values())])
        random.setstate(state)


def _maker(kernel: Kernel) -> Callable[..., SimSocket]:
    def make(family: int = -1, type: int = -1, proto: int = -1, fileno: int | None = None) -> SimSocket:
        if fileno is not None:
            raise OSError("a socket of the simulated network has no descriptor of the machine's")
        return SimSocket(
            kernel,
            socket.AF_INET if family == -1 else family,
            socket.SOCK_STREAM if type == -1 else type,
            max(proto, 0),
        )

    return make


def _refusal() -> Callable[..., Any]:
    def refuse(*_: object, **__: object) -> Any:
        raise OSError("what blocks, or leaves the process, has no place in a simulated run")

    return refuse


def _replace_everywhere(replaced: Sequence[_Replaced]) -> None:
    """In its own module, and in each that has imported it by name."""
    stand_ins = {id(original): stand_in for original, stand_in in replaced}
    for module in tuple(sys.modules.values()):
        names = getattr(module, "__dict__", {})
        for name, value in [(name, value) for name, value in names.items() if id(value) in stand_ins]:
            setattr(module, name, stand_ins[id(value)])

"""What libraries take from the machine behind the loop's back, taken from the simulation while a run lasts."""

from __future__ import annotations

import os
import random
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from lab.draws import Draws
from lab.sim.kernel import Kernel
from lab.sim.sockets import SimSocket

EPOCH_SECONDS = 1_767_225_600
"""What the wall clock reads at the start of a simulated run: 2026-01-01 UTC."""

_Replaced = tuple[Callable[..., Any], Callable[..., Any]]
"""What is replaced, and by what."""


class _Now:
    """The run that the stand-ins belong to. They stay where they are when another run follows."""

    kernel = Kernel(0)
    draws = Draws(0, "libraries", "urandom")
    held = 0
    """How many blocks want the stand-ins in place."""


@contextmanager
def simulated(kernel: Kernel) -> Iterator[None]:
    """Sockets, the system's clocks and its dice are the kernel's until the block ends."""
    _Now.kernel, _Now.draws = kernel, Draws(kernel.seed, "libraries", "urandom")
    state = random.getstate()
    try:
        random.seed(kernel.seed)
        with machine_replaced():
            yield
    finally:
        random.setstate(state)


@contextmanager
def machine_replaced() -> Iterator[None]:
    """Keep the stand-ins in place between runs: to look for all that imported the originals takes as long as a run.

    Only `simulated` runs have meaning inside; what is real must not go on meanwhile.
    """
    _Now.held += 1
    try:
        if _Now.held == 1:
            _replace_everywhere(_EVERYWHERE)
            for name, (_, stand_in) in _IN_SOCKET.items():
                setattr(socket, name, stand_in)
        yield
    finally:
        _Now.held -= 1
        if not _Now.held:
            for name, (original, _) in _IN_SOCKET.items():
                setattr(socket, name, original)
            # A module that was imported meanwhile may have taken a stand-in by name.
            _replace_everywhere([(stand_in, original) for original, stand_in in (*_EVERYWHERE, *_IN_SOCKET.values())])


def _make_socket(family: int = -1, type: int = -1, proto: int = -1, fileno: int | None = None) -> SimSocket:
    if fileno is not None:
        raise OSError("a socket of the simulated network has no descriptor of the machine's")
    return SimSocket(
        _Now.kernel,
        socket.AF_INET if family == -1 else family,
        socket.SOCK_STREAM if type == -1 else type,
        max(proto, 0),
    )


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


_EVERYWHERE: Final[tuple[_Replaced, ...]] = (
    (time.time, lambda: EPOCH_SECONDS + _Now.kernel.now),
    (time.time_ns, lambda: EPOCH_SECONDS * 10**9 + round(_Now.kernel.now * 10**9)),
    (time.monotonic, lambda: _Now.kernel.now),
    (time.monotonic_ns, lambda: round(_Now.kernel.now * 10**9)),
    (os.urandom, lambda size: _Now.draws.bytes(size)),
)

_IN_SOCKET: Final[dict[str, _Replaced]] = {
    "socket": (socket.socket, _make_socket),
    "socketpair": (socket.socketpair, _refusal()),
    "create_connection": (socket.create_connection, _refusal()),
    "getaddrinfo": (socket.getaddrinfo, _refusal()),
}

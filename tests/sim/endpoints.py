"""Two connected ends, of the machine's kernel or of the simulated one, and what programs for them give."""

from __future__ import annotations

import errno
import os
import selectors
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from lab.sim.kernel import Kernel, Network
from lab.sim.sockets import LOOPBACK, SimSocket

PATIENCE = 10.0
"""Seconds that the machine may take to carry a byte."""

SETTLED_SECONDS = 0.5
"""Simulated seconds in which what is under way arrives; what is tried again later does not."""

RECV = 1 << 16
LINGER_NOW = struct.pack("ii", 1, 0)

Outcome = str | int | bytes | None
"""What a step gave: bytes, how many were taken, or the name of the error."""


def outcome(call: Callable[[], Outcome]) -> Outcome:
    """What a call gave, an error by its name."""
    try:
        return call()
    except OSError as error:
        return errno.errorcode[error.errno or 0]


def fill(sock: Any) -> int:
    """Write until there is no more room; how many bytes were taken."""
    taken = 0
    while True:
        try:
            taken += sock.send(bytes(RECV))
        except BlockingIOError:
            return taken


class Machine(Protocol):
    """Whose sockets they are."""

    def make(self) -> Any:
        """A socket that does not block."""

    def settle(self) -> None:
        """Return once what was sent before has arrived."""

    def ready(self, sock: Any) -> str:
        """`r` and `w` as a selector tells them of a socket."""

    def wait(self, sock: Any) -> None:
        """Return once the socket is ready for anything."""


@dataclass
class Pair:
    """The two ends of one connection."""

    machine: Machine
    ends: dict[str, Any]
    filled: dict[str, int] = field(default_factory=dict)
    """How many bytes an end took until there was no more room."""

    def step(self, words: str) -> Outcome:
        """Carry out one step, such as `a send`; what it gave once all has arrived."""
        who, act = words.split()
        given = outcome(lambda: self._act(who, act))
        self.machine.settle()
        return given

    def _act(self, who: str, act: str) -> Outcome:
        sock, other = self.ends[who], "b" if who == "a" else "a"
        match act:
            case "send":
                return int(sock.send(b"%b says" % who.encode()))
            case "recv":
                return bytes(sock.recv(RECV))
            case "recv1":
                return bytes(sock.recv(1))
            case "shut":
                sock.shutdown(socket.SHUT_WR)
            case "close":
                sock.close()
            case "abort":
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOW)
                sock.close()
            case "error":
                return errno.errorcode.get(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), "none")
            case "ready":
                return self.machine.ready(sock)
            case "fill":
                self.filled[who] = fill(sock)
                return "full"
            case "drain":
                return self._drain(sock, other)
            case _:
                raise AssertionError(act)
        return None

    def _drain(self, sock: Any, other: str) -> Outcome:
        read = 0
        while read < self.filled[other]:
            try:
                got = len(sock.recv(RECV))
            except BlockingIOError:
                self.machine.settle()
                continue
            if not got:
                return "end before all was read"
            read += got
        return "all"

    def readiness(self) -> str:
        """Of each end that is open."""
        return " ".join(f"{who}:{self.machine.ready(sock)}" for who, sock in self.ends.items() if sock.fileno() >= 0)


Trace = list[tuple[str, Outcome, str]]


def trace(pair: Pair, steps: Sequence[str]) -> Trace:
    """Each step, what it gave, and who was ready afterwards."""
    return [(step, pair.step(step), pair.readiness()) for step in steps]


@contextmanager
def connected(machine: Machine) -> Iterator[Pair]:
    """Two connected ends; what is still open is closed."""
    listener = listening(machine)
    a = machine.make()
    outcome(lambda: a.connect(listener.getsockname()))
    machine.settle()
    b, _ = listener.accept()
    b.setblocking(False)
    for end in (a, b):
        # As asyncio has it; without this Linux holds small writes back until the ones before are acknowledged.
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.close()
    yield Pair(machine, {"a": a, "b": b})
    a.close()
    b.close()


def listening(machine: Machine, backlog: int = 16) -> Any:
    """A socket that listens on a port which the machine chose."""
    listener = machine.make()
    listener.bind((LOOPBACK, 0))
    listener.listen(backlog)
    return listener


class Simulated:
    """The simulated kernel."""

    def __init__(self, network: Network | None = None) -> None:
        self.kernel = Kernel(1, network or Network())

    def make(self) -> SimSocket:
        """A socket of it."""
        return SimSocket(self.kernel)

    def settle(self) -> None:
        """Let all that is under way arrive; no step of a program waits for longer."""
        until = self.kernel.now + SETTLED_SECONDS
        while (event := self.kernel.next_event) is not None and event <= until:
            self.kernel.advance(event)

    def wait(self, sock: SimSocket) -> None:
        """Go from event to event."""
        while not self.ready(sock):
            assert self.kernel.next_event is not None
            self.kernel.advance(self.kernel.next_event)

    def ready(self, sock: SimSocket) -> str:
        """What its selector asks."""
        return ("r" if sock.readable else "") + ("w" if sock.writable else "")


class Loopback:
    """The kernel of this machine, on one processor.

    A byte that is sent after the others and has come back tells that the others have arrived: loopback is one queue a
    processor, and what arrives is answered before what is behind it. The second round brings in the answers.
    """

    ROUNDS = 2

    def __init__(self) -> None:
        self._processors = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(self._processors)})
        with socket.create_server((LOOPBACK, 0)) as listener:
            self._one = socket.create_connection(listener.getsockname(), PATIENCE)
            self._other, _ = listener.accept()
        self._other.settimeout(PATIENCE)
        for end in (self._one, self._other):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def make(self) -> socket.socket:
        """A socket of it."""
        made = socket.socket()
        made.setblocking(False)
        return made

    def settle(self) -> None:
        """Send the byte round."""
        for _ in range(self.ROUNDS):
            self._one.sendall(b"1")
            assert self._other.recv(1)
            self._other.sendall(b"2")
            assert self._one.recv(1)

    def ready(self, sock: socket.socket) -> str:
        """As asyncio's own selector tells it."""
        return self._select(sock, 0)

    def wait(self, sock: socket.socket) -> None:
        """Ask the selector."""
        assert self._select(sock, PATIENCE)

    def _select(self, sock: socket.socket, seconds: float) -> str:
        with selectors.DefaultSelector() as selector:
            selector.register(sock, selectors.EVENT_READ | selectors.EVENT_WRITE)
            events = sum(found for _, found in selector.select(seconds))
        return ("r" if events & selectors.EVENT_READ else "") + ("w" if events & selectors.EVENT_WRITE else "")

    def close(self) -> None:
        """Let go of it."""
        os.sched_setaffinity(0, self._processors)
        self._one.close()
        self._other.close()

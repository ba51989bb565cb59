"""The simulated kernel: one clock, the network's events in order, and who listens where."""

from __future__ import annotations

import errno
import heapq
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lab.draws import Draws

if TYPE_CHECKING:
    from lab.sim.hosts import Host
    from lab.sim.sockets import SimSocket

Address = tuple[str, int]

FIRST_PORT = 20_000
"""Where the ports begin that the kernel chooses for a socket bound to port 0."""

FIRST_EPHEMERAL_PORT = 40_000
"""Where the ports of connecting sockets begin."""

LAST_PORT = 65_535

FIRST_DESCRIPTOR = 1_000_000
"""Above any descriptor of the machine, so that one of the two is never taken for the other."""


@dataclass(frozen=True)
class Network:
    """What the simulated network does to bytes on their way."""

    latency: float = 50e-6
    """Seconds from one socket to another, at least."""
    jitter: float = 50e-6
    """Seconds that are drawn on top of it, for each segment."""
    window: int = 1 << 20
    """Bytes that one direction of a connection holds: under way, or there and not read yet."""
    segment: int = 64 * 1024
    """Bytes that travel together at most."""
    fragments: bool = False
    """Whether a read gives a drawn part of what is there."""


@dataclass
class Kernel:
    """Time passes here only when `advance` says so; `seed` decides all that is drawn."""

    seed: int
    network: Network = field(default_factory=Network)

    def __post_init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._scheduled = 0
        self._descriptors = FIRST_DESCRIPTOR
        self._ports = FIRST_PORT
        self._ephemeral = FIRST_EPHEMERAL_PORT
        self._bound: dict[int, list[SimSocket]] = {}
        self._sockets: dict[int, SimSocket] = {}
        self.stirred: dict[int, None] = {}
        """Descriptors that may have become ready since somebody looked: so nobody has to look at all of them."""
        self._draws = Draws(self.seed, "network", "latency")

    # Time

    def advance(self, now: float) -> None:
        """Move the clock forward, and let everything happen that the network has due by then."""
        while self._events and self._events[0][0] <= now:
            when, _, event = heapq.heappop(self._events)
            self.now = max(self.now, when)
            event()
        self.now = max(self.now, now)

    @property
    def next_event(self) -> float | None:
        """When the network has something to do next."""
        return self._events[0][0] if self._events else None

    def at(self, when: float, event: Callable[[], None]) -> None:
        """Let `event` happen at `when`; events of one moment keep the order in which they were asked for."""
        self._scheduled += 1
        heapq.heappush(self._events, (when, self._scheduled, event))

    def sockets_of(self, host: Host) -> list[SimSocket]:
        """A host's open sockets, oldest first."""
        return [socket for socket in self._sockets.values() if socket.host is host]

    def latency(self) -> float:
        """Seconds that the next segment is under way."""
        network = self.network
        return network.latency + (network.jitter * self._draws.fraction() if network.jitter else 0.0)

    def fragment(self, size: int) -> int:
        """How many of `size` bytes a read gives."""
        if not self.network.fragments or size < 2:
            return size
        return 1 + int(self._draws.fraction() * size)

    # Descriptors and ports

    def open(self, socket: SimSocket) -> int:
        """A fresh descriptor for a socket; none is ever used again."""
        self._descriptors += 1
        self._sockets[self._descriptors] = socket
        return self._descriptors

    def close(self, descriptor: int) -> None:
        """The socket of a descriptor is gone."""
        del self._sockets[descriptor]

    def socket(self, descriptor: int) -> SimSocket | None:
        """The open socket of a descriptor."""
        return self._sockets.get(descriptor)

    def bind(self, socket: SimSocket, port: int) -> int:
        """Bind a socket; the port it has. Raises `OSError` EADDRINUSE as the machine's kernel does."""
        if port == 0:
            port = self._free_port()
        for other in self._bound.get(port, ()):
            if other.listening or not (other.reuses_address and socket.reuses_address):
                raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        self._bound.setdefault(port, []).append(socket)
        return port

    def unbind(self, socket: SimSocket, port: int) -> None:
        """The socket is closed."""
        sockets = self._bound.get(port, [])
        if socket in sockets:
            sockets.remove(socket)
        if not sockets:
            self._bound.pop(port, None)

    def listener(self, port: int) -> SimSocket | None:
        """Who accepts connections on a port."""
        return next((socket for socket in self._bound.get(port, ()) if socket.listening), None)

    def ephemeral_port(self) -> int:
        """A port for a socket that connects."""
        port, self._ephemeral = self._ephemeral, self._ephemeral + 1
        if self._ephemeral > LAST_PORT:
            self._ephemeral = FIRST_EPHEMERAL_PORT
        return port

    def _free_port(self) -> int:
        while self._ports in self._bound:
            self._ports += 1
        port, self._ports = self._ports, self._ports + 1
        if port >= FIRST_EPHEMERAL_PORT:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        return port

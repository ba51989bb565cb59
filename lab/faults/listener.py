"""A listening port that can be shut and opened again without ever being given up.

While it is shut a socket that is bound and does not listen holds it: connects are refused, and nobody else can
listen there. It accepts by itself, since asyncio's servers lose a client whose accept meets their close.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from lab.faults.address import Address

RETRY_SECONDS = 1.0
"""How long to wait for free descriptors before accepting again."""

_BACKLOG = 128


class Listener:
    """Gives each accepted socket, non-blocking, with its peer's address to `accepted`, which owns it then.

    `open` raises `OSError` when the port cannot be had. With port 0 the first `open` chooses one for good.
    """

    def __init__(self, address: Address, accepted: Callable[[socket.socket, Address], None]) -> None:
        self._accepted = accepted
        self._listening: socket.socket | None = None
        self._holder: socket.socket | None = None
        self._retry: asyncio.TimerHandle | None = None
        self.address = address

    @property
    def is_open(self) -> bool:
        """Whether connects are accepted."""
        return self._listening is not None

    def open(self) -> None:
        """Listen on the port, held or new."""
        bound = self._holder or self._bind()
        self._holder = None
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.listen(_BACKLOG)
        except OSError:
            bound.close()
            raise
        self._listening = bound
        self._watch()

    def shut(self) -> None:
        """Refuse connects and hold the port."""
        self._stop()
        try:
            self._holder = self._bind()
        except OSError:
            # Somebody took the port in the instant after it was shut: `open` raises that.
            return
        # Without this a listener that sets SO_REUSEADDR, as most do, could share a port nobody listens on.
        self._holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)

    def close(self) -> None:
        """Give the port up. Safe to call again."""
        self._stop()
        if self._holder is not None:
            self._holder.close()
            self._holder = None

    def _bind(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self.address[0] else socket.AF_INET
        # asyncio lets small writes go at once only where the protocol is named; accepted sockets inherit it.
        bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        bound.setblocking(False)
        try:
            # Connections of before, alive or dying, share the port.
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(self.address)
        except OSError:
            bound.close()
            raise
        self.address = (self.address[0], bound.getsockname()[1])
        return bound

    def _watch(self) -> None:
        self._retry = None
        if self._listening is not None:
            asyncio.get_running_loop().add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        if self._listening is None:
            return
        try:
            raw, peer = self._listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError:
            # Out of descriptors or memory: the listener stays readable, so it is left alone for a while.
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._listening)
            self._retry = loop.call_at(loop.time() + RETRY_SECONDS, self._watch)
            return
        raw.setblocking(False)
        self._accepted(raw, (peer[0], peer[1]))

    def _stop(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        if self._listening is not None:
            asyncio.get_running_loop().remove_reader(self._listening)
            self._listening.close()
            self._listening = None

"""One end of a simulated TCP connection, as the Linux kernel behaves on loopback.

    send ──> [under way, in order] ──> [there, not read yet] ──> recv of the peer

Both brackets together never hold more than the network's window, which is what makes a writer wait.
"""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Callable

from lab.sim.kernel import Kernel


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


class End:
    """One end; `peer` is the other, and the two are told of each other once by `pair`."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.descriptor = -1
        """Of the socket that it belongs to."""
        self._peer: End | None = None
        self._arrives = 0.0
        self._outstanding = 0
        """Bytes sent and not yet read by the peer."""
        self._received: deque[memoryview] = deque()
        self._received_fin = False
        self._sent_fin = False
        self._broken = False
        """Whether a reset ended it."""
        self._closed = False
        self._error = 0

    def pair(self, peer: End) -> None:
        """The two are connected."""
        self._peer, peer._peer = peer, self

    @property
    def other(self) -> End:
        """The peer's end."""
        assert self._peer is not None
        return self._peer

    # What the owner may do

    @property
    def readable(self) -> bool:
        """Whether `recv` returns at once."""
        return bool(self._received) or self._received_fin or self._broken

    @property
    def writable(self) -> bool:
        """Whether `send` returns at once."""
        return self._broken or self._sent_fin or self._outstanding < self._kernel.network.window

    def recv(self, size: int) -> bytes:
        """At most `size` bytes; b"" at the end. Raises `BlockingIOError` when there is nothing, or the reset."""
        if not self._received:
            return self._recv_nothing()
        taken: list[memoryview] = []
        left = self._kernel.fragment(min(size, sum(map(len, self._received))))
        while left and self._received:
            first = self._received.popleft()
            taken.append(first[:left])
            if len(first) > left:
                self._received.appendleft(first[left:])
            left -= len(taken[-1])
        data = b"".join(taken)
        if self._peer is not None:
            self._peer._outstanding -= len(data)
            self._peer._stir()
        return data

    def _recv_nothing(self) -> bytes:
        if self._received_fin:
            return b""
        if self._error:
            raise _error(self.take_error())
        if self._broken:
            return b""
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    def send(self, data: bytes | bytearray | memoryview) -> int:
        """How many bytes were taken. Raises `BlockingIOError` when there is room for none, or what ended it."""
        if self._error:
            raise _error(self.take_error())
        if self._sent_fin or self._broken:
            raise _error(errno.EPIPE)
        room = self._kernel.network.window - self._outstanding
        if room <= 0:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        taken = bytes(memoryview(data)[:room])
        self._outstanding += len(taken)
        step = self._kernel.network.segment
        for start in range(0, len(taken), step):
            segment = taken[start : start + step]
            self._carry(lambda peer, segment=segment: peer._take(segment))  # type: ignore[misc]
        return len(taken)

    def finish(self) -> None:
        """FIN, behind what was sent. Raises `OSError` ENOTCONN after a reset, or once both sides have finished."""
        if self._broken or (self._sent_fin and self._received_fin):
            raise _error(errno.ENOTCONN)
        if not self._sent_fin:
            self._sent_fin = True
            self._carry(End._take_fin)

    def close(self, *, reset: bool = False) -> None:
        """Let go of it. With `reset`, or with bytes that nobody read, the peer hears a reset, else a FIN."""
        if self._closed:
            return
        self._closed = True
        if self._broken:
            return
        if reset or self._received:
            self._broken = True
            self._received.clear()
            # A reset overtakes nothing: what was sent before it may arrive, as it does on loopback.
            self._carry(End._take_reset)
        elif not self._sent_fin:
            self._sent_fin = True
            self._carry(End._take_fin)

    def take_error(self) -> int:
        """What SO_ERROR says, which forgets it."""
        number, self._error = self._error, 0
        return number

    # What arrives

    def _carry(self, arrive: Callable[[End], None]) -> None:
        """Let something arrive at the peer, behind what was sent before."""
        peer = self.other
        self._arrives = max(self._arrives, self._kernel.now + self._kernel.latency())
        self._kernel.at(self._arrives, lambda: arrive(peer))

    def _take(self, segment: bytes) -> None:
        if self._broken:
            return
        if self._closed:
            # Nobody is there to read it: the kernel answers with a reset.
            self._broken = True
            self._carry(End._take_reset)
            return
        self._received.append(memoryview(segment))
        self._stir()

    def _take_fin(self) -> None:
        if not self._broken:
            self._received_fin = True
            self._stir()

    def _take_reset(self) -> None:
        if self._broken or (self._sent_fin and self._received_fin):
            # Once both sides have finished there is nothing left to reset.
            return
        self._broken = True
        # After the peer's FIN only a write can still fail, and it does so as on a pipe.
        self._error = errno.EPIPE if self._received_fin else errno.ECONNRESET
        self._stir()

    def _stir(self) -> None:
        self._kernel.stirred[self.descriptor] = None

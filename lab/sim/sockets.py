"""A non-blocking TCP socket on the simulated network, with as much of `socket.socket` as the libraries above use."""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections import deque
from typing import Any

from lab.sim.hosts import HOST
from lab.sim.kernel import Address, Kernel
from lab.sim.tcp import End

LOOPBACK = "127.0.0.1"
SYN_RETRY_SECONDS = 1.0
"""When a listener's queue is full the client tries again after so long."""

_LINGER_NOW = struct.pack("ii", 1, 0)


class SimSocket:
    """One socket. What a real one can't do without blocking, this one refuses."""

    def __init__(
        self,
        kernel: Kernel,
        family: int = socket.AF_INET,
        type: int = socket.SOCK_STREAM,
        proto: int = 0,
    ) -> None:
        if family not in (socket.AF_INET, socket.AF_INET6) or type & 0xF != socket.SOCK_STREAM:
            raise OSError(errno.EAFNOSUPPORT, "the simulated network carries TCP only")
        self.family = socket.AddressFamily(family)
        self.type = socket.SocketKind(socket.SOCK_STREAM)
        self.proto = proto
        self.listening = False
        self.reuses_address = False
        self.host = HOST.get()
        self._kernel = kernel
        self._descriptor = kernel.open(self)
        self._options: dict[tuple[int, int], Any] = {}
        self._local: Address | None = None
        self._remote: Address | None = None
        self._end: End | None = None
        self._connecting = False
        self._connect_error = 0
        self._backlog = 0
        self._waiting: deque[tuple[SimSocket, Address]] = deque()

    def __repr__(self) -> str:
        return f"<SimSocket {self._descriptor} {self._local} {self._remote}>"

    # Being a file

    def fileno(self) -> int:
        """A descriptor that no other socket of the run has; -1 once closed."""
        return self._descriptor

    def setblocking(self, flag: bool) -> None:
        """Only non-blocking sockets exist here."""
        if flag:
            raise OSError(errno.EINVAL, "a socket of the simulated network cannot block")

    def settimeout(self, seconds: float | None) -> None:
        """0 is what non-blocking means."""
        self.setblocking(seconds != 0)

    def gettimeout(self) -> float:
        """0: it never blocks."""
        return 0.0

    def getblocking(self) -> bool:
        """Never."""
        return False

    def get_inheritable(self) -> bool:
        """Never."""
        return False

    def set_inheritable(self, flag: bool) -> None:
        """There are no other programs here."""

    def setsockopt(self, level: int, option: int, value: Any, *_: Any) -> None:
        """Kept; SO_REUSEADDR and SO_LINGER have an effect."""
        self._check_open()
        self._options[(level, option)] = value
        if (level, option) == (socket.SOL_SOCKET, socket.SO_REUSEADDR):
            self.reuses_address = bool(value)

    def getsockopt(self, level: int, option: int, *_: Any) -> Any:
        """SO_ERROR tells and forgets, as it does on a real one."""
        self._check_open()
        if (level, option) == (socket.SOL_SOCKET, socket.SO_ERROR):
            number, self._connect_error = self._connect_error, 0
            return number or (self._end.take_error() if self._end is not None else 0)
        return self._options.get((level, option), 0)

    def getsockname(self) -> Address:
        """Where it is bound."""
        self._check_open()
        return self._local or ("0.0.0.0", 0)  # noqa: S104  what an unbound socket says of itself

    def getpeername(self) -> Address:
        """Whom it is connected to. Raises `OSError` ENOTCONN."""
        if self._remote is None or self._end is None:
            raise _error(errno.ENOTCONN)
        return self._remote

    # Listening

    def bind(self, address: tuple[Any, ...]) -> None:
        """Take a port; 0 lets the kernel choose. Raises `OSError` EINVAL where it has one already."""
        self._check_open()
        if self._local is not None:
            raise _error(errno.EINVAL)
        self._local = (str(address[0]) or LOOPBACK, self._kernel.bind(self, int(address[1])))

    def listen(self, backlog: int = 128) -> None:
        """Accept connections."""
        self._check_open()
        if self._local is None:
            self.bind((LOOPBACK, 0))
        assert self._local is not None
        if self._kernel.listener(self._local[1]) not in (None, self):
            raise _error(errno.EADDRINUSE)
        self._backlog = max(0, backlog)
        self.listening = True

    def accept(self) -> tuple[SimSocket, Address]:
        """The next connection. Raises `BlockingIOError` when there is none."""
        self._check_open()
        if not self._waiting:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return self._waiting.popleft()

    # Connecting

    def connect(self, address: tuple[Any, ...]) -> None:
        """Begin to connect: raises `BlockingIOError`, and SO_ERROR tells how it went once it is writable."""
        number = self.connect_ex(address)
        if number:
            raise _error(number)

    def connect_ex(self, address: tuple[Any, ...]) -> int:
        """As `connect`, with the error's number in place of the error."""
        self._check_open()
        if self._end is not None:
            return errno.EISCONN
        if self._connecting:
            return errno.EALREADY
        host = self._local[0] if self._local is not None else LOOPBACK
        self._local = self._local or (host, self._kernel.ephemeral_port())
        self._remote = (str(address[0]), int(address[1]))
        self._connecting = True
        self._syn()
        return errno.EINPROGRESS

    def _syn(self) -> None:
        self._kernel.at(self._kernel.now + self._kernel.latency(), self._syn_arrives)

    def _syn_arrives(self) -> None:
        if self._descriptor < 0 or self._remote is None or self._local is None:
            return
        listener = self._kernel.listener(self._remote[1])
        if listener is not None and len(listener._waiting) > listener._backlog:
            # Linux holds one connection more than the queue is said to be long.
            self._kernel.at(self._kernel.now + SYN_RETRY_SECONDS, self._syn)
            return
        accepted = None if listener is None else listener._take(self._local, self._remote)
        self._kernel.at(self._kernel.now + self._kernel.latency(), lambda: self._answered(accepted))

    def _take(self, client: Address, me: Address) -> SimSocket:
        accepted = SimSocket(self._kernel, self.family)
        accepted.host = self.host
        accepted._local, accepted._remote = me, client
        accepted._end = End(self._kernel)
        accepted._end.descriptor = accepted._descriptor
        accepted._end.pair(End(self._kernel))
        self._waiting.append((accepted, client))
        self._kernel.stirred[self._descriptor] = None
        return accepted

    def _answered(self, accepted: SimSocket | None) -> None:
        self._connecting = False
        if accepted is None:
            self._connect_error = errno.ECONNREFUSED
            self._kernel.stirred[self._descriptor] = None
            return
        assert accepted._end is not None
        end = accepted._end.other
        if self._descriptor < 0:
            # It was given up before the answer came.
            end.close(reset=True)
            return
        self._end = end
        end.descriptor = self._descriptor
        self._kernel.stirred[self._descriptor] = None

    # Bytes

    def recv(self, size: int, _flags: int = 0) -> bytes:
        """At most `size` bytes."""
        return self._connected().recv(size)

    def recv_into(self, buffer: Any, nbytes: int = 0, _flags: int = 0) -> int:
        """As `recv`, into a buffer."""
        view = memoryview(buffer).cast("B")
        data = self._connected().recv(nbytes or len(view))
        view[: len(data)] = data
        return len(data)

    def send(self, data: Any, _flags: int = 0) -> int:
        """How many bytes were taken."""
        return self._connected().send(data)

    def sendmsg(self, buffers: Any, *_: Any) -> int:
        """As `send`, of several buffers."""
        return self._connected().send(b"".join(buffers))

    def shutdown(self, how: int) -> None:
        """Only the writing side can be shut: nothing here wants the other."""
        if how != socket.SHUT_WR:
            raise OSError(errno.EINVAL, "only SHUT_WR is simulated")
        self._connected().finish()

    def close(self) -> None:
        """Let go of it. Safe to call again."""
        if self._descriptor < 0:
            return
        lingers_not = self._options.get((socket.SOL_SOCKET, socket.SO_LINGER)) == _LINGER_NOW
        self._forget()
        self.listening = False
        if self._local is not None:
            self._kernel.unbind(self, self._local[1])
        for waiting, _ in self._waiting:
            waiting._reset()
        self._waiting.clear()
        if self._end is not None:
            self._end.close(reset=lingers_not)

    def detach(self) -> int:
        """Nobody else could use the descriptor."""
        raise OSError(errno.EINVAL, "a socket of the simulated network cannot be detached")

    def _reset(self) -> None:
        self._forget()
        if self._end is not None:
            self._end.close(reset=True)

    def _forget(self) -> None:
        self._kernel.close(self._descriptor)
        self._descriptor = -1

    # Readiness

    @property
    def readable(self) -> bool:
        """Whether a read or an accept returns at once."""
        if self.listening:
            return bool(self._waiting)
        return bool(self._connect_error) or (self._end is not None and self._end.readable)

    @property
    def writable(self) -> bool:
        """Whether a write returns at once, or an attempt to connect is over."""
        return bool(self._connect_error) or (self._end is not None and self._end.writable)

    def _connected(self) -> End:
        self._check_open()
        if self._end is None:
            raise _error(errno.ENOTCONN)
        return self._end

    def _check_open(self) -> None:
        if self._descriptor < 0:
            raise _error(errno.EBADF)

    def __enter__(self) -> SimSocket:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))

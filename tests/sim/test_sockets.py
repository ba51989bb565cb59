"""What a simulated socket refuses, and its smaller calls. What Linux does stands in test_against_the_kernel."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable

import pytest

from lab.sim.kernel import Kernel, Network
from lab.sim.sockets import LOOPBACK, SYN_RETRY_SECONDS, SimSocket
from tests.sim.endpoints import Simulated, connected, listening, outcome


@pytest.fixture
def kernel() -> Kernel:
    return Kernel(1)


@pytest.mark.parametrize(
    "refused",
    [
        lambda kernel: SimSocket(kernel, socket.AF_UNIX),
        lambda kernel: SimSocket(kernel, socket.AF_INET, socket.SOCK_DGRAM),
        lambda kernel: SimSocket(kernel).setblocking(True),
        lambda kernel: SimSocket(kernel).settimeout(1.0),
        lambda kernel: SimSocket(kernel).settimeout(None),
        lambda kernel: SimSocket(kernel).detach(),
    ],
)
def test_what_blocks_or_leaves_the_process_is_refused(kernel: Kernel, refused: Callable[[Kernel], object]) -> None:
    with pytest.raises(OSError, match="simulated network"):
        refused(kernel)


def test_only_the_writing_side_can_be_shut() -> None:
    with connected(Simulated()) as pair:
        for how in (socket.SHUT_RD, socket.SHUT_RDWR):
            assert outcome(lambda how=how: pair.ends["a"].shutdown(how)) == "EINVAL"  # type: ignore[misc]


def test_it_never_blocks(kernel: Kernel) -> None:
    sock = SimSocket(kernel)
    sock.setblocking(False)
    sock.settimeout(0)
    assert (sock.gettimeout(), sock.getblocking(), sock.get_inheritable()) == (0.0, False, False)


def test_options_are_kept(kernel: Kernel) -> None:
    sock = SimSocket(kernel)
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 0
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1


def test_several_buffers_are_one_write_and_a_buffer_is_filled() -> None:
    machine = Simulated()
    with connected(machine) as pair:
        assert pair.ends["a"].sendmsg([b"one", bytearray(b"two"), memoryview(b"three")]) == 11
        machine.settle()
        buffer = bytearray(8)
        assert pair.ends["b"].recv_into(buffer) == 8
        assert pair.ends["b"].recv_into(buffer, 2) == 2
        assert bytes(buffer) == b"reetwoth"


def test_a_write_takes_what_the_window_holds() -> None:
    machine = Simulated(Network(window=10))
    with connected(machine) as pair:
        a, b = pair.ends["a"], pair.ends["b"]
        assert a.send(b"x" * 7) == 7
        assert a.send(b"y" * 7) == 3
        assert outcome(lambda: a.send(b"z")) == "EAGAIN"
        assert not a.writable
        machine.settle()
        assert b.recv(100) == b"x" * 7 + b"y" * 3
        assert a.writable


def test_one_who_gave_up_before_the_answer_leaves_a_reset_behind() -> None:
    """Whoever accepts it hears so."""
    machine = Simulated()
    listener, client = listening(machine), machine.make()
    assert outcome(lambda: client.connect(listener.getsockname())) == "EINPROGRESS"
    machine.kernel.advance(machine.kernel.next_event or 0.0)
    client.close()
    machine.settle()
    server, _ = listener.accept()
    assert outcome(lambda: server.recv(1)) == "ECONNRESET"


def test_one_who_gave_up_before_anything_arrived_was_never_there() -> None:
    machine = Simulated()
    listener, client = listening(machine), machine.make()
    client.connect_ex(listener.getsockname())
    client.close()
    machine.settle()
    assert not listener.readable


def test_a_second_attempt_to_connect_is_refused() -> None:
    machine = Simulated()
    listener, client = listening(machine), machine.make()
    assert client.connect_ex(listener.getsockname()) == errno.EINPROGRESS
    assert client.connect_ex(listener.getsockname()) == errno.EALREADY
    machine.settle()
    assert client.connect_ex(listener.getsockname()) == errno.EISCONN


def test_a_full_queue_is_tried_again_after_a_second() -> None:
    machine = Simulated(Network(jitter=0.0))
    listener = listening(machine, backlog=0)
    first, second = machine.make(), machine.make()
    for client in (first, second):
        client.connect_ex(listener.getsockname())
    machine.settle()
    listener.accept()
    machine.kernel.advance(SYN_RETRY_SECONDS)
    assert not second.writable
    machine.wait(second)
    assert SYN_RETRY_SECONDS < machine.kernel.now < SYN_RETRY_SECONDS + 0.1


def test_an_address_is_told_as_it_was_given(kernel: Kernel) -> None:
    sock = SimSocket(kernel)
    assert sock.getsockname() == ("0.0.0.0", 0)
    sock.bind(("", 700))
    assert sock.getsockname() == (LOOPBACK, 700)


def test_a_context_closes_it(kernel: Kernel) -> None:
    with SimSocket(kernel) as sock:
        assert sock.fileno() >= 0
    assert sock.fileno() == -1
    assert "-1" in repr(sock)

"""One connection: order, the window, and what is heard of an end. What Linux does stands in test_against_the_kernel."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from lab.sim.kernel import Kernel, Network
from lab.sim.tcp import End
from tests.sim.endpoints import outcome

WINDOW = 1_000


def ends(network: Network | None = None) -> tuple[Kernel, End, End]:
    """The two ends of a connection."""
    kernel = Kernel(1, network or Network())
    one, other = End(kernel), End(kernel)
    one.pair(other)
    return kernel, one, other


class Wire(RuleBasedStateMachine):
    """Whatever is written, read and waited for: bytes come in order, whole, and within the window."""

    def __init__(self) -> None:
        super().__init__()
        network = Network(latency=1.0, jitter=3.0, window=WINDOW, segment=64, fragments=True)
        self.kernel, self.one, self.other = ends(network)
        self.sent = self.read = b""
        self.ended = False

    @rule(size=st.integers(1, 2 * WINDOW))
    @precondition(lambda self: not self.ended)
    def send(self, size: int) -> None:
        data = bytes((len(self.sent) + n) % 251 for n in range(size))
        was_writable = self.one.writable
        try:
            taken = self.one.send(data)
        except BlockingIOError:
            assert not was_writable
        else:
            assert was_writable
            self.sent += data[:taken]

    @rule(seconds=st.floats(0, 5))
    def wait(self, seconds: float) -> None:
        self.kernel.advance(self.kernel.now + seconds)

    @rule(size=st.integers(1, WINDOW))
    def recv(self, size: int) -> None:
        was_readable = self.other.readable
        try:
            data = self.other.recv(size)
        except BlockingIOError:
            assert not was_readable
            return
        assert was_readable
        assert len(data) <= size
        self.read += data
        if not data:
            assert self.ended
            assert self.read == self.sent

    @rule()
    @precondition(lambda self: not self.ended)
    def end(self) -> None:
        self.one.finish()
        self.ended = True

    @invariant()
    def in_order_and_within_the_window(self) -> None:
        assert self.sent.startswith(self.read)
        assert len(self.sent) - len(self.read) <= WINDOW

    def teardown(self) -> None:
        while self.kernel.next_event is not None:
            self.kernel.advance(self.kernel.next_event)
        while isinstance(data := outcome(lambda: self.other.recv(WINDOW)), bytes) and data:
            self.read += data
        assert self.read == self.sent
        assert self.one.writable


TestWire = Wire.TestCase
TestWire.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)


def test_nothing_arrives_before_its_latency() -> None:
    kernel, one, other = ends(Network(latency=1.0, jitter=0.0))
    one.send(b"x")
    kernel.advance(0.999)
    assert not other.readable
    kernel.advance(1.0)
    assert other.recv(10) == b"x"


def test_what_is_sent_later_does_not_overtake() -> None:
    """However latency is drawn."""
    kernel, one, other = ends(Network(latency=0.0, jitter=10.0))
    for number in range(50):
        one.send(bytes([number]))
    one.finish()
    kernel.advance(100.0)
    assert other.recv(100) == bytes(range(50))
    assert other.recv(100) == b""


def test_a_large_write_travels_in_segments() -> None:
    kernel, one, other = ends(Network(latency=0.0, jitter=100.0, segment=10))
    one.send(b"x" * 1_000)
    sizes = []
    while kernel.next_event is not None:
        kernel.advance(kernel.next_event)
        sizes.append(len(other.recv(1_000)))
    assert len(sizes) > 1
    assert sum(sizes) == 1_000
    assert all(size % 10 == 0 for size in sizes)


def test_a_writer_may_change_its_buffer_afterwards() -> None:
    """What was taken is the kernel's own."""
    kernel, one, other = ends()
    buffer = bytearray(b"before")
    one.send(buffer)
    buffer[:] = b"behind"
    kernel.advance(1.0)
    assert other.recv(100) == b"before"


@given(st.booleans())
def test_it_may_be_closed_again(reset: bool) -> None:
    kernel, one, other = ends()
    one.close(reset=reset)
    one.close(reset=True)
    kernel.advance(1.0)
    assert outcome(lambda: other.recv(1)) == ("ECONNRESET" if reset else b"")


def test_what_arrives_where_nobody_is_left_is_answered_with_a_reset_once() -> None:
    kernel, one, other = ends(Network(segment=1))
    other.close()
    one.send(b"several segments")
    kernel.advance(1.0)
    assert kernel.next_event is None
    assert outcome(lambda: one.send(b"more")) == "EPIPE"

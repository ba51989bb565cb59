"""Time, the order of what is due, descriptors and ports."""

from __future__ import annotations

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.sim import kernel as kernels
from lab.sim.kernel import FIRST_DESCRIPTOR, FIRST_EPHEMERAL_PORT, FIRST_PORT, Kernel, Network
from lab.sim.sockets import SimSocket
from tests.sim.endpoints import outcome

MOMENTS = st.sampled_from([0.0, 0.5, 1.0, 2.0])


@given(st.lists(MOMENTS), MOMENTS)
def test_what_is_due_happens_in_order_and_nothing_else(moments: list[float], now: float) -> None:
    """By time, and of one moment in the order in which it was asked for."""
    kernel = Kernel(1)
    happened: list[tuple[float, int]] = []
    for number, moment in enumerate(moments):
        kernel.at(moment, lambda moment=moment, number=number: happened.append((moment, number)))  # type: ignore[misc]
    kernel.advance(now)
    asked = sorted((moment, number) for number, moment in enumerate(moments))
    assert happened == [one for one in asked if one[0] <= now]
    assert kernel.next_event == min((moment for moment in moments if moment > now), default=None)


def test_what_an_event_asks_for_at_once_happens_in_the_same_step() -> None:
    kernel = Kernel(1)
    happened: list[str] = []
    kernel.at(1.0, lambda: kernel.at(1.0, lambda: happened.append("then")))
    kernel.advance(1.0)
    assert happened == ["then"]


def test_an_event_happens_at_its_own_moment() -> None:
    """However far the clock is moved at once."""
    kernel = Kernel(1)
    moments: list[float] = []
    kernel.at(1.0, lambda: moments.append(kernel.now))
    kernel.advance(5.0)
    assert moments == [1.0]
    assert kernel.now == 5.0


def test_time_does_not_go_back() -> None:
    kernel = Kernel(1)
    kernel.advance(2.0)
    kernel.advance(1.0)
    assert kernel.now == 2.0


@given(st.integers(0, 1 << 32))
def test_latency_is_drawn_from_the_seed_within_its_bounds(seed: int) -> None:
    network = Network(latency=1.0, jitter=0.5)
    drawn, again = ([Kernel(seed, network).latency() for _ in range(2)] for _ in range(2))
    assert drawn == again
    kernel = Kernel(seed, network)
    several = [kernel.latency() for _ in range(20)]
    assert all(1.0 <= one < 1.5 for one in several)
    assert len(set(several)) > 1


def test_without_jitter_nothing_is_drawn() -> None:
    kernel = Kernel(1, Network(latency=1.0, jitter=0.0))
    assert [kernel.latency() for _ in range(3)] == [1.0, 1.0, 1.0]


@given(st.integers(1, 1 << 20))
def test_a_fragment_is_never_empty_and_never_more_than_there_is(size: int) -> None:
    assert 1 <= Kernel(1, Network(fragments=True)).fragment(size) <= size
    assert Kernel(1).fragment(size) == size


def test_no_descriptor_is_used_twice() -> None:
    kernel = Kernel(1)
    one = SimSocket(kernel)
    first = one.fileno()
    one.close()
    other = SimSocket(kernel)
    assert first > FIRST_DESCRIPTOR
    assert other.fileno() == first + 1
    assert kernel.socket(first) is None
    assert kernel.socket(other.fileno()) is other


def test_port_0_is_the_next_free_one() -> None:
    kernel = Kernel(1)
    taken = SimSocket(kernel)
    taken.bind(("", FIRST_PORT + 1))
    ports = []
    for _ in range(2):
        one = SimSocket(kernel)
        one.bind(("127.0.0.1", 0))
        ports.append(one.getsockname()[1])
    assert ports == [FIRST_PORT, FIRST_PORT + 2]


def test_when_no_port_is_free_the_kernel_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "FIRST_EPHEMERAL_PORT", FIRST_PORT + 1)
    kernel = Kernel(1)
    SimSocket(kernel).bind(("", 0))
    with pytest.raises(OSError, match="in use") as raised:
        SimSocket(kernel).bind(("", 0))
    assert raised.value.errno == errno.EADDRINUSE


def test_ports_of_clients_begin_again_behind_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "LAST_PORT", FIRST_EPHEMERAL_PORT + 1)
    kernel = Kernel(1)
    ports = [kernel.ephemeral_port() for _ in range(3)]
    assert ports == [FIRST_EPHEMERAL_PORT, FIRST_EPHEMERAL_PORT + 1, FIRST_EPHEMERAL_PORT]


@pytest.mark.parametrize(
    ("first_reuses", "second_reuses", "listens", "due"),
    [
        (False, False, False, "EADDRINUSE"),
        (True, False, False, "EADDRINUSE"),
        (False, True, False, "EADDRINUSE"),
        (True, True, False, None),
        (True, True, True, "EADDRINUSE"),
    ],
)
def test_a_port_is_shared_when_both_want_it_and_nobody_listens(
    first_reuses: bool, second_reuses: bool, listens: bool, due: str | None
) -> None:
    kernel = Kernel(1)
    first, second = SimSocket(kernel), SimSocket(kernel)
    first.reuses_address, second.reuses_address = first_reuses, second_reuses
    first.bind(("", 700))
    if listens:
        first.listen()
    assert outcome(lambda: second.bind(("", 700))) == due


def test_a_closed_listener_gives_its_port_back() -> None:
    kernel = Kernel(1)
    first = SimSocket(kernel)
    first.bind(("", 700))
    first.listen()
    assert kernel.listener(700) is first
    first.close()
    assert kernel.listener(700) is None
    SimSocket(kernel).bind(("", 700))

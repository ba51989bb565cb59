"""Which sockets are ready, how far time goes while nobody is, and the guards."""

from __future__ import annotations

import selectors
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from lab.sim import selector as selecting
from lab.sim.guards import (
    Deadlock,
    HorizonPassed,
    Limits,
    SimulationStopped,
    Standstill,
    TooManyTurns,
    WallClockPassed,
)
from lab.sim.hosts import Host
from lab.sim.kernel import Kernel, Network
from lab.sim.selector import CREEP_AFTER, CREEP_SECONDS, EXTENSION_SECONDS, WALL_CHECKED_EACH, SimSelector
from lab.sim.sockets import SimSocket
from tests.sim.endpoints import Outcome, Simulated, connected, listening, outcome

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


def selector_of(kernel: Kernel, **limits: Any) -> SimSelector:
    return SimSelector(kernel, Limits(**limits), lambda: "Somebody waits.")


class Readiness(RuleBasedStateMachine):
    """Whatever happens to sockets: who is told to be ready is who is, of those registered, by descriptor."""

    def __init__(self) -> None:
        super().__init__()
        self.machine = Simulated(Network(window=32))
        self.selector = selector_of(self.machine.kernel)
        self.listener = listening(self.machine, backlog=1)
        self.selector.register(self.listener, READ)
        self.open: list[SimSocket] = []

    @rule()
    def connect(self) -> None:
        client = self.machine.make()
        client.connect_ex(self.listener.getsockname())
        self._adopt(client)

    @rule()
    def accept(self) -> None:
        if self.listener.readable:
            self._adopt(self.listener.accept()[0])

    def _adopt(self, sock: SimSocket) -> None:
        self.open.append(sock)
        self.selector.register(sock, READ | WRITE)

    @rule(which=st.integers(0, 5), size=st.integers(1, 40))
    def send(self, which: int, size: int) -> None:
        self._with(which, lambda sock: sock.send(bytes(size)))

    @rule(which=st.integers(0, 5), size=st.integers(1, 40))
    def recv(self, which: int, size: int) -> None:
        self._with(which, lambda sock: sock.recv(size))

    @rule(which=st.integers(0, 5))
    def finish(self, which: int) -> None:
        self._with(which, lambda sock: sock.shutdown(1))

    @rule(which=st.integers(0, 5), events=st.sampled_from([READ, WRITE, READ | WRITE]))
    def modify(self, which: int, events: int) -> None:
        self._with(which, lambda sock: self.selector.modify(sock, events).fd)

    @rule(which=st.integers(0, 5))
    def close(self, which: int) -> None:
        def close(sock: SimSocket) -> None:
            self.selector.unregister(sock)
            sock.close()
            self.open.remove(sock)

        self._with(which, close)

    def _with(self, which: int, act: Callable[[SimSocket], Outcome]) -> None:
        if which < len(self.open):
            outcome(lambda: act(self.open[which]))

    @rule(seconds=st.sampled_from([0.0, 0.00006, 1.5]))
    def select(self, seconds: float) -> None:
        told = [(key.fd, events) for key, events in self.selector.select(seconds)]
        due = []
        for key in self.selector.get_map().values():
            sock = self.machine.kernel.socket(key.fd)
            assert sock is not None
            ready = (READ if sock.readable else 0) | (WRITE if sock.writable else 0)
            if ready & key.events:
                due.append((key.fd, ready & key.events))
        assert told == sorted(due)


TestReadiness = Readiness.TestCase
TestReadiness.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)


@pytest.mark.parametrize(("timeout", "now"), [(None, 0.1), (5.0, 0.1), (0.05, 0.05), (0.0, 0.0), (-1.0, 0.0)])
def test_it_sleeps_until_something_is_ready_or_the_time_is_over(timeout: float | None, now: float) -> None:
    machine = Simulated(Network(latency=0.1, jitter=0.0))
    selector = selector_of(machine.kernel)
    with connected(machine) as pair:
        machine.kernel.advance(5.0)
        began = machine.kernel.now
        selector.register(pair.ends["b"], READ)
        pair.ends["a"].send(b"x")
        ready = selector.select(timeout)
        assert machine.kernel.now - began == pytest.approx(now)
        assert [key.fileobj for key, _ in ready] == ([pair.ends["b"]] if now == 0.1 else [])


def test_a_writer_is_ready_again_once_its_peer_has_read() -> None:
    machine = Simulated(Network(window=10))
    selector = selector_of(machine.kernel)
    with connected(machine) as pair:
        selector.register(pair.ends["a"], WRITE)
        pair.ends["a"].send(b"x" * 10)
        machine.settle()
        assert selector.select(0.0) == []
        pair.ends["b"].recv(1)
        assert [key.fileobj for key, _ in selector.select(0.0)] == [pair.ends["a"]]


@pytest.mark.parametrize("backwards", [False, True])
def test_who_is_ready_is_told_by_descriptor(backwards: bool) -> None:
    """Not in the order in which it came about, or in that of registration."""
    machine = Simulated()
    selector = selector_of(machine.kernel)
    with connected(machine) as one, connected(machine) as other:
        for pair in (other, one) if backwards else (one, other):
            selector.register(pair.ends["b"], READ)
            pair.ends["a"].send(b"x")
            machine.settle()
        assert [key.fileobj for key, _ in selector.select(0.0)] == [one.ends["b"], other.ends["b"]]


def test_sockets_of_a_paused_host_are_not_ready_until_it_goes_on() -> None:
    machine, host = Simulated(), Host("machine")
    selector = selector_of(machine.kernel)
    with connected(machine) as pair:
        pair.ends["b"].host = host
        selector.register(pair.ends["b"], READ)
        pair.ends["a"].send(b"x")
        host.pause()
        assert selector.select(1.0) == []
        host.resume()
        assert [key.fileobj for key, _ in selector.select(1.0)] == [pair.ends["b"]]


# Guards


def endless(kernel: Kernel) -> None:
    """The network never comes to rest."""
    kernel.at(kernel.now + 1.0, lambda: endless(kernel))


def turn_for_ever(selector: SimSelector, timeout: float | None = 0.0) -> None:
    while True:
        selector.select(timeout)


def stand_still(selector: SimSelector) -> None:
    selector.select(None)


def run_on(selector: SimSelector) -> None:
    turn_for_ever(selector, 1.0)


GUARDS: list[tuple[type[SimulationStopped], dict[str, float], Callable[[SimSelector], None], str]] = [
    (Deadlock, {}, stand_still, "nothing can happen any more"),
    (HorizonPassed, {"horizon": 10.0}, run_on, "past 10 simulated s"),
    (Standstill, {"standstill": 50}, turn_for_ever, "turned 51 times and waited for nothing"),
    (TooManyTurns, {"turns": 20}, run_on, "more than 20 turns"),
    (WallClockPassed, {"wall_seconds": 1e-9}, run_on, "more than 1e-09 s of the machine's time"),
]


@pytest.mark.parametrize(("error", "limits", "act", "said"), GUARDS, ids=lambda value: getattr(value, "__name__", None))
def test_a_guard_says_what_was_too_much_and_who_waits(
    error: type[SimulationStopped], limits: dict[str, float], act: Callable[[SimSelector], None], said: str
) -> None:
    with pytest.raises(error, match=said) as raised:
        act(selector_of(Kernel(1), **limits))
    assert "Somebody waits." in str(raised.value)


@pytest.mark.parametrize(("error", "limits", "act", "said"), GUARDS, ids=lambda value: getattr(value, "__name__", None))
def test_the_first_guard_is_told_and_the_next_is_raised(
    error: type[SimulationStopped], limits: dict[str, float], act: Callable[[SimSelector], None], said: str
) -> None:
    """So that a run is ended in good order, and a run that does not end then is ended all the same."""
    selector = selector_of(Kernel(1), **limits)
    told: list[SimulationStopped] = []
    selector.stopping = told.append
    if error is Deadlock:
        act(selector)
    with pytest.raises(SimulationStopped):
        act(selector)
    assert [type(one) for one in told] == [error]


def test_what_was_stopped_gets_some_time_to_end() -> None:
    kernel = Kernel(1)
    selector = selector_of(kernel, horizon=10.0)
    selector.stopping = lambda _error: None
    with pytest.raises(HorizonPassed):
        run_on(selector)
    assert kernel.now == pytest.approx(10.0 + EXTENSION_SECONDS)


def test_the_network_alone_comes_to_the_horizon_too() -> None:
    kernel = Kernel(1)
    endless(kernel)
    with pytest.raises(HorizonPassed):
        selector_of(kernel, horizon=10.0).select(None)
    assert kernel.now == 10.0


def test_the_wall_clock_is_looked_at_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    wall = [0.0]
    monkeypatch.setattr(selecting, "_wall", lambda: wall[0])
    selector = selector_of(Kernel(1), wall_seconds=5.0)
    for _ in range(WALL_CHECKED_EACH):
        selector.select(1.0)
    wall[0] = 5.1
    for _ in range(WALL_CHECKED_EACH - 1):
        selector.select(1.0)
    with pytest.raises(WallClockPassed):
        selector.select(1.0)


def test_time_creeps_for_one_that_polls() -> None:
    """Until then it stands, and each turn counts anew after time has passed."""
    kernel = Kernel(1)
    selector = selector_of(kernel)
    for _ in range(2):
        began = kernel.now
        for _ in range(CREEP_AFTER):
            selector.select(0.0)
        assert kernel.now == began
        selector.select(0.0)
        assert kernel.now == pytest.approx(began + CREEP_SECONDS)
        selector.select(1.0)


def test_one_that_polls_for_a_moment_far_away_is_stopped_all_the_same() -> None:
    """Creep is no progress."""
    kernel = Kernel(1)
    with pytest.raises(Standstill):
        turn_for_ever(selector_of(kernel, standstill=5_000))
    assert kernel.now < 1.0


def test_an_interrupt_keeps_it_from_sleeping() -> None:
    kernel = Kernel(1)
    selector = selector_of(kernel)
    selector.interrupted = lambda: True
    assert selector.select(None) == []
    assert selector.select(10.0) == []
    assert kernel.now == 0.0
    assert selector.turns == 2

"""The simulated sockets against the machine's own: what each operation gives, and who is ready after it."""

from __future__ import annotations

import errno
import itertools
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.sim.sockets import LOOPBACK
from tests.sim.endpoints import LINGER_NOW, Loopback, Machine, Outcome, Simulated, connected, listening, outcome, trace

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what is simulated is Linux")

ACTS = [f"{who} {act}" for who in "ab" for act in ("send", "recv", "shut", "close", "abort", "error")]
LETS_GO = ("close", "abort")

Seen = Iterator[object]
"""What a program saw, one after the other."""


@pytest.fixture(scope="module")
def loopback() -> Iterator[Loopback]:
    made = Loopback()
    yield made
    made.close()


def possible(steps: tuple[str, ...]) -> tuple[str, ...]:
    """The steps without those of an end that is closed already."""
    kept, closed = [], ""
    for step in steps:
        who, act = step.split()
        if who not in closed:
            kept.append(step)
            closed += who if act in LETS_GO else ""
    return tuple(kept)


def all_programs(length: int) -> list[tuple[str, ...]]:
    """Each program of so many steps that `a` begins; those that `b` begins are the same with the names changed."""
    programs = itertools.product(ACTS, repeat=length)
    return [steps for steps in programs if steps[0].startswith("a") and possible(steps) == steps]


def compare(loopback: Loopback, steps: tuple[str, ...]) -> None:
    with connected(loopback) as real, connected(Simulated()) as simulated:
        assert trace(simulated, steps) == trace(real, steps), steps


PROGRAMS = {
    "bytes both ways": "a send, b recv, b send, a recv, a recv",
    "end of file": "a close, b recv, b recv",
    "bytes, then the end": "a send, a close, b recv, b recv",
    "half a close": "a shut, b recv, b send, a recv, b close, a recv",
    "a write after one's own end": "a shut, a send",
    "a write after the peer's half close": "b shut, a send, b recv",
    "a write after the peer's close": "b close, a send, a error, a send, a recv",
    "a write after the peer's close, twice": "b close, a send, a send, a recv",
    "a close with bytes unread": "a send, b close, a recv, a recv, a send",
    "an abort": "b abort, a recv, a recv, a send",
    "an abort behind bytes": "b send, b abort, a recv, a recv",
    "a write after an abort": "b abort, a send, a send, a recv",
    "an abort that is asked for": "b abort, a error, a error, a recv",
    "a half close after an abort": "b abort, a shut",
    "an abort after both have ended": "a shut, b shut, a abort, b error, b recv",
    "an end after both have ended": "a shut, b shut, a shut, b shut",
    "bytes that cross an abort": "a send, b send, a abort, b recv, b recv",
    "a filled window": "a fill, a send, b send, a recv",
    "a window that is read empty": "a fill, b drain, b recv, a send, b recv",
    "an end behind a filled window": "a fill, a close, b drain, b recv",
    "a half close behind a filled window": "a fill, a shut, b drain, b recv, b send, a recv",
    "a close in front of a filled window": "a fill, b close, a recv, a send",
    "an abort in front of a filled window": "a fill, b abort, a error, a send",
}


@pytest.mark.parametrize("steps", PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_gives_the_same(loopback: Loopback, steps: str) -> None:
    compare(loopback, tuple(steps.split(", ")))


def test_every_program_of_three_steps_gives_the_same(loopback: Loopback) -> None:
    for steps in all_programs(3):
        compare(loopback, steps)


@pytest.mark.slow
def test_every_program_of_four_steps_gives_the_same(loopback: Loopback) -> None:
    for steps in all_programs(4):
        compare(loopback, steps)


@settings(max_examples=100, deadline=None)
@given(steps=st.lists(st.sampled_from(ACTS), min_size=5, max_size=10).map(tuple).map(possible))
def test_a_longer_program_gives_the_same(loopback: Loopback, steps: tuple[str, ...]) -> None:
    compare(loopback, steps)


# Connecting


def result(sock: Any) -> str:
    """How an attempt to connect went."""
    return errno.errorcode.get(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), "connected")


def attempt(machine: Machine, address: Any) -> tuple[Any, Outcome]:
    """A socket that tries to connect, and what the call gave."""
    client = machine.make()
    given = outcome(lambda: client.connect(address))
    machine.settle()
    return client, given


def refused(machine: Machine) -> Seen:
    """Nobody listens any more."""
    listener = listening(machine)
    address = listener.getsockname()
    listener.close()
    client, given = attempt(machine, address)
    yield given
    yield machine.ready(client)
    yield result(client)
    yield result(client)
    client.close()


def accepted(machine: Machine) -> Seen:
    """The names of both ends are each other's."""
    listener = listening(machine)
    client, given = attempt(machine, listener.getsockname())
    yield given
    yield machine.ready(listener)
    yield machine.ready(client)
    yield result(client)
    server, name = listener.accept()
    yield name == client.getsockname() == server.getpeername()
    yield client.getpeername() == listener.getsockname() == server.getsockname()
    yield outcome(listener.accept)
    for sock in (client, server, listener):
        sock.close()


def closed_before_accept(machine: Machine) -> Seen:
    """Whoever listens goes away without having taken the connection."""
    listener = listening(machine)
    client, _ = attempt(machine, listener.getsockname())
    listener.close()
    machine.settle()
    yield machine.ready(client)
    yield outcome(lambda: client.recv(1))
    yield outcome(lambda: client.send(b"x"))
    client.close()


def left_before_accept(machine: Machine) -> Seen:
    """The client has sent and gone before anyone took the connection."""
    listener = listening(machine)
    client, _ = attempt(machine, listener.getsockname())
    client.send(b"said")
    client.close()
    machine.settle()
    server, _ = listener.accept()
    yield outcome(lambda: server.recv(10))
    yield outcome(lambda: server.recv(10))
    server.close()
    listener.close()


def aborted_before_accept(machine: Machine) -> Seen:
    """The client has torn it before anyone took the connection."""
    listener = listening(machine)
    client, _ = attempt(machine, listener.getsockname())
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOW)
    client.close()
    machine.settle()
    yield machine.ready(listener)
    server, _ = listener.accept()
    yield outcome(lambda: server.recv(10))
    server.close()
    listener.close()


def full_queue(machine: Machine) -> Seen:
    """A listener takes one connection more than its queue is long; a further one waits, and gets there at last."""
    listener = listening(machine, backlog=1)
    clients = [attempt(machine, listener.getsockname())[0] for _ in range(3)]
    yield [machine.ready(client) for client in clients]
    servers = [listener.accept()[0] for _ in range(2)]
    yield outcome(listener.accept)
    machine.wait(clients[2])
    yield machine.ready(clients[2])
    yield result(clients[2])
    for sock in (listener, *clients, *servers):
        sock.close()


def taken_port(machine: Machine) -> Seen:
    """A port is one listener's, until it is closed."""
    listener = listening(machine)
    port = listener.getsockname()[1]
    other = machine.make()
    yield outcome(lambda: other.bind((LOOPBACK, port)))
    listener.close()
    yield outcome(lambda: other.bind((LOOPBACK, port)))
    other.close()


def bound_twice(machine: Machine) -> Seen:
    """A socket has one port in its life, chosen, given or by connecting."""
    one, listener = machine.make(), listening(machine)
    one.bind((LOOPBACK, 0))
    name = one.getsockname()
    yield outcome(lambda: one.bind((LOOPBACK, 0)))
    yield one.getsockname() == name
    yield outcome(lambda: listener.bind((LOOPBACK, 0)))
    client, _ = attempt(machine, listener.getsockname())
    yield outcome(lambda: client.bind((LOOPBACK, 0)))
    for sock in (one, listener, client):
        sock.close()


def shared_port(machine: Machine) -> Seen:
    """SO_REUSEADDR lets two bind, and one listen."""
    one, other = machine.make(), machine.make()
    for sock in (one, other):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind((LOOPBACK, 0))
    yield outcome(lambda: other.bind(one.getsockname()))
    yield outcome(one.listen)
    yield outcome(other.listen)
    one.close()
    other.close()


def closed(machine: Machine) -> Seen:
    """Nothing is left to be done with it, and closing it again is no mistake."""
    sock = machine.make()
    sock.close()
    sock.close()
    yield sock.fileno()
    yield outcome(lambda: sock.recv(1))
    yield outcome(lambda: sock.send(b"x"))
    yield outcome(lambda: sock.getsockname())
    yield outcome(lambda: sock.listen())


def unconnected(machine: Machine) -> Seen:
    """Nobody is there."""
    sock = machine.make()
    yield outcome(sock.getpeername)
    yield outcome(lambda: sock.recv(1))
    yield outcome(lambda: sock.shutdown(socket.SHUT_WR))
    sock.close()


CONNECTING = [
    refused,
    accepted,
    closed_before_accept,
    left_before_accept,
    aborted_before_accept,
    full_queue,
    taken_port,
    bound_twice,
    shared_port,
    closed,
    unconnected,
]


@pytest.mark.parametrize("program", CONNECTING, ids=lambda program: program.__name__)
def test_connecting_gives_the_same(loopback: Loopback, program: Callable[[Machine], Seen]) -> None:
    assert list(program(Simulated())) == list(program(loopback))


# Different by design


@dataclass(frozen=True)
class Difference:
    """Steps after which the two are not alike, and why that is meant."""

    steps: str
    real: Outcome
    simulated: Outcome
    why: str


WRITABLE_AGAIN = "one free byte makes it writable; Linux waits until a third of its buffer is free"
UNSENT = "an abort lets arrive what was sent before it; Linux throws away what its own buffer still holds"

DIFFERENT = [
    Difference("a fill, b recv1, a ready", "", "w", WRITABLE_AGAIN),
    Difference("a fill, a abort, b drain", "ECONNRESET", "all", UNSENT),
]


@pytest.mark.parametrize("case", DIFFERENT, ids=lambda case: case.why)
def test_what_is_different_is_meant(loopback: Loopback, case: Difference) -> None:
    """A difference that went away, or changed, is seen too."""
    for machine, due in ((loopback, case.real), (Simulated(), case.simulated)):
        with connected(machine) as pair:
            assert trace(pair, case.steps.split(", "))[-1][1] == due

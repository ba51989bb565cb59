"""The selector of the simulated loop: where a real one would sleep, this one moves the clock."""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable
from typing import Any

from lab.sim.guards import Deadlock, HorizonPassed, Limits, SimulationStopped, Standstill, TooManyTurns, WallClockPassed
from lab.sim.kernel import Kernel
from lab.sim.sockets import SimSocket

CREEP_AFTER = 1_000
"""Turns without time passing after which each further one costs `CREEP_SECONDS`."""

CREEP_SECONDS = 1e-6
"""So that a poller which waits for a moment to come gets there."""

EXTENSION_SECONDS = 60.0
EXTENSION_TURNS = 1_000_000
"""What a run that was stopped gets on top, of each clock and of turns, to end in good order."""

WALL_CHECKED_EACH = 256
"""Turns between two looks at the machine's own clock."""

_wall = time.perf_counter


class SimSelector(selectors._BaseSelectorImpl):
    """Tells which simulated sockets are ready, in the order of their descriptors.

    Raises a `SimulationStopped` for what its limits forbid; `waiting` tells what tasks wait for.
    """

    _fd_to_key: dict[int, selectors.SelectorKey]

    def __init__(self, kernel: Kernel, limits: Limits, waiting: Callable[[], str]) -> None:
        super().__init__()
        self._kernel = kernel
        self._limits = limits
        self._waiting = waiting
        self._turns = 0
        self._last_turn = limits.turns
        self._horizon = limits.horizon
        self._standing = 0
        self._wall_end = _wall() + limits.wall_seconds
        self.stopping: Callable[[SimulationStopped], None] | None = None
        """Told of the first guard that ends the run, so that it can be ended in good order; the next one is raised."""
        self.interrupted: Callable[[], bool] = lambda: False
        """Whether a signal came that the loop has still to handle."""

    @property
    def turns(self) -> int:
        """How often the loop has turned."""
        return self._turns

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What is ready now, or at the next moment at which anything happens, but not later than `timeout`."""
        before = self._kernel.now
        self._count_turn()
        self._kernel.advance(before)
        ready = self._ready()
        if not ready and not self.interrupted() and (timeout is None or timeout > 0):
            self._sleep(timeout)
            ready = self._ready()
        self._judge_standstill(before)
        return ready

    def _sleep(self, timeout: float | None) -> None:
        """Go from event to event of the network until something is ready or the time is over."""
        end = None if timeout is None else self._kernel.now + timeout
        while True:
            event = self._kernel.next_event
            if event is None and end is None:
                self._stop(Deadlock(f"nothing can happen any more. {self._waiting()}"))
                return
            due = event if end is None or (event is not None and event < end) else end
            assert due is not None
            if due > self._horizon:
                self._horizon += EXTENSION_SECONDS
                self._stop(
                    HorizonPassed(f"the run went on past {self._limits.horizon:g} simulated s. {self._waiting()}")
                )
                return
            self._kernel.advance(due)
            if due == end or self._ready():
                return

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """As a selector's; what is ready already is told by the next `select`."""
        key = super().register(fileobj, events, data)
        self._kernel.stirred[key.fd] = None
        return key

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """As a selector's; what is ready already is told by the next `select`."""
        key = super().modify(fileobj, events, data)
        self._kernel.stirred[key.fd] = None
        return key

    def _ready(self) -> list[tuple[selectors.SelectorKey, int]]:
        """Of those that were stirred; one that is ready stays so until somebody has read or written."""
        stirred, ready = self._kernel.stirred, []
        for descriptor in sorted(stirred):
            key = self._fd_to_key.get(descriptor)
            socket = self._kernel.socket(descriptor)
            if key is None or socket is None:
                del stirred[descriptor]
            elif socket.host is not None and not socket.host.runs:
                # A stopped program reads nothing; the kernel takes its bytes all the same.
                continue
            elif events := _events_of(key, socket):
                ready.append((key, events))
            else:
                del stirred[descriptor]
        return ready

    def _count_turn(self) -> None:
        self._turns += 1
        if self._turns > self._last_turn:
            self._last_turn += EXTENSION_TURNS
            self._stop(
                TooManyTurns(f"the run took more than {self._limits.turns} turns of the loop. {self._waiting()}")
            )
        if self._turns % WALL_CHECKED_EACH == 0 and _wall() > self._wall_end:
            self._wall_end += EXTENSION_SECONDS
            self._stop(
                WallClockPassed(
                    f"the run took more than {self._limits.wall_seconds:g} s of the machine's time. {self._waiting()}"
                )
            )

    def _stop(self, error: SimulationStopped) -> None:
        told, self.stopping = self.stopping, None
        if told is None:
            raise error
        told(error)

    def _judge_standstill(self, before: float) -> None:
        if self._kernel.now > before:
            self._standing = 0
            return
        self._standing += 1
        if self._standing > CREEP_AFTER:
            self._kernel.advance(before + CREEP_SECONDS)
        if self._standing > self._limits.standstill:
            standing, self._standing = self._standing, 0
            self._stop(Standstill(f"the loop turned {standing} times and waited for nothing. {self._waiting()}"))


def _events_of(key: selectors.SelectorKey, socket: SimSocket) -> int:
    readable = key.events & selectors.EVENT_READ and socket.readable
    writable = key.events & selectors.EVENT_WRITE and socket.writable
    return (selectors.EVENT_READ if readable else 0) | (selectors.EVENT_WRITE if writable else 0)

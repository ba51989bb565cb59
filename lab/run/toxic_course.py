"""The toxics of one fault on its link: set after set, again and again, until the fault is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from lab.faults.fault_link import FaultLink
from lab.faults.plan import Fault


class ToxicCourse:
    """Call `start` when the fault strikes and `stop` when it is over. A fault without toxics changes nothing.

    `touched` is called when one of its toxics touches something; more than once, since each of them tells.
    """

    def __init__(self, link: FaultLink, fault: Fault, touched: Callable[[], None]) -> None:
        self._link = link
        self._fault = fault.id
        self._touched = touched
        self._phases = fault.course
        self._placed: list[str] = []
        """The toxics that stand now, by name."""
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin with the first phase."""
        if self._phases:
            self._enter(0)

    def stop(self) -> None:
        """Take out what stands. Safe to call again."""
        self.forget()
        self._clear()

    def forget(self) -> None:
        """No further phase: the run is over, and the link with it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _enter(self, index: int) -> None:
        phase = self._phases[index]
        self._clear()
        for number, toxic in enumerate(phase.toxics, start=1):
            # No id of a fault has a dot, so no other fault's toxic is called so.
            name = f"{self._fault}.{toxic.type}.{number}"
            self._link.add_toxic(replace(toxic, name=name), self._touched)
            self._placed.append(name)
        if phase.seconds is not None and len(self._phases) > 1:
            following = (index + 1) % len(self._phases)
            self._timer = asyncio.get_running_loop().call_later(phase.seconds, self._enter, following)

    def _clear(self) -> None:
        for name in self._placed:
            self._link.remove_toxic(name)
        self._placed.clear()

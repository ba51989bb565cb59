"""Everything that a started program started in turn, found and signalled without hitting a stranger.

A process belongs to the family when it descends from the program, is in its process group while the program
lives, or carries the run's token in its environment: a daemon that forked twice and made a session of its own
still does. Each is held with its time of creation, so that a number the system gave to another process since
is never signalled.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable

import psutil

RUN_TOKEN = "LAB_RUN_TOKEN"  # noqa: S105 - the name of a variable
"""The environment variable that marks a family."""

_GONE = (psutil.Error, OSError)


class Family:
    """The processes that carry `token`, and those found with them."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._leader: psutil.Process | None = None
        self._known: dict[tuple[int, float], psutil.Process] = {}

    def lead(self, pid: int) -> None:
        """`pid` is the program itself, in a process group of its own."""
        with contextlib.suppress(*_GONE):
            self._leader = psutil.Process(pid)
            self._keep((self._leader,))

    def look(self) -> None:
        """Find who belongs to the family now. Whoever was found once is not forgotten."""
        # A leader that is alive, or dead and not reaped, still owns its number as that of a group.
        group = self._leader.pid if self._leader and self._leader.is_running() else None
        self._keep(process for process in psutil.process_iter() if self._belongs(process, group))
        for process in tuple(self._known.values()):
            with contextlib.suppress(*_GONE):
                self._keep(process.children(recursive=True))

    def alive(self) -> tuple[psutil.Process, ...]:
        """Those known who still run."""
        return tuple(process for process in self._known.values() if _runs(process))

    def in_group(self) -> tuple[psutil.Process, ...]:
        """Those known who still run in the program's own process group."""
        if self._leader is None:
            return ()
        return tuple(process for process in self.alive() if _group(process) == self._leader.pid)

    def _keep(self, processes: Iterable[psutil.Process]) -> None:
        for process in processes:
            with contextlib.suppress(*_GONE):
                self._known.setdefault((process.pid, process.create_time()), process)

    def _belongs(self, process: psutil.Process, group: int | None) -> bool:
        if group is not None and _group(process) == group:
            return True
        try:
            return process.uids().real == os.getuid() and process.environ().get(RUN_TOKEN) == self._token
        except _GONE:
            return False


def send(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    """Signal each that is still the same process; one that is gone is passed over."""
    for process in processes:
        with contextlib.suppress(*_GONE):
            process.send_signal(number)


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except _GONE:
        return False


def _group(process: psutil.Process) -> int | None:
    try:
        return os.getpgid(process.pid)
    except OSError:
        return None

"""Ctrl-C, SIGTERM and a closed terminal: a clean stop of what runs, and never half of what a run leaves."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Interrupts:
    """Turns the first interrupt into a cancellation of the steps; the world is ended before the run returns.

    It stays in force until the event loop is closed, so that a run is judged whole.
    """

    def __init__(self) -> None:
        self.came = False
        self._task: asyncio.Task[None] | None = None
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._stop)

    def watch(self, task: asyncio.Task[None]) -> None:
        """The task to be cancelled, also when the interrupt came before it."""
        self._task = task
        if self.came:
            task.cancel()

    def _stop(self) -> None:
        if not self.came and self._task is not None:
            self._task.cancel()
        self.came = True


class Late:
    """Whether an interrupt came while files were written."""

    came = False


@contextmanager
def held_back() -> Iterator[Late]:
    """An interrupt in this block is noted, and does not tear it."""
    late = Late()

    def note(_number: int, _frame: object) -> None:
        late.came = True

    former = {number: signal.signal(number, note) for number in SIGNALS}
    try:
        yield late
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)

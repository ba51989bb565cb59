"""Errors that nobody awaits: only the event loop or a library's log would tell them. Here they become the run's."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lab.context import RunContext
from lab.errors import EnvironmentFault
from lab.journal.events import Event
from lab.journal.writer import Entry, Journal
from lab.private_files import open_private


@contextmanager
def noting_defects(ctx: RunContext, log: Path) -> Iterator[None]:
    """While a run goes on, its parts' own log goes to `log` and no error is lost or printed: each is a defect."""
    loop = asyncio.get_running_loop()
    former = loop.get_exception_handler()
    handler = _RunLog(ctx, log)
    root = logging.getLogger()
    root.addHandler(handler)
    catch_loop_errors(ctx)
    try:
        yield
    finally:
        loop.set_exception_handler(former)
        root.removeHandler(handler)
        handler.close()


def _note(ctx: RunContext, found: dict[str, Any]) -> None:
    error = found.get("exception")
    ctx.fail(error if error is not None else RuntimeError(found.get("message", "")))


def catch_loop_errors(ctx: RunContext) -> None:
    """From now on an error that only the running loop would tell is a defect of `ctx`."""
    asyncio.get_running_loop().set_exception_handler(lambda _loop, found: _note(ctx, found))


class RunJournal(Journal):
    """A journal that no part of a run stumbles over: one that cannot be written goes on in memory.

    `on_full` is told why, once, so that the run ends.
    """

    on_full: Callable[[EnvironmentFault], None] | None = None

    def record(self, by: str, event: Event, cause: int | None = None) -> Entry:
        """Append `event` and tell the listeners; raises nothing."""
        try:
            return super().record(by, event, cause)
        except EnvironmentFault as full:
            if self.on_full is not None:
                self.on_full(full)
        entry = self.entries[-1]
        for listener in tuple(self._listeners):
            listener(entry)
        return entry


class _RunLog(logging.Handler):
    """Writes what the lab's parts log, and takes an error that a library caught for a defect."""

    def __init__(self, ctx: RunContext, path: Path) -> None:
        super().__init__(logging.WARNING)
        self._ctx = ctx
        try:
            self._file = open_private(path)
        except OSError as error:
            raise EnvironmentFault(f"{path} cannot be written: {error.strerror}. Free some space.") from error

    def emit(self, record: logging.LogRecord) -> None:
        """One line; a full disk is noted as the reason why the run failed."""
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and record.levelno >= logging.ERROR:
            self._ctx.fail(error)
        try:
            self._file.write(f"{self._ctx.now():.6f} {record.levelname} {record.name}: {record.getMessage()}\n")
            self._file.flush()
        except OSError as full:
            self._ctx.fail(EnvironmentFault(f"a log could not be written: {full.strerror}. Free some space."))

    def close(self) -> None:
        """Close the file."""
        try:
            self._file.close()
        except OSError as full:
            self._ctx.fail(EnvironmentFault(f"a log could not be written: {full.strerror}. Free some space."))
        super().close()

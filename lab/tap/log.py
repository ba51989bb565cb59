"""The witness of a log: each line's digest and the canaries in it."""

from __future__ import annotations

import logging
from collections.abc import Callable

from lab.journal.events import Digest, digest
from lab.tap.canaries import CanarySearch

Note = Callable[[Digest, tuple[str, ...]], object]
"""Gets a line's digest, and the ids of the canaries in it."""


class LogTap(logging.Handler):
    """Reads what one logger and those below it say, from `watch` to `forget`, at the level that people see."""

    def __init__(self, logger: str, canaries: CanarySearch) -> None:
        super().__init__(logging.INFO)
        self._logger = logging.getLogger(logger)
        self._canaries = canaries
        self._note: Note | None = None
        self._level = logging.NOTSET

    def watch(self, note: Note) -> None:
        """Tell `note` of each line from now on."""
        if self._note is None:
            self._level = self._logger.level
            self._logger.setLevel(logging.INFO)
            self._logger.addHandler(self)
        self._note = note

    def forget(self) -> bool:
        """Read no more; whether it did so far."""
        watched, self._note = self._note is not None, None
        if watched:
            self._logger.removeHandler(self)
            self._logger.setLevel(self._level)
        return watched

    def emit(self, record: logging.LogRecord) -> None:
        """Take one message."""
        if self._note is not None:
            text = self.format(record)
            self._note(digest("log", text), self._canaries.ids_in_body(text.encode("utf-8", "surrogatepass")))

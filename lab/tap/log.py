"""The witness of a log: each line's digest and the canaries in it."""

from __future__ import annotations

import logging
from collections.abc import Callable

from lab.journal.events import Digest, digest
from lab.tap.canaries import CanarySearch

Note = Callable[[Digest, tuple[str, ...]], object]
"""Gets a line's digest, and the ids of the canaries in it."""


_levels: dict[str, int] = {}
"""What the level of each logger was before the first tap on it: the last one that goes puts it back."""


class LogTap(logging.Handler):
    """Reads what one logger and those below it say, from `watch` to `forget`, at the level that people see."""

    def __init__(self, logger: str, canaries: CanarySearch) -> None:
        super().__init__(logging.INFO)
        self._logger = logging.getLogger(logger)
        self._canaries = canaries
        self._note: Note | None = None

    def watch(self, note: Note) -> None:
        """Tell `note` of each line from now on."""
        if self._note is None:
            _levels.setdefault(self._logger.name, self._logger.level)
            self._logger.setLevel(logging.INFO)
            self._logger.addHandler(self)
        self._note = note

    def forget(self) -> bool:
        """Read no more; whether it did so far."""
        watched, self._note = self._note is not None, None
        if watched:
            self._logger.removeHandler(self)
            if not any(isinstance(other, LogTap) for other in self._logger.handlers):
                self._logger.setLevel(_levels.pop(self._logger.name))
        return watched

    def emit(self, record: logging.LogRecord) -> None:
        """Take one message."""
        if self._note is not None:
            text = self.format(record)
            self._note(digest("log", text), self._canaries.ids_in_body(text.encode("utf-8", "surrogatepass")))

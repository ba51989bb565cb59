"""What the reference agent logs, watched as the output of a real program is."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final

from lab.context import RunContext
from lab.errors import EnvironmentFault
from lab.private_files import open_private
from lab.sut.output import DEFAULT_BOUNDS, LineCutter, OutputRecord

STREAM: Final = "log"

AGENT_LOGGER: Final = "lab.localagent"

_speaking: ContextVar[str] = ContextVar("speaking", default="")
"""The agent whose code runs: a task that it starts inherits it, so that two agents of a run have a log each."""


class AgentLog(logging.Handler):
    """The log of one agent from `open` to `close`: its lines are masked in the file, and digests in the journal."""

    def __init__(
        self, ctx: RunContext, name: str, path: Path, secrets: Sequence[str], canaries: Mapping[str, str]
    ) -> None:
        super().__init__(logging.INFO)
        self.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
        self._ctx = ctx
        self._agent = name
        self._path = path
        self._secrets = secrets
        self._canaries = canaries
        self._record: OutputRecord | None = None
        self._restore: Callable[[], None] | None = None

    def open(self) -> None:
        """Begin to watch. A file that cannot be written raises `EnvironmentFault`."""
        try:
            file = open_private(self._path)
        except OSError as error:
            raise EnvironmentFault(
                f"the log of {self._agent} cannot be written at {self._path}: {error.strerror}."
            ) from error
        journal = self._ctx.journal
        self._record = OutputRecord(
            self._agent,
            file,
            self._ctx.now,
            lambda event: journal.record("sut", event),
            self._secrets,
            self._canaries,
            DEFAULT_BOUNDS,
        )
        self._cutter = LineCutter(STREAM, self._record)
        logger = logging.getLogger(AGENT_LOGGER)
        level = logger.level
        logger.setLevel(logging.INFO)
        self._restore = lambda: logger.setLevel(level)
        logging.getLogger().addHandler(self)

    def close(self) -> None:
        """Watch no longer. Safe to call again."""
        logging.getLogger().removeHandler(self)
        if self._record is not None and self._restore is not None:
            self._restore()
            self._told_of_a_full_disk(self._record.close)
            self._record = None
        super().close()

    @contextmanager
    def speaking(self) -> Iterator[None]:
        """What is logged inside, and by all that is started inside, is this agent's."""
        token = _speaking.set(self._agent)
        try:
            yield
        finally:
            _speaking.reset(token)

    def emit(self, record: logging.LogRecord) -> None:
        """Take a line, or several."""
        if _speaking.get() == self._agent and self._record is not None:
            text = self.format(record) + "\n"
            self._told_of_a_full_disk(lambda: self._cutter.feed(text.encode("utf-8", "surrogatepass")))

    def _told_of_a_full_disk(self, act: Callable[[], None]) -> None:
        try:
            act()
        except OSError as full:
            self._ctx.fail(EnvironmentFault(f"a log could not be written: {full.strerror}. Free some space."))

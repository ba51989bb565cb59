"""The witness of what a SUT keeps on disk: who may read it, and which canaries stand in it."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from lab.journal.events import SutFile
from lab.tap.canaries import CanarySearch

MOST_FILES = 1024
"""Files and folders that are looked at."""

MOST_BYTES = 64 * 1024 * 1024
"""Bytes that are searched in all; a file that would go beyond is looked at from outside only."""

_PLAIN = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:\.[a-z0-9]{1,12})?|\.?[a-z][a-z_-]{0,23}(?:\.[a-z]{1,8})?"
)
"""A name that is an id or a word of the program's; any other may be made of content."""


class StateTap:
    """Looks at one SUT's state folder, once, when the SUT has ended."""

    def __init__(self, name: str, canaries: Mapping[str, str]) -> None:
        self._name = name
        self._canaries = CanarySearch(canaries)
        self._left = MOST_BYTES

    def look(self, folder: Path) -> Iterator[SutFile]:
        """The folder itself and all below it, links not followed; nothing where there is no such folder.

        What cannot be read is told without its canaries; never raises for what lies on the disk.
        """
        waiting = [folder]
        for _ in range(MOST_FILES):
            if not waiting:
                return
            path = waiting.pop()
            try:
                status = path.lstat()
            except OSError:
                continue
            is_folder = stat.S_ISDIR(status.st_mode)
            if is_folder:
                waiting += reversed(_entries(path))
            # Whoever may follow a link needs the right to what it leads to; its own mode says nothing.
            if not stat.S_ISLNK(status.st_mode):
                found = self._found(path, status) if stat.S_ISREG(status.st_mode) else None
                yield SutFile(self._name, self._shown(path, folder), is_folder, stat.S_IMODE(status.st_mode), found)
        if waiting:
            # There was more, and nobody saw what it holds.
            yield SutFile(self._name, "*", folder=False, mode=0o600, canaries=None)

    def _found(self, path: Path, status: os.stat_result) -> tuple[str, ...] | None:
        if status.st_size > self._left:
            return None
        self._left -= status.st_size
        try:
            with path.open("rb") as file:
                return self._canaries.ids_in_body(file.read(status.st_size))
        except OSError:
            return None

    def _shown(self, path: Path, folder: Path) -> str:
        steps = path.relative_to(folder).parts
        return "/".join(step if _PLAIN.fullmatch(step) and not self._canaries.hit(step) else "*" for step in steps)


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []

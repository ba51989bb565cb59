"""Files that only their owner can read."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import IO

from lab.errors import EnvironmentFault

MOST_BYTES = 1 << 20
"""Of a private file, where its reader expects no fewer."""


def open_private(path: Path) -> IO[str]:
    """A new text file that only its owner can read (mode 0600)."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    # An older file of this name keeps its mode otherwise.
    os.fchmod(descriptor, 0o600)
    return os.fdopen(descriptor, "w", encoding="utf-8")


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read; a full disk raises `EnvironmentFault`."""
    try:
        with open_private(path) as file:
            file.write(text)
    except OSError as error:
        raise EnvironmentFault(f"{_refused(path, error)} with --out.") from error


def replace_private(path: Path, text: str) -> None:
    """As `write_private`, by a temporary file beside it and a rename: a reader sees the old text or the new one.

    The folder is made when it is not there. A place that refuses raises `EnvironmentFault`.
    """
    beside = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentFault(
            f"The folder {path.parent} cannot be made: {error.strerror}. Name another place."
        ) from error
    try:
        with open_private(beside) as file:
            file.write(text)
        beside.replace(path)
    except OSError as error:
        # Several options name such files, so none is named here.
        raise EnvironmentFault(f"{_refused(path, error)}.") from error


def read_private(path: Path, most: int = MOST_BYTES) -> str:
    """The text of a private file of at most `most` bytes; one that group or others can read is refused (FX-032).

    Raises `EnvironmentFault`, also for what cannot be read.
    """
    try:
        with path.open("rb") as file:
            # Of what was opened, and before a byte of it is read: the name may lead elsewhere by now.
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode & 0o077:
                raise EnvironmentFault(
                    f"{path} has the mode {mode:04o}: others can read its secrets. Make it 0600, with new keys in it."
                )
            raw = file.read(most + 1)
    except OSError as error:
        raise EnvironmentFault(f"{path} cannot be read: {error.strerror}. Name another one.") from error
    if len(raw) > most:
        raise EnvironmentFault(f"{path} is longer than {most} bytes. Name another one.")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise EnvironmentFault(f"{path} cannot be read as a text file. Name another one.") from error


def _refused(path: Path, error: OSError) -> str:
    return f"{path} could not be written: {error.strerror}. Free some space, or name another place"

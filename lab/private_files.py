"""Files that only their owner can read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

from lab.errors import EnvironmentFault


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
        raise EnvironmentFault(
            f"{path} could not be written: {error.strerror}. Free some space, or name another place with --out."
        ) from error


def replace_private(path: Path, text: str) -> None:
    """As `write_private`, by a temporary file beside it and a rename: a reader sees the old text or the new one.

    The folder is made when it is not there.
    """
    beside = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentFault(
            f"The folder {path.parent} cannot be made: {error.strerror}. Name another place."
        ) from error
    write_private(beside, text)
    beside.replace(path)


def read_private(path: Path) -> str:
    """The text of a private file; one that group or others can read is refused (FX-032), as is what cannot be read.

    Both raise `EnvironmentFault`.
    """
    try:
        mode = path.stat().st_mode & 0o777
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EnvironmentFault(f"{path} cannot be read as a text file. Name another one.") from error
    if mode & 0o077:
        raise EnvironmentFault(f"{path} has the mode {mode:04o}: others can read its secrets. Make it 0600.")
    return text

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

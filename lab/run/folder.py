"""The folder that a run leaves: `runs/<scenario>/<time>-<seed>/`, and `latest` beside it."""

from __future__ import annotations

import os
from pathlib import Path

from lab.errors import EnvironmentFault

LATEST = "latest"


def make_run_folder(out: Path, scenario: str, stamp: str, seed: int) -> Path:
    """A new folder that only its owner may enter; `latest` then points to it. `stamp` is the time of the start."""
    parent = out / scenario
    try:
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = _fresh(parent, f"{stamp}-{seed}")
        _point(parent / LATEST, folder.name)
    except OSError as error:
        raise EnvironmentFault(
            f"{parent}: no folder for the run can be made there: {error.strerror}. Name another place with --out."
        ) from error
    return folder


def _fresh(parent: Path, name: str) -> Path:
    number = 1
    while True:
        folder = parent / (name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            number += 1
            continue
        return folder


def _point(link: Path, target: str) -> None:
    fresh = link.with_name(f".{LATEST}-{os.getpid()}")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.replace(link)


def latest(folder: Path) -> Path:
    """The short name of a run's folder while it is the latest of its scenario, else the folder itself."""
    link = folder.parent / LATEST
    return link if link.resolve() == folder.resolve() else folder

"""The private files of a living environment: keys for a driver, variables for a shell, and the way to its control."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from lab.errors import UsageError
from lab.partner.client.fixture_output import FixtureExpired, read_fixture_output
from lab.private_files import read_private, replace_private
from lab.up.tour import WORDS

FOLDER = Path(".orca/logs")
KEYS = "server-chat-fixture.json"
"""FX-017: what a partner's server, or the driver, reads."""
SHELL = "lab-up.sh"
CONTROL = "lab-up.json"


@dataclass(frozen=True)
class ControlFile:
    """Where `lab fault` finds a running environment."""

    url: str
    key: str
    pid: int
    scenario: str


def check_free(folder: Path, now_ms: int) -> None:
    """Raises `UsageError` when an environment, or a fixture of another partner API, runs in this folder already."""
    if not (folder / CONTROL).exists():
        _check_no_fixture(folder / KEYS, now_ms)
        return
    try:
        running = read_control(folder)
    except UsageError:
        return
    raise UsageError(
        f"{folder}: the `lab up` of {running.scenario} (pid {running.pid}) is there. End it, or name another --folder."
    )


def _check_no_fixture(path: Path, now_ms: int) -> None:
    if not path.exists():
        return
    try:
        read_fixture_output(path, now_ms)
    except FixtureExpired:
        return
    except UsageError:
        # Whatever it is, `lab up` did not write it.
        pass
    raise UsageError(f"{path}: a fixture of another partner API wrote this. End that one, or name another --folder.")


def write_shell(folder: Path, variables: Mapping[str, str]) -> Path:
    """The variables of the tour, and its words, as a file to be read by a shell."""
    path = folder / SHELL
    lines = [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    replace_private(path, "\n".join(lines) + "\n" + WORDS.read_text("utf-8"))
    return path


def write_control(folder: Path, control: ControlFile) -> Path:
    """Tell `lab fault` where this environment is."""
    path = folder / CONTROL
    replace_private(path, json.dumps(asdict(control), indent=2) + "\n")
    return path


def read_control(folder: Path) -> ControlFile:
    """Where the environment of this folder is. Raises `UsageError` when none runs there."""
    path = folder / CONTROL
    if not path.exists():
        raise UsageError(f"{path} is not there: no `lab up` runs from this folder. Start one, or name its --folder.")
    try:
        control = ControlFile(**json.loads(read_private(path)))
        alive = _alive(control.pid)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise UsageError(f"{path}: no file of a `lab up`; end what wrote it, and start anew.") from error
    if not alive:
        raise UsageError(f"{path}: the `lab up` that wrote it has ended without a word. Start it again.")
    return control


def _alive(pid: int) -> bool:
    if pid <= 0:
        raise ValueError("no id of a process")
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # The number went to somebody else's program.
        return False
    return True


def remove_control(folder: Path) -> None:
    """`lab fault` finds no environment any more. Safe to call again."""
    with suppress(FileNotFoundError, NotADirectoryError):
        (folder / CONTROL).unlink()

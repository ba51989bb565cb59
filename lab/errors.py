"""Every error the lab raises on purpose, as one tree.

    LabError                    exit status of the command that meets it
    ├── LocalError              caused on this side: the user's input, this machine, the lab itself
    │   ├── UsageError      2   the scenario, a file it names, or the command line is wrong
    │   │   └── ScenarioError   … with file, line, column and path
    │   ├── ContractError   2   a contract or requirements folder is broken
    │   ├── EnvironmentFault 3  a port, a disk, a program that never came up
    │   │   ├── SutFault    3   the system under test died or never connected
    │   │   └── StateFault  3   what a server remembers can be neither read nor written any more
    │   └── MisuseError     3   the lab's own code broke a rule of one of its parts
    ├── NotApplicable       4   the agent cannot do what the scenario requires
    └── RemoteError         1   a peer sent what the protocol does not allow
        ├── WireError           … a message that is not a frame, with its wire code
        └── Agent2Error         … an answer of agent2 that is not the one due

A message says what was seen, what was due and what to do. It never holds a secret or client content.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar


class ExitStatus(IntEnum):
    """What a `lab` command tells the shell."""

    HELD = 0
    BROKEN = 1
    USAGE = 2
    LAB_FAILED = 3
    UNKNOWN = 4
    INTERRUPTED = 130


class LabError(Exception):
    """Base of all errors that the lab raises on purpose."""

    exit_status: ClassVar[ExitStatus] = ExitStatus.LAB_FAILED


class LocalError(LabError):
    """Caused on this side of the wire."""


class UsageError(LocalError):
    """The user's input is wrong; the message names it and the valid form."""

    exit_status = ExitStatus.USAGE


@dataclass(frozen=True)
class Place:
    """A position in a file that a person wrote; line and column count from 1."""

    file: str
    line: int
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class ScenarioError(UsageError):
    """One fault in a scenario or a file it names, at its place."""

    def __init__(self, place: Place, path: str, message: str, nearest: str | None = None) -> None:
        super().__init__(message)
        self.place = place
        self.path = path
        self.message = message
        self.nearest = nearest

    def __str__(self) -> str:
        where = f"{self.place}: {self.path}: " if self.path else f"{self.place}: "
        hint = f" Did you mean `{self.nearest}`?" if self.nearest else ""
        return f"{where}{self.message}{hint}"


class ScenarioErrors(UsageError):
    """All faults found in one scenario file, in file order."""

    def __init__(self, errors: tuple[ScenarioError, ...]) -> None:
        super().__init__("\n".join(str(error) for error in errors))
        self.errors = errors


class ContractError(LocalError):
    """A contract or requirements folder that cannot be used; the message names the file."""

    exit_status = ExitStatus.USAGE


class EnvironmentFault(LocalError):
    """This machine refused something that the run needs."""


class SutFault(EnvironmentFault):
    """The system under test died, or never did what the run waits for."""


class StateFault(EnvironmentFault):
    """A server's state can be neither read nor written any more, so that the server has to end."""


class MisuseError(LocalError):
    """The lab's own code broke a rule of one of its parts: a defect of the lab."""


class NotApplicable(LabError):
    """The agent does not announce what the scenario requires: the run says nothing, and is no pass."""

    exit_status = ExitStatus.UNKNOWN


class RemoteError(LabError):
    """A peer did what the protocol does not allow."""

    exit_status = ExitStatus.BROKEN


class WireError(RemoteError):
    """A message that is not an acceptable frame; `code` is the wire code due for it."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(f"{code}: {reason}")
        self.code = code
        self.reason = reason


class Agent2Error(RemoteError):
    """A call to agent2 that did not give what was due; `code` is one of the codes of A2-022, A2-033."""

    def __init__(self, code: str, status: int | None = None) -> None:
        super().__init__(code if status is None else f"{code} (HTTP {status})")
        self.code = code
        self.status = status

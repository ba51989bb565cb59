"""A state file in the hands of one process: what it belongs to, and a lock that no second process can take.

The lock is the kernel's, on a file beside the state: it is gone with its process, however that ends.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

from lab.draws import Draws
from lab.errors import EnvironmentFault, UsageError
from lab.partner.model.state import SEAL_KEY_BYTES, State

_ORGANIZATION: Final = "organization_id"
_AGENT: Final = "agent_id"
_PID_BYTES: Final = 20


class KeptState:
    """The hold on a state file, until `close` or the end of the process."""

    def __init__(self, lock: int, agent_id: str) -> None:
        self._lock: int | None = lock
        self.agent_id = agent_id
        """Whom the conversations of the state were opened with."""

    async def close(self) -> None:
        """Let others have it. Safe to call again."""
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)


def keep_state(path: Path, organization_id: str, agent_id: str | None, draws: Draws) -> KeptState:
    """Take the state file for this process, and settle which agent it has: the given one, else its own, else a fresh
    one from `draws`.

    One that another process has, or that cannot be written, raises `EnvironmentFault`; one of another organization
    `UsageError`.
    """
    lock = _take(path)
    try:
        return KeptState(lock, _settle(path, organization_id, agent_id, draws))
    except BaseException:
        os.close(lock)
        raise


def _take(path: Path) -> int:
    beside = path.with_name(f"{path.name}.lock")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(beside, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise EnvironmentFault(
            f"--state {path}: {error.strerror}. Name a place that can be written, with --state."
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(lock, 0)
        os.write(lock, f"{os.getpid()}\n".encode())
    except BlockingIOError as error:
        holder = os.read(lock, _PID_BYTES).decode("ascii", "replace").strip()
        os.close(lock)
        raise EnvironmentFault(
            f"The state {path} is in use by process {holder or 'unknown'}, which has locked {beside}. "
            "End that process, or name another place with --state."
        ) from error
    except OSError as error:
        os.close(lock)
        raise EnvironmentFault(
            f"{beside} cannot be locked: {error.strerror}. Name another place with --state."
        ) from error
    return lock


def _settle(path: Path, organization_id: str, agent_id: str | None, draws: Draws) -> str:
    # No grant is sealed or opened here.
    state = State(path, bytes(SEAL_KEY_BYTES), bytes)
    try:
        kept = state.meta(_ORGANIZATION)
        if kept not in (None, organization_id):
            raise UsageError(
                f"The state {path} is of the organization {kept}, and LAB_ORGANIZATION_ID names {organization_id}. "
                "Give the one that it is of, or name another place with --state."
            )
        agent = agent_id or state.meta(_AGENT) or draws.uuid()
        with state.transaction():
            state.set_meta(_ORGANIZATION, organization_id)
            state.set_meta(_AGENT, agent)
        return agent
    finally:
        state.close()

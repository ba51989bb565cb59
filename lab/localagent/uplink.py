"""What the agent's work needs from the side that talks to the gateway."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Protocol

from lab.clock import timestamp
from lab.context import RunContext

_log = logging.getLogger("lab.localagent")


class Uplink(Protocol):
    """The way to the gateway. Frames wait while there is no session."""

    def send(self, type_name: str, payload: Mapping[str, object], workspace_id: str) -> None:
        """Hand over a data frame; job.result and audit.event are repeated after a lost session."""

    async def settled(self) -> None:
        """Return when all audit.event frames handed over so far are acked or given up (LA-026)."""


class Notes:
    """Notes of the agent (LA-035): a local log line, and an audit.event while audit is on. Codes and ids only."""

    def __init__(self, ctx: RunContext, uplink: Uplink, *, audit: bool) -> None:
        self._ctx = ctx
        self._uplink = uplink
        self._audit = audit

    def note(self, code: str, workspace_id: str, job_id: str | None = None, **members: str) -> None:
        """Say `code`; `members` are mode and errorCode."""
        # LA-035: the log names a job by the first part of its id.
        short = "-" if job_id is None else job_id[:8]
        _log.info("%s job=%s %s", code, short, " ".join(f"{name}={value}" for name, value in members.items()))
        if self._audit:
            ids = {} if job_id is None else {"jobId": job_id}
            at = timestamp(self._ctx.wall_ms())
            self._uplink.send("audit.event", {"code": code, "at": at, **ids, **members}, workspace_id)

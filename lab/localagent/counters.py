"""Counters of the runner (LA-034)."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Counters:
    """Counts since the agent started; `by_code` counts failed jobs by their error code."""

    jobs: int = 0
    ok: int = 0
    failed: int = 0
    cancelled: int = 0
    busy: int = 0
    frames_dropped: int = 0
    tenant_violations: int = 0
    job_violations: int = 0
    audit_forwarded: int = 0
    audit_given_up: int = 0
    stream_reconnects: int = 0
    by_code: dict[str, int] = field(default_factory=dict)

    def ended(self, outcome: str, error_code: str | None) -> None:
        """Count a job's end."""
        self.jobs += 1
        if outcome == "cancelled":
            self.cancelled += 1
        elif outcome == "failed":
            self.failed += 1
        else:
            self.ok += 1
        if error_code is not None:
            self.by_code[error_code] = self.by_code.get(error_code, 0) + 1

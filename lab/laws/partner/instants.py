"""Times of the wire as instants: they compare as such, never as text (PA-048)."""

from __future__ import annotations

from datetime import datetime


def instant(value: object) -> float | None:
    """Seconds since 1970 UTC of an ISO 8601 time with an offset or a Z; None for anything else."""
    if not isinstance(value, str):
        return None
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        return None
    return parsed.timestamp() if parsed.tzinfo is not None else None

"""Durations as people write them in scenarios and scripts: a number and one unit."""

from __future__ import annotations

import re

VALID_FORM = "a number and a unit, such as `200ms`, `3s` or `1m`"
LONGEST = 86_400.0
"""Longest duration that is accepted, in seconds: one day."""

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_FORM = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(ms|s|m|h)", re.ASCII)


def parse_duration(text: str) -> float:
    """The duration `text` in seconds. Anything else raises `ValueError`, which tells the valid form."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(f"no duration: write {VALID_FORM}")
    seconds = float(match[1]) * _SECONDS[match[2]]
    if seconds > LONGEST:
        raise ValueError("too long a duration: `24h` is the most")
    return seconds

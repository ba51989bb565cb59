"""Forms of single metadata values that may leave the agent: all that agent2 says is picked by form, never by trust."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

MAX_SAFE = 2**53 - 1

Check = Callable[[object], bool]


def text(pattern: str, longest: int = 4096) -> Check:
    """A check for a string that matches `pattern` as a whole."""
    form = re.compile(pattern)
    return lambda value: isinstance(value, str) and len(value) <= longest and form.fullmatch(value) is not None


def count(value: object) -> bool:
    """A whole number from 0 that JSON carries exactly."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_SAFE


token = text(r"[a-z][a-z0-9_]{0,63}")
identifier = text(r"[A-Za-z0-9._:-]{1,128}")
sha256 = text(r"[0-9a-f]{64}")
timestamp = text(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z")


def picked(source: Mapping[str, object], forms: Mapping[str, Check]) -> dict[str, object]:
    """The members of `source` that are named in `forms` and have their form."""
    return {name: source[name] for name, check in forms.items() if name in source and check(source[name])}

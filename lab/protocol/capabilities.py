"""The names of capabilities, and the revision that brought each: what a side of an older one neither says nor means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from lab.protocol.contract import FIRST_REVISION

BROUGHT_BY: Final[Mapping[str, str]] = MappingProxyType(
    {
        "job.assign": "2.1",
        "job.options": "2.1",
        "policy.check": "2.2",
        "job.chat": "2.3",
        "job.inline.16k": "2.3",
    }
)
"""The revision of each capability (HS-035)."""


def has_capabilities(revision: str) -> bool:
    """Whether a side of this revision knows capabilities at all (HS-030, CP-007)."""
    return _order(revision) > _order(FIRST_REVISION)


def of_revision(names: Iterable[str], revision: str) -> tuple[str, ...]:
    """Those of `names` that a side of `revision` has, in their order; a name that nobody knows is nobody's."""
    return tuple(name for name in names if name in BROUGHT_BY and _order(BROUGHT_BY[name]) <= _order(revision))


def _order(revision: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdecimal() else 0 for part in revision.split("."))

"""Reading the members of a JSON object, and instants, each by its form.

Every function and method here raises `BadShape` and nothing else for a value of another form.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from lab.clock import timestamp

_COST = re.compile(r"(?:0|[1-9][0-9]{0,26})\.[0-9]{12}", re.ASCII)
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_LARGEST = 2**53 - 1
_LARGEST_TIME = 253_402_300_799_999
"""The last millisecond of the year 9999."""


class BadShape(Exception):
    """A member that the driver needs is absent or of another form; the message names the member alone."""


@dataclass(frozen=True, slots=True)
class Moment:
    """An instant: the text that came, and its milliseconds since 1970. Two compare by the instant (PA-048)."""

    text: str = field(compare=False)
    ms: int


def moment_untrusted(value: Any, member: str = "time") -> Moment:
    """An instant of ISO 8601 text with a zone: with or without a fraction, `Z` or an offset (PA-048)."""
    match = _TIME.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise BadShape(member)
    day, clock, fraction, zone = match.groups()
    try:
        whole = datetime.fromisoformat(f"{day}T{clock}{'+00:00' if zone in 'Zz' else zone}").astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise BadShape(member) from error
    seconds = int((whole - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())
    return Moment(value, seconds * 1000 + int((fraction or "0").ljust(3, "0")[:3]))


def moment_or_epoch_untrusted(value: Any, member: str) -> Moment:
    """As `moment_untrusted`; a whole number is milliseconds since 1970, its text the ISO form of it (GR-019)."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_TIME:
        return Moment(timestamp(value), value)
    return moment_untrusted(value, member)


class Members:
    """Takes members of one object by their kind; each method raises `BadShape` where the member is of another."""

    def __init__(self, value: Any) -> None:
        if not isinstance(value, dict):
            raise BadShape("an object")
        self._members: dict[str, Any] = value

    def value(self, name: str) -> Any:
        """The member, of any form; it must be there."""
        if name not in self._members:
            raise BadShape(name)
        return self._members[name]

    def optional(self, name: str) -> Any:
        """The member, None when it is absent."""
        return self._members.get(name)

    def text(self, name: str, *, empty: bool = False) -> str:
        """A text, not an empty one unless that is allowed."""
        value = self.value(name)
        if not isinstance(value, str) or not (value or empty):
            raise BadShape(name)
        return value

    def text_or_none(self, name: str) -> str | None:
        """A text or null."""
        return None if self.value(name) is None else self.text(name)

    def flag(self, name: str) -> bool:
        """True or false."""
        value = self.value(name)
        if not isinstance(value, bool):
            raise BadShape(name)
        return value

    def whole(self, name: str) -> int:
        """A whole number from 0 to 2^53 - 1."""
        value = self.value(name)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST:
            raise BadShape(name)
        return value

    def duration(self, name: str) -> Decimal:
        """A number of milliseconds, 0 or more, exact."""
        value = self.value(name)
        if isinstance(value, bool) or not isinstance(value, int | Decimal) or not 0 <= value <= _LARGEST:
            raise BadShape(name)
        return Decimal(value)

    def duration_or_none(self, name: str) -> Decimal | None:
        """A number of milliseconds or null."""
        return None if self.value(name) is None else self.duration(name)

    def moment_or_none(self, name: str) -> Moment | None:
        """An instant or null."""
        value = self.value(name)
        return None if value is None else moment_untrusted(value, name)

    def cost(self, name: str) -> Decimal:
        """A decimal text with twelve digits behind the point (US-032)."""
        value = self.value(name)
        if not isinstance(value, str) or _COST.fullmatch(value) is None:
            raise BadShape(name)
        return Decimal(value)

    def tokens(self) -> tuple[int, int, int, int]:
        """The four counters of tokens: in, out, read from a cache, written to one."""
        return (
            self.whole("inputTokens"),
            self.whole("outputTokens"),
            self.whole("cacheReadTokens"),
            self.whole("cacheWriteTokens"),
        )

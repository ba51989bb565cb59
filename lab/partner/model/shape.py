"""Reading what a caller sent, strictly: a fault is 400 CHAT_INVALID and repeats no text of the caller (PRIV-021)."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Final, NoReturn

from lab.partner.model.answers import ApiRequest, JsonBody, Upload
from lab.partner.model.refusals import invalid
from lab.partner.model.words import EXTERNAL_ID_CHARACTERS, IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_CHARACTERS, REVISION_MAX

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_INSTANT: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)
_VISIBLE: Final = re.compile(rf"[!-~]{{1,{IDEMPOTENCY_KEY_CHARACTERS}}}")
_ABSENT: Final = object()


def read_object_untrusted(request: ApiRequest) -> Mapping[str, object]:
    """The JSON object of a body (PA-041, PA-061): UTF-8, no member twice, no number that JSON does not have."""
    body = request.body
    if not isinstance(body, JsonBody) or not _is_json(body.content_types):
        raise invalid("content type")
    if body.surplus:
        raise invalid("body too long")
    try:
        value: object = json.loads(
            body.content.decode("utf-8"), object_pairs_hook=_no_member_twice, parse_constant=_no_constant
        )
    except (ValueError, RecursionError) as error:
        raise invalid("not JSON") from error
    if not isinstance(value, dict):
        raise invalid("not an object")
    return value


class Fields:
    """The members of a body, taken one by one. With `strict`, `done` refuses those that nobody took (PA-046)."""

    def __init__(self, given: Mapping[str, object], strict: bool) -> None:
        self._given = given
        self._strict = strict
        self._taken: list[str] = []

    def text(self, name: str, most: int, least: int = 1) -> str:
        """A text of `least` to `most` code points."""
        return text_untrusted(self._take(name), name, most, least)

    def optional_text(self, name: str, most: int) -> str | None:
        """A text of at most `most` code points; absent and null are None."""
        value = self._take(name, required=False)
        return None if value is None else text_untrusted(value, name, most, 0)

    def optional_texts(self, name: str, most: int) -> tuple[str, ...]:
        """A list of texts of 1 to `most` code points; absent, null and empty are the same (MSG-029)."""
        value = self._take(name, required=False)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise invalid(name)
        return tuple(text_untrusted(entry, name, most) for entry in value)

    def integer(self, name: str, most: int = REVISION_MAX) -> int:
        """An integer from 0 to `most`; a number with a fraction or exponent is none (MB-020)."""
        value = self._take(name)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
            raise invalid(name)
        return value

    def signed(self, name: str, most: int) -> int:
        """An integer from `-most` to `most`."""
        value = self._take(name)
        if not isinstance(value, int) or isinstance(value, bool) or not -most <= value <= most:
            raise invalid(name)
        return value

    def any(self, name: str) -> object:
        """What stands there, to be read by the caller."""
        return self._take(name)

    def boolean(self, name: str) -> bool:
        """true or false."""
        value = self._take(name)
        if not isinstance(value, bool):
            raise invalid(name)
        return value

    def choice(self, name: str, words: Collection[str]) -> str:
        """One of `words`."""
        value = self._take(name)
        if not isinstance(value, str) or value not in words:
            raise invalid(name)
        return value

    def instant(self, name: str) -> int:
        """A timestamp, as epoch milliseconds."""
        return instant_untrusted(self._take(name), name)

    def optional_instant(self, name: str) -> int | None:
        """A timestamp or null; it must be there."""
        value = self._take(name)
        return None if value is None else instant_untrusted(value, name)

    def done(self) -> None:
        """No further member may be there in strict mode."""
        if self._strict and any(name not in self._taken for name in self._given):
            # By the names that are due: the stray one is the caller's text.
            raise invalid(f"unknown field beside {', '.join(self._taken)}")

    def _take(self, name: str, required: bool = True) -> object:
        self._taken.append(name)
        value = self._given.get(name, _ABSENT)
        if value is _ABSENT:
            if required:
                raise invalid(f"{name} is missing")
            return None
        return value


def text_untrusted(value: object, name: str, most: int, least: int = 1) -> str:
    """A text of `least` to `most` code points that UTF-8 can write."""
    if not isinstance(value, str) or not least <= len(value) <= most or not _is_unicode(value):
        raise invalid(name)
    return value


def instant_untrusted(value: object, name: str) -> int:
    """RFC 3339 as epoch milliseconds; `Z` or an offset, with or without a fraction (PA-048)."""
    match = _INSTANT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise invalid(name)
    *parts, fraction, sign, hours, minutes = match.groups()
    try:
        offset = timedelta() if sign is None else timedelta(hours=int(hours), minutes=int(minutes))
        if sign is not None and (int(hours) > 23 or int(minutes) > 59):
            raise invalid(name)
        zone = timezone(-offset if sign == "-" else offset)
        moment = datetime(*(int(part) for part in parts), tzinfo=zone)  # type: ignore[misc, arg-type]
        # What lies outside of the years 1 to 9999 in UTC could not be told back.
        whole = (moment.astimezone(UTC) - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError) as error:
        raise invalid(name) from error
    return whole + int((fraction or "0").ljust(3, "0")[:3])


def actor_query_untrusted(request: ApiRequest) -> tuple[str, str]:
    """externalUserId and externalTeamId of the query, both required (PA-044, PA-045)."""
    user, team = (request.parameter(name) for name in ("externalUserId", "externalTeamId"))
    return (
        text_untrusted(user, "externalUserId", EXTERNAL_ID_CHARACTERS),
        text_untrusted(team, "externalTeamId", EXTERNAL_ID_CHARACTERS),
    )


def actor_fields_untrusted(upload: Upload) -> tuple[str, str]:
    """externalUserId and externalTeamId of a multipart body (AT-001, AT-039)."""
    user, team = (upload.fields.get(name) for name in ("externalUserId", "externalTeamId"))
    return (
        text_untrusted(user, "externalUserId", EXTERNAL_ID_CHARACTERS),
        text_untrusted(team, "externalTeamId", EXTERNAL_ID_CHARACTERS),
    )


def idempotency_key_untrusted(request: ApiRequest) -> str:
    """The one Idempotency-Key of a request (CV-019)."""
    given = request.header(IDEMPOTENCY_KEY)
    if len(given) != 1 or _VISIBLE.fullmatch(given[0]) is None:
        raise invalid(IDEMPOTENCY_KEY)
    return given[0]


def _is_json(content_types: Sequence[str]) -> bool:
    if len(content_types) != 1:
        return False
    kind, *parameters = (part.strip().lower() for part in content_types[0].split(";"))
    charsets = [part.partition("=")[2].strip('"') for part in parameters if part.startswith("charset=")]
    return kind == "application/json" and all(charset in ("utf-8", "utf8") for charset in charsets)


def _is_unicode(value: str) -> bool:
    """Whether no half of a surrogate pair stands alone in it."""
    return not any("\ud800" <= character <= "\udfff" for character in value)


def _no_member_twice(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a member comes twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")

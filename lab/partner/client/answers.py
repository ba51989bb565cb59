"""From an answer's bytes to data, a refusal, or the reason why it is neither. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from re import ASCII, compile
from typing import Any, NoReturn

from lab.partner.client.outcomes import ApiRefusal, TransportError
from lab.partner.client.words import ORG_SPEND, QUOTA_EXCEEDED

_CODE = compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}", ASCII)
_QUOTA_PLACES = ("reason", "quota", "limit", "details", "message")


@dataclass(frozen=True, slots=True)
class Raw:
    """A whole answer as it came; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


def data_untrusted(raw: Raw) -> Any | ApiRefusal | TransportError:
    """The data of an enveloped answer; read only from a 2xx whose `success` is true (PA-007)."""
    value = json_untrusted(raw.body)
    if value is None:
        return TransportError("not-json", raw.status)
    if raw.status < 300:
        fine = raw.status >= 200 and isinstance(value, dict) and value.get("success") is True and "data" in value
        return value["data"] if fine else TransportError("not-envelope", raw.status)
    return _refusal(value, raw.status)


def bare_untrusted(raw: Raw) -> Any | ApiRefusal | TransportError:
    """The issuer's answer, which has no envelope (GR-008)."""
    value = json_untrusted(raw.body)
    if value is None:
        return TransportError("not-json", raw.status)
    return value if 200 <= raw.status < 300 else _refusal(value, raw.status)


def json_untrusted(body: bytes) -> Any:
    """The JSON value, numbers with a fraction as exact decimals (US-005); None for anything else, and for null."""
    try:
        return json.loads(body.decode("utf-8"), parse_float=_decimal, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation as error:
        raise ValueError("a number beyond all bounds") from error


def _no_constant(_: str) -> NoReturn:
    raise ValueError("NaN or Infinity")


def _refusal(body: Any, status: int) -> ApiRefusal | TransportError:
    """PA-035: the code of `error`, or of the top level; the extra facts there, at the top level or in `details`."""
    if not isinstance(body, dict):
        return TransportError("not-envelope", status)
    error = body.get("error")
    inner: dict[str, Any] = error if isinstance(error, dict) else {}
    code = inner.get("code", body.get("code", error))
    if status < 400 or not isinstance(code, str) or _CODE.fullmatch(code) is None:
        return TransportError("not-envelope", status)
    details = inner.get("details")
    places = [inner, body, details if isinstance(details, dict) else {}]
    types: list[Any] = next((one["acceptedTypes"] for one in places if isinstance(one.get("acceptedTypes"), list)), [])
    most = next((one["maxBytes"] for one in places if type(one.get("maxBytes")) is int), None)
    return ApiRefusal(
        code,
        status,
        org_spend=code == QUOTA_EXCEEDED
        and any(_says_org_spend(one.get(name)) for one in places for name in _QUOTA_PLACES),
        accepted_types=tuple(one for one in types if isinstance(one, str)),
        max_bytes=most,
    )


def _says_org_spend(value: Any) -> bool:
    """PA-051: in any of the places in which it may stand, alone or in a text."""
    if isinstance(value, dict):
        return any(_says_org_spend(member) for member in value.values() if not isinstance(member, dict))
    return isinstance(value, str) and ORG_SPEND in value

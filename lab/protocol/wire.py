"""From a WebSocket message to a JSON object, and back, with nothing let through that peers could read differently."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from lab.errors import WireError

MAX_DEPTH = 64
"""Deepest nesting of a JSON text; no frame of the contract comes near it."""

_SURROGATE = re.compile("\\\\u[dD][89a-fA-F]|[\ud800-\udfff]")
"""Where a surrogate may stand: escaped, or raw in a text that is no UTF-8."""


def byte_length(text: str) -> int:
    """Length in UTF-8 bytes: the unit of every size limit (WS-020, WS-057)."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def parse_untrusted(message: str | bytes, max_bytes: int) -> dict[str, Any]:
    """The JSON object in a message.

    Raises `WireError` and nothing else: frame_too_large above `max_bytes` of UTF-8 (WS-019, before parsing:
    WS-030), bad_frame for all that is not one JSON object without duplicate keys (WS-035, WS-036).
    """
    size = len(message) if isinstance(message, bytes) else byte_length(message)
    if size > max_bytes:
        raise WireError("frame_too_large", f"{size} bytes, at most {max_bytes} are allowed")
    if isinstance(message, bytes):
        # WS-036: the channel is text.
        raise WireError("bad_frame", "a binary message")
    value = parse_json_untrusted(message)
    if not isinstance(value, dict):
        raise WireError("bad_frame", "JSON, but not an object")
    return value


def parse_json_untrusted(text: str) -> Any:
    """A JSON value; raises `WireError` bad_frame for duplicate keys, NaN, lone surrogates and deep nesting (WS-034)."""
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise WireError("bad_frame", "not JSON as it must be") from error
    # The search costs more than the reading; most texts cannot hold a surrogate at all.
    if ("\\u" in text or not text.isascii()) and _SURROGATE.search(text) and not _encodes(value):
        raise WireError("bad_frame", "a lone surrogate")
    if text.count("{") + text.count("[") > MAX_DEPTH and _deeper_than(value, MAX_DEPTH):
        raise WireError("bad_frame", f"nested deeper than {MAX_DEPTH}")
    return value


def encode(value: Mapping[str, Any]) -> str:
    """Compact JSON text, characters outside ASCII as they are. Raises ValueError for a number that JSON lacks."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    members = list(pairs)
    result = dict(members)
    if len(result) != len(members):
        raise ValueError("a duplicate key")
    return result


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number out of range")
    return number


def _encodes(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _deeper_than(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [child for item in level for child in _children(item)]
        if not level:
            return False
    return any(isinstance(item, dict | list) for item in level)


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, list):
        return value
    return ()

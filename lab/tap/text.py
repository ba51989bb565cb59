"""From the bytes of a message to a JSON object, strictly and within bounds."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

LARGEST_TEXT = 256 * 1024
"""A longer message is not parsed, in bytes; far above any legal frame."""

DEEPEST = 64
"""Deeper nesting is not parsed."""

# It always matches from a quote on, if need be to the end, so that stripping takes linear time.
_STRINGS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)


class NoJson(Exception):
    """The text is no JSON value of the accepted kind; the message says why, without any of it."""


def strict_json(text: str, longest: int = LARGEST_TEXT) -> Any:
    """The JSON value of `text`; one with a repeated member, NaN, too deep or too long raises `NoJson` only."""
    if len(text) > longest:
        raise NoJson("too long to parse")
    if text.count("[") + text.count("{") > DEEPEST and _depth(text) > DEEPEST:
        raise NoJson("nested too deep")
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise NoJson("not JSON") from error


def _depth(text: str) -> int:
    depth = deepest = 0
    for char in _STRINGS.sub("", text):
        if char in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "]}":
            depth -= 1
    return deepest


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise NoJson("a member stands twice")
    return members


def _no_constant(_: str) -> NoReturn:
    raise NoJson("NaN or Infinity")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)


def equal_values(left: Any, right: Any) -> bool:
    """Whether two JSON values are the same: members in any order, numbers by value, true never 1 (SG-006)."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and left.keys() == right.keys()
            and all(equal_values(value, right[name]) for name, value in left.items())
        )
    if isinstance(left, list):
        return (
            isinstance(right, list)
            and len(left) == len(right)
            and all(equal_values(one, other) for one, other in zip(left, right, strict=True))
        )
    return type(right) not in (dict, list) and left == right

"""What an agent's upgrade request says of itself, read without the gateway's own code."""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence

_PLAIN_PATH = re.compile(r"(?:/[a-z0-9.-]{1,24}){0,8}/?")


def credential(headers: Sequence[str], token: str) -> str:
    """What the Authorization headers of a request are to who holds `token`: ok, unknown, or none."""
    if not headers:
        return "none"
    scheme, _, given = headers[0].strip().partition(" ")
    fits = hmac.compare_digest(given.strip().encode("utf-8", "surrogateescape"), token.encode())
    return "ok" if len(headers) == 1 and scheme.lower() == "bearer" and fits else "unknown"


def shown_path(target: str) -> str:
    """The path of a request's target; `*` for one that may be more than a name, such as a token."""
    path = target.partition("?")[0]
    return path if _PLAIN_PATH.fullmatch(path) else "*"

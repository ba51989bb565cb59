"""Checking a Bearer credential, the same way in every double."""

from __future__ import annotations

import hmac
from collections.abc import Sequence

MOST_CHARACTERS = 8192
"""Of a token; a longer one is none."""


def token_of(headers: Sequence[str]) -> str | None:
    """The token of the one Authorization header; None when there is none, several, or another scheme.

    Two credentials are none: nobody says which of them counts. A scheme is written in any case (RFC 9110, 11.1).
    """
    if len(headers) != 1:
        return None
    scheme, _, token = headers[0].partition(" ")
    return token if scheme.lower() == "bearer" and 0 < len(token) <= MOST_CHARACTERS else None


def bears(headers: Sequence[str], token: str) -> bool:
    """Whether the Authorization headers of a request are exactly one, and bear `token`; takes the same time either way.

    An empty token is borne by nobody.
    """
    given = token_of(headers) or ""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), token.encode()) and given != ""

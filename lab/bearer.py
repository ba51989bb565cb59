"""Checking a Bearer credential, the same way in every double."""

from __future__ import annotations

import hmac
from collections.abc import Sequence


def bears(headers: Sequence[str], token: str) -> bool:
    """Whether the Authorization headers of a request are exactly one, and bear `token`; takes the same time either way.

    Two credentials are none: nobody says which of them counts.
    """
    given = headers[0] if len(headers) == 1 else ""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), f"Bearer {token}".encode())

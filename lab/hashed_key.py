"""A bearer key of which only the hash is kept (PRIV-019)."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

from lab.bearer import token_of


class HashedKey:
    """Tells whether a request bears the key; the key itself is not kept."""

    def __init__(self, key: str) -> None:
        self._digest = _digest(key)

    def borne_by(self, authorizations: Sequence[str]) -> bool:
        """Whether the Authorization headers are exactly one, and bear the key; takes the same time either way."""
        given = token_of(authorizations) or ""
        return hmac.compare_digest(_digest(given), self._digest) and given != ""


def _digest(key: str) -> bytes:
    # Some header bytes are no UTF-8.
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()

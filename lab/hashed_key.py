"""A bearer key of which only the hash is kept (PRIV-019)."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

_SCHEME = "Bearer "


class HashedKey:
    """Tells whether a request bears the key; the key itself is not kept."""

    def __init__(self, key: str) -> None:
        self._digest = _digest(key)

    def borne_by(self, authorizations: Sequence[str]) -> bool:
        """Whether the Authorization headers are exactly one, and bear the key; takes the same time either way.

        Two credentials are none: nobody says which of them counts.
        """
        given = authorizations[0] if len(authorizations) == 1 else ""
        scheme, key = given[: len(_SCHEME)], given[len(_SCHEME) :]
        return hmac.compare_digest(_digest(key), self._digest) and scheme == _SCHEME


def _digest(key: str) -> bytes:
    # Some header bytes are no UTF-8.
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()

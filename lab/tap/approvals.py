"""Judging the token of an approval.decision, in the form that LA-032 chooses, with a reading of the tap's own."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

from lab.tap.text import NoJson, strict_json

PREFIX = "vhapr1"


class TokenTap:
    """Judges with the trusted public keys (key id to the 32 raw bytes), for one tenant."""

    def __init__(self, public_keys: Mapping[str, bytes], tenant_id: str) -> None:
        self._keys = tuple(VerifyKey(key) for key in public_keys.values())
        self._tenant_id = tenant_id

    def judge(self, payload: object, wall_ms: int) -> dict[str, Any]:
        """The facts of the token in an approval.decision's payload at wall time `wall_ms`; never raises.

        `form` "ok" or why there is no token; then `verified`, `equal` and `leftMs` as the journal tells them.
        """
        members = payload if isinstance(payload, dict) else {}
        parts = str(members.get("token")).split(".")
        if len(parts) != 3 or parts[0] != PREFIX:
            return {"form": "not three parts"}
        signature, claims = _base64url(parts[2]), _claims(parts[1])
        if signature is None or claims is None:
            return {"form": "not readable"}
        ends = claims.get("exp")
        if not isinstance(ends, int) or isinstance(ends, bool) or abs(ends) >= 2**43:
            return {"form": "no exp"}
        due = {name: members.get(name) for name in ("approvalId", "jobId", "decision")}
        due["tenantId"] = self._tenant_id
        return {
            "form": "ok",
            "verified": self._verified(f"{parts[0]}.{parts[1]}".encode(), signature),
            # LA-031: for this approval, job, decision and tenant
            "equal": all(claims.get(name) == value for name, value in due.items()),
            # LA-032: exp is in seconds
            "leftMs": ends * 1000 - wall_ms,
        }

    def _verified(self, signed: bytes, signature: bytes) -> bool:
        for key in self._keys:
            try:
                key.verify(signed, signature)
            except (BadSignatureError, ValueError, TypeError):
                continue
            return True
        return False


def _claims(text: str) -> dict[str, Any] | None:
    raw = _base64url(text)
    try:
        claims = strict_json((raw or b"").decode("utf-8"))
    except (NoJson, UnicodeDecodeError):
        return None
    return claims if isinstance(claims, dict) else None


def _base64url(text: str) -> bytes | None:
    try:
        return base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None

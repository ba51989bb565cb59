"""Approval decisions: checking the platform's token before agent2 hears of one (LA-031).

LA-032 leaves the token's format open; `Claims` and `verified_claims` are its replaceable place:
`vhapr1.<base64url JSON>.<base64url Ed25519 signature over everything before the second dot>`.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass

from nacl.exceptions import CryptoError
from nacl.signing import VerifyKey

PREFIX = "vhapr1"
MAX_TOKEN_CHARS = 4096


@dataclass(frozen=True)
class Claims:
    """What a token allows; `exp` is in seconds since 1970 UTC."""

    approval_id: str
    job_id: str
    tenant_id: str
    decision: str
    exp: int


def verified_claims(token: str, trusted_keys: Mapping[str, bytes]) -> Claims | None:
    """The claims of a token that one of the trusted keys signed, None for any other text. Never raises."""
    prefix, dot, rest = token.partition(".")
    body, second_dot, seal = rest.partition(".")
    if prefix != PREFIX or not dot or not second_dot or len(token) > MAX_TOKEN_CHARS:
        return None
    signature = _decoded(seal)
    if signature is None or not any(
        _signed(key, f"{prefix}.{body}".encode(), signature) for key in trusted_keys.values()
    ):
        return None
    return _claims(_decoded(body))


def allows(claims: Claims, approval_id: str, job_id: str, tenant_id: str, decision: str, now: float) -> bool:
    """Whether the claims are for exactly this decision and still hold at `now`, in seconds since 1970 UTC."""
    due = (approval_id, job_id, tenant_id, decision)
    return (claims.approval_id, claims.job_id, claims.tenant_id, claims.decision) == due and now < claims.exp


def _signed(key: bytes, message: bytes, signature: bytes) -> bool:
    try:
        VerifyKey(key).verify(message, signature)
    except (CryptoError, ValueError, TypeError):
        return False
    return True


def _decoded(text: str) -> bytes | None:
    """Strict base64url without padding: one text for each value."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if base64.urlsafe_b64encode(raw).rstrip(b"=").decode() == text else None


def _claims(raw: bytes | None) -> Claims | None:
    try:
        value = json.loads(raw or b"")
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    approval_id, job_id, tenant_id, decision = (
        str(value.get(name)) for name in ("approvalId", "jobId", "tenantId", "decision")
    )
    exp = value.get("exp")
    if not isinstance(exp, int) or isinstance(exp, bool):
        return None
    return Claims(approval_id, job_id, tenant_id, decision, exp)

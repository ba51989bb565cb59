"""Tokens of approval.decision, as the lab mints them (LA-032): the one place that knows their form on this side."""

from __future__ import annotations

import base64
import json

from nacl.signing import SigningKey

LIFETIME_SECONDS = 300


def mint_token(key: SigningKey, approval_id: str, job_id: str, tenant_id: str, decision: str, now_seconds: int) -> str:
    """`vhapr1.<base64url claims>.<base64url Ed25519 signature over all before the second dot>`; `exp` is in seconds."""
    claims = {
        "approvalId": approval_id,
        "jobId": job_id,
        "tenantId": tenant_id,
        "decision": decision,
        "exp": now_seconds + LIFETIME_SECONDS,
    }
    body = f"vhapr1.{_base64url(json.dumps(claims, separators=(',', ':')).encode())}"
    return f"{body}.{_base64url(key.sign(body.encode()).signature)}"


def _base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()

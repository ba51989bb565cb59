"""Approval tokens, taken apart by hand."""

from __future__ import annotations

import base64
import json

import pytest
from nacl.signing import SigningKey

from lab.gateway.approvals import LIFETIME_SECONDS, mint_token

KEY = SigningKey(b"a" * 32)


def raw(part: str) -> bytes:
    assert "=" not in part
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


@pytest.mark.req("LA-032")
def test_a_token_names_what_it_decides_and_is_signed_over_all_before_its_last_dot() -> None:
    token = mint_token(KEY, "ap-1", "job-1", "tenant-1", "approve", 1_000)
    mark, claims, signature = token.split(".")
    assert mark == "vhapr1"
    assert json.loads(raw(claims)) == {
        "approvalId": "ap-1",
        "jobId": "job-1",
        "tenantId": "tenant-1",
        "decision": "approve",
        "exp": 1_000 + LIFETIME_SECONDS,
    }
    KEY.verify_key.verify(f"{mark}.{claims}".encode(), raw(signature))

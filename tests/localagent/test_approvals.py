import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.signing import SigningKey

from lab.localagent.approvals import Claims, allows, verified_claims

KEY = SigningKey(bytes(32))
OTHER = SigningKey(bytes([1]) * 32)
TRUSTED = {"k0": bytes(OTHER.verify_key), "k1": bytes(KEY.verify_key)}
CLAIMS = {"approvalId": "ap-1", "jobId": "job-1", "tenantId": "t-1", "decision": "approve", "exp": 1000}
GOOD = Claims("ap-1", "job-1", "t-1", "approve", 1000)


def encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def token(claims: Any, key: SigningKey = KEY, prefix: str = "vhapr1") -> str:
    """A token as the platform makes it."""
    head = f"{prefix}.{encoded(json.dumps(claims).encode())}"
    return f"{head}.{encoded(key.sign(head.encode()).signature)}"


@pytest.mark.req("LA-031", "LA-032")
@pytest.mark.parametrize("key", [KEY, OTHER])
def test_any_trusted_key_will_do(key: SigningKey) -> None:
    assert verified_claims(token(CLAIMS, key), TRUSTED) == GOOD


@pytest.mark.req("LA-031", "LA-032")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "vhapr1",
        "vhapr1..",
        "vhapr1.a.b",
        token(CLAIMS, SigningKey(bytes([2]) * 32)),
        token(CLAIMS, prefix="vhapr2"),
        token(CLAIMS) + "=",
        token(CLAIMS) + ".x",
        token(CLAIMS)[:-2],
        token([1]),
        token({**CLAIMS, "exp": "1000"}),
        token({**CLAIMS, "exp": True}),
        token({name: value for name, value in CLAIMS.items() if name != "exp"}),
        token({**CLAIMS, "note": "x" * 5000}),
    ],
)
def test_other_texts_have_no_claims(text: str) -> None:
    assert verified_claims(text, TRUSTED) is None


@pytest.mark.req("LA-031")
@given(st.integers(0, len(token(CLAIMS)) - 1), st.sampled_from("AZaz09-_."))
def test_one_altered_character_voids_it(place: int, character: str) -> None:
    good = token(CLAIMS)
    altered = good[:place] + character + good[place + 1 :]
    assert (verified_claims(altered, TRUSTED) is None) is (altered != good)


def test_nothing_is_trusted_without_keys() -> None:
    assert verified_claims(token(CLAIMS), {}) is None
    assert verified_claims(token(CLAIMS), {"k": b"short"}) is None


@pytest.mark.req("LA-031")
@pytest.mark.parametrize(
    ("approval_id", "job_id", "tenant_id", "decision", "now", "allowed"),
    [
        ("ap-1", "job-1", "t-1", "approve", 999.9, True),
        ("ap-1", "job-1", "t-1", "approve", 1000.0, False),
        ("ap-2", "job-1", "t-1", "approve", 0, False),
        ("ap-1", "job-2", "t-1", "approve", 0, False),
        ("ap-1", "job-1", "t-2", "approve", 0, False),
        ("ap-1", "job-1", "t-1", "deny", 0, False),
    ],
)
def test_claims_allow_one_decision_for_a_while(
    approval_id: str, job_id: str, tenant_id: str, decision: str, now: float, allowed: bool
) -> None:
    assert allows(GOOD, approval_id, job_id, tenant_id, decision, now) is allowed

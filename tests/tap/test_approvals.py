"""What the tap tells of an approval's token."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.signing import SigningKey

from lab.tap.approvals import TokenTap
from tests.tap.frames_by_hand import EPOCH_MS, JOB, KEY, KEY_ID, TENANT, from_gateway, tap

TAP = TokenTap({"old": bytes(SigningKey(b"o" * 32).verify_key), KEY_ID: bytes(KEY.verify_key)}, TENANT)
NOW_S = EPOCH_MS // 1000
CLAIMS: dict[str, Any] = {
    "approvalId": "ap-1",
    "jobId": JOB,
    "tenantId": TENANT,
    "decision": "approve",
    "exp": NOW_S + 300,
}
GOOD = {"form": "ok", "verified": True, "equal": True, "leftMs": 300_000}


def encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def token(key: SigningKey = KEY, **claims: Any) -> str:
    body = f"vhapr1.{encoded(json.dumps({**CLAIMS, **claims}).encode())}"
    return f"{body}.{encoded(key.sign(body.encode()).signature)}"


def payload(text: Any, **more: Any) -> dict[str, Any]:
    return {"approvalId": "ap-1", "jobId": JOB, "decision": "approve", "token": text, **more}


@pytest.mark.req("LA-031", "LA-032")
@pytest.mark.parametrize("key", [KEY, SigningKey(b"o" * 32)])
def test_a_good_token_of_any_trusted_key(key: SigningKey) -> None:
    assert TAP.judge(payload(token(key)), EPOCH_MS) == GOOD


@pytest.mark.req("LA-031")
@pytest.mark.parametrize(
    ("members", "fact"),
    [
        (payload(token(SigningKey(b"x" * 32))), {"verified": False}),
        (payload(token(tenantId="other")), {"equal": False}),
        (payload(token(), approvalId="ap-2"), {"equal": False}),
        (payload(token(), jobId="another"), {"equal": False}),
        (payload(token(), decision="deny"), {"equal": False}),
        (payload(token(exp=NOW_S - 1)), {"leftMs": -1_000}),
        (payload(token(exp="soon")), {"form": "no exp"}),
        (payload(token(exp=True)), {"form": "no exp"}),
        (payload(token(exp=2**43)), {"form": "no exp"}),
    ],
)
def test_what_is_wrong_with_one(members: dict[str, Any], fact: dict[str, Any]) -> None:
    facts = TAP.judge(members, EPOCH_MS)
    assert facts == (fact if "form" in fact else {**GOOD, **fact})


def test_one_whose_claims_were_changed_is_not_verified() -> None:
    parts = token().split(".")
    changed = encoded(json.dumps({**CLAIMS, "exp": NOW_S + 999}).encode())
    assert TAP.judge(payload(f"vhapr1.{changed}.{parts[2]}"), EPOCH_MS)["verified"] is False


@pytest.mark.parametrize("text", [None, 7, "", "vhapr1.a", "vhapr2.e30.AA", "vhapr1.e30.AA.AA", "vhapr1.é.AA"])
def test_what_is_no_token(text: Any) -> None:
    assert TAP.judge(payload(text), EPOCH_MS)["form"] in ("not three parts", "not readable")


@pytest.mark.parametrize("members", [None, [], "text", {}])
def test_what_is_no_payload(members: Any) -> None:
    assert TAP.judge(members, EPOCH_MS) == {"form": "not three parts"}


@given(st.text(), st.text())
def test_it_never_raises(claims: str, signature: str) -> None:
    assert "form" in TAP.judge(payload(f"vhapr1.{claims}.{signature}"), EPOCH_MS)


@pytest.mark.req("SEC-012")
def test_a_frame_brings_the_facts_and_not_the_token() -> None:
    text = token()
    frame = from_gateway("approval.decision", 1, payload(text))
    event = tap().judge("c1", "cp-to-la", json.dumps(frame), 0.0)
    assert event.facts["token"] == GOOD
    assert text not in repr(event)
    assert "token" not in tap().judge("c1", "cp-to-la", json.dumps(from_gateway("job.cancel", 1, {})), 0.0).facts

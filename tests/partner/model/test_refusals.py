from __future__ import annotations

from collections.abc import Callable

import pytest

from lab.partner.model import refusals
from lab.partner.model.refusals import Refusal
from lab.partner.model.words import ACCEPTED_TYPES, Code

EACH: dict[Code, tuple[Callable[[str], Refusal], int]] = {
    Code.CREDENTIAL_REJECTED: (refusals.credential_rejected, 401),
    Code.EXECUTION_DENIED: (refusals.execution_denied, 403),
    Code.MCP_CONTEXT_DENIED: (refusals.context_denied, 403),
    Code.CHAT_UNAVAILABLE: (refusals.unavailable, 404),
    Code.CHAT_CONFLICT: (refusals.conflict, 409),
    Code.MCP_CONTEXT_CONFLICT: (refusals.context_conflict, 409),
    Code.CHAT_INVALID: (refusals.invalid, 400),
    Code.CHAT_CONFIGURATION: (refusals.configuration, 503),
    Code.VALIDATION_ERROR: (refusals.nothing_to_say, 400),
    Code.ATTACHMENT_TYPE_NOT_SUPPORTED: (refusals.type_not_supported, 415),
    Code.ATTACHMENT_TOO_LARGE: (refusals.too_large, 413),
    Code.ATTACHMENT_TOO_MANY: (refusals.too_many, 400),
    Code.ATTACHMENT_NOT_FOUND: (refusals.file_not_found, 404),
    Code.ATTACHMENT_NOT_ALLOWED: (refusals.files_not_allowed, 403),
    Code.QUOTA_EXCEEDED: (refusals.quota_exceeded, 429),
}


@pytest.mark.req("PA-035", "PA-038", "PRIV-021")
@pytest.mark.parametrize("code", list(Code))
def test_each_code_has_its_status_and_one_text(code: Code) -> None:
    make, status = EACH[code]
    refusal = make("m4rker")
    error = refusal.body()["error"]
    assert isinstance(error, dict)
    assert (refusal.status, error["code"]) == (status, code.value)
    assert refusal.body() == make("another").body()
    assert "m4rker" not in str(refusal.body())
    assert error["message"]


@pytest.mark.req("AT-031", "PA-051")
def test_three_codes_tell_more() -> None:
    assert refusals.type_not_supported().extras == {"acceptedTypes": list(ACCEPTED_TYPES)}
    assert refusals.too_large().extras == {"maxBytes": 3_145_728}
    assert refusals.quota_exceeded().extras == {"reason": "org_spend"}

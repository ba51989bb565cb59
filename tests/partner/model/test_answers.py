from __future__ import annotations

import pytest

from lab.partner.model.answers import ApiRequest, refused, success
from lab.partner.model.refusals import Refusal, quota_exceeded
from lab.partner.model.words import Code


@pytest.mark.req("PA-007", "PA-035")
def test_the_two_envelopes() -> None:
    assert success(201, {"a": 1}).body == {"success": True, "data": {"a": 1}}
    answer = refused(quota_exceeded("m4rker"))
    assert (answer.status, answer.code, answer.facts) == (429, "QUOTA_EXCEEDED", {"why": "m4rker"})
    assert isinstance(answer.body, dict)
    assert set(answer.body) == {"success", "error"}
    assert set(answer.body["error"]) == {"code", "message", "reason"}


def test_a_header_is_found_by_any_case_and_a_parameter_counts_once() -> None:
    request = ApiRequest({}, {"a": ("1",), "b": ("1", "2")}, {"x-one": ("v", "w")})
    assert request.header("X-One") == ("v", "w")
    assert request.header("other") == ()
    assert (request.parameter("a"), request.parameter("c")) == ("1", None)
    with pytest.raises(Refusal) as caught:
        request.parameter("b")
    assert caught.value.code is Code.CHAT_INVALID

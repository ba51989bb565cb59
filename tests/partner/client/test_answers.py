import json
from typing import Any

import pytest

from lab.partner.client.answers import Raw, bare_untrusted, data_untrusted
from lab.partner.client.outcomes import ApiRefusal, TransportError
from tests.partner.samples import failure, wrapped


def raw(status: int, body: object) -> Raw:
    return Raw(status, {}, body if isinstance(body, bytes) else json.dumps(body).encode())


@pytest.mark.req("PA-007")
@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (200, wrapped({"a": 1}), {"a": 1}),
        (201, wrapped(None), None),
        (200, {"success": False, "data": {"a": 1}}, TransportError("not-envelope", 200)),
        (200, {"success": "true", "data": 1}, TransportError("not-envelope", 200)),
        (200, {"data": 1}, TransportError("not-envelope", 200)),
        (200, {"success": True}, TransportError("not-envelope", 200)),
        (302, wrapped(1), TransportError("not-envelope", 302)),
    ],
)
def test_data_is_read_only_from_a_success(status: int, body: object, expected: object) -> None:
    assert data_untrusted(raw(status, body)) == expected


@pytest.mark.req("PA-057")
@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (502, b"<html>Bad gateway</html>", "not-json"),
        (202, b'{"success":true,"data":{"runId":', "not-json"),
        (500, b"", "not-json"),
        (500, [1], "not-envelope"),
        (500, {"error": {"message": "CHAT_INVALID"}}, "not-envelope"),
        (503, {"error": {"code": "two words"}}, "not-envelope"),
        (503, {"error": {"code": 5}}, "not-envelope"),
    ],
)
def test_no_code_is_made_up(status: int, body: object, kind: str) -> None:
    assert data_untrusted(raw(status, body)) == TransportError(kind, status)


@pytest.mark.req("PA-035")
@pytest.mark.parametrize(
    "body",
    [
        {"error": {"code": "X", "acceptedTypes": ["a/b"], "maxBytes": 5}},
        {"error": {"code": "X"}, "acceptedTypes": ["a/b"], "maxBytes": 5},
        {"error": {"code": "X", "details": {"acceptedTypes": ["a/b"], "maxBytes": 5}}},
        {"code": "X", "acceptedTypes": ["a/b"], "maxBytes": 5},
    ],
)
def test_the_extra_facts_are_found_where_they_may_stand(body: object) -> None:
    assert data_untrusted(raw(415, body)) == ApiRefusal("X", 415, accepted_types=("a/b",), max_bytes=5)


@pytest.mark.req("PA-051", "PA-019")
@pytest.mark.parametrize(
    ("error", "spent"),
    [
        ({"reason": "org_spend"}, True),
        ({"quota": "org_spend"}, True),
        ({"limit": {"name": "org_spend"}}, True),
        ({"details": {"reason": "org_spend"}}, True),
        ({"details": "org_spend"}, True),
        ({"message": "QUOTA_EXCEEDED / org_spend"}, True),
        ({"reason": "seats"}, False),
        ({}, False),
    ],
)
def test_a_spent_budget_is_told_wherever_it_stands(error: dict[str, Any], spent: bool) -> None:
    assert data_untrusted(raw(429, {"error": {"code": "QUOTA_EXCEEDED", **error}})) == ApiRefusal(
        "QUOTA_EXCEEDED", 429, org_spend=spent
    )


def test_other_codes_are_never_a_spent_budget() -> None:
    assert data_untrusted(raw(409, failure("CHAT_CONFLICT", reason="org_spend"))) == ApiRefusal("CHAT_CONFLICT", 409)


@pytest.mark.req("GR-008")
def test_the_issuer_has_no_envelope() -> None:
    assert bare_untrusted(raw(201, {"grant": "g"})) == {"grant": "g"}
    assert bare_untrusted(raw(404, {"error": {"code": "not_found"}})) == ApiRefusal("not_found", 404)
    assert bare_untrusted(raw(200, b"oops")) == TransportError("not-json", 200)

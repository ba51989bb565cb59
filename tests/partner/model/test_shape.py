from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.partner.model.answers import ApiRequest, JsonBody, Upload
from lab.partner.model.refusals import Refusal
from lab.partner.model.shape import (
    Fields,
    actor_fields_untrusted,
    actor_query_untrusted,
    idempotency_key_untrusted,
    instant_untrusted,
    read_object_untrusted,
)
from lab.partner.model.words import Code

JSON = ("application/json",)


def asked(content: bytes, content_types: tuple[str, ...] = JSON, *, surplus: bool = False) -> ApiRequest:
    return ApiRequest({}, body=JsonBody(content, content_types, surplus))


def refused(call: Any, *arguments: Any) -> bool:
    with pytest.raises(Refusal) as caught:
        call(*arguments)
    return caught.value.code is Code.CHAT_INVALID


@pytest.mark.req("PA-061")
@pytest.mark.parametrize(
    "content_type", ["application/json", "Application/JSON; charset=UTF-8", 'application/json;charset="utf-8"']
)
def test_json_by_any_of_its_names_is_read(content_type: str) -> None:
    assert read_object_untrusted(asked(b'{"a": 1}', (content_type,))) == {"a": 1}


@pytest.mark.req("PA-041", "PA-061")
@pytest.mark.parametrize(
    "content_types", [(), ("text/plain",), ("application/json; charset=latin-1",), ("application/json", "text/plain")]
)
def test_another_content_type_is_refused(content_types: tuple[str, ...]) -> None:
    assert refused(read_object_untrusted, asked(b"{}", content_types))


@pytest.mark.req("PA-041")
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": 1, "a": 1}',
        b'{"a": "\xff"}',
        b"\xef\xbb\xbf{}",
        b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a": ' + b"9" * 5000 + b"}",
    ],
)
def test_what_is_no_json_object_is_refused(content: bytes) -> None:
    assert refused(read_object_untrusted, asked(content))


def test_a_body_over_the_bound_is_refused_though_its_begin_is_json() -> None:
    assert refused(read_object_untrusted, asked(b"{}", surplus=True))
    assert refused(read_object_untrusted, ApiRequest({}, body=Upload()))


@pytest.mark.req("PA-048")
@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-01T00:00:00.000Z", 0),
        ("1970-01-01T00:00:01Z", 1000),
        ("1970-01-01T01:00:00.5+01:00", 500),
        ("1969-12-31T23:00:00.123456789-01:00", 123),
        ("1969-12-31T23:59:59.999Z", -1),
        ("2028-02-29T12:00:00.000Z", 1_835_438_400_000),
    ],
)
def test_an_instant_is_read_with_any_offset_and_fraction(text: str, ms: int) -> None:
    assert instant_untrusted(text, "at") == ms


@pytest.mark.req("PA-041")
@pytest.mark.parametrize(
    "value",
    [
        None,
        17,
        "",
        "now",
        "2026-01-01",
        "2026-01-01T00:00:00",
        "2026-01-01 00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-02-30T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:00:60Z",
        "2026-01-01T00:00:00.Z",
        "2026-01-01T00:00:00+24:00",
        "2026-01-01T00:00:00+01:60",
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59-00:01",
        "0000-01-01T00:00:00Z",
        "2026-01-01T00:00:00Z\n",
        "２０２６-01-01T00:00:00Z",
    ],
)
def test_what_is_no_instant_is_refused(value: object) -> None:
    assert refused(instant_untrusted, value, "at")


@pytest.mark.req("MSG-029")
def test_an_absent_list_is_an_empty_one() -> None:
    bodies: tuple[dict[str, object], ...] = ({}, {"ids": None}, {"ids": []})
    for body in bodies:
        assert Fields(body, strict=True).optional_texts("ids", 5) == ()


@pytest.mark.req("PA-046")
def test_a_member_that_nobody_took_is_refused_in_strict_mode_only() -> None:
    for strict in (True, False):
        fields = Fields({"a": "x", "b": 1}, strict)
        assert fields.text("a", 5) == "x"
        if strict:
            assert refused(fields.done)
        else:
            fields.done()


@given(
    st.dictionaries(
        st.sampled_from(["t", "i", "b", "c", "l", "z"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
            lambda inner: st.lists(inner, max_size=3),
            max_leaves=5,
        ),
        max_size=6,
    )
)
def test_any_body_is_read_or_refused_and_never_anything_else(body: dict[str, object]) -> None:
    content = json.dumps(body).encode()
    with suppress(Refusal):
        fields = Fields(read_object_untrusted(asked(content)), strict=True)
        text = fields.text("t", 5)
        number = fields.integer("i")
        texts = fields.optional_texts("l", 5)
        fields.boolean("b")
        fields.choice("c", ("x", "y"))
        fields.instant("z")
        fields.done()
        assert 1 <= len(text) <= 5
        assert 0 <= number < 2**53
        assert all(texts)


@pytest.mark.req("PA-044", "PA-045")
def test_the_actor_query_needs_each_parameter_once() -> None:
    both = {"externalUserId": ("u",), "externalTeamId": ("t",)}
    assert actor_query_untrusted(ApiRequest({}, both)) == ("u", "t")
    for name in both:
        for values in ((), ("a", "b"), ("",), ("x" * 256,)):
            assert refused(actor_query_untrusted, ApiRequest({}, {**both, name: values}))


@pytest.mark.req("AT-039")
def test_an_upload_needs_both_actor_fields() -> None:
    both = {"externalUserId": "u", "externalTeamId": "t"}
    assert actor_fields_untrusted(Upload(fields=both)) == ("u", "t")
    for name in both:
        assert refused(actor_fields_untrusted, Upload(fields={key: both[key] for key in both if key != name}))


@pytest.mark.req("CV-019")
@pytest.mark.parametrize("key", ["", "x" * 256, "a b", "ä", "a\x7f", "\t"])
def test_an_idempotency_key_is_visible_ascii(key: str) -> None:
    assert refused(idempotency_key_untrusted, ApiRequest({}, headers={"idempotency-key": (key,)}))


@pytest.mark.req("CV-001", "CV-019")
def test_an_idempotency_key_comes_once() -> None:
    assert idempotency_key_untrusted(ApiRequest({}, headers={"idempotency-key": ("!" + "~" * 254,)}))
    assert refused(idempotency_key_untrusted, ApiRequest({}))
    assert refused(idempotency_key_untrusted, ApiRequest({}, headers={"idempotency-key": ("a", "a")}))

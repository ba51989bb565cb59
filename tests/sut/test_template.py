"""Templates: placeholders, blanks, braces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.sut.template import TemplateError, parse_template

KNOWN = ("tenant_id", "agent_id", "blank:checkout")


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("", ""),
        ("plain", "plain"),
        ("{tenant_id}", "T"),
        ("a{tenant_id}b{agent_id}", "aTbA"),
        ("{{tenant_id}}", "{tenant_id}"),
        ('{{"t":"{tenant_id}"}}', '{"t":"T"}'),
        ("{blank:checkout}/src", "C/src"),
    ],
)
def test_a_template_is_filled(text: str, filled: str) -> None:
    assert parse_template(text, KNOWN).fill({"tenant_id": "T", "agent_id": "A", "blank:checkout": "C"}) == filled


@pytest.mark.parametrize(
    ("text", "word", "nearest"),
    [
        ("{tenantid}", "{tenantid}", "{tenant_id}"),
        ("x{Agent-Id}", "{Agent-Id}", "{agent_id}"),
        ("x{zzz}", "{zzz}", None),
        ("{blank:chekout}", "{blank:chekout}", "{blank:checkout}"),
        ("{}", "{}", None),
        ("{tenant_id", "{", None),
        ("a}b", "}", None),
    ],
)
def test_a_slip_is_named_with_what_may_be_meant(text: str, word: str, nearest: str | None) -> None:
    with pytest.raises(TemplateError) as caught:
        parse_template(text, KNOWN)
    assert (caught.value.word, caught.value.nearest) == (word, nearest)


@given(st.text())
def test_any_text_can_be_written_with_double_braces(text: str) -> None:
    escaped = text.replace("{", "{{").replace("}", "}}")
    assert parse_template(escaped, ()).fill({}) == text


def test_a_value_is_not_read_as_a_template_again() -> None:
    assert parse_template("{tenant_id}", KNOWN).fill({"tenant_id": "{agent_id}"}) == "{agent_id}"

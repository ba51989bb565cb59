"""Secrets are hidden however they are spelled."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.sut.masking import MASK, SHORTEST, Masker

SECRET = 'tok/en+with "quotes" & ümlauts'


@pytest.mark.req("SEC-015")
@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"token={SECRET};", f"token={MASK};"),
        (f"twice {SECRET}{SECRET}!", f"twice {MASK}!"),
        (json.dumps({"token": SECRET}), f'{{"token": "{MASK}"}}'),
        (json.dumps({"token": SECRET}, ensure_ascii=False), f'{{"token": "{MASK}"}}'),
        (json.dumps({"token": SECRET}).replace("/", "\\/"), f'{{"token": "{MASK}"}}'),
        (f"?t={quote(SECRET, safe='')}&x", f"?t={MASK}&x"),
        (f"?t={quote(SECRET, safe='').lower()}&x", f"?t={MASK}&x"),
        (f"Basic {base64.b64encode(SECRET.encode()).decode()}.", f"Basic {MASK}."),
        (f"Basic {base64.urlsafe_b64encode(SECRET.encode()).decode()}.", f"Basic {MASK}."),
        ("nothing to hide", "nothing to hide"),
    ],
)
def test_each_spelling_is_hidden(text: str, masked: str) -> None:
    assert Masker([SECRET]).mask(text) == masked


@given(
    before=st.binary(max_size=7),
    secret=st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=12, max_size=40),
    behind=st.binary(max_size=7),
)
@pytest.mark.req("SEC-015")
def test_base64_of_something_around_a_secret_gives_at_most_its_edges(before: bytes, secret: str, behind: bytes) -> None:
    shown = Masker([secret]).mask(base64.b64encode(before + secret.encode() + behind).decode())
    assert MASK in shown
    left, _, right = shown.partition(MASK)
    assert len(left) <= (len(before) + 2) * 4 // 3 + 1
    assert len(right) <= (len(behind) + 2) * 4 // 3 + 3


def test_secrets_that_overlap_leave_no_rest() -> None:
    assert Masker(["abcdef123", "123456"]).mask("<abcdef123456>") == f"<{MASK}>"


def test_a_secret_of_several_lines_is_hidden_line_by_line() -> None:
    masker = Masker(["first-line-of-it\nsecond-line-of-it\n"])
    assert masker.mask("got second-line-of-it") == f"got {MASK}"


@pytest.mark.parametrize(("length", "hidden"), [(SHORTEST - 1, False), (SHORTEST, True)])
def test_what_is_too_short_for_a_secret_is_left(length: int, hidden: bool) -> None:
    secret = "s3cret"[:length]
    assert (MASK in Masker([secret]).mask(f"a {secret} b")) is hidden


@given(st.text(max_size=60), st.integers(0, 60))
def test_without_a_secret_a_text_is_only_cut(text: str, end: int) -> None:
    assert Masker([]).mask(text, end) == text[:end]


def test_a_secret_across_the_cut_is_hidden() -> None:
    assert Masker(["secret-token"]).mask("0123secret-token9", 8) == f"0123{MASK}"


def test_a_masker_shows_no_secret() -> None:
    assert "secret-token" not in repr(Masker(["secret-token"]))

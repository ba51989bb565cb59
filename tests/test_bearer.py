"""The Bearer check."""

from __future__ import annotations

import pytest

from lab.bearer import bears, token_of
from lab.hashed_key import HashedKey


@pytest.mark.parametrize(
    ("headers", "borne"),
    [
        (["Bearer secret"], True),
        ([], False),
        (["Bearer secret", "Bearer secret"], False),
        (["Bearer secre"], False),
        (["Bearer secrets"], False),
        (["bearer secret"], True),
        (["BEARER secret"], True),
        (["Bearer  secret"], False),
        (["Bearer "], False),
        (["secret"], False),
        (["Basic secret"], False),
        (["Bearer s\u00e9cret"], False),
        (["Bearer \udcff"], False),
    ],
)
def test_one_header_with_exactly_the_token(headers: list[str], borne: bool) -> None:
    """And so it is wherever a key is checked, of which only a hash may be there."""
    assert bears(headers, "secret") is borne
    assert HashedKey("secret").borne_by(headers) is borne
    assert (token_of(headers) == "secret") is borne


def test_nobody_bears_an_empty_key() -> None:
    for headers in ([], ["Bearer "], ["Bearer"], ["Basic x"]):
        assert not bears(headers, "")
        assert not HashedKey("").borne_by(headers)

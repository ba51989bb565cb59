"""The Bearer check."""

from __future__ import annotations

import pytest

from lab.bearer import bears


@pytest.mark.parametrize(
    ("headers", "borne"),
    [
        (["Bearer secret"], True),
        ([], False),
        (["Bearer secret", "Bearer secret"], False),
        (["Bearer secre"], False),
        (["Bearer secrets"], False),
        (["bearer secret"], False),
        (["secret"], False),
        (["Basic secret"], False),
        (["Bearer s\u00e9cret"], False),
        (["Bearer \udcff"], False),
    ],
)
def test_one_header_with_exactly_the_token(headers: list[str], borne: bool) -> None:
    assert bears(headers, "secret") is borne

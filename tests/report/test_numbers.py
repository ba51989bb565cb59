"""Numbers in words."""

from __future__ import annotations

import pytest

from lab.report.numbers import plural


@pytest.mark.parametrize(("number", "words"), [(0, "0 pages"), (1, "1 page"), (2, "2 pages")])
def test_one_thing_has_no_s(number: int, words: str) -> None:
    """All other numbers have."""
    assert plural(number, "page") == words

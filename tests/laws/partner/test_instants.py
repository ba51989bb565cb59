"""Times compare as instants."""

from __future__ import annotations

import pytest

from lab.laws.partner.instants import instant


@pytest.mark.req("PA-048")
def test_the_same_instant_in_three_forms() -> None:
    told = ("2023-11-14T22:13:20.000Z", "2023-11-14T22:13:20Z", "2023-11-14T23:13:20.000+01:00")
    assert {instant(one) for one in told} == {1_700_000_000.0}


@pytest.mark.parametrize("value", [None, 7, "", "soon", "2023-11-14T22:13:20"])
def test_what_is_no_instant(value: object) -> None:
    assert instant(value) is None

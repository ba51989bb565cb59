from __future__ import annotations

import pytest

from lab.hashed_key import HashedKey

KEY = "k3y"


@pytest.mark.parametrize(
    ("headers", "borne"),
    [
        ([f"Bearer {KEY}"], True),
        ([], False),
        ([""], False),
        ([KEY], False),
        (["Bearer"], False),
        (["Bearer "], False),
        ([f"bearer {KEY}"], True),
        ([f"Basic {KEY}"], False),
        ([f"Bearer {KEY} "], False),
        ([f"Bearer {KEY}x"], False),
        ([f"Bearer {KEY}"] * 2, False),
        (["Bearer \udce9"], False),
    ],
)
def test_a_key_is_borne_once_and_exactly(headers: list[str], borne: bool) -> None:
    assert HashedKey(KEY).borne_by(headers) is borne


@pytest.mark.req("PRIV-019")
def test_the_key_is_not_kept() -> None:
    assert KEY not in repr(vars(HashedKey(KEY)))

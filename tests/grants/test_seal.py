"""The seal: what it opens, and that nobody else reads or alters a grant."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest

from lab.errors import MisuseError
from lab.grants.binding import WORDS
from lab.grants.seal import MAX_CHARACTERS, NONCE_BYTES, GrantTooLong, Seal
from tests.grants.made import BINDING, SEAL_KEY

NONCE = b"n" * NONCE_BYTES
GRANT = Seal(SEAL_KEY).seal(BINDING, NONCE)


@pytest.mark.req("GR-010")
def test_who_has_the_key_reads_the_whole_binding() -> None:
    assert GRANT.startswith("tg1.")
    assert Seal(SEAL_KEY).open(GRANT) == BINDING


@pytest.mark.req("CX-035", "GR-010")
def test_a_grant_shows_no_claim() -> None:
    text = GRANT.removeprefix("tg1.")
    inside = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    for value in BINDING.told().values():
        assert str(value).encode() not in inside


@pytest.mark.req("GR-010")
@pytest.mark.parametrize("place", range(4, len(GRANT)))
def test_an_altered_grant_is_none(place: int) -> None:
    other = "A" if GRANT[place] != "A" else "B"
    assert Seal(SEAL_KEY).open(GRANT[:place] + other + GRANT[place + 1 :]) is None


@pytest.mark.req("GR-010")
@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_grant_has_one_spelling(size: int) -> None:
    """The last character may have bits that no byte needs."""
    grant = Seal(SEAL_KEY).seal(replace(BINDING, actor_id="x" * size), NONCE)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    opened = [last for last in alphabet if Seal(SEAL_KEY).open(grant[:-1] + last) is not None]
    assert opened == [grant[-1]]


def test_the_key_of_another_start_opens_nothing() -> None:
    assert Seal(b"o" * 32).open(GRANT) is None


@pytest.mark.parametrize(
    "token",
    ["", "tg1.", "tg1.!", "tg2." + GRANT[4:], GRANT[4:], GRANT + "=", GRANT + "A", "tg1.AAAA", "tg1.é", "\ud800"],
)
def test_what_is_no_grant_is_none(token: str) -> None:
    assert Seal(SEAL_KEY).open(token) is None


def test_a_grant_of_other_claims_is_none() -> None:
    """Sealed by the right key, with something else inside."""
    from nacl.secret import SecretBox

    for inside in (b"{}", b"[]", b"[1,2,3,4,5,6,7,8,9,10]", b"no json", b"\xff"):
        sealed = bytes(SecretBox(SEAL_KEY).encrypt(inside, NONCE))
        assert Seal(SEAL_KEY).open("tg1." + base64.urlsafe_b64encode(sealed).rstrip(b"=").decode()) is None


def test_a_grant_fits_a_bind() -> None:
    with pytest.raises(GrantTooLong):
        Seal(SEAL_KEY).seal(replace(BINDING, actor_id="x" * MAX_CHARACTERS), NONCE)


def test_a_key_of_another_size_is_a_defect() -> None:
    with pytest.raises(MisuseError):
        Seal(b"short")


def test_each_id_of_a_binding_has_a_word() -> None:
    assert list(BINDING.told()) == list(WORDS.values())

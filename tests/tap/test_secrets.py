import base64
import json
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.tap.secrets import SHORTEST_ENCODED, SecretSearch

SECRET = 'tg1.Ab/"\\+é-secret'


def in_base64(encode: Callable[[bytes], bytes], before: bytes) -> bytes:
    return encode(before + SECRET.encode() + b" and more")


FORMS = {
    "plain": SECRET.encode(),
    "json": json.dumps({"a": SECRET}).encode(),
    "json in json": json.dumps({"a": json.dumps({"b": SECRET})}).encode(),
    "json as utf-8": json.dumps(SECRET, ensure_ascii=False).encode(),
    "percent": quote(SECRET).encode(),
    "every byte percent": "".join(f"%{byte:02X}" for byte in SECRET.encode()).encode(),
    "percent twice": quote(quote(SECRET)).encode(),
    "hex": SECRET.encode().hex().encode(),
    "HEX": SECRET.encode().hex().upper().encode(),
}


@pytest.mark.parametrize("form", sorted(FORMS))
def test_every_form_is_found(form: str) -> None:
    search = SecretSearch({"other": "something-else", "key": SECRET})
    assert search.names_in(b"before " + FORMS[form] + b" behind") == ("key",)


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@given(before=st.binary(max_size=7), behind=st.binary(max_size=5))
def test_base64_is_found_wherever_the_value_begins(
    encode: Callable[[bytes], bytes], before: bytes, behind: bytes
) -> None:
    search = SecretSearch({"key": SECRET})
    assert search.names_in(encode(before + SECRET.encode() + behind)) == ("key",)


@given(st.binary(max_size=200))
def test_what_has_no_secret_has_none(raw: bytes) -> None:
    search = SecretSearch({"key": "0123456789abcdefghij", "empty": ""})
    assert search.names_in(raw) == ()


def test_a_short_value_is_looked_for_as_it_is_alone() -> None:
    short = "x" * (SHORTEST_ENCODED - 1)
    search = SecretSearch({"key": short})
    assert search.names_in(short.encode()) == ("key",)
    assert search.names_in(base64.b64encode(short.encode())) == ()


def test_further_values_are_known_from_then_on() -> None:
    search = SecretSearch({})
    assert not search.hit("tg1.grant-one")
    search.know("grant", "tg1.grant-one")
    search.know("nothing", "")
    assert search.hit("a tg1.grant-one b")
    assert search.names_in(b"") == ()

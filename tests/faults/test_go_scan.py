"""Reading JSON as Go's scanner does: tables of its words, and Python's own reader as a second opinion."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.faults.go_scan import MAX_BYTES, MAX_DEPTH, GoJsonError, Number, Object, Value, scan_untrusted

REFUSED = [
    (b"", "EOF"),
    (b" \r\n\t", "EOF"),
    (b"{", "unexpected EOF"),
    (b'{"a"', "unexpected EOF"),
    (b'{"a":', "unexpected EOF"),
    (b'{"a":1', "unexpected EOF"),
    (b'{"a":1,', "unexpected EOF"),
    (b"[1", "unexpected EOF"),
    (b'"abc', "unexpected EOF"),
    (b'"abc\\', "unexpected EOF"),
    (b'"\\u12', "unexpected EOF"),
    (b"tru", "unexpected EOF"),
    (b"-", "unexpected EOF"),
    (b"1.", "unexpected EOF"),
    (b"1e", "unexpected EOF"),
    (b"1e+", "unexpected EOF"),
    (b"x", "invalid character 'x' looking for beginning of value"),
    (b"'a'", r"invalid character '\'' looking for beginning of value"),
    (b"\x00", r"invalid character '\x00' looking for beginning of value"),
    (b"\x7f", r"invalid character '\x7f' looking for beginning of value"),
    (b"\xef\xbb\xbf{}", "invalid character 'ï' looking for beginning of value"),
    (b"\xc2\xa0", "invalid character 'Â' looking for beginning of value"),
    (b"\xa0", r"invalid character '\u00a0' looking for beginning of value"),
    (b"NaN", "invalid character 'N' looking for beginning of value"),
    (b"+1", "invalid character '+' looking for beginning of value"),
    (b"[1,]", "invalid character ']' looking for beginning of value"),
    (b"[,1]", "invalid character ',' looking for beginning of value"),
    (b"[1 2]", "invalid character '2' after array element"),
    (b"[01]", "invalid character '1' after array element"),
    (b"[1.5.5]", "invalid character '.' after array element"),
    (b"[truex]", "invalid character 'x' after array element"),
    (b"[1}", "invalid character '}' after array element"),
    (b"{a:1}", "invalid character 'a' looking for beginning of object key string"),
    (b'{"a":1,}', "invalid character '}' looking for beginning of object key string"),
    (b'{"a" 1}', "invalid character '1' after object key"),
    (b'{"a":1 "b":2}', "invalid character '\"' after object key:value pair"),
    (b'{"a":1]', "invalid character ']' after object key:value pair"),
    (b"[tru]", "invalid character ']' in literal true (expecting 'e')"),
    (b"[nul\\]", r"invalid character '\\' in literal null (expecting 'l')"),
    (b"[-]", "invalid character ']' in numeric literal"),
    (b"[1.]", "invalid character ']' after decimal point in numeric literal"),
    (b"[1.e5]", "invalid character 'e' after decimal point in numeric literal"),
    (b"[1ex]", "invalid character 'x' in exponent of numeric literal"),
    (b"[1e+-]", "invalid character '-' in exponent of numeric literal"),
    (b'"a\nb"', r"invalid character '\n' in string literal"),
    (b'"a\x01b"', r"invalid character '\x01' in string literal"),
    (b'"\\x"', "invalid character 'x' in string escape code"),
    (b'"\\u12g4"', r"invalid character 'g' in \u hexadecimal character escape"),
    (b"[" * (MAX_DEPTH + 1), "invalid character '[' exceeded max depth"),
    (b" " * (MAX_BYTES + 1), "http: request body too large"),
]


@pytest.mark.parametrize(("data", "words"), REFUSED, ids=[repr(data[:12]) for data, _ in REFUSED])
def test_what_is_refused(data: bytes, words: str) -> None:
    """In Go's own words."""
    with pytest.raises(GoJsonError) as refused:
        scan_untrusted(data)
    assert str(refused.value) == words


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"null", None),
        (b"true", True),
        (b" false ", False),
        (b"0", Number("0")),
        (b"-0.50e+07", Number("-0.50e+07")),
        (b"007", Number("0")),
        (b"12x", Number("12")),
        (b"truex", True),
        (b'"a"b', "a"),
        (b"[]]", []),
        (b"{}garbage", Object([])),
        (b'{"a":1}{"a":2}', Object([("a", Number("1"))])),
        (b'{"a":1,"a":null}', Object([("a", Number("1")), ("a", None)])),
        (b'"\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041"', '"\\/\b\f\n\r\tA'),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'"\\ud83d"', "\ufffd"),
        (b'"\\ude00\\ud83dx"', "\ufffd\ufffdx"),
        (b'"\\ud83d\\ud83d\\ude00"', "\ufffd\U0001f600"),
        (b'"\xc3\xa9\x7f"', "é\x7f"),
        (b'"\xff\xe2\x82"', "\ufffd\ufffd\ufffd"),
        (b'"\xed\xa0\x80"', "\ufffd\ufffd\ufffd"),
        (b"[[1,[]],{}]", [[Number("1"), []], Object([])]),
    ],
)
def test_what_is_read(data: bytes, value: Value) -> None:
    """The first value; what is behind it is left, and each byte that is no UTF-8 is replaced."""
    assert scan_untrusted(data) == value


def test_depth_and_size_to_the_bound() -> None:
    """As deep and as long as allowed, without recursion."""
    deep = scan_untrusted(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    depth = 0
    while isinstance(deep, list):
        depth += 1
        deep = deep[0] if deep else None
    assert depth == MAX_DEPTH
    assert scan_untrusted(b'"' + b"a" * (MAX_BYTES - 2) + b'"') == "a" * (MAX_BYTES - 2)


def _plain(value: Value) -> object:
    match value:
        case Number():
            return json.loads(value.literal)
        case Object():
            return {key: _plain(part) for key, part in value.members}
        case list():
            return [_plain(part) for part in value]
        case _:
            return value


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda part: st.lists(part) | st.dictionaries(st.text(), part),
    max_leaves=20,
)


@given(JSON, st.booleans(), st.sampled_from([None, 1]))
def test_any_json_is_read(value: object, ascii_only: bool, indent: int | None) -> None:
    """It means what Python's reader says."""
    assert _plain(scan_untrusted(json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode())) == value


@given(st.binary(max_size=60) | st.text('{}[]",:\\ u0eE+-.truefalsn1', max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    """No other error; and what Python reads as one JSON document is never refused."""
    try:
        scan_untrusted(data)
    except GoJsonError:
        try:
            json.loads(data.decode("utf-8"), parse_constant=_no_constant)
        except ValueError:
            return
        raise


def _no_constant(name: str) -> object:
    raise ValueError(name)

"""From a message to a JSON object: what is let through, and the code of what is not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import WireError
from lab.protocol.wire import MAX_DEPTH, byte_length, encode, parse_json_untrusted, parse_untrusted

LIMIT = 49152


def code_of(message: str | bytes) -> str | None:
    try:
        parse_untrusted(message, LIMIT)
    except WireError as error:
        return error.code
    return None


def padded(size: int, letter: str = "a") -> str:
    """An object of exactly `size` bytes of UTF-8."""
    width = len(letter.encode())
    room = size - len('{"a":""}')
    return '{"a":"' + letter * (room // width) + "b" * (room % width) + '"}'


def nested(depth: int, opening: str = "[", closing: str = "]") -> str:
    """A text whose deepest container is at `depth`, the outermost being at 1."""
    return '{"a":' + opening * (depth - 1) + closing * (depth - 1) + "}"


BAD = {
    "empty": "",
    "open": "{",
    "array": "[]",
    "string": '"a"',
    "number": "1",
    "null": "null",
    "two objects": "{}{}",
    "comment": "{}//",
    "byte order mark": "\ufeff{}",
    "trailing comma": '{"a":1,}',
    "single quotes": "{'a':1}",
    "duplicate key": '{"a":1,"a":1}',
    "duplicate key in a list": '{"b":[{"a":1,"a":2}]}',
    "duplicate key in an object": '{"b":{"c":{"a":1,"a":2}}}',
    "duplicate key by escape": '{"a":1,"\\u0061":2}',
    "NaN": '{"a":NaN}',
    "Infinity": '{"a":[Infinity]}',
    "minus infinity": '{"a":-Infinity}',
    "number out of range": '{"a":1e999}',
    "negative number out of range": '{"a":-1e999}',
    "lone surrogate": '{"a":"\\ud800"}',
    "lone low surrogate": '{"a":"\\uDC00"}',
    "surrogates the wrong way round": '{"a":"\\udc00\\ud800"}',
    "lone surrogate as a key": '{"\\uD83D":1}',
    "raw surrogate": '{"a":"\ud800"}',
    "raw control character": '{"a":"\n"}',
    "too deep": nested(MAX_DEPTH + 1),
    "too deep in objects": nested(MAX_DEPTH + 1, '{"a":', "}").replace(":}", ":1}"),
    "deep without end": '{"a":' + "[" * 40_000,
    "more digits than anyone reads": '{"a":' + "1" * 5000 + "}",
}


@pytest.mark.req("WS-034", "WS-035", "WS-059")
@pytest.mark.parametrize("name", BAD)
def test_bad_frame(name: str) -> None:
    assert code_of(BAD[name]) == "bad_frame"


GOOD = {
    "empty": "{}",
    "space around": ' {"a" : 1} ',
    "same key at different depths": '{"a":{"a":1},"b":[{"a":1},{"a":1}]}',
    "pair of surrogates": '{"a":"\\ud83d\\ude00"}',
    "an escaped backslash before u": '{"a":"\\\\ud800"}',
    "large number": '{"a":1e308}',
    "as deep as may be": nested(MAX_DEPTH),
    "wide": '{"a":[' + ",".join(["[]"] * 500) + "]}",
    "more members than any frame has": json.dumps({f"m{number}": number for number in range(300)}),
    "brackets in a string": '{"a":"' + "[" * 500 + '"}',
}


@pytest.mark.parametrize("name", GOOD)
def test_good_text(name: str) -> None:
    assert parse_untrusted(GOOD[name], LIMIT) == json.loads(GOOD[name])


@pytest.mark.req("WS-019", "WS-020", "WS-062")
@pytest.mark.parametrize("letter", ["a", "é", "€", "😀"])
def test_size_is_counted_in_bytes_and_the_bound_is_inside(letter: str) -> None:
    assert byte_length(padded(LIMIT, letter)) == LIMIT
    assert code_of(padded(LIMIT, letter)) is None
    assert code_of(padded(LIMIT + 1, letter)) == "frame_too_large"


@pytest.mark.req("WS-020", "WS-029", "WS-030")
def test_size_comes_before_everything_else() -> None:
    assert code_of("[" * (LIMIT + 1)) == "frame_too_large"
    assert code_of(b"\x00" * (LIMIT + 1)) == "frame_too_large"
    assert code_of('{"a":1,"a":"' + "x" * LIMIT + '"}') == "frame_too_large"


@pytest.mark.req("WS-036")
@pytest.mark.parametrize("message", [b"", b"{}", b"ping", b"\xff"])
def test_binary_is_bad_frame(message: bytes) -> None:
    assert code_of(message) == "bad_frame"


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda children: st.lists(children) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), children),
)


@given(json_values)
def test_what_is_encoded_is_read_back(value: object) -> None:
    assert parse_json_untrusted(encode({"value": value}))["value"] == value


@given(st.text() | st.text('{}[]":,\\u0d8', max_size=40))
def test_any_text_gives_a_value_or_bad_frame(text: str) -> None:
    assert code_of(text) in (None, "bad_frame")


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_no_number_that_json_lacks_is_written(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode({"a": number})

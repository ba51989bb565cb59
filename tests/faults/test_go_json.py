"""Into structs and back as Go does it."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.faults.go_json import Field, GoJsonError, List, Raw, Struct, decode_later, decode_untrusted, encode
from lab.faults.go_scan import MAX_BYTES

INNER = Struct("toxics.LatencyToxic", (Field("latency", "int64"), Field("size", "int"), Field("rate", "float64")))
OUTER = Struct(
    "toxiproxy.Proxy",
    (Field("name", "string"), Field("enabled", "bool"), Field("toxicity", "float32"), Field("attributes", INNER)),
)
NAMELESS = Struct('struct { Enabled *bool "json:\\"enabled\\"" }', (Field("enabled", "bool"), Field("in", List(OUTER))))


@pytest.mark.parametrize(
    ("data", "due"),
    [
        (b"{}", {}),
        (b"null", {}),
        (b'{"name":null,"enabled":null,"toxicity":null,"attributes":null}', {}),
        (b'{"NAME":"a","eNabled":false}', {"name": "a", "enabled": False}),
        ('{"attribute\u017f":{"\u017fize":2}}'.encode(), {"attributes": {"size": 2}}),
        (b'{"unknown":{"name":[1]},"name":"a"}', {"name": "a"}),
        (b'{"name":"a"}{"name":', {"name": "a"}),
        (b'{"name":"a","Name":"b"}', {"name": "b"}),
        (b'{"name":"a","Name":null}', {"name": "a"}),
        (
            b'{"attributes":{"latency":1,"size":2},"attributes":{"latency":3}}',
            {"attributes": {"latency": 3, "size": 2}},
        ),
        (b'{"attributes":{"latency":-0}}', {"attributes": {"latency": 0}}),
        (b'{"attributes":{"latency":-9223372036854775808}}', {"attributes": {"latency": -(1 << 63)}}),
        (b'{"attributes":{"latency":9223372036854775807}}', {"attributes": {"latency": (1 << 63) - 1}}),
        (b'{"attributes":{"rate":1}}', {"attributes": {"rate": 1.0}}),
        (b'{"toxicity":1e0}', {"toxicity": 1.0}),
        (b'{"toxicity":0.3}', {"toxicity": 0.3}),
        (b'{"toxicity":0.123456789}', {"toxicity": 0.12345679}),
        (b'{"toxicity":1e-50}', {"toxicity": 0.0}),
    ],
)
def test_what_is_set(data: bytes, due: dict[str, Any]) -> None:
    """Only what the body names; the last one counts."""
    assert decode_untrusted(data, OUTER) == due


FIELD = "json: cannot unmarshal {} into Go struct field {} of type {}"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"[]", "json: cannot unmarshal array into Go value of type toxiproxy.Proxy"),
        (b'"a"', "json: cannot unmarshal string into Go value of type toxiproxy.Proxy"),
        (b"1", "json: cannot unmarshal number into Go value of type toxiproxy.Proxy"),
        (b"true", "json: cannot unmarshal bool into Go value of type toxiproxy.Proxy"),
        (b'{"name":1}', FIELD.format("number", "Proxy.name", "string")),
        (b'{"NAME":{}}', FIELD.format("object", "Proxy.name", "string")),
        (b'{"enabled":"true"}', FIELD.format("string", "Proxy.enabled", "bool")),
        (b'{"enabled":1}', FIELD.format("number", "Proxy.enabled", "bool")),
        (b'{"toxicity":"1"}', FIELD.format("string", "Proxy.toxicity", "float32")),
        (b'{"toxicity":1e39}', FIELD.format("number 1e39", "Proxy.toxicity", "float32")),
        (b'{"toxicity":1e999}', FIELD.format("number 1e999", "Proxy.toxicity", "float32")),
        (b'{"attributes":[]}', FIELD.format("array", "Proxy.attributes", "toxics.LatencyToxic")),
        (b'{"attributes":{"latency":1.5}}', FIELD.format("number 1.5", "LatencyToxic.attributes.latency", "int64")),
        (b'{"attributes":{"latency":1e3}}', FIELD.format("number 1e3", "LatencyToxic.attributes.latency", "int64")),
        (b'{"attributes":{"latency":"5"}}', FIELD.format("string", "LatencyToxic.attributes.latency", "int64")),
        (b'{"attributes":{"size":true}}', FIELD.format("bool", "LatencyToxic.attributes.size", "int")),
        (
            b'{"attributes":{"latency":9223372036854775808}}',
            FIELD.format("number 9223372036854775808", "LatencyToxic.attributes.latency", "int64"),
        ),
        (b'{"name":1,"name"', "unexpected EOF"),
    ],
)
def test_what_is_refused(data: bytes, words: str) -> None:
    """In Go's own words; a broken text comes before a wrong type."""
    with pytest.raises(GoJsonError) as refused:
        decode_untrusted(data, OUTER)
    assert str(refused.value) == words


@pytest.mark.timeout(20)
def test_an_object_that_is_kept_and_comes_often_is_one() -> None:
    """Read in the time that its bytes take: in their square it is more than a minute, in which nobody is served."""
    kept, inner = Struct("A", (Field("a", Raw("B")),)), Struct("B", (Field("b", "int"),))
    count = MAX_BYTES // len('"a":{"b":1},') - 1
    body = b"{" + b'"a":{"b":1},' * count + b'"a":{"b":2}}'
    decoded = decode_untrusted(body, kept)
    assert len(decoded["a"].members) == count + 1
    assert decode_later(decoded["a"], inner, ("a",)) == {"b": 2}


def test_lists() -> None:
    """Of structs; null is an empty list, and a null in it an empty struct."""
    assert decode_untrusted(b"null", List(OUTER)) == []
    assert decode_untrusted(b'[{"name":"a"},null]', List(OUTER)) == [{"name": "a"}, {}]
    for data, words in [
        (b"{}", "json: cannot unmarshal object into Go value of type []toxiproxy.Proxy"),
        (b"[1]", "json: cannot unmarshal number into Go value of type toxiproxy.Proxy"),
    ]:
        with pytest.raises(GoJsonError) as refused:
            decode_untrusted(data, List(OUTER))
        assert str(refused.value) == words


def test_a_struct_without_a_name() -> None:
    """Leaves the place before the dot empty."""
    with pytest.raises(GoJsonError, match=r"into Go struct field \.enabled of type bool$"):
        decode_untrusted(b'{"enabled":1}', NAMELESS)
    with pytest.raises(GoJsonError, match=r"into Go struct field Proxy\.in\.name of type string$"):
        decode_untrusted(b'{"in":[{"name":1}]}', NAMELESS)


@pytest.mark.parametrize(
    ("value", "due"),
    [
        (None, b"null"),
        (True, b"true"),
        (-5, b"-5"),
        (1.0, b"1"),
        (0.3, b"0.3"),
        (-0.0, b"-0"),
        (0.000001, b"0.000001"),
        (1.5e-7, b"1.5e-7"),
        (1e-10, b"1e-10"),
        (1.2345678901234567e20, b"123456789012345670000"),
        (1e21, b"1e+21"),
        ("<a href='x'>&", b"\"\\u003ca href='x'\\u003e\\u0026\""),
        ('"\\/', b'"\\"\\\\/"'),
        ("\b\f\n\r\t\x00\x1f\x7f", b'"\\b\\f\\n\\r\\t\\u0000\\u001f\x7f"'),
        ("\u2028\u2029é", b'"\\u2028\\u2029\xc3\xa9"'),
        ({"b": 1, "a": [1, "x", {}], "<": ()}, b'{"b":1,"a":[1,"x",{}],"\\u003c":[]}'),
    ],
)
def test_what_is_written(value: object, due: bytes) -> None:
    """No spaces, in the order given, markup escaped."""
    assert encode(value) == due


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e15, 1e15) | st.text(),
    lambda part: st.lists(part) | st.dictionaries(st.text(), part),
    max_leaves=20,
)


@given(JSON)
def test_what_is_written_is_json(value: object) -> None:
    """That means what was given, and that no browser takes for markup."""
    written = encode(value)
    assert json.loads(written) == value
    assert not set(written) & set(b"<>&")


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_32_bits_survive(number: float) -> None:
    """Written in the fewest digits that mean them."""
    read = decode_untrusted(json.dumps({"toxicity": number}).encode(), OUTER)["toxicity"]
    assert struct.pack("<f", read) == struct.pack("<f", number)
    assert math.copysign(1, read) == math.copysign(1, number)
    assert len(repr(read)) <= len(repr(number))

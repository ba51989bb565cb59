"""Attributes as JSON values: what is read, and what is refused with a sentence."""

from __future__ import annotations

from dataclasses import fields

import pytest

from lab.faults.refusals import BadToxic
from lab.faults.toxics import KINDS
from lab.faults.toxics.attributes import LARGEST_INTEGER, listed_attributes, read_attributes


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_each_kind_does_one_thing_and_all_its_defaults_say_nothing(kind: str) -> None:
    made = KINDS[kind]
    assert (made.stage is None) != (made.door is None)
    assert made.name == kind
    for field in fields(made.attributes):
        assert getattr(made.attributes, field.name) in (0, 0.0, False)


@pytest.mark.parametrize(
    ("given", "latency", "jitter"),
    [
        ({}, 7, 8),
        ({"latency": 100}, 100, 8),
        ({"LATENCY": 100, "Jitter": 5}, 100, 5),
        ({"latency": None, "unknown": "x"}, 7, 8),
        ({"latency": -LARGEST_INTEGER}, -LARGEST_INTEGER, 8),
    ],
)
def test_given_values_are_merged(given: dict[str, object], latency: int, jitter: int) -> None:
    base = read_attributes("latency", KINDS["latency"].attributes, {"latency": 7, "jitter": 8})
    read = read_attributes("latency", base, given)
    assert listed_attributes(read) == {"latency": latency, "jitter": jitter}


@pytest.mark.parametrize(
    ("kind", "given", "sentence"),
    [
        ("latency", {"latency": 1.5}, "latency: latency is 1.5, and an integer is due"),
        ("latency", {"latency": 5.0}, "latency: latency is 5.0, and an integer is due"),
        ("latency", {"latency": "5"}, "latency: latency is str, and an integer is due"),
        ("latency", {"latency": True}, "latency: latency is True, and an integer is due"),
        ("latency", {"jitter": LARGEST_INTEGER + 1}, "jitter is 9223372036854775808, and an integer is due"),
        ("latency", {"latency": [1]}, "latency is list"),
        ("bandwidth", {"rate": -1}, "bandwidth cannot have rate -1: it is 0 \\(nothing passes\\) or more KB/s"),
        ("bandwidth", {"rate": 1, "shared": 1}, "shared is 1, and true or false is due"),
        ("slicer", {}, "slicer cannot have average_size 0: a slice has at least one byte"),
        ("slicer", {"average_size": -1}, "average_size -1"),
        ("slicer", {"average_size": 5, "size_variation": 6}, "size_variation 6: it is between 0 and average_size, 5"),
        ("slicer", {"average_size": 5, "size_variation": -1}, "size_variation -1"),
        ("packet_loss", {"loss_rate": 1.1}, "loss_rate 1.1: it is a share, from 0 to 1"),
        ("packet_loss", {"correlation": -0.1}, "correlation -0.1"),
        ("packet_loss", {"loss_rate": float("nan")}, "loss_rate is nan, and a number is due"),
        ("packet_loss", {"loss_rate": False}, "loss_rate is False, and a number is due"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(kind: str, given: dict[str, object], sentence: str) -> None:
    with pytest.raises(BadToxic, match=sentence) as refusal:
        read_attributes(kind, KINDS[kind].attributes, given)
    assert refusal.value.what == "attributes"
    assert refusal.value.attribute


def test_an_integer_is_a_number() -> None:
    read = read_attributes("packet_loss", KINDS["packet_loss"].attributes, {"loss_rate": 1})
    assert listed_attributes(read) == {"loss_rate": 1.0, "correlation": 0.0}


def test_an_attribute_that_the_go_server_lacks_is_listed_where_it_says_something() -> None:
    base = KINDS["bandwidth"].attributes
    assert listed_attributes(read_attributes("bandwidth", base, {"rate": 5})) == {"rate": 5}
    shared = read_attributes("bandwidth", base, {"rate": 5, "shared": True})
    assert listed_attributes(shared) == {"rate": 5, "shared": True}

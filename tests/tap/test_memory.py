"""Canaries in what an object holds."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from lab.tap import memory
from lab.tap.canaries import CanarySearch
from lab.tap.memory import canaries_held

SECRET = "k-4711-kk"
SEARCH = CanarySearch({"k1": SECRET, "k2": "other-4712"})


@dataclass
class Part:
    value: Any = None
    more: list[Any] = field(default_factory=list)


class Slotted:
    __slots__ = ("text", "unset")

    def __init__(self, text: str) -> None:
        self.text = text


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (f"a {SECRET} b", "value"),
        (f"a {SECRET}".encode(), "value"),
        (bytearray(SECRET.encode()), "value"),
        ({"name": [SECRET]}, "value"),
        ({SECRET: 1}, "value"),
        ((1, {2, SECRET}), "value"),
        (deque([None, SECRET]), "value"),
        (Part(Part(SECRET)), "value.value.value"),
        (Slotted(SECRET), "value.text"),
        ('{"escaped":"\\u006b-4711-kk"}', "value"),
    ],
)
def test_where_it_stands(value: object, place: str) -> None:
    assert canaries_held(Part(value), SEARCH) == ({"id": "k1", "place": place},)


def test_nothing_is_found_where_nothing_is() -> None:
    # Halves of one that only lie side by side are none.
    assert canaries_held(Part("k-4711", ["-kk", 1, None, 2.5, print]), SEARCH) == ()


def test_a_circle_ends() -> None:
    part = Part()
    part.more += [part, "other-4712", SECRET, SECRET]
    assert canaries_held(part, SEARCH) == ({"id": "k1", "place": "more"}, {"id": "k2", "place": "more"})


class OneSlot:
    __slots__ = "text"

    def __init__(self, text: str) -> None:
        self.text = text


class HiddenSlot:
    __slots__ = ("__text",)

    def __init__(self, text: str) -> None:
        self.__text = text


class Named(dict[str, str]):
    note = ""


def test_other_places_to_keep_something() -> None:
    named = Named()
    named.note = SECRET
    for value in (OneSlot(SECRET), HiddenSlot(SECRET), named, partial(print, SECRET), memoryview(SECRET.encode())):
        found = canaries_held(Part(value), SEARCH)
        assert found, type(value)


def test_too_much_to_look_at_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MOST_OBJECTS", 3)
    assert canaries_held(Part([Part(), Part(), Part(), Part()]), SEARCH) is None

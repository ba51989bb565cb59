"""The tree: values of YAML 1.2, places, paths."""

from __future__ import annotations

import pytest

from lab.errors import Place, ScenarioError
from lab.scenario.yaml_places import (
    MAX_VALUES,
    ListNode,
    MapNode,
    ScalarNode,
    parse_untrusted,
    path_words,
    plain,
    resolve_plain,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("off", "off"),
        ("no", "no"),
        ("Yes", "Yes"),
        ("12:30", "12:30"),
        ("0x1f", "0x1f"),
        ("1_000", "1_000"),
        (".inf", ".inf"),
        (".", "."),
        ("-", "-"),
        ("2026-01-01", "2026-01-01"),
        ("9" * 19, "9" * 19),
        ("1e400", "1e400"),
        ("007", 7),
        ("-3", -3),
        ("9" * 18, int("9" * 18)),
        ("2.3", 2.3),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("null", None),
    ],
)
def test_plain_scalars_mean_what_they_mean_in_yaml_1_2(text: str, value: object) -> None:
    found = resolve_plain(text)
    assert found == value
    assert type(found) is type(value)


def test_quoted_scalars_are_texts() -> None:
    node, _ = parse_untrusted("a: '1'\nb: \"true\"\nc: |\n  2\n", "f")
    assert plain(node) == {"a": "1", "b": "true", "c": "2\n"}


def test_places_and_paths() -> None:
    node, doubles = parse_untrusted("a:\n  - b: 1\n    ü c: [x, y]\n", "f")
    assert doubles == ()
    assert isinstance(node, MapNode)
    items = node.members["a"]
    assert isinstance(items, ListNode)
    first = items.items[0]
    assert isinstance(first, MapNode)
    assert first.place == Place("f", 2, 5)
    assert first.keys["ü c"] == Place("f", 3, 5)
    inner = first.members["ü c"]
    assert isinstance(inner, ListNode)
    last = inner.items[1]
    assert last == ScalarNode(Place("f", 3, 14), ("a", 0, "ü c", 1), "y", "y")
    assert path_words(last.path) == "a[0].ü c[1]"


def test_the_first_of_two_equal_keys_counts() -> None:
    node, doubles = parse_untrusted("a: 1\n'a': 2\n", "f")
    assert plain(node) == {"a": 1}
    assert [str(double) for double in doubles] == ["f:2:1: a: `a` stands here twice; the first is in line 1."]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: \x07b", "f:1:4: a character that YAML does not allow (U+0007)."),
        ("x: 1\n  \x07", "f:2:3: a character that YAML does not allow (U+0007)."),
        (
            "a: 'x\n",
            "f:2:1: not valid YAML: found unexpected end of stream (while scanning a quoted scalar from line 1).",
        ),
        ("a: b: c", "f:1:5: not valid YAML: mapping values are not allowed here."),
        ("{[a]: b}", "f:1:2: a key is a list or a mapping; due is a word."),
        ("{{a: b}: c}", "f:1:2: a key is a list or a mapping; due is a word."),
        ("{&x a: b}", "f:1:2: anchors and aliases have no meaning here; write the value out."),
        ("%YAML 3.0\n---\na", "f:1:1: not valid YAML: found incompatible YAML document (version 1.* is required)."),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse_untrusted(text, "f")
    assert str(caught.value) == message


def test_the_number_of_values_is_bounded() -> None:
    parse_untrusted("[" + "1," * (MAX_VALUES - 1) + "]", "f")
    with pytest.raises(ScenarioError, match=r"more than 10000 keys and values\.$"):
        parse_untrusted("[" + "1," * MAX_VALUES + "]", "f")

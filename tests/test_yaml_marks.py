from __future__ import annotations

import pytest

from lab.errors import Place, ScenarioError
from lab.yaml_marks import MAX_DEPTH, MAX_NODES, read_marks


def fault_of(text: str) -> ScenarioError:
    with pytest.raises(ScenarioError) as caught:
        read_marks(text, "f.yaml").members("a thing", ("one", "two"), ("one",))
    return caught.value


def test_members_know_their_place_and_path() -> None:
    two = read_marks("one: 1\ntwo: [a, b]\n", "f.yaml").mapping("a thing")["two"].items("a list")[1]
    assert (two.place, two.path, two.scalar("a word")) == (Place("f.yaml", 2, 10), "two[1]", "b")


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("", Place("f.yaml", 1), "empty"),
        ("one: [", Place("f.yaml", 1, 7), "no YAML"),
        ("one: \x00", Place("f.yaml", 1), "no YAML"),
        ("[one]", Place("f.yaml", 1), "a thing is due"),
        ("one: 1\none: 2", Place("f.yaml", 2), "`one` stands here twice"),
        ("one: &a 1\ntwo: *a", Place("f.yaml", 2, 6), "Aliases"),
        ("? [x]\n: 1", Place("f.yaml", 1, 3), "plain word"),
        ("two: 2", Place("f.yaml", 1), "`one` is missing"),
        ("one: 1\nthre:\n  4", Place("f.yaml", 2), "`thre` is not known here; one of `one`, `two` is due"),
        ("one: " + "[" * (MAX_DEPTH + 1), Place("f.yaml", 1, 5 + MAX_DEPTH), "deep"),
        ("one: [" + "1," * MAX_NODES + "]", Place("f.yaml", 1, 2 * MAX_NODES + 1), "parts"),
    ],
)
def test_a_fault_names_its_place(text: str, place: Place, words: str) -> None:
    fault = fault_of(text)
    assert words in fault.message
    assert fault.place == place


def test_a_fault_names_the_nearest_valid_word() -> None:
    assert fault_of("one: 1\ntow: 4").nearest == "two"
    assert fault_of("one: 1\nzzzz: 4").nearest is None


@pytest.mark.parametrize(
    ("text", "value"),
    [("7", 7), ("-7", -7), ("true", True), ("off", False), ("'7'", "7"), ("2026-01-02", "2026-01-02"), ("1.5", "1.5")],
)
def test_a_scalar_is_a_text_a_number_or_a_truth_value(text: str, value: object) -> None:
    scalar = read_marks(text, "f.yaml").scalar("a value")
    assert (type(scalar), scalar) == (type(value), value)


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(ScenarioError, match="surrogate"):
        read_marks('"\\ud800"', "f.yaml").text("a text")


@pytest.mark.parametrize("text", ["7", "''", "' '", "[a]"])
def test_a_text_is_neither_empty_nor_a_number(text: str) -> None:
    with pytest.raises(ScenarioError, match="a name is due"):
        read_marks(text, "f.yaml").text("a name")


@pytest.mark.parametrize("text", ["0", "11", "true", "x", "1.0", "[1]"])
def test_a_count_stays_in_its_bounds(text: str) -> None:
    with pytest.raises(ScenarioError, match="a count is due here"):
        read_marks(text, "f.yaml").count("a count", 1, 10)


def test_a_word_is_one_of_a_few() -> None:
    assert read_marks("stop", "f.yaml").word("a word", ("stop", "go")) == "stop"
    with pytest.raises(ScenarioError, match="one of `stop`, `go`") as caught:
        read_marks("stpo", "f.yaml").word("a word", ("stop", "go"))
    assert caught.value.nearest == "stop"


def test_a_flag_is_true_or_false() -> None:
    assert read_marks("true", "f.yaml").flag("a flag") is True
    with pytest.raises(ScenarioError, match="true or false"):
        read_marks("1", "f.yaml").flag("a flag")

"""Whatever is done to a scenario's text, the loader says so in its own words, and soon."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lab.errors import UsageError
from lab.scenario.loader import MAX_BYTES, load_scenario, resolved_yaml
from tests.scenario.texts import FULL, LAWS, SHORT, project

WORDS = sorted(set(FULL.replace("{", " ").replace("}", " ").replace(",", " ").replace(":", " ").split()))
SCRAPS = st.one_of(
    st.sampled_from(WORDS),
    st.sampled_from(
        ["\n", "  ", ": ", "- ", "{", "}", "[", "]", "'", '"', "#", "&a ", "*a", "!!int ", "? ", "|", "\t", "---\n"]
    ),
    st.sampled_from(
        ["null", "true", "0", "-1", "1e400", "9" * 30, "0x1f", ".inf", "~", "\x85", "\u2028", "\ufeff", "\x07"]
    ),
    st.text(max_size=4),
)
EDITS = st.lists(st.tuples(st.integers(0, len(FULL)), st.integers(0, 12), SCRAPS), min_size=1, max_size=4)
LINES = FULL.splitlines(keepends=True)
SECONDS = 2.0


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return project(tmp_path_factory.mktemp("project"))


def _load(root: Path, text: str) -> None:
    file = root / "full.yaml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        load_scenario(file, known_laws=LAWS)
    except UsageError as error:
        assert str(error)  # noqa: PT017 - any message will do; what matters is that nothing else is raised


@settings(max_examples=300, deadline=SECONDS * 1000, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=EDITS)
def test_edited_text(root: Path, edits: list[tuple[int, int, str]]) -> None:
    text = FULL
    for start, length, scrap in edits:
        text = text[:start] + scrap + text[start + length :]
    _load(root, text)


@settings(max_examples=100, deadline=SECONDS * 1000, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(st.sampled_from(LINES), max_size=len(LINES)))
def test_shuffled_lines(root: Path, lines: list[str]) -> None:
    _load(root, "".join(lines))


@settings(max_examples=200, deadline=SECONDS * 1000, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=st.lists(st.sampled_from([*WORDS, "0", "1", "assign", "-1", ""]), min_size=1, max_size=4), value=SCRAPS)
def test_any_override(root: Path, path: list[str], value: str) -> None:
    file = root / "full.yaml"
    file.write_text(FULL, "utf-8")
    overrides = {".".join(path): value}
    try:
        load_scenario(file, known_laws=LAWS, overrides=overrides)
    except UsageError:
        return
    assert resolved_yaml(file, overrides)


FULL_SIZE = {
    "opening brackets": "[" * MAX_BYTES,
    "opening braces": "{" * MAX_BYTES,
    "dashes": "- " * (MAX_BYTES // 2),
    "question marks": "? " * (MAX_BYTES // 2),
    "keys": "".join(f"k{number}: 1\n" for number in range(20_000)),
    "one long word": "a" * MAX_BYTES,
    "one long number": "scenario: " + "9" * 200_000,
    "open quote": "a: '" + "b\n " * 80_000,
    "anchors": "a: &a [" + "*a, " * 60_000 + "]",
    "steps": "steps:\n" + "  - idel: 1s\n" * 19_000,
    "errors": "steps: [" + "{wiat: 1}, " * 20_000 + "]",
    "the same key": "a: 1\n" * 50_000,
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("text", FULL_SIZE.values(), ids=FULL_SIZE.keys())
def test_the_largest_texts_are_refused_soon(root: Path, text: str) -> None:
    file = root / "full.yaml"
    file.write_text(text[:MAX_BYTES], "utf-8")
    with pytest.raises(UsageError) as caught:
        load_scenario(file, known_laws=LAWS)
    assert len(str(caught.value)) < 60_000


def test_a_long_value_is_not_repeated_in_full(root: Path) -> None:
    file = root / "short.yaml"
    file.write_text(SHORT.replace("1s", "x" * 5000), "utf-8")
    with pytest.raises(UsageError) as caught:
        load_scenario(file, known_laws=LAWS)
    assert len(str(caught.value)) < 400

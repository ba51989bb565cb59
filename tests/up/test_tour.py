"""The text of the tour; tests/commands/test_up.py has shells carry it out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lab.up.tour import TOUR, WORDS, tour_text


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        (Path(".orca/logs/lab-up.sh"), ". .orca/logs/lab-up.sh"),
        (Path("/a b/lab-up.sh"), ". '/a b/lab-up.sh'"),
        (Path("lab-up.sh"), ". ./lab-up.sh"),
    ],
)
def test_its_first_line_reads_the_variables(shell: Path, line: str) -> None:
    """A name without a slash would be looked for in the PATH."""
    assert tour_text(shell, "Why?").splitlines()[0] == line


def test_it_has_seven_steps_and_no_gap() -> None:
    text = tour_text(Path("a/b"), "Why not?")
    assert re.findall(r"^# (\d)  ", text, re.MULTILINE) == list("1234567")
    assert "@" not in text
    assert 'message="Why not?"' in text


def test_an_agent_without_a_store_binds_nothing() -> None:
    text = tour_text(Path("a/b"), "Why not?", has_store=False)
    assert re.findall(r"^# (\d(?:, \d)?)  ", text, re.MULTILINE) == ["1", "2", "3, 4", "5", "6", "7"]
    assert "ISSUER" not in text
    assert "/context" not in text


def test_both_files_come_with_the_package() -> None:
    assert (TOUR.suffix, WORDS.suffix, TOUR.exists(), WORDS.exists()) == (".sh", ".sh", True, True)

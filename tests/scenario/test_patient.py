"""The member `patient` of a scenario."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.errors import ScenarioErrors
from lab.scenario.loader import load_scenario

TEXT = "scenario: mine\nabout: A patient caller\n{}steps:\n  - idle: 1s\n"


def patient(folder: Path, line: str) -> bool:
    file = folder / "mine.yaml"
    file.write_text(TEXT.format(line))
    return load_scenario(file, known_laws=()).patient


@pytest.mark.parametrize(("line", "due"), [("", False), ("patient: false\n", False), ("patient: true\n", True)])
def test_a_caller_is_patient_where_the_scenario_says_so(tmp_path: Path, line: str, due: bool) -> None:
    assert patient(tmp_path, line) is due


@pytest.mark.parametrize("word", ["on", "yes", "1", '"true"', "null"])
def test_nothing_else_is_taken_for_it(tmp_path: Path, word: str) -> None:
    with pytest.raises(ScenarioErrors, match="patient"):
        patient(tmp_path, f"patient: {word}\n")

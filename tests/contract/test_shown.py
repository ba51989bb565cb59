"""The test tree and the record on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.contract.markers import Marker
from lab.contract.shown import read_markers, read_shown, write_shown
from lab.errors import ContractError


def test_markers_come_from_every_test_module(tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    (tests / "agent2").mkdir(parents=True)
    (tests / "test_a.py").write_text('pytestmark = pytest.mark.req("A")\n')
    (tests / "agent2" / "test_b.py").write_text('\npytestmark = pytest.mark.req("B")\n')
    (tests / "conftest.py").write_text('pytestmark = pytest.mark.req("C")\n')
    assert read_markers(tests) == [Marker("B", "tests/agent2/test_b.py", 2), Marker("A", "tests/test_a.py", 1)]


CASES = 'CASES = [pytest.param(1, marks=pytest.mark.req("{}"))]\n'


@pytest.mark.parametrize(
    "statement",
    ["from tests.cases import CASES", "from tests import cases", "import tests.cases", "import tests.cases.x"],
)
def test_cases_beside_a_test_module_are_read_if_it_imports_them(tmp_path: Path, statement: str) -> None:
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test_a.py").write_text(f'{statement}\nimport other\npytestmark = pytest.mark.req("A")\n')
    (tests / "cases.py").write_text(CASES.format("B"))
    (tests / "left.py").write_text(CASES.format("C"))
    (tmp_path / "other.py").write_text(CASES.format("D"))
    cases = [] if statement.endswith(".x") else [Marker("B", "tests/cases.py", 1)]
    assert read_markers(tests) == [Marker("A", "tests/test_a.py", 3), *cases]


def test_a_test_module_that_another_imports_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(f"from {tmp_path.name}.test_b import CASES\n")
    (tmp_path / "test_b.py").write_text(CASES.format("B"))
    assert read_markers(tmp_path) == [Marker("B", f"{tmp_path.name}/test_b.py", 1)]


def test_a_marker_beside_a_test_module_that_pytest_does_not_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(f"from {tmp_path.name} import cases\n")
    (tmp_path / "cases.py").write_text('pytestmark = pytest.mark.req("A")\n')
    with pytest.raises(ContractError, match=r"cases\.py:1: a req marker that pytest does not read"):
        read_markers(tmp_path)


def test_a_folder_without_tests_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="no test modules"):
        read_markers(tmp_path)


def test_a_module_that_is_not_utf_8_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_bytes(b"\xff")
    with pytest.raises(ContractError, match=r"test_a\.py: cannot be read"):
        read_markers(tmp_path)


def test_the_record_is_written_sorted_and_read_back(tmp_path: Path) -> None:
    record = tmp_path / "shown.txt"
    write_shown(record, ["WS-002", "CT-001", "WS-002"])
    assert record.read_text() == "CT-001\nWS-002\n"
    assert read_shown(record) == ("CT-001", "WS-002")
    assert list(tmp_path.iterdir()) == [record]


def test_a_missing_record_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="missing; `lab contract coverage --accept` records"):
        read_shown(tmp_path / "shown.txt")


def test_an_empty_record_is_refused(tmp_path: Path) -> None:
    (tmp_path / "shown.txt").write_text("\n")
    with pytest.raises(ContractError, match=r"shown\.txt: empty; `lab contract coverage --accept`"):
        read_shown(tmp_path / "shown.txt")


def test_a_record_that_cannot_be_written_is_an_error_of_the_contract(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="cannot be written"):
        write_shown(tmp_path / "nowhere" / "shown.txt", ["WS-001"])

"""Coverage, the ratchet and the collection check: each shown to fail on a planted case."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lab.contract.coverage import Coverage, Row, coverage, dropped
from lab.contract.markers import Marker
from lab.contract.requirements import Basis, Requirement, Scope, default_requirements_folder, load_requirements
from lab.contract.shown import SHOWN_FILE, default_tests_folder, read_markers, read_shown


def requirement(id_: str, basis: Basis = "stated", scope: Scope = "lab") -> Requirement:
    reason = "Not ours." if scope == "outside" else None
    return Requirement(id_, basis, "002 README", ("la",), "A rule.", "A check.", None, scope, reason)


LEDGER = {
    entry.id: entry
    for entry in (
        requirement("WS-001"),
        requirement("WS-002"),
        requirement("WS-003", "inferred"),
        requirement("CT-001", scope="outside"),
        requirement("CT-002", scope="outside"),
    )
}


def shown(*ids: str) -> Coverage:
    return coverage(LEDGER, [Marker(id_, "tests/test_x.py", line) for line, id_ in enumerate(ids, start=1)])


def test_entries_are_counted_by_prefix_and_basis() -> None:
    found = shown("WS-002", "CT-002", "WS-002")
    assert found.rows == (
        Row("WS", "stated", total=2, shown=1, not_shown=1, outside=0),
        Row("WS", "inferred", total=1, shown=0, not_shown=1, outside=0),
        Row("CT", "stated", total=2, shown=1, not_shown=0, outside=1),
    )
    assert found.shown == ("CT-002", "WS-002")
    assert found.not_shown == ("WS-001", "WS-003")
    assert found.outside == ("CT-001",)
    assert found.unknown == ()


def test_an_unknown_id_is_reported_with_its_place() -> None:
    found = shown("WS-001", "WS-999")
    assert found.unknown == (Marker("WS-999", "tests/test_x.py", 2),)
    assert found.to_json()["unknown"] == ["WS-999 at tests/test_x.py:2"]
    assert found.shown == ("WS-001",)


def test_a_drop_is_what_the_record_has_and_no_test_shows() -> None:
    found = shown("WS-002", "WS-003")
    assert dropped(found, ["WS-001", "WS-002", "WS-900"]) == ("WS-001", "WS-900")
    assert dropped(found, ["WS-002"]) == ()


def test_the_table_sums_and_lists_what_is_missing() -> None:
    text = shown("WS-002").to_text(missing=True).splitlines()
    assert [line.split() for line in text[1:4]] == [
        ["WS", "1+0", "1+1", "0+0", "2+1"],
        ["CT", "0+0", "0+0", "2+0", "2+0"],
        ["all", "1+0", "1+1", "2+0", "4+1"],
    ]
    assert text[-1] == "WS: 001 003"
    assert "WS: 001 003" not in shown("WS-002").to_text()


def test_json_holds_the_same_numbers() -> None:
    found = shown("WS-002").to_json()
    assert found["rows"][0] == {
        "prefix": "WS",
        "basis": "stated",
        "total": 2,
        "shown": 1,
        "not_shown": 1,
        "outside": 0,
    }
    assert (found["shown"], found["not_shown"]) == (["WS-002"], ["WS-001", "WS-003"])


class TestProjectTree:
    """The project's own tests against its own ledger and record."""

    def test_all_markers_are_known_and_none_dropped(self) -> None:
        folder = default_requirements_folder()
        found = coverage(load_requirements(folder), read_markers(default_tests_folder()))
        assert [str(marker) for marker in found.unknown] == []
        assert dropped(found, read_shown(folder / SHOWN_FILE)) == ()

    def test_the_record_is_sorted_and_free_of_repeats(self) -> None:
        recorded = read_shown(default_requirements_folder() / SHOWN_FILE)
        assert list(recorded) == sorted(set(recorded))


class TestCollection:
    """The check that this tree's conftest adds to pytest, in a pytest of its own."""

    def collect(self, folder: Path, source: str) -> subprocess.CompletedProcess[str]:
        (folder / "pytest.ini").write_text("[pytest]\nmarkers = req(*ids): requirement ids\n")
        (folder / "test_planted.py").write_text(f"import pytest\n{source}\n")
        command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", "-q"]
        return subprocess.run(
            [*command, "-c", str(folder / "pytest.ini"), str(folder)],
            cwd=default_tests_folder().parent,
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )

    def test_a_known_id_is_let_through(self, tmp_path: Path) -> None:
        run = self.collect(tmp_path, '@pytest.mark.req("WS-001")\ndef test_x(): ...')
        assert run.returncode == 0, run.stdout
        assert "1 passed" in run.stdout

    @pytest.mark.parametrize(
        ("source", "message"),
        [
            (
                '@pytest.mark.req("WS-001", "WS-999")\ndef test_x(): ...',
                "test_planted.py::test_x: 'WS-999' is not in the requirements ledger",
            ),
            (
                '@pytest.mark.req("XX-001")\nclass TestX:\n    def test_y(self): ...',
                "test_planted.py::TestX::test_y: 'XX-001' is not in the requirements ledger",
            ),
            ("@pytest.mark.req()\ndef test_x(): ...", "test_planted.py::test_x: a req marker that names no id"),
        ],
    )
    def test_an_unknown_id_is_a_collection_error(self, tmp_path: Path, source: str, message: str) -> None:
        run = self.collect(tmp_path, source)
        assert run.returncode == pytest.ExitCode.INTERRUPTED
        assert message in run.stdout
        assert "1 error" in run.stdout

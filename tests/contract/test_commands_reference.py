"""`lab contract reference`: where it writes, and what it says when it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lab.contract.commands import contract
from lab.contract.reference import PAGE
from tests.contract.copies import copied_contract, read, write


def reference(*arguments: str | Path) -> Result:
    return CliRunner().invoke(contract, ["reference", *map(str, arguments)])


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_it_writes_the_page_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    run = reference()
    assert (run.exit_code, run.stdout) == (0, f"{PAGE} written\n")
    assert (tmp_path / PAGE).read_text("utf-8").startswith("# Reference of the LA protocol v2\n")


def test_it_prints_the_page_or_writes_another_file(tmp_path: Path) -> None:
    printed = reference("--out", "-").stdout
    assert reference("--out", tmp_path / "page.md").exit_code == 0
    assert (tmp_path / "page.md").read_text("utf-8") == printed


def test_a_place_that_cannot_be_written() -> None:
    run = reference()
    assert run.exit_code == 3
    assert f"error: {PAGE}: cannot be written: No such file or directory. Name another file with --out." in run.stderr


def test_a_contract_that_cannot_be_used(tmp_path: Path) -> None:
    folder = copied_contract(tmp_path)
    (folder / "alert.schema.json").unlink()
    run = reference(folder, "--out", "-")
    assert run.exit_code == 2
    assert "alert.schema.json: missing" in run.stderr


def test_no_folder(tmp_path: Path) -> None:
    run = reference(tmp_path / "none", "--out", "-")
    assert run.exit_code == 2
    assert "no such folder" in run.stderr


def test_a_contract_that_tells_of_no_revision(tmp_path: Path) -> None:
    folder = copied_contract(tmp_path)
    write(folder / "index.json", {**read(folder / "index.json"), "revision": 2.3})
    run = reference(folder, "--out", "-")
    assert (run.exit_code, run.stdout) == (2, "")
    assert "revision, if present, a string" in run.stderr

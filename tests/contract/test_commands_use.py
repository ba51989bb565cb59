"""`lab contract use`: wrong usage, a folder that cannot be used, and what goes by the choice afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lab.contract.chosen import CHOSEN_FOLDER, RECORD_FILE, contract_in_use
from lab.contract.commands import contract
from tests.contract.copies import copied_contract, read
from tests.contract.gateway_folders import COMMIT, gateway_folder


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder."""
    place = tmp_path / "project"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def use(*arguments: str | Path) -> Result:
    return CliRunner().invoke(contract, ["use", *map(str, arguments)])


@pytest.mark.req("CT-052")
@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--commit", COMMIT[:39]],
        ["--commit", f"{COMMIT}0"],
        ["--commit", "g" * 40],
        ["--commit", f"{COMMIT}\n"],
        ["--commit", ""],
        ["--commit", COMMIT, "--tip", "a b"],
        ["--commit", COMMIT, "--tip", ""],
        ["--commit", COMMIT, "--tip", "x" * 256],
        ["--commit", COMMIT, "--tip", "\x1b[1m"],
        ["--commit", COMMIT, "--ours"],
        ["--commit", COMMIT, "more"],
        ["--commit"],
        ["--branch", "x", "--commit", COMMIT],
    ],
)
def test_wrong_usage_prints_the_usage_and_changes_nothing(tmp_path: Path, project: Path, options: list[str]) -> None:
    run = use(copied_contract(tmp_path), *options)
    assert run.exit_code == 2
    assert run.stderr.startswith("Usage: ")
    assert not list(project.iterdir())


@pytest.mark.req("CT-052")
@pytest.mark.parametrize(
    "options", [[], ["--commit", COMMIT], ["--ours", "--commit", COMMIT], ["--ours", "--tip", "x"]]
)
def test_wrong_usage_without_a_folder(project: Path, options: list[str]) -> None:
    run = use(*options)
    assert run.exit_code == 2
    assert run.stderr.startswith("Usage: ")
    assert not list(project.iterdir())


@pytest.mark.req("CT-052", "CT-055")
def test_a_folder_is_taken_and_given_up(tmp_path: Path, project: Path) -> None:
    run = use(gateway_folder(tmp_path, "2.0"), "--commit", COMMIT.upper(), "--tip", "release/qa")
    assert run.exit_code == 0
    assert f"revision 2.0 at {COMMIT} is in use, 28 files recorded" in run.stdout
    assert "note: no vectors" in run.stderr
    assert "note: file.list.body.schema.json is the lab's own: revision 2.0 has none" in run.stderr
    assert contract_in_use().revision == "2.0"
    assert read(project / CHOSEN_FOLDER / RECORD_FILE)["branchTip"] == "release/qa"
    assert use("--ours").stdout == "the lab's own contract is in use\n"
    assert contract_in_use().commit is None
    assert use("--ours").stdout == "the lab's own contract is in use, as before\n"


def test_every_fault_is_told_and_the_earlier_choice_stays(tmp_path: Path) -> None:
    folder = copied_contract(tmp_path)
    use(folder, "--commit", COMMIT)
    (folder / "alert.schema.json").unlink()
    (folder / "hello.schema.json").write_text("{")
    run = use(folder, "--commit", "0" * 40)
    assert run.exit_code == 2
    assert [line.partition(": ")[0] for line in run.stderr.splitlines()] == ["error", "error", "Nothing was changed."]
    assert f"{folder}/alert.schema.json: missing" in run.stderr
    assert contract_in_use().commit == COMMIT


@pytest.mark.parametrize("name", ["none", "file"])
def test_no_folder(tmp_path: Path, project: Path, name: str) -> None:
    (tmp_path / "file").touch()
    run = use(tmp_path / name, "--commit", COMMIT)
    assert run.exit_code == 2
    assert f"error: {tmp_path / name}: no such folder" in run.stderr
    assert not list(project.iterdir())


def test_a_place_that_cannot_be_written(tmp_path: Path, project: Path) -> None:
    (project / ".lab").touch()
    run = use(copied_contract(tmp_path), "--commit", COMMIT)
    assert run.exit_code == 3
    assert "cannot be copied" in run.stderr
    assert use("--ours").exit_code == 0


@pytest.mark.req("CT-051", "CT-056")
@pytest.mark.parametrize("command", [["verify"], ["trace", "all", "--against", "reference"]])
def test_verification_goes_by_the_choice_and_refuses_a_changed_byte(tmp_path: Path, command: list[str]) -> None:
    use(copied_contract(tmp_path), "--commit", COMMIT)
    file = contract_in_use().folder / "ack.schema.json"
    file.write_bytes(file.read_bytes() + b" ")
    run = CliRunner().invoke(contract, command)
    assert run.exit_code == 2
    assert "ack.schema.json: changed" in run.stderr


def test_verification_judges_the_choice(tmp_path: Path) -> None:
    use(gateway_folder(tmp_path, "2.2"), "--commit", COMMIT)
    run = CliRunner().invoke(contract, ["verify"])
    assert run.exit_code == 2
    assert "no vector files" in run.stderr
    assert str(contract_in_use().folder) in run.stderr

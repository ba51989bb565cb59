"""`lab contract diff`: its exit statuses and what it says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lab.contract.commands import contract
from lab.protocol.contract import default_contract_folder
from tests.contract.copies import copied_contract, read, write
from tests.contract.gateway_folders import gateway_folder


def diff(*arguments: str | Path) -> Result:
    return CliRunner().invoke(contract, ["diff", *map(str, arguments)])


def changed(place: Path) -> Path:
    folder = copied_contract(place)
    index = read(folder / "index.json")
    index["limits"]["maxChunks"] = 65
    index["types"]["alert"]["direction"] = "both"
    write(folder / "index.json", index)
    return folder


def test_no_difference() -> None:
    run = diff(default_contract_folder())
    assert (run.exit_code, run.stdout, run.stderr) == (0, "no difference, at revision 2.3\n", "")


@pytest.mark.req("CT-009")
@pytest.mark.parametrize("revision", ["2.0", "2.1", "2.2", "2.3"])
def test_the_labs_is_taken_at_the_revision_of_the_folder(tmp_path: Path, revision: str) -> None:
    run = diff(gateway_folder(tmp_path, revision))
    assert (run.exit_code, run.stdout) == (0, f"no difference, at revision {revision}\n")


def test_differences_exit_1_in_words(tmp_path: Path) -> None:
    run = diff(changed(tmp_path))
    assert run.exit_code == 1
    assert run.stdout.splitlines() == [
        "index.json",
        "  limits.maxChunks: ours 64, theirs 65  [contradicts a stated rule]",
        "  types.alert: direction: ours la-to-cp, theirs both  [our choice TY-030]",
        "2 differences: 1 in choices of the lab, 1 against stated rules",
    ]


def test_json(tmp_path: Path) -> None:
    run = diff("--json", changed(tmp_path))
    assert run.exit_code == 1
    document = json.loads(run.stdout)
    assert document["revisions"] == {"ours": "2.3", "theirs": "2.3"}
    assert document["differences"][1] == {
        "file": "index.json",
        "place": "types.alert",
        "difference": "direction: ours la-to-cp, theirs both",
        "requirement": "TY-030",
        "contradictsStated": False,
    }
    assert json.loads(diff("--json", default_contract_folder()).stdout)["differences"] == []


@pytest.mark.parametrize("revision", ["2.4", "newest", 7])
def test_a_revision_that_the_lab_has_not_is_compared_with_its_newest(tmp_path: Path, revision: object) -> None:
    folder = copied_contract(tmp_path)
    write(folder / "index.json", {**read(folder / "index.json"), "revision": revision})
    run = diff(folder)
    assert run.exit_code == 1
    assert f"revision: ours 2.3, theirs {revision}" in run.stdout


def test_every_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    folder = copied_contract(tmp_path)
    (folder / "ack.schema.json").write_text("{")
    (folder / "index.json").unlink()
    run = diff(folder)
    assert run.exit_code == 2
    assert [line.split(": ")[1] for line in run.stderr.splitlines()] == [
        f"{folder}/index.json",
        f"{folder}/ack.schema.json",
    ]


@pytest.mark.parametrize("name", ["none", "file"])
def test_no_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    run = diff(tmp_path / name)
    assert run.exit_code == 2
    assert "no such folder" in run.stderr


def test_a_folder_is_due() -> None:
    assert diff().exit_code == 2

"""Which contract is in use: the lab's own, or a copy that is what its record says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.contract.chosen import (
    CHOSEN_FOLDER,
    RECORD_FILE,
    RECORD_LIMIT,
    ContractInUse,
    contract_folder,
    contract_in_use,
    read_record,
)
from lab.contract.taking import examine, take
from lab.errors import ContractError
from lab.protocol.contract import default_contract_folder
from tests.contract.copies import copied_contract, read, write
from tests.contract.gateway_folders import COMMIT


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A working folder in which a copy of the lab's own contract was taken."""
    take(tmp_path / CHOSEN_FOLDER, examine(copied_contract(tmp_path), COMMIT), COMMIT, "release/qa")
    return tmp_path


def copy_in(project: Path) -> Path:
    return contract_in_use(project).folder


def refusal(project: Path) -> str:
    with pytest.raises(ContractError) as caught:
        contract_in_use(project)
    return str(caught.value)


@pytest.mark.req("CT-055")
def test_without_a_choice_it_is_the_labs_own_which_is_a_reconstruction(tmp_path: Path) -> None:
    used = contract_in_use(tmp_path)
    assert used == ContractInUse(default_contract_folder(), "2.3")
    assert str(used) == "2.3 (reconstruction)"
    assert used.label("2.0,2.3") == "2.0,2.3"
    assert read(used.folder / "index.json")["x-source"] == "reconstruction"


@pytest.mark.req("CT-054", "CT-055")
def test_a_choice_is_in_use_with_its_commit_and_a_sha256_of_every_file(project: Path) -> None:
    used = contract_in_use(project)
    assert used.folder.is_relative_to(project / CHOSEN_FOLDER)
    assert (used.revision, used.commit) == ("2.3", COMMIT)
    assert str(used) == f"2.3@{COMMIT}"
    record = read_record(project / CHOSEN_FOLDER)
    assert record is not None
    assert (record.source, record.tip) == (str(project / "contract"), "release/qa")
    names = [path.relative_to(used.folder).as_posix() for path in used.folder.rglob("*") if path.is_file()]
    assert sorted(record.files) == sorted(names)
    assert "README.md" in names
    assert "vectors/traces/valid-handshake-and-job.json" in names


def test_the_current_folder_decides(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert contract_folder() == default_contract_folder()
    monkeypatch.chdir(project)
    assert contract_folder() == copy_in(project)


@pytest.mark.req("CT-051", "CT-056", "CT-066")
@pytest.mark.parametrize(
    "name",
    ["ack.schema.json", "index.json", "README.md", "vectors/ack.vectors.json", "vectors/traces/invalid-seq-gap.json"],
)
def test_one_changed_byte_is_refused_by_the_files_name(project: Path, name: str) -> None:
    file = copy_in(project) / name
    content = bytearray(file.read_bytes())
    content[-2] ^= 1
    file.write_bytes(content)
    told = refusal(project)
    assert f"\n  {name}: changed\n" in told
    assert COMMIT in told
    assert "lab contract use --ours" in told


@pytest.mark.req("CT-051")
def test_every_drift_is_told_at_once(project: Path) -> None:
    folder = copy_in(project)
    (folder / "alert.schema.json").unlink()
    (folder / "extra.schema.json").write_text("{}")
    (folder / "hello.schema.json").write_text("{}")
    (folder / "ready.schema.json").unlink()
    (folder / "ready.schema.json").mkdir()
    (folder / "error.schema.json").unlink()
    (folder / "error.schema.json").symlink_to(folder / "none")
    told = refusal(project)
    for line in (
        "alert.schema.json: missing",
        "extra.schema.json: added",
        "hello.schema.json: changed",
        "ready.schema.json: missing",
        "error.schema.json: changed",
    ):
        assert f"\n  {line}\n" in told


def test_a_copy_that_is_gone_is_refused_and_never_replaced_by_the_labs_own(project: Path) -> None:
    copy_in(project).rename(project / "elsewhere")
    assert "index.json: missing" in refusal(project)


def change(**members: Any) -> Callable[[Path], None]:
    def edit(file: Path) -> None:
        write(file, {**read(file), **members})

    return edit


def text(content: str) -> Callable[[Path], None]:
    def edit(file: Path) -> None:
        file.write_text(content, "utf-8")

    return edit


RECORDS = [
    (text("{"), "not JSON"),
    (text("[]"), "not the record"),
    (text(""), "not JSON"),
    (text("[" * 100_000), "not JSON"),
    (text(" " * (RECORD_LIMIT + 1)), "not the record"),
    (change(commit="b090"), "not the record"),
    (change(commit=None), "not the record"),
    (change(folder="../../elsewhere"), "not the record"),
    (change(folder="0" * 16), "not the record"),
    (change(files={"index.json": "x"}), "not the record"),
    (change(files=["index.json"]), "not the record"),
    (change(revision=2), "not the record"),
    (change(supplied=None), "not the record"),
    (change(branchTip=7), "not the record"),
    (change(described=[]), "not the record"),
]


@pytest.mark.parametrize(("edit", "reason"), RECORDS)
def test_a_record_of_another_form_is_refused_by_name(project: Path, edit: Callable[[Path], None], reason: str) -> None:
    edit(project / CHOSEN_FOLDER / RECORD_FILE)
    told = refusal(project)
    assert f"{RECORD_FILE}: {reason}" in told
    assert "lab contract use --ours" in told


def test_a_record_that_cannot_be_read(project: Path) -> None:
    file = project / CHOSEN_FOLDER / RECORD_FILE
    file.unlink()
    file.mkdir()
    assert "cannot be read" in refusal(project)


def test_the_record_is_json_and_the_folder_is_named_by_what_is_in_it(project: Path) -> None:
    file = project / CHOSEN_FOLDER / RECORD_FILE
    document = json.loads(file.read_text("utf-8"))
    assert (project / CHOSEN_FOLDER / document["folder"]).is_dir()
    assert file.stat().st_mode & 0o077 == 0

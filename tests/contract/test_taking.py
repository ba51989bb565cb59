"""Taking a gateway's contract folder: checked whole, copied, recorded; or refused with nothing changed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lab.contract.chosen import CHOSEN_FOLDER, RECORD_FILE, contract_in_use, read_record, sha256_of
from lab.contract.taking import FILE_LIMIT, MOST_FILES, Examined, examine, give_up, take
from lab.errors import EnvironmentFault
from lab.protocol.contract import Contract, default_contract_folder
from lab.tap.schemas import Schemas
from tests.contract.copies import copied_contract, read, write
from tests.contract.gateway_folders import COMMIT, gateway_folder

OTHER = "0123456789abcdef0123456789abcdef01234567"


def faults(folder: Path, **options: bool) -> list[str]:
    return [fault.removeprefix(f"{folder}/") for fault in examine(folder, COMMIT, **options).faults]


def edit(file: Path, **members: Any) -> None:
    write(file, {**read(file), **members})


@pytest.mark.req("CT-009", "CT-051", "CT-055")
@pytest.mark.parametrize("revision", ["2.0", "2.1", "2.2", "2.3"])
def test_a_folder_of_any_revision_is_taken(tmp_path: Path, revision: str) -> None:
    folder = gateway_folder(tmp_path, revision)
    assert ("revision" in read(folder / "index.json")) == (revision != "2.0")
    found = examine(folder, COMMIT)
    assert (found.faults, found.revision) == ((), revision)
    assert found.notes == ("no vectors: `lab contract verify` has nothing to judge this contract by",)
    record = take(tmp_path / CHOSEN_FOLDER, found, COMMIT)
    used = contract_in_use(tmp_path)
    assert used.revision == revision
    assert Contract.load(used.folder).revision == revision
    assert Schemas(used.folder, revision).types.keys() == Contract.load(used.folder).types.keys()
    assert len(record.supplied) == (0 if revision == "2.3" else 3)


@pytest.mark.req("CT-054")
def test_a_folder_of_the_first_revision_has_the_files_that_are_stated(tmp_path: Path) -> None:
    folder = gateway_folder(tmp_path, "2.0")
    assert len(list(folder.glob("*.schema.json"))) == 23


def test_bodies_that_were_added_judge_as_the_labs_own_do(tmp_path: Path) -> None:
    take(tmp_path / CHOSEN_FOLDER, examine(gateway_folder(tmp_path, "2.0"), COMMIT), COMMIT)
    contract = Contract.load(contract_in_use(tmp_path).folder)
    page = {"events": [{"i": 0, "e": "x"}], "nextRef": "A" * 43, "done": True}
    assert contract.check_body("job.stream", page) is None
    assert contract.check_body("job.stream", {**page, "nextRef": "A"}) is not None


def test_a_newer_folder_has_to_bring_its_bodies(tmp_path: Path) -> None:
    folder = gateway_folder(tmp_path, "2.3")
    (folder / "job.stream.body.schema.json").unlink()
    assert faults(folder) == ["job.stream.body.schema.json: missing, though the contract needs it"]


@pytest.mark.req("CT-066")
def test_what_is_copied(tmp_path: Path) -> None:
    folder = copied_contract(tmp_path)
    (folder / "notes.txt").write_text("x")
    (folder / ".git").mkdir()
    take(tmp_path / CHOSEN_FOLDER, examine(folder, COMMIT), COMMIT)
    copy = contract_in_use(tmp_path).folder
    assert (copy / "README.md").read_bytes() == (folder / "README.md").read_bytes()
    assert (copy / "vectors" / "traces" / "invalid-seq-gap.json").is_file()
    assert not (copy / "notes.txt").exists()
    assert not (copy / ".git").exists()


def test_the_labs_own_needs_no_note(tmp_path: Path) -> None:
    found = examine(copied_contract(tmp_path), COMMIT)
    assert (found.faults, found.notes, found.supplied) == ((), (), ())


def test_everything_wrong_is_told_at_once(tmp_path: Path) -> None:
    folder = copied_contract(tmp_path)
    (folder / "README.md").unlink()
    (folder / "alert.schema.json").unlink()
    (folder / "hello.schema.json").write_text("{")
    (folder / "vectors" / "ack.vectors.json").write_text("{")
    index = read(folder / "index.json")
    del index["limits"]["maxChunks"]
    index["limits"]["ackTimeoutMs"] = True
    index["types"]["quota.update"] = index["types"]["ack"]
    write(folder / "index.json", {**index, "revision": "newest"})
    defs = read(folder / "defs.schema.json")
    defs["$defs"]["errorCode"]["enum"][0] = "odd_frame"
    write(folder / "defs.schema.json", defs)
    found = faults(folder)
    for said in (
        "README.md: missing",
        "alert.schema.json: missing",
        "hello.schema.json: not JSON",
        "vectors/ack.vectors.json: not JSON",
        "index.json: limits.maxChunks has to be a positive integer",
        "index.json: limits.ackTimeoutMs has to be a positive integer",
        "index.json: types.quota.update: a type that the lab does not know",
        "quota.update.schema.json: missing",
        "envelope.schema.json: lacks the type quota.update",
        "index.json: 'newest' is no revision",
        "defs.schema.json: $defs.errorCode and the lab's table differ in: odd_frame, bad_frame",
    ):
        assert any(fault.startswith(said) for fault in found), said
    assert len(found) == 11
    assert not (tmp_path / ".lab").exists()


def test_a_fault_names_the_folder_that_was_given(tmp_path: Path) -> None:
    folder = copied_contract(tmp_path)
    (folder / "alert.schema.json").unlink()
    assert examine(folder, COMMIT).faults == (f"{folder}/alert.schema.json: missing, though the contract needs it",)


def renamed_type(tmp_path: Path) -> Path:
    folder = gateway_folder(tmp_path, "2.3")
    index, envelope = read(folder / "index.json"), read(folder / "envelope.schema.json")
    index["types"]["model.key"] = index["types"].pop("llm.key")
    write(folder / "index.json", index)
    names = envelope["properties"]["type"]["enum"]
    names[names.index("llm.key")] = "model.key"
    write(folder / "envelope.schema.json", envelope)
    schema = read(folder / "llm.key.schema.json")
    schema["$id"] = schema["$id"].replace("llm.key", "model.key")
    write(folder / "model.key.schema.json", schema)
    (folder / "llm.key.schema.json").unlink()
    return folder


def test_a_type_that_the_lab_does_not_know(tmp_path: Path) -> None:
    folder = renamed_type(tmp_path)
    assert faults(folder) == ["index.json: types.model.key: a type that the lab does not know"]
    found = examine(folder, COMMIT, unknown_types=True)
    assert found.faults == ()
    assert found.notes[0].startswith("model.key: a type that the lab does not know")


def test_no_folder_and_an_empty_one(tmp_path: Path) -> None:
    assert examine(tmp_path / "none", COMMIT).faults[0] == f"{tmp_path / 'none'}: no such folder"
    assert any(fault.startswith("index.json: cannot be read") for fault in faults(tmp_path))
    (tmp_path / "file").write_text("x")
    assert examine(tmp_path / "file", COMMIT).faults[0] == f"{tmp_path / 'file'}: no such folder"


def test_files_that_are_none_or_too_large_or_oddly_named(tmp_path: Path) -> None:
    folder = copied_contract(tmp_path)
    os.mkfifo(folder / "vectors" / "pipe.json")
    (folder / "vectors" / "large.json").write_bytes(b" " * (FILE_LIMIT + 1))
    (folder / "vectors" / "a b.json").write_text("{}")
    found = faults(folder)
    due = f"a plain file of at most {FILE_LIMIT} bytes is due"
    assert f"vectors/pipe.json: {due}" in found
    assert f"vectors/large.json: {due}" in found
    assert f"{folder}: 'vectors/a b.json' is no name that a file of a contract has" in found


def test_too_many_files(tmp_path: Path) -> None:
    folder = copied_contract(tmp_path)
    for number in range(MOST_FILES):
        (folder / "vectors" / f"{number}.json").touch()
    assert any(f"more than the {MOST_FILES}" in fault for fault in faults(folder))


def test_vectors_of_an_unknown_form_and_findings_of_the_lint_refuse_nothing(tmp_path: Path) -> None:
    folder = copied_contract(tmp_path)
    write(folder / "vectors" / "ack.vectors.json", {"cases": []})
    write(folder / "vectors" / "traces" / "invalid-seq-gap.json", {"frames": []})
    error = read(folder / "error.schema.json")
    error["properties"]["payload"]["properties"]["detail"]["maxLength"] = 600
    write(folder / "error.schema.json", error)
    found = examine(folder, COMMIT)
    assert found.faults == ()
    for said in ("ack.vectors.json", "invalid-seq-gap.json", "error: /properties/payload/properties/detail: 600"):
        assert any(said in note for note in found.notes), said
    assert all(str(tmp_path / "contract") in note for note in found.notes if "vectors.json" in note)


def source_record(folder: Path, files: object, commit: str = COMMIT) -> None:
    document = {"repo": "gateway", "path": "docs/contracts", "branch": "release/qa", "commit": commit, "files": files}
    write(folder / "CONTRACT_SOURCE.json", document)


def hashes(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): sha256_of(path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file() and path.name != "CONTRACT_SOURCE.json"
    }


@pytest.mark.req("CT-054")
def test_a_record_of_the_source_is_honoured_and_kept(tmp_path: Path) -> None:
    folder = gateway_folder(tmp_path, "2.3")
    source_record(folder, hashes(folder))
    found = examine(folder, COMMIT)
    assert found.faults == ()
    assert found.described == {"repo": "gateway", "path": "docs/contracts", "branch": "release/qa"}
    record = take(tmp_path / CHOSEN_FOLDER, found, COMMIT)
    assert read_record(tmp_path / CHOSEN_FOLDER) == record
    assert record.described == found.described


@pytest.mark.req("CT-054", "CT-051")
def test_a_copy_that_drifted_from_the_record_of_its_source_is_refused(tmp_path: Path) -> None:
    folder = gateway_folder(tmp_path, "2.3")
    files = hashes(folder)
    del files["ack.schema.json"]
    source_record(folder, {**files, "gone.schema.json": "0" * 64, "README.md": "0" * 64}, OTHER)
    assert sorted(faults(folder)) == sorted(
        [
            f"CONTRACT_SOURCE.json: the copy is of commit {OTHER}, not of {COMMIT}",
            "gone.schema.json: missing, though CONTRACT_SOURCE.json names it",
            "README.md: changed since it was copied: its sha256 is not the one of CONTRACT_SOURCE.json",
            "ack.schema.json: added since the copy was made: CONTRACT_SOURCE.json does not name it",
        ]
    )


def test_a_broken_record_of_the_source_is_a_fault_beside_the_others(tmp_path: Path) -> None:
    folder = gateway_folder(tmp_path, "2.3")
    (folder / "alert.schema.json").unlink()
    (folder / "CONTRACT_SOURCE.json").write_text("{")
    found = faults(folder)
    assert found[0].startswith("CONTRACT_SOURCE.json: not JSON")
    assert found[1].startswith("alert.schema.json: missing")


def examined(tmp_path: Path, changes: Mapping[str, Any] | None = None) -> Examined:
    place = tmp_path / f"source-{len(list(tmp_path.iterdir()))}"
    place.mkdir()
    folder = copied_contract(place)
    edit(folder / "index.json", **(changes or {}))
    return examine(folder, COMMIT)


def test_another_choice_replaces_the_first_whole(tmp_path: Path) -> None:
    home = tmp_path / CHOSEN_FOLDER
    first = take(home, examined(tmp_path), COMMIT)
    index = read(default_contract_folder() / "index.json")
    second = take(home, examined(tmp_path, {"limits": {**index["limits"], "maxChunks": 65}}), OTHER)
    assert first.folder_name != second.folder_name
    used = contract_in_use(tmp_path)
    assert (used.commit, Contract.load(used.folder).limits.max_chunks) == (OTHER, 65)
    assert sorted(path.name for path in home.iterdir()) == sorted([RECORD_FILE, second.folder_name])


def test_taking_the_same_again_mends_a_copy_that_drifted(tmp_path: Path) -> None:
    home = tmp_path / CHOSEN_FOLDER
    take(home, examined(tmp_path), COMMIT)
    folder = contract_in_use(tmp_path).folder
    (folder / "ack.schema.json").write_text("{}")
    (folder / "more").touch()
    take(home, examined(tmp_path), COMMIT)
    assert contract_in_use(tmp_path).folder == folder


def test_git_does_not_see_the_choice_and_a_file_of_the_users_stays(tmp_path: Path) -> None:
    home = tmp_path / CHOSEN_FOLDER
    take(home, examined(tmp_path), COMMIT)
    ignored = home.parent / ".gitignore"
    assert ignored.read_text() == "*\n"
    ignored.write_text("contract\n")
    take(home, examined(tmp_path), COMMIT)
    assert ignored.read_text() == "contract\n"


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / ".lab").write_text("a file")
    with pytest.raises(EnvironmentFault, match="cannot be copied"):
        take(tmp_path / CHOSEN_FOLDER, examined(tmp_path), COMMIT)


def test_giving_up_goes_back_to_the_labs_own(tmp_path: Path) -> None:
    home = tmp_path / CHOSEN_FOLDER
    assert not give_up(home)
    take(home, examined(tmp_path), COMMIT)
    (home / "mine").mkdir()
    assert give_up(home)
    assert contract_in_use(tmp_path).folder == default_contract_folder()
    assert [path.name for path in home.iterdir()] == ["mine"]
    assert not give_up(home)


def test_a_broken_choice_is_given_up_too(tmp_path: Path) -> None:
    home = tmp_path / CHOSEN_FOLDER
    take(home, examined(tmp_path), COMMIT)
    (home / RECORD_FILE).write_text(json.dumps([]))
    assert give_up(home)
    assert contract_in_use(tmp_path).commit is None

"""A folder that cannot be used: every fault is told, not the first alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab.contract.folder import folder_faults, known_types, read_folder
from lab.errors import ContractError
from lab.protocol.contract import Contract, default_contract_folder
from tests.contract.copies import copied_contract, read, write


def faults(folder: Path) -> list[str]:
    files = read_folder(folder)
    return [fault.removeprefix(f"{folder}/") for fault in folder_faults(files, known_types(files))]


def test_the_projects_own_has_none() -> None:
    assert faults(default_contract_folder()) == []
    assert read_folder(default_contract_folder()).revisions == ("2.0", "2.1", "2.2", "2.3")


def test_a_folder_without_steps_has_its_own_revision_alone(tmp_path: Path) -> None:
    folder = copied_contract(tmp_path)
    (folder / "revisions.json").unlink()
    assert read_folder(folder).revisions == ("2.3",)
    assert faults(folder) == []


def test_no_folder(tmp_path: Path) -> None:
    assert folder_faults(read_folder(tmp_path / "none"), ()) == (f"{tmp_path / 'none'}: no such folder",)


def test_an_empty_folder_lacks_everything_that_can_be_named(tmp_path: Path) -> None:
    found = faults(tmp_path)
    assert found[0].startswith("index.json: cannot be read")
    assert [fault.partition(":")[0] for fault in found[1:]] == [
        "envelope.schema.json",
        "defs.schema.json",
        "job.stream.body.schema.json",
        "chat.session.body.schema.json",
        "file.list.body.schema.json",
    ]


@pytest.mark.req("CT-057")
def test_all_faults_together(tmp_path: Path) -> None:
    folder = copied_contract(tmp_path)
    (folder / "alert.schema.json").unlink()
    (folder / "hello.schema.json").write_text("{")
    (folder / "ready.schema.json").write_text("[]")
    ack = read(folder / "ack.schema.json")
    write(folder / "ack.schema.json", {**ack, "properties": 7})
    error = read(folder / "error.schema.json")
    write(folder / "error.schema.json", {**error, "$ref": "nowhere.schema.json"})
    event = read(folder / "job.event.schema.json")
    event["properties"]["payload"]["properties"]["jobId"] = {"$ref": "defs.schema.json#/$defs/job"}
    event["properties"]["payload"]["properties"]["phase"] = {"$ref": "alert.schema.json"}
    write(folder / "job.event.schema.json", event)
    defs = read(folder / "defs.schema.json")
    defs["$defs"]["id"]["pattern"] = "^(a"
    write(folder / "defs.schema.json", defs)
    cancel = read(folder / "job.cancel.schema.json")
    write(folder / "job.cancel.schema.json", {**cancel, "$id": "https://elsewhere/x"})
    index = read(folder / "index.json")
    index["types"]["quota.update"] = {**index["types"]["ack"], "direction": "up", "signed": 1}
    write(folder / "index.json", index)
    envelope = read(folder / "envelope.schema.json")
    envelope["properties"]["type"]["enum"] += ["trace.event"]
    write(folder / "envelope.schema.json", envelope)
    found = faults(folder)
    for said in (
        "hello.schema.json: not JSON",
        "ready.schema.json: a JSON object is due",
        "index.json: types.quota.update: a type that the lab does not know",
        'index.json: types.quota.update.direction has to be "la-to-cp"',
        "index.json: types.quota.update.signed has to be true or false",
        "alert.schema.json: missing",
        "quota.update.schema.json: missing",
        "envelope.schema.json: names the type trace.event",
        "envelope.schema.json: lacks the type quota.update",
        "ack.schema.json: no sound JSON Schema",
        "error.schema.json: refers to nowhere.schema.json, which is not there",
        "job.event.schema.json: refers to defs.schema.json#/$defs/job, which is not there",
        "defs.schema.json: no sound JSON Schema",
        "job.cancel.schema.json: $id has to be https://schemas.visionhammer.io/la-protocol-v2/job.cancel.schema.json",
    ):
        assert any(fault.startswith(said) for fault in found), said
    assert len(found) == 14


INDEX_CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"protocol": 1}, "index.json: protocol has to be 2"),
    ({"types": []}, "index.json: member `types` has to be an object"),
    ({"types": {"ack": 7}}, "index.json: types.ack.direction has to be"),
    ({"limits": {}}, "index.json: limits.maxFrameBytes"),
]


@pytest.mark.parametrize(("change", "said"), INDEX_CHANGES)
def test_faults_of_the_index(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    folder = copied_contract(tmp_path)
    write(folder / "index.json", {**read(folder / "index.json"), **change})
    assert any(said in fault for fault in faults(folder))


def test_an_envelope_without_its_types(tmp_path: Path) -> None:
    folder = copied_contract(tmp_path)
    envelope = read(folder / "envelope.schema.json")
    envelope["properties"]["type"] = {"type": "string"}
    write(folder / "envelope.schema.json", envelope)
    assert "envelope.schema.json: properties.type.enum has to be the list of types" in faults(folder)


def test_a_step_to_an_older_revision_that_leads_nowhere(tmp_path: Path) -> None:
    folder = copied_contract(tmp_path)
    revisions = read(folder / "revisions.json")
    revisions["older"][1]["edits"][0]["pointer"] = "/nothing"
    write(folder / "revisions.json", revisions)
    found = faults(folder)
    assert found
    assert all("has nothing at /nothing" in fault for fault in found)


def test_what_has_no_fault_can_be_loaded_and_what_has_one_cannot(tmp_path: Path) -> None:
    folder = copied_contract(tmp_path)
    Contract.load(folder)
    (folder / "alert.schema.json").unlink()
    with pytest.raises(ContractError):
        Contract.load(folder)
    assert faults(folder) == ["alert.schema.json: missing, though the contract needs it"]


def test_when_the_labs_own_is_broken_no_type_is_strange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copied_contract(tmp_path)
    (folder / "alert.schema.json").unlink()
    monkeypatch.setattr("lab.contract.folder.default_contract_folder", lambda: folder)
    assert faults(folder) == ["alert.schema.json: missing, though the contract needs it"]

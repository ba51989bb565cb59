"""The tap's own reading of a contract folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from lab.errors import ContractError
from lab.tap.schemas import Schemas
from tests.tap.frames_by_hand import CONTRACT


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    copy = tmp_path / "contract"
    shutil.copytree(CONTRACT, copy)
    return copy


@pytest.mark.parametrize("revision", ["2.0", "2.1", "2.2", "2.3"])
def test_every_revision_loads(revision: str) -> None:
    count = {"2.0": 21, "2.1": 22, "2.2": 24, "2.3": 24}
    assert len(Schemas(CONTRACT, revision).types) == count[revision]


def test_an_unknown_revision() -> None:
    with pytest.raises(ContractError, match=r"no revision 1\.9; it has 2\.3"):
        Schemas(CONTRACT, "1.9")


def test_a_missing_schema(folder: Path) -> None:
    (folder / "alert.schema.json").unlink()
    with pytest.raises(ContractError, match="no schema for alert"):
        Schemas(folder, "2.3")


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=r"index\.json: cannot be read"):
        Schemas(tmp_path, "2.3")


def test_a_file_that_is_no_json(folder: Path) -> None:
    (folder / "index.json").write_text("{")
    with pytest.raises(ContractError, match="not JSON"):
        Schemas(folder, "2.3")


def test_an_edit_of_nothing(folder: Path) -> None:
    edits = json.loads((folder / "revisions.json").read_text())
    edits["older"][0]["edits"].append({"schema": "alert", "pointer": "/no/where", "remove": True})
    (folder / "revisions.json").write_text(json.dumps(edits))
    with pytest.raises(ContractError, match="alert/no/where: nothing to edit"):
        Schemas(folder, "2.2")


def test_a_reference_to_nothing(folder: Path) -> None:
    alert = json.loads((folder / "alert.schema.json").read_text())
    alert["properties"]["payload"] = {"$ref": "nothing.schema.json"}
    (folder / "alert.schema.json").write_text(json.dumps(alert))
    with pytest.raises(ContractError, match="cannot be used"):
        Schemas(folder, "2.3")


@pytest.mark.parametrize("value", [{"a": "\ud800"}, 10**400, {"seq": float("inf")}, None, []])
def test_judging_never_raises(value: object) -> None:
    assert Schemas(CONTRACT, "2.3").judge("heartbeat", value) != "ok"


@pytest.mark.req("CT-009")
@pytest.mark.parametrize("own", ["2.0", "2.3"])
def test_a_folder_without_steps_has_its_own_revision_alone(folder: Path, own: str) -> None:
    (folder / "revisions.json").unlink()
    index = json.loads((folder / "index.json").read_text())
    if own == "2.0":
        del index["revision"]
    (folder / "index.json").write_text(json.dumps(index))
    assert Schemas(folder, own).types
    with pytest.raises(ContractError, match=f"no revision 2.2; it has {own}"):
        Schemas(folder, "2.2")

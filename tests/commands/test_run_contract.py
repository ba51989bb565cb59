"""Runs and the other commands go by the contract that `lab contract use` chose, and say so."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from lab.contract.chosen import CHOSEN_FOLDER, contract_in_use
from lab.contract.taking import examine, take
from lab.protocol.contract import default_contract_folder
from tests.command_line import ROOT, lab, make_project
from tests.contract.copies import read, write
from tests.contract.gateway_folders import COMMIT, gateway_folder

CHAT = "chat-answer.yaml"
READY = """local_agent: { use: reference }
steps:
  - wait: { for: local_agent.ready, within: 5s }
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = make_project(tmp_path / "project", up=READY, older=f"gateway: {{ revision: '2.2' }}\n{READY}")
    (folder / "scenarios" / CHAT).write_text((ROOT / "scenarios" / CHAT).read_text("utf-8"), "utf-8")
    return folder


def choose(project: Path, source: Path, *, unknown_types: bool = False) -> None:
    found = examine(source, COMMIT, unknown_types=unknown_types)
    assert found.faults == ()
    take(project / CHOSEN_FOLDER, found, COMMIT)


def run(project: Path, name: str) -> CompletedProcess[str]:
    return lab("run", f"scenarios/{name}", "--clock", "virtual", "--seed", "7", "--out", "runs", cwd=project)


def told(project: Path, name: str) -> tuple[str, str]:
    """What the journal and the result of a run say of the contract."""
    folder = project / "runs" / name / "latest"
    started: Any = json.loads((folder / "journal.jsonl").read_text("utf-8").splitlines()[0])
    return started["contract"], read(folder / "result.json")["versions"]["contract"]


@pytest.mark.req("CT-055")
def test_a_run_by_the_labs_own_names_it_a_reconstruction(project: Path) -> None:
    assert run(project, "up.yaml").returncode == 0
    assert told(project, "up") == ("2.3", "2.3 (reconstruction)")


@pytest.mark.req("CT-055")
def test_a_run_by_a_gateways_folder_names_revision_and_commit(project: Path, tmp_path: Path) -> None:
    choose(project, gateway_folder(tmp_path, "2.3"))
    done = run(project, CHAT)
    assert done.returncode == 0, done.stderr
    assert told(project, "chat-answer") == (f"2.3@{COMMIT}", f"2.3@{COMMIT}")


def test_parties_take_the_revision_of_the_contract_in_use(project: Path, tmp_path: Path) -> None:
    choose(project, gateway_folder(tmp_path, "2.0"))
    done = run(project, "up.yaml")
    assert done.returncode == 0, done.stderr
    assert told(project, "up") == (f"2.0@{COMMIT}", f"2.0@{COMMIT}")


def test_a_run_by_a_folder_whose_types_the_lab_does_not_all_know(project: Path, tmp_path: Path) -> None:
    source = gateway_folder(tmp_path, "2.3")
    index, envelope, schema = (
        read(source / name) for name in ("index.json", "envelope.schema.json", "llm.key.schema.json")
    )
    index["types"]["model.key"] = index["types"].pop("llm.key")
    names = envelope["properties"]["type"]["enum"]
    names[names.index("llm.key")] = "model.key"
    write(source / "index.json", index)
    write(source / "envelope.schema.json", envelope)
    write(source / "model.key.schema.json", {**schema, "$id": schema["$id"].replace("llm.key", "model.key")})
    (source / "llm.key.schema.json").unlink()
    choose(project, source, unknown_types=True)
    assert run(project, CHAT).returncode == 0


def test_a_limit_of_the_folder_holds_in_the_run(project: Path, tmp_path: Path) -> None:
    source = gateway_folder(tmp_path, "2.3")
    index = read(source / "index.json")
    index["limits"]["heartbeatSeconds"] = 29
    write(source / "index.json", index)
    choose(project, source)
    assert run(project, "up.yaml").returncode == 0
    journal = (project / "runs" / "up" / "latest" / "journal.jsonl").read_text("utf-8")
    assert '"heartbeatSeconds":29' in journal.replace(" ", "")


@pytest.mark.req("CT-051", "CT-056")
@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "scenarios"),
        ("validate", "scenarios/up.yaml"),
        ("explore", "scenarios/up.yaml", "--runs", "1"),
        ("explain", "seq_gap"),
        ("serve", "gateway"),
        ("contract", "verify"),
    ],
)
def test_a_changed_byte_is_refused_before_anything_begins(
    project: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    choose(project, gateway_folder(tmp_path, "2.3"))
    file = contract_in_use(project).folder / "ack.schema.json"
    file.write_bytes(file.read_bytes().replace(b"ackSeq", b"ackSeg", 1))
    done = lab(*arguments, cwd=project)
    assert done.returncode == 2, done.stderr
    assert "ack.schema.json: changed" in done.stderr
    assert "lab contract use --ours" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (project / "runs").exists()


def test_a_revision_that_the_contract_has_not_is_refused_before_the_first_run(project: Path, tmp_path: Path) -> None:
    choose(project, gateway_folder(tmp_path, "2.3"))
    done = lab("run", "scenarios", cwd=project)
    assert done.returncode == 2
    assert "no revisions.json leads back to 2.2" in done.stderr
    assert not (project / "runs").exists()


def test_a_revision_that_the_contract_has_not_is_a_mistake_of_its_scenario(project: Path, tmp_path: Path) -> None:
    choose(project, gateway_folder(tmp_path, "2.3"))
    done = lab("validate", "scenarios", cwd=project)
    assert done.returncode == 2
    assert done.stderr.startswith("scenarios/older.yaml: ")
    assert "no revisions.json leads back to 2.2" in done.stderr
    assert done.stdout == "2 of 3 scenarios are sound\n"


def test_another_working_folder_goes_by_its_own(project: Path, tmp_path: Path) -> None:
    choose(tmp_path, gateway_folder(tmp_path, "2.0"))
    assert run(project, "up.yaml").returncode == 0
    assert told(project, "up") == ("2.3", "2.3 (reconstruction)")


def test_a_trace_is_played_at_the_newest_revision_of_the_contract_in_use(project: Path, tmp_path: Path) -> None:
    folder = gateway_folder(tmp_path, "2.2")
    shutil.copytree(default_contract_folder() / "vectors", folder / "vectors")
    choose(project, folder)
    words = ("contract", "trace", "valid-handshake-and-job", "--against", "reference")
    done = lab(*words, cwd=project)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["2 pass"]), done.stderr
    done = lab(*words, "--revision", "2.3", cwd=project)
    assert (done.returncode, done.stdout) == (2, "")
    assert "index.json: is of revision 2.2, and no revisions.json leads back to 2.3" in done.stderr

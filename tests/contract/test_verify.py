"""`lab contract verify`: what it prints, and its exit statuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lab.contract.commands import contract
from lab.contract.verify import Verification, verify
from lab.protocol.contract import default_contract_folder
from tests.contract.copies import copied_contract, read, write

TRACES = 24
"""What the first revision has; the newest has one more."""


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(contract, ["verify", *map(str, arguments)])


@pytest.fixture(scope="module")
def own() -> Verification:
    return verify(default_contract_folder())


def test_the_projects_own_contract_holds(own: Verification) -> None:
    assert own.faults == ()
    assert own.surprises == ()
    assert own.exit_status == 0


@pytest.mark.req("CT-023", "CT-068")
def test_counts_of_each_revision(own: Verification) -> None:
    assert [report.revision for report in own.revisions] == ["2.0", "2.1", "2.2", "2.3"]
    assert [report.types for report in own.revisions] == [21, 22, 24, 24]
    first = own.revisions[0]
    assert sum(row.valid + row.invalid for row in first.rows if not row.file.endswith(".body")) >= 134
    assert sum(row.valid for row in first.rows) >= 134
    assert len({result.name for result in first.traces}) == TRACES
    assert len({result.name for result in own.revisions[-1].traces}) == TRACES + 1


def test_the_table_has_a_column_for_each_revision() -> None:
    done = run()
    assert done.exit_code == 0
    lines = {line[:26].strip(): line[26:].split() for line in done.stdout.splitlines()}
    assert lines[""] == ["2.0", "2.1", "2.2", "2.3"]
    assert lines["policy.check"] == ["5+20", "5+20"]
    assert lines["frame types"] == ["21", "22", "24", "24"]
    assert lines["surprises"] == ["0"] * 4


def test_as_json(own: Verification) -> None:
    done = run("--json", default_contract_folder())
    assert done.exit_code == 0
    found: dict[str, Any] = json.loads(done.stdout)
    assert found == json.loads(json.dumps(own.to_json()))
    newest = found["revisions"][-1]
    assert {"file": "policy.decision", "valid": 5, "invalid": 16, "surprises": 0} in newest["files"]
    assert all(trace["held"] for trace in newest["traces"])


@pytest.mark.req("CT-051")
def test_a_copy_with_surprises_exits_1_and_lists_each(tmp_path: Path) -> None:
    folder = copied_contract(tmp_path)
    assign = folder / "job.assign.schema.json"
    document = read(assign)
    document["properties"]["payload"]["properties"]["kind"]["enum"].append("ask")
    write(assign, document)
    error = folder / "error.schema.json"
    document = read(error)
    del document["properties"]["payload"]["properties"]["detail"]["maxLength"]
    write(error, document)
    done = run(folder)
    assert done.exit_code == 1
    said = done.stderr.splitlines()
    for revision in ("2.0", "2.1", "2.2", "2.3"):
        assert (
            f"surprise: {revision} job.assign: kind-ask-outside-allowlist: due schema_violation (enum), seen valid"
            in said
        )
        assert f"surprise: {revision} error: detail-too-long: due schema_violation (maxLength), seen valid" in said
        assert any(line.startswith(f"surprise: {revision} lint: error: ") for line in said)
    assert "surprises" in done.stdout


def test_a_trace_that_ends_otherwise_is_a_surprise(tmp_path: Path) -> None:
    folder = copied_contract(tmp_path)
    trace = folder / "vectors" / "traces" / "invalid-seq-gap.json"
    document = read(trace)
    document["expect"]["error"] = "seq_replayed"
    write(trace, document)
    done = run(folder)
    assert done.exit_code == 1
    assert "trace invalid-seq-gap" in done.stderr
    assert "trace invalid-seq-gap" in json.loads(run("--json", folder).stdout)["surprises"][0]


@pytest.mark.req("CT-057")
def test_a_broken_folder_exits_2_and_is_reported_whole(tmp_path: Path) -> None:
    folder = copied_contract(tmp_path)
    (folder / "alert.schema.json").unlink()
    (folder / "ready.schema.json").write_text("{")
    (folder / "vectors" / "ack.vectors.json").write_text("{")
    (folder / "vectors" / "error.vectors.json").rename(folder / "vectors" / "quota.update.vectors.json")
    done = run(folder)
    assert done.exit_code == 2
    assert done.stdout == ""
    for name in ("alert.schema.json", "ready.schema.json", "ack.vectors.json", "quota.update.vectors.json"):
        assert name in done.stderr
    found = json.loads(run("--json", folder).stdout)
    assert len(found["faults"]) == 4
    assert found["revisions"] == []


def test_vectors_without_a_schema_are_a_fault(tmp_path: Path) -> None:
    folder = copied_contract(tmp_path)
    place = folder / "vectors"
    document = read(place / "error.vectors.json")
    write(place / "quota.update.vectors.json", {**document, "type": "quota.update"})
    body = read(place / "file.list.body.vectors.json")
    write(place / "diff.body.vectors.json", {**body, "schema": "diff.body.schema.json"})
    assert [fault.partition(": ")[2] for fault in verify(folder).faults] == [
        "vectors for diff.body, of which the contract has no schema",
        "vectors for quota.update, of which the contract has no schema",
    ]


def test_no_such_folder(tmp_path: Path) -> None:
    done = run(tmp_path / "none")
    assert done.exit_code == 2
    assert done.stderr == f"error: {tmp_path / 'none'}: no such folder\n"


def test_a_revision_that_is_no_number(tmp_path: Path) -> None:
    folder = copied_contract(tmp_path)
    (folder / "revisions.json").unlink()
    write(folder / "index.json", {**read(folder / "index.json"), "revision": "newest"})
    done = run(folder)
    assert done.exit_code == 2
    due = "'newest' is no revision: numbers with dots between them are due"
    assert done.stderr == f"error: {folder / 'index.json'}: {due}\n"


def test_a_revision_that_is_no_text(tmp_path: Path) -> None:
    """YAML's habit of writing it as a number."""
    folder = copied_contract(tmp_path)
    write(folder / "index.json", {**read(folder / "index.json"), "revision": 2.3})
    done = run(folder)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f'error: {folder / "index.json"}: revision, if present, has to be a string, as "2.0"\n'


def test_steps_back_from_another_revision(tmp_path: Path) -> None:
    folder = copied_contract(tmp_path)
    write(folder / "index.json", {**read(folder / "index.json"), "revision": "2.4"})
    done = run(folder)
    assert done.exit_code == 2
    assert done.stderr == f'error: {folder / "revisions.json"}: newest is "2.3", index.json is of revision 2.4\n'


def test_each_wrong_limit_is_told_once(tmp_path: Path) -> None:
    folder = copied_contract(tmp_path)
    index = read(folder / "index.json")
    index["limits"] |= {"maxFrameBytes": "big", "maxChunks": -1}
    write(folder / "index.json", index)
    assert run(folder).stderr.splitlines() == [
        f"error: {folder / 'index.json'}: limits.{name} has to be a positive integer"
        for name in ("maxFrameBytes", "maxChunks")
    ]


def test_without_an_index_no_follow_on_faults_are_told(tmp_path: Path) -> None:
    folder = copied_contract(tmp_path)
    (folder / "index.json").unlink()
    (folder / "vectors" / "traces" / "invalid-clock-skew.json").write_text("{")
    told = run(folder).stderr.splitlines()
    assert [line.partition(":")[2].split(": ")[0].strip() for line in told] == [
        str(folder / "index.json"),
        str(folder / "vectors" / "traces" / "invalid-clock-skew.json"),
    ]


def test_a_type_that_the_lab_does_not_know_is_judged_when_it_is_wanted(tmp_path: Path) -> None:
    folder = copied_contract(tmp_path)
    (folder / "revisions.json").unlink()
    index, envelope = read(folder / "index.json"), read(folder / "envelope.schema.json")
    index["types"]["job.pause"] = index["types"]["ack"]
    envelope["properties"]["type"]["enum"].append("job.pause")
    write(folder / "index.json", index)
    write(folder / "envelope.schema.json", envelope)
    ack = (folder / "ack.schema.json").read_text("utf-8")
    (folder / "job.pause.schema.json").write_text(ack.replace("ack.schema.json", "job.pause.schema.json"), "utf-8")
    assert "types.job.pause: a type that the lab does not know" in run(folder).stderr
    done = run(folder, "--unknown-types")
    assert (done.exit_code, "frame types                 25" in done.stdout) == (1, True), done.output
    assert "surprise: 2.3 lint: job.pause: no file of vectors (CT-057)" in done.stderr

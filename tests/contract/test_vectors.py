"""Vector files: what is read, and what is refused by its file and name."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from lab.contract.vectors import load_vector_file, load_vectors, revision_order
from lab.errors import ContractError
from lab.protocol.contract import Direction

VECTOR: dict[str, Any] = {"name": "one", "message": {"a": 1}, "expect": {"valid": True}}
BROKEN: dict[str, Any] = {"valid": False, "code": "schema_violation", "keyword": "enum", "rule": "direction"}


def put(folder: Path, name: str, document: object) -> Path:
    file = folder / "vectors" / f"{name}.vectors.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(document))
    return file


@pytest.mark.req("CT-010", "CT-011")
def test_a_file_of_a_type(tmp_path: Path) -> None:
    key = bytes(range(32))
    entry = {**VECTOR, "name": "two", "direction": "la-to-cp", "since": "2.1", "until": "2.2", "expect": BROKEN}
    document = {"type": "ack", "keys": {"k": base64.b64encode(key).decode()}, "vectors": [VECTOR, entry]}
    file = load_vector_file(put(tmp_path, "ack", document))
    assert (file.name, file.schema, file.keys) == ("ack", "ack", {"k": key})
    assert not file.is_body
    assert not file.is_cross_type
    one, two = file.vectors
    assert (one.name, one.message, one.expect.valid, one.direction) == ("one", {"a": 1}, True, None)
    assert two.direction is Direction.LA_TO_CP
    due = two.expect
    assert (due.valid, due.code, due.keyword, due.rule) == (False, "schema_violation", "enum", "direction")


@pytest.mark.req("CT-011", "CT-014")
@pytest.mark.parametrize(
    "schema", ["job.stream.body.schema.json", "job.stream.body", "https://x/y/job.stream.body.schema.json"]
)
def test_a_file_of_a_body_names_its_schema(tmp_path: Path, schema: str) -> None:
    file = load_vector_file(put(tmp_path, "job.stream.body", {"schema": schema, "vectors": [VECTOR]}))
    assert file.schema == "job.stream.body"
    assert file.is_body


@pytest.mark.parametrize("head", [{}, {"schema": "envelope"}, {"type": "cross-type"}])
def test_a_file_across_types(tmp_path: Path, head: dict[str, str]) -> None:
    file = load_vector_file(put(tmp_path, "cross-type", {**head, "vectors": [VECTOR]}))
    assert file.is_cross_type
    assert file.schema == "envelope"


@pytest.mark.parametrize(
    ("since", "until", "counts"),
    [
        (None, None, "2.0 2.1 2.2 2.3 2.10"),
        ("2.1", None, "2.1 2.2 2.3 2.10"),
        (None, "2.2", "2.0 2.1 2.2"),
        ("2.1", "2.2", "2.1 2.2"),
    ],
)
def test_revisions_between_which_a_vector_counts(
    tmp_path: Path, since: str | None, until: str | None, counts: str
) -> None:
    entry = {**VECTOR, "since": since, "until": until}
    (vector,) = load_vector_file(put(tmp_path, "ack", {"type": "ack", "vectors": [entry]})).vectors
    revisions = ["2.0", "2.1", "2.2", "2.3", "2.10"]
    assert [revision for revision in revisions if vector.counts_in(revision)] == counts.split()


@pytest.mark.parametrize(
    ("expect", "holds"),
    [
        ({"valid": True}, True),
        ({"valid": False, "keyword": "enum"}, False),
        ({"valid": False}, False),
        ({"valid": False, "rule": "byteLength-decoded"}, True),
    ],
)
def test_what_a_rule_refuses_keeps_its_schema(tmp_path: Path, expect: dict[str, Any], holds: bool) -> None:
    entry = {**VECTOR, "expect": expect}
    (vector,) = load_vector_file(put(tmp_path, "ack", {"type": "ack", "vectors": [entry]})).vectors
    assert vector.schema_holds is holds


def test_the_message_stays_out_of_the_repr(tmp_path: Path) -> None:
    entry = {**VECTOR, "message": {"inline": "canary-0123"}}
    file = load_vector_file(put(tmp_path, "ack", {"type": "ack", "vectors": [entry]}))
    assert "canary" not in repr(file)


FAULTS = [
    ("ack", [], "a list `vectors`"),
    ("ack", {"type": "ack", "vectors": []}, "the list needs an entry"),
    ("ack", {"type": "error", "vectors": [VECTOR]}, "`type` says error"),
    ("ack", {"vectors": [VECTOR]}, "needs `type`"),
    ("job.stream.body", {"vectors": [VECTOR]}, "needs `schema`"),
    ("ack", {"type": "ack", "vector": [], "vectors": [VECTOR]}, "unknown member vector"),
    ("ack", {"type": "ack", "vectors": [VECTOR, VECTOR]}, "several vectors have the name one"),
    ("ack", {"type": "ack", "keys": {"k": "e30="}, "vectors": [VECTOR]}, "a seed of 32 bytes, which k has not"),
    ("ack", {"type": "ack", "keys": {"k": "é"}, "vectors": [VECTOR]}, "a seed of 32 bytes, which k has not"),
    ("ack", {"type": "ack", "keys": [], "vectors": [VECTOR]}, "32 bytes"),
    ("ack", {"type": "ack", "vectors": [7]}, "vector 0 needs a name"),
    ("ack", {"type": "ack", "vectors": [{**VECTOR, "name": ""}]}, "vector 0 needs a name"),
    ("ack", {"type": "ack", "vectors": [{**VECTOR, "expect": {}}]}, "vector 0 needs a name"),
    ("ack", {"type": "ack", "vectors": [{**VECTOR, "untill": "2.0"}]}, "vector one: unknown member untill"),
    ("ack", {"type": "ack", "vectors": [{**VECTOR, "expect": {"valid": False, "keywords": "x"}}]}, "unknown member"),
    ("ack", {"type": "ack", "vectors": [{**VECTOR, "expect": {"valid": False, "code": 7}}]}, "are strings"),
    ("ack", {"type": "ack", "vectors": [{**VECTOR, "expect": {"valid": True, "code": "x"}}]}, "what is valid breaks"),
    ("ack", {"type": "ack", "vectors": [{**VECTOR, "direction": "up"}]}, "direction is la-to-cp or cp-to-la or both"),
    ("ack", {"type": "ack", "vectors": [{**VECTOR, "since": "new"}]}, "'new' is no revision"),
]


@pytest.mark.req("CT-010")
@pytest.mark.parametrize(("name", "document", "said"), FAULTS)
def test_what_has_not_the_form_is_refused_by_its_file(tmp_path: Path, name: str, document: object, said: str) -> None:
    file = put(tmp_path, name, document)
    with pytest.raises(ContractError) as caught:
        load_vector_file(file)
    assert said in str(caught.value)
    assert str(file) in str(caught.value)


def test_marks_and_words_may_stand_beside(tmp_path: Path) -> None:
    entry = {**VECTOR, "x-requirement": "CT-001", "about": "words", "description": "words", "note": "words"}
    assert load_vector_file(put(tmp_path, "ack", {"type": "ack", "about": "words", "vectors": [entry]})).vectors


def test_all_files_are_read_and_all_faults_told(tmp_path: Path) -> None:
    put(tmp_path, "ack", {"type": "ack", "vectors": [VECTOR]})
    put(tmp_path, "alert", {"type": "alert", "vectors": []})
    (tmp_path / "vectors" / "hello.vectors.json").write_text("{")
    (tmp_path / "vectors" / "ready.vectors.json").mkdir()
    found = load_vectors(tmp_path)
    assert [file.name for file in found.files] == ["ack"]
    assert len(found.faults) == 3
    assert ["alert" in found.faults[0], "not JSON" in found.faults[1], "cannot be read" in found.faults[2]] == [
        True
    ] * 3


def test_no_vectors_at_all_is_a_fault(tmp_path: Path) -> None:
    assert load_vectors(tmp_path).faults == (f"{tmp_path / 'vectors'}: no vector files",)


def test_revisions_are_ordered_as_numbers() -> None:
    assert sorted(["2.10", "2.9", "2.0"], key=revision_order) == ["2.0", "2.9", "2.10"]

"""The project's own vectors, and the rules beyond the schema: each seen to refuse, each seen to matter."""

from __future__ import annotations

import base64
import itertools
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from lab.contract.vectors import Expectation, Vector, VectorFile, load_vectors
from lab.contract.verify_vectors import RULES, Row, judge_vector, verify_file
from lab.protocol.contract import BODIES, default_contract_folder
from tests.contract.validators import REVISIONS, contract


@cache
def files() -> dict[str, VectorFile]:
    found = load_vectors(default_contract_folder())
    assert found.faults == ()
    return {file.name: file for file in found.files}


def vector(file: str, name: str) -> Vector:
    return next(each for each in files()[file].vectors if each.name == name)


def names(file: str, revision: str = "2.3", valid: bool | None = None) -> list[str]:
    return [
        each.name for each in files()[file].vectors if each.counts_in(revision) and valid in (None, each.expect.valid)
    ]


def rows(revision: str) -> list[Row]:
    return [row for row in (verify_file(contract(revision), file) for file in files().values()) if row is not None]


@pytest.mark.req("CT-012", "CT-013")
@pytest.mark.parametrize("revision", REVISIONS)
def test_no_vector_surprises(revision: str) -> None:
    assert [str(surprise) for row in rows(revision) for surprise in row.surprises] == []


@pytest.mark.req("CT-003", "CT-068")
def test_files_of_each_revision() -> None:
    frames = [[row.file for row in rows(revision) if not row.file.endswith(".body")] for revision in REVISIONS]
    assert [len(each) for each in frames] == [22, 23, 25, 25]
    assert set(frames[0]) == {*contract("2.0").types, "cross-type"}


@pytest.mark.req("CT-014")
def test_files_of_bodies() -> None:
    assert {name: file.schema for name, file in files().items() if file.is_body} == {
        f"{body}.body": f"{body}.body" for body in BODIES
    }


@pytest.mark.req("CT-022")
@pytest.mark.parametrize(("type_name", "valid", "invalid"), [("policy.check", 5, 20), ("policy.decision", 5, 16)])
@pytest.mark.parametrize("revision", ["2.2", "2.3"])
def test_counts_of_the_policy_types(type_name: str, valid: int, invalid: int, revision: str) -> None:
    row = verify_file(contract(revision), files()[type_name])
    assert row is not None
    assert (row.valid, row.invalid) == (valid, invalid)


@pytest.mark.req("CT-018")
def test_groups_of_job_assign() -> None:
    for group in ("chat-", "inline-", "kind-"):
        found = [name for name in names("job.assign") if name.startswith(group)]
        assert len(found) >= 4
        assert {vector("job.assign", name).expect.valid for name in found} == {True, False}


@pytest.mark.req("CT-019")
@pytest.mark.parametrize("type_name", ["register", "hello"])
def test_the_newest_capabilities_are_announced(type_name: str) -> None:
    message: Any = vector(type_name, "capabilities-job-chat-and-inline-16k").message
    assert {"job.chat", "job.inline.16k"} <= set(message["payload"]["capabilities"])


@pytest.mark.req("CT-020")
def test_groups_of_content_request() -> None:
    for group in ("job-stream-", "chat-session-"):
        found = [name for name in names("content.request") if name.startswith(group)]
        assert {vector("content.request", name).expect.valid for name in found} == {True, False}


@pytest.mark.req("CT-015")
def test_a_chat_with_a_git_token() -> None:
    seen = judge_vector(contract("2.3"), files()["job.assign"], vector("job.assign", "chat-inline-with-git-token"))
    assert (seen.code, seen.keyword, seen.path) == ("schema_violation", "additionalProperties", "/payload")


@pytest.mark.req("CT-016")
@pytest.mark.parametrize("revision", REVISIONS)
def test_a_kind_outside_the_allowlist(revision: str) -> None:
    due = vector("job.assign", "kind-ask-outside-allowlist")
    message: Any = due.message
    assert message["payload"]["kind"] == "ask"
    seen = judge_vector(contract(revision), files()["job.assign"], due)
    assert (seen.code, seen.keyword, seen.path) == ("schema_violation", "enum", "/payload/kind")


@pytest.mark.req("CT-017", "CT-064")
def test_an_inline_above_its_limit() -> None:
    due = vector("job.assign", "inline-above-limit")
    message: Any = due.message
    assert len(message["payload"]["inputs"][0]["inline"]) == 16385
    assert judge_vector(contract("2.3"), files()["job.assign"], due).keyword == "maxLength"
    # Characters are code points: as many emoji keep the schema, though the frame is too big then.
    emoji = judge_vector(contract("2.3"), files()["job.assign"], vector("job.assign", "inline-16384-emoji"))
    assert (emoji.code, emoji.rule) == ("frame_too_large", "frameBytes")


@pytest.mark.req("CT-021")
def test_the_largest_chunk_and_what_is_above() -> None:
    message: Any = vector("content.response", "max-size-chunk").message
    assert len(base64.b64decode(message["payload"]["data"], validate=True)) == 32768
    for name in ("data-above-limit", "byte-length-above-limit", "max-size-chunk-and-one-byte"):
        assert not judge_vector(contract("2.3"), files()["content.response"], vector("content.response", name)).valid


@pytest.mark.req("CT-012")
def test_what_a_rule_refuses_would_pass_by_the_schema_alone() -> None:
    ruled = [(file, each) for file in files().values() for each in file.vectors if each.expect.rule]
    assert {each.expect.rule for _, each in ruled} == set(RULES)
    for file, each in ruled:
        message: Any = each.message
        assert contract("2.3").check_frame(message["type"], message) is None
        assert not judge_vector(contract("2.3"), file, each).valid


@pytest.mark.req("CT-061", "CT-062")
def test_what_holds_in_a_revision_holds_in_the_next() -> None:
    for old, new in itertools.pairwise(REVISIONS):
        held = [
            (file, each)
            for file in files().values()
            if file.is_body or file.is_cross_type or file.schema in contract(old).types
            for each in file.vectors
            if judge_vector(contract(old), file, each).valid
        ]
        assert len(held) >= 134
        assert [each.name for file, each in held if not judge_vector(contract(new), file, each).valid] == []


def test_a_type_before_its_revision_is_not_judged() -> None:
    assert verify_file(contract("2.0"), files()["policy.check"]) is None


@pytest.mark.parametrize("message", [None, 7, "text", [], {}, {"type": []}, {"type": "ack"}], ids=repr)
def test_any_message_has_a_verdict(message: object) -> None:
    for name in ("ack", "cross-type", "job.stream.body"):
        each = Vector("any", message, Expectation(valid=False))
        assert not judge_vector(contract("2.3"), files()[name], each).valid


HEARTBEAT = "heartbeat"
SURPRISES = [
    ("empty", Expectation(valid=False), "due invalid, seen valid"),
    ("seq-zero", Expectation(valid=True), "due valid, seen schema_violation (minimum at /seq)"),
    ("seq-zero", Expectation(False, "unknown_type"), "due unknown_type, seen schema_violation (minimum at /seq)"),
    ("seq-zero", Expectation(False, None, "maximum"), "due invalid (maximum), seen schema_violation (minimum at /seq)"),
    ("seq-zero", Expectation(False, None, None, "direction"), "due invalid (rule direction), seen schema_violation"),
    ("empty", Expectation(False, None, None, "tides"), "due invalid (rule tides), a rule that is not known here"),
    ("not-an-object", Expectation(valid=True), "due valid, seen bad_frame (type at the top)"),
]


@pytest.mark.req("CT-010")
@pytest.mark.parametrize(("name", "expect", "said"), SURPRISES)
def test_another_verdict_is_a_surprise(name: str, expect: Expectation, said: str) -> None:
    file = replace(files()[HEARTBEAT], vectors=(replace(vector(HEARTBEAT, name), expect=expect),))
    row = verify_file(contract("2.3"), file)
    assert row is not None
    (surprise,) = row.surprises
    assert said in str(surprise)
    assert str(surprise).startswith(f"2.3 heartbeat: {name}: ")


def test_what_is_left_open_is_no_surprise() -> None:
    file = replace(
        files()[HEARTBEAT], vectors=(replace(vector(HEARTBEAT, "seq-zero"), expect=Expectation(valid=False)),)
    )
    row = verify_file(contract("2.3"), file)
    assert row is not None
    assert row.surprises == ()


def test_another_keyword_that_is_broken_too_is_as_due() -> None:
    message = {**_heartbeat(), "seq": 0, "ts": "today"}
    for keyword, surprises in (("minimum", 0), ("pattern", 0), ("maximum", 1)):
        each = Vector("both", message, Expectation(False, None, keyword))
        row = verify_file(contract("2.3"), replace(files()[HEARTBEAT], vectors=(each,)))
        assert row is not None
        assert len(row.surprises) == surprises


def test_without_keys_no_signature_is_judged() -> None:
    due = [each for each in files()["job.assign"].vectors if each.expect.rule in ("paramsRaw", "signed")]
    assert len(due) >= 4
    file = replace(files()["job.assign"], keys={})
    assert [each.name for each in due if not judge_vector(contract("2.3"), file, each).valid] == []


def _heartbeat() -> dict[str, Any]:
    message: Any = vector(HEARTBEAT, "empty").message
    return dict(message)

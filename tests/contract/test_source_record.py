"""The record that a copy of the gateway's contract has beside it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from lab.contract.source_record import SOURCE_RECORD_LIMIT, read_source_record
from lab.errors import ContractError

DIGEST = "a" * 64


def test_no_record(tmp_path: Path) -> None:
    assert read_source_record(tmp_path / "CONTRACT_SOURCE.json") is None


@pytest.mark.parametrize(
    "files",
    [
        {"index.json": DIGEST},
        {"index.json": f"sha256:{DIGEST.upper()}"},
        [{"path": "index.json", "sha256": DIGEST}],
        [{"name": "index.json", "hash": DIGEST}],
    ],
)
def test_each_way_to_list_the_files(tmp_path: Path, files: object) -> None:
    file = tmp_path / "CONTRACT_SOURCE.json"
    file.write_text(json.dumps({"commit": "AB", "note": "n", "files": files}))
    record = read_source_record(file)
    assert record is not None
    assert (record.commit, record.files, record.described) == ("ab", {"index.json": DIGEST}, {"note": "n"})


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "are due"),
        ('{"commit": "ab"}', "are due"),
        ('{"commit": "ab", "files": {}}', "are due"),
        ('{"commit": "ab", "files": 7}', "are due"),
        ('{"commit": 7, "files": {"a": "b"}}', "are due"),
        ('{"commit": "ab", "files": {"a": 7}}', "are due"),
        ('{"commit": "ab", "files": [{"path": "a"}]}', "are due"),
        ('{"commit": "ab", "files": ["a"]}', "are due"),
        (" " * (SOURCE_RECORD_LIMIT + 1), "a plain file"),
    ],
)
def test_a_record_that_cannot_be_used_is_refused_by_name(tmp_path: Path, content: str, reason: str) -> None:
    file = tmp_path / "CONTRACT_SOURCE.json"
    file.write_text(content)
    with pytest.raises(ContractError, match=reason) as caught:
        read_source_record(file)
    assert str(file) in str(caught.value)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "CONTRACT_SOURCE.json"
    os.mkfifo(file)
    with pytest.raises(ContractError, match="a plain file"):
        read_source_record(file)

"""Signing and laying out vector files."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.contract.vector_signing import main, signed_file
from lab.contract.vectors import VectorFile, load_vector_file, load_vectors
from lab.contract.verify_vectors import verify_file
from lab.protocol.contract import default_contract_folder
from tests.contract.copies import read, write
from tests.contract.validators import contract

FILES = load_vectors(default_contract_folder()).files


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_signing_what_is_signed_changes_nothing(file: VectorFile) -> None:
    assert signed_file(file.path) == file.path.read_text("utf-8")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_files_of_signed_types_name_keys(file: VectorFile) -> None:
    signed = file.is_cross_type or (not file.is_body and contract("2.3").types[file.schema].signed)
    assert bool(file.keys) is signed


def test_an_edit_is_signed_anew(tmp_path: Path) -> None:
    original = default_contract_folder() / "vectors" / "job.cancel.vectors.json"
    path = tmp_path / original.name
    document = read(original)
    edited = next(entry for entry in document["vectors"] if entry["name"] == "full")
    edited["message"]["payload"]["reason"] = "timeout"
    write(path, document)
    row = verify_file(contract("2.3"), load_vector_file(path))
    assert row is not None
    assert [surprise.vector for surprise in row.surprises] == ["full"]
    main([str(path)])
    row = verify_file(contract("2.3"), load_vector_file(path))
    assert row is not None
    assert row.surprises == ()
    changed = [
        (after["name"], after["message"]["sig"]["nonce"] == before["message"]["sig"]["nonce"])
        for before, after in zip(read(original)["vectors"], read(path)["vectors"], strict=True)
        if before != after
    ]
    assert changed == [("full", True)]

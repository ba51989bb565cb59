"""`CONTRACT_SOURCE.json`: what a copy of the gateway's contract says of its source, with a sha256 a file (CT-054)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lab.errors import ContractError

SOURCE_RECORD: Final = "CONTRACT_SOURCE.json"

SOURCE_RECORD_LIMIT: Final = 1024 * 1024
"""Bytes at most."""

_DESCRIBING = ("repo", "path", "branch", "branchTip", "note")
_HASH_MEMBERS = ("sha256", "hash")
_NAME_MEMBERS = ("path", "name", "file")


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """The record of a copy. `files` are sha256 by the path within the contract folder, with `/`."""

    file: Path
    commit: str
    files: Mapping[str, str]
    described: Mapping[str, str]

    def faults(self, folder: Path, commit: str, seen: Mapping[str, str]) -> Iterator[str]:
        """Where a copy is not what its record says; `seen` are the sha256 of the files that are there."""
        if self.commit != commit:
            yield f"{self.file}: the copy is of commit {self.commit}, not of {commit}"
        for name, digest in self.files.items():
            if name not in seen:
                yield f"{folder / name}: missing, though {SOURCE_RECORD} names it"
            elif seen[name] != digest:
                yield f"{folder / name}: changed since it was copied: its sha256 is not the one of {SOURCE_RECORD}"
        for name in seen:
            if name not in self.files:
                yield f"{folder / name}: added since the copy was made: {SOURCE_RECORD} does not name it"


def read_source_record(file: Path) -> SourceRecord | None:
    """The record in a file; None when there is none. One of an unknown form raises ContractError.

    The source states the members, not how `files` is laid out: an object of path to sha256 and a list of objects with
    both are read.
    """
    if not file.exists():
        return None
    try:
        if not file.is_file() or file.stat().st_size > SOURCE_RECORD_LIMIT:
            raise ContractError(f"{file}: a plain file of at most {SOURCE_RECORD_LIMIT} bytes is due")
        document: Any = json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise ContractError(f"{file}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ContractError(f"{file}: not JSON: {error}") from error
    commit = document.get("commit") if isinstance(document, dict) else None
    files = _files(document.get("files")) if isinstance(document, dict) else None
    if not isinstance(commit, str) or not files:
        raise ContractError(f"{file}: `commit` (a text) and `files` (a sha256 by path) are due")
    described = {name: document[name] for name in _DESCRIBING if isinstance(document.get(name), str)}
    return SourceRecord(file, commit.lower(), files, described)


def _files(value: Any) -> dict[str, str] | None:
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list):
        pairs = [(_member(entry, _NAME_MEMBERS), _member(entry, _HASH_MEMBERS)) for entry in value]
    else:
        return None
    if not all(isinstance(name, str) and isinstance(digest, str) for name, digest in pairs):
        return None
    return {name: digest.lower().removeprefix("sha256:") for name, digest in pairs}


def _member(entry: Any, names: tuple[str, ...]) -> Any:
    return next((entry[name] for name in names if name in entry), None) if isinstance(entry, dict) else None

"""The tap's own reading of the contract folder: its types, limits and schemas at one revision."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import jsonschema_rs

from lab.errors import ContractError

_SUFFIX = ".schema.json"


@dataclass(frozen=True)
class TypeRule:
    """What the index says of a type: who may send it, whether it is signed, whether it counts no seq."""

    direction: str
    signed: bool
    control: bool


@lru_cache(maxsize=16)
def schemas_of(folder: Path, revision: str) -> Schemas:
    """The schemas of a folder at a revision, compiled once for all taps of this process; see `Schemas`."""
    return Schemas(folder, revision)


class Schemas:
    """The closed schemas of one revision, ready to judge frames and bodies."""

    def __init__(self, folder: Path, revision: str) -> None:
        """Read `folder`; one that is incomplete, or has no such revision, raises `ContractError`."""
        documents = _documents(folder)
        _go_back(documents, _revisions(folder, documents["index"]), revision, folder)
        index = documents["index"]
        self.types: Mapping[str, TypeRule] = {
            name: TypeRule(rule["direction"], rule["signed"], rule["control"]) for name, rule in index["types"].items()
        }
        self.max_frame_bytes: int = index["limits"]["maxFrameBytes"]
        self._known_names = frozenset(_member_names(documents))
        self._validators = _validators(folder, documents)

    def judge(self, name: str, value: object) -> str | dict[str, str]:
        """ "ok", or the keyword and the path of the first break of schema `name`; never raises.

        A path holds only member names that the contract knows: any other may be content.
        """
        validator = self._validators.get(name)
        if validator is None:
            return {"keyword": "unknown-type", "path": ""}
        try:
            if validator.is_valid(value):
                return "ok"
            error = next(validator.iter_errors(value))
        except (ValueError, OverflowError, TypeError, RecursionError) as fault:
            return {"keyword": f"unjudgeable-{type(fault).__name__}", "path": ""}
        return {"keyword": _keyword(error.schema_path), "path": self._path(error.instance_path)}

    def _path(self, steps: list[str | int]) -> str:
        return ".".join(_step(step, self._known_names) for step in steps[:12])


def _step(step: str | int, known: frozenset[str]) -> str:
    if isinstance(step, int):
        return "[]"
    return step if step in known else "*"


def _keyword(schema_path: list[str | int]) -> str:
    words = [step for step in schema_path if isinstance(step, str)]
    return words[-1] if words else "false"


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ContractError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ContractError(f"{path}: not JSON: {error}") from error


def _revisions(folder: Path, index: Any) -> Any:
    """The steps to older revisions; without them there is the index's own, and 2.0 does not name itself (CT-009)."""
    file = folder / "revisions.json"
    return _read(file) if file.exists() else {"newest": index.get("revision", "2.0"), "older": []}


def _documents(folder: Path) -> dict[str, Any]:
    documents = {path.name.removesuffix(_SUFFIX): _read(path) for path in sorted(folder.glob(f"*{_SUFFIX}"))}
    documents["index"] = _read(folder / "index.json")
    return documents


def _go_back(documents: dict[str, Any], revisions: Any, revision: str, folder: Path) -> None:
    """Undo what later revisions brought, newest first, until `revision` stands."""
    known = [revisions["newest"], *(older["revision"] for older in revisions["older"])]
    if revision not in known:
        raise ContractError(f"{folder}: no revision {revision}; it has {', '.join(known)}")
    for older in revisions["older"][: known.index(revision)]:
        for edit in older["edits"]:
            _apply(documents, edit, folder)


def _apply(documents: dict[str, Any], edit: Mapping[str, Any], folder: Path) -> None:
    *parents, last = [step.replace("~1", "/").replace("~0", "~") for step in edit["pointer"].split("/")[1:]]
    place: Any = documents.get(edit["schema"])
    try:
        for step in parents:
            place = place[step]
        if "set" in edit:
            place[last] = edit["set"]
        elif "drop" in edit:
            place[last].remove(edit["drop"])
        else:
            del place[last]
    except (KeyError, TypeError, ValueError) as error:
        raise ContractError(f"{folder}/revisions.json: {edit['schema']}{edit['pointer']}: nothing to edit") from error


def _validators(folder: Path, documents: Mapping[str, Any]) -> dict[str, jsonschema_rs.Draft202012Validator]:
    schemas = {name: document for name, document in documents.items() if name != "index"}
    by_id = {document["$id"]: document for document in schemas.values()}

    def retrieve(uri: str) -> Any:
        return by_id[uri.split("#")[0]]

    types = documents["index"]["types"]
    wanted = [name for name in schemas if name in types or name.endswith(".body") or name == "envelope"]
    missing = sorted(set(types) - set(schemas))
    if missing:
        raise ContractError(f"{folder}: no schema for {missing[0]}")
    try:
        return {name: jsonschema_rs.Draft202012Validator(schemas[name], retriever=retrieve) for name in wanted}
    except (ValueError, KeyError, jsonschema_rs.ReferencingError) as error:
        raise ContractError(f"{folder}: a schema cannot be used: {error}") from error


def _member_names(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for name, member in node.items():
            if name == "properties" and isinstance(member, dict):
                yield from member
            yield from _member_names(member)
    elif isinstance(node, list):
        for item in node:
            yield from _member_names(item)

"""A contract folder as it stands on disk, and all that keeps it from being used: every fault, not the first alone."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

from lab.contract.vectors import revision_order
from lab.errors import ContractError
from lab.protocol.contract import (
    BODIES,
    FIRST_REVISION,
    INDEX_FILE,
    REVISIONS_FILE,
    SCHEMA_SUFFIX,
    Contract,
    Document,
    Limits,
    default_contract_folder,
)
from lab.protocol.errors import ERROR_CODES

_RECORD: Final = {
    "direction": ("la-to-cp", "cp-to-la", "both"),
    "signed": (True, False),
    "control": (True, False),
    "contentClass": ("none", "relay", "transit", "secret"),
}


@dataclass(frozen=True, slots=True)
class ContractFiles:
    """What could be read: index, steps to older revisions, and schemas by name; a line for each file that could not."""

    folder: Path
    index: Document
    older: Document
    schemas: Mapping[str, Document]
    faults: tuple[str, ...]

    @property
    def revisions(self) -> tuple[str, ...]:
        """The revisions that the folder describes, the newest last."""
        own = self.index.get("revision", FIRST_REVISION)
        steps = self.older.get("older") if self.older.get("newest") == own else None
        reached = [step.get("revision") for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
        return tuple(revision for revision in reversed([own, *reached]) if isinstance(revision, str))

    @property
    def types(self) -> Mapping[str, object]:
        """The records of the frame types, empty when the index has none."""
        types = self.index.get("types")
        return types if isinstance(types, dict) else {}


def read_folder(folder: Path) -> ContractFiles:
    """Read every file of a contract that can be read. Raises nothing for what a folder may hold."""
    if not folder.is_dir():
        return ContractFiles(folder, {}, {}, {}, (f"{folder}: no such folder",))
    faults: list[str] = []
    index = _read(folder / INDEX_FILE, faults)
    revisions = folder / REVISIONS_FILE
    older = _read(revisions, faults) if revisions.is_file() else {}
    found = {
        file.name.removesuffix(SCHEMA_SUFFIX): _read(file, faults) for file in sorted(folder.glob(f"*{SCHEMA_SUFFIX}"))
    }
    return ContractFiles(
        folder, index or {}, older or {}, {name: one for name, one in found.items() if one}, tuple(faults)
    )


def folder_faults(files: ContractFiles, known: Collection[str]) -> tuple[str, ...]:
    """Why the lab cannot use a folder, a line each: files that lack or break, types outside `known`; () when it can."""
    if not files.folder.is_dir():
        return files.faults
    faults = [*files.faults, *_index_faults(files, known), *_missing(files), *_allowlist_faults(files)]
    faults += [*_schema_faults(files), *_code_faults(files)]
    if not faults:
        faults += _load_faults(files)
    return tuple(faults)


def known_types(files: ContractFiles) -> Collection[str]:
    """The types that the lab itself can handle: those of its own contract's newest revision.

    When that cannot be read, it is most likely the folder in question, and no type of it is strange.
    """
    try:
        return Contract.load(default_contract_folder()).types
    except ContractError:
        return files.types


def _read(file: Path, faults: list[str]) -> Document | None:
    try:
        document = json.loads(file.read_text("utf-8"))
    except OSError as error:
        faults.append(f"{file}: cannot be read: {error.strerror}")
        return None
    except (ValueError, RecursionError) as error:
        faults.append(f"{file}: not JSON: {error}")
        return None
    if not isinstance(document, dict):
        faults.append(f"{file}: a JSON object is due")
        return None
    return document


def _index_faults(files: ContractFiles, known: Collection[str]) -> Iterator[str]:
    file = files.folder / INDEX_FILE
    if not files.index:
        return
    if files.index.get("protocol") != 2:
        yield f"{file}: protocol has to be 2"
    yield from _revision_faults(files)
    yield from _limit_faults(files)
    if not files.types:
        yield f"{file}: member `types` has to be an object with the frame types"
    for name, record in files.types.items():
        if name not in known:
            yield f"{file}: types.{name}: a type that the lab does not know"
        for member, values in _RECORD.items():
            value = record.get(member) if isinstance(record, dict) else None
            if not any(value is due or (isinstance(due, str) and value == due) for due in values):
                yield f"{file}: types.{name}.{member} has to be {' or '.join(json.dumps(due) for due in values)}"


def _revision_faults(files: ContractFiles) -> Iterator[str]:
    file, own = files.folder / INDEX_FILE, files.index.get("revision", FIRST_REVISION)
    if not isinstance(own, str):
        yield f"{file}: revision, if present, has to be a string, as {json.dumps(FIRST_REVISION)}"
        return
    try:
        revision_order(own)
    except ContractError as error:
        yield f"{file}: {error}"
        return
    if files.older and files.older.get("newest") != own:
        newest = json.dumps(files.older.get("newest"))
        yield f"{files.folder / REVISIONS_FILE}: newest is {newest}, {INDEX_FILE} is of revision {own}"


def _limit_faults(files: ContractFiles) -> Iterator[str]:
    limits = files.index.get("limits")
    for field in fields(Limits):
        first, *rest = field.name.split("_")
        name = first + "".join(word.capitalize() for word in rest)
        value = limits.get(name) if isinstance(limits, dict) else None
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            yield f"{files.folder / INDEX_FILE}: limits.{name} has to be a positive integer"


def _code_faults(files: ContractFiles) -> Iterator[str]:
    match files.schemas.get("defs"):
        case {"$defs": {"errorCode": {"enum": list(codes)}}}:
            odd = [str(code) for code in codes if code not in ERROR_CODES]
            odd += [code for code in ERROR_CODES if code not in codes]
            if odd:
                file = files.folder / f"defs{SCHEMA_SUFFIX}"
                yield f"{file}: $defs.errorCode and the lab's table differ in: {', '.join(odd)}"


def _needed(files: ContractFiles) -> tuple[str, ...]:
    return ("envelope", "defs", *files.types, *(f"{body}.body" for body in BODIES))


def _missing(files: ContractFiles) -> Iterator[str]:
    for name in _needed(files):
        file = files.folder / f"{name}{SCHEMA_SUFFIX}"
        if not file.exists():
            yield f"{file}: missing, though the contract needs it"


def _allowlist_faults(files: ContractFiles) -> Iterator[str]:
    # CT-057: a new type needs the index and the envelope's enum.
    file = files.folder / f"envelope{SCHEMA_SUFFIX}"
    if not files.index:
        return
    match files.schemas.get("envelope"):
        case None:
            return
        case {"properties": {"type": {"enum": list(names)}}}:
            for name in names:
                if name not in files.types:
                    yield f"{file}: names the type {name}, which {INDEX_FILE} has not"
            for name in files.types:
                if name not in names:
                    yield f"{file}: lacks the type {name} of {INDEX_FILE}"
        case _:
            yield f"{file}: properties.type.enum has to be the list of types"


def _schema_faults(files: ContractFiles) -> Iterator[str]:
    for name, schema in files.schemas.items():
        file = files.folder / f"{name}{SCHEMA_SUFFIX}"
        due = f"{files.index.get('baseId')}{name}{SCHEMA_SUFFIX}"
        fault = _unsound(schema)
        if fault:
            yield f"{file}: no sound JSON Schema: {fault}"
            continue
        if files.index and schema.get("$id") != due:
            yield f"{file}: $id has to be {due}"
        yield from (f"{file}: refers to {target}, which is not there" for target in _dangling(files, schema))


def _unsound(schema: Document) -> str | None:
    """What keeps a schema from being one, patterns included; None when nothing does."""
    import jsonschema_rs

    try:
        jsonschema_rs.meta.validate(schema)
        for pattern in _strings(schema, "pattern"):
            jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=jsonschema_rs.RegexOptions())
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        return str(error).partition("\n")[0]
    return None


def _dangling(files: ContractFiles, schema: Document) -> Iterator[str]:
    """References to what the folder has not. A file that lacks or breaks is told of already."""
    for reference in dict.fromkeys(_strings(schema, "$ref")):
        address, _, pointer = reference.partition("#")
        name = address.rsplit("/", 1)[-1].removesuffix(SCHEMA_SUFFIX)
        target: object = files.schemas.get(name) if address else schema
        if target is None:
            if name not in _needed(files) and not (files.folder / f"{name}{SCHEMA_SUFFIX}").exists():
                yield reference
            continue
        for step in pointer.split("/")[1:]:
            target = target.get(step) if isinstance(target, dict) else None
        if target is None:
            yield reference


def _strings(value: object, keyword: str) -> Iterator[str]:
    """The texts of a keyword anywhere below a schema. A member of that name has a schema, not a text."""
    if isinstance(value, dict):
        text = value.get(keyword)
        if isinstance(text, str):
            yield text
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for child in children:
        yield from _strings(child, keyword)


def _load_faults(files: ContractFiles) -> Iterator[str]:
    for revision in files.revisions:
        try:
            Contract.load(files.folder, revision)
        except ContractError as error:
            yield str(error)

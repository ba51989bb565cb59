"""What `lab contract use` does: read a gateway's contract folder, check it whole, copy it, record it.

Nothing is changed before everything was checked, and the record is replaced in one step, so that a run sees the old
contract or the new one. What the folder holds beside a contract's files is left there (CT-053).
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lab.contract.chosen import COPY_NAME, RECORD_FILE, ChosenRecord, read_record, sha256_of
from lab.contract.folder import ContractFiles, folder_faults, known_types, read_folder
from lab.contract.lint import lint
from lab.contract.source_record import SOURCE_RECORD, SourceRecord, read_source_record
from lab.contract.traces import load_traces
from lab.contract.vectors import VECTORS_FOLDER, load_vectors, revision_order
from lab.errors import ContractError, EnvironmentFault
from lab.private_files import replace_private
from lab.protocol.contract import (
    BODIES,
    BODIES_SINCE,
    FIRST_REVISION,
    INDEX_FILE,
    REVISIONS_FILE,
    SCHEMA_SUFFIX,
    Contract,
    default_contract_folder,
    read_documents,
)

README: Final = "README.md"
"""Copied and hashed like the rest (CT-066)."""

MOST_FILES: Final = 2000
FILE_LIMIT: Final = 4 * 1024 * 1024
"""Bytes of one file at most."""


_NAME = re.compile(r"[A-Za-z0-9._/-]{1,200}")


@dataclass(frozen=True, slots=True)
class Examined:
    """A folder that was read and checked. With `faults` it cannot be used; `notes` do not keep it from being used."""

    source: Path
    revision: str
    contents: Mapping[str, bytes]
    supplied: tuple[str, ...]
    described: Mapping[str, str] | None
    faults: tuple[str, ...]
    notes: tuple[str, ...]


def examine(source: Path, commit: str, *, unknown_types: bool = False) -> Examined:
    """Read a contract folder and tell everything that is wrong with it; changes nothing.

    `unknown_types` accepts frame types that the lab does not know: its doubles refuse such frames. Raises nothing for
    what a folder may hold.
    """
    faults: list[str] = []
    contents = _contents(source, faults)
    told = _source_record(source, commit, contents, faults)
    with tempfile.TemporaryDirectory(prefix="lab-contract-") as place:
        staged = Path(place) / "contract"
        _write(staged, contents)
        files = read_folder(staged)
        supplied = _bodies(files) if files.index else {}
        _write(staged, supplied)
        files = read_folder(staged)
        known = known_types(files)
        strange = [name for name in files.types if name not in known]
        faults += folder_faults(files, files.types if unknown_types else known)
        notes = [] if faults else list(_notes(staged, strange))
        return Examined(
            source,
            _revision(files),
            {**contents, **supplied},
            tuple(supplied),
            told.described if told is not None else None,
            tuple(dict.fromkeys(fault.replace(str(staged), str(source)) for fault in faults)),
            tuple(note.replace(str(staged), str(source)) for note in notes),
        )


def take(home: Path, examined: Examined, commit: str, tip: str | None = None) -> ChosenRecord:
    """Copy what was examined without a fault, and make it the contract in use.

    Raises EnvironmentFault when the working folder cannot be written; what was chosen before then stays chosen.
    """
    record = ChosenRecord(
        source=str(examined.source.resolve()),
        commit=commit,
        revision=examined.revision,
        files={name: sha256_of(content) for name, content in examined.contents.items()},
        tip=tip,
        supplied=examined.supplied,
        described=examined.described,
    )
    folder = home / record.folder_name
    try:
        if folder.exists():
            shutil.rmtree(folder)
        _write(folder, examined.contents)
        # The choice is one of this working folder, and no part of the project that it may be.
        ignored = home.parent / ".gitignore"
        if not ignored.exists():
            ignored.write_text("*\n", "utf-8")
    except OSError as error:
        raise EnvironmentFault(f"{folder}: the contract cannot be copied there: {error.strerror}.") from error
    replace_private(home / RECORD_FILE, record.to_text())
    _sweep(home, record.folder_name)
    return record


def give_up(home: Path) -> bool:
    """Go back to the lab's own contract; whether another one was chosen. A broken choice is given up like any."""
    if not home.is_dir():
        return False
    try:
        chosen = read_record(home) is not None
    except ContractError:
        chosen = True
    try:
        (home / RECORD_FILE).unlink(missing_ok=True)
        _sweep(home, None)
    except OSError as error:
        raise EnvironmentFault(f"{home}: cannot be removed: {error.strerror}. Remove it by hand.") from error
    return chosen


def _sweep(home: Path, kept: str | None) -> None:
    """Remove copies that are no longer in use, and nothing else."""
    for path in sorted(home.iterdir()):
        if COPY_NAME.fullmatch(path.name) and path.name != kept:
            shutil.rmtree(path, ignore_errors=True)


def _contents(source: Path, faults: list[str]) -> dict[str, bytes]:
    """The bytes of every file of a contract by its path within the folder."""
    if not source.is_dir():
        faults.append(f"{source}: no such folder")
        return {}
    names = _names(source)
    if len(names) > MOST_FILES:
        faults.append(f"{source}: {len(names)} files, more than the {MOST_FILES} that a contract may have")
        return {}
    if README not in names:
        faults.append(f"{source / README}: missing, though a contract folder has one (CT-001)")
    found: dict[str, bytes] = {}
    for name in names:
        if not _NAME.fullmatch(name):
            faults.append(f"{source}: {name!r} is no name that a file of a contract has")
            continue
        content = _content(source / name, faults)
        if content is not None:
            found[name] = content
            if name.startswith(f"{VECTORS_FOLDER}/"):
                faults += _json_faults(source / name, content)
    return found


def _names(source: Path) -> list[str]:
    top = [path.name for path in source.glob(f"*{SCHEMA_SUFFIX}")]
    top += [name for name in (INDEX_FILE, README, REVISIONS_FILE) if (source / name).exists()]
    below = (source / VECTORS_FOLDER).rglob("*.json")
    return sorted([*top, *(path.relative_to(source).as_posix() for path in below)])


def _content(path: Path, faults: list[str]) -> bytes | None:
    try:
        # Anything but a plain file could be without end.
        content = path.read_bytes() if path.is_file() and path.stat().st_size <= FILE_LIMIT else None
    except OSError as error:
        faults.append(f"{path}: cannot be read: {error.strerror}")
        return None
    if content is None:
        faults.append(f"{path}: a plain file of at most {FILE_LIMIT} bytes is due")
    return content


def _json_faults(path: Path, content: bytes) -> Iterator[str]:
    try:
        json.loads(content)
    except (ValueError, RecursionError) as error:
        yield f"{path}: not JSON: {error}"


def _source_record(source: Path, commit: str, contents: Mapping[str, bytes], faults: list[str]) -> SourceRecord | None:
    try:
        told = read_source_record(source / SOURCE_RECORD)
    except ContractError as error:
        faults.append(str(error))
        return None
    if told is not None:
        faults += told.faults(source, commit, {name: sha256_of(content) for name, content in contents.items()})
    return told


def _write(folder: Path, contents: Mapping[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _revision(files: ContractFiles) -> str:
    revision = files.index.get("revision", FIRST_REVISION)
    return revision if isinstance(revision, str) else FIRST_REVISION


def _bodies(files: ContractFiles) -> dict[str, bytes]:
    """The lab's own schemas of bodies that a folder of an older revision lacks, with no reference to other files."""
    try:
        older = revision_order(_revision(files)) < revision_order(BODIES_SINCE)
    except ContractError:
        return {}
    lacking = [name for name in (f"{body}.body" for body in BODIES) if not _holds(files.folder, name)] if older else []
    if not lacking:
        return {}
    _, schemas = read_documents(default_contract_folder())
    made: dict[str, bytes] = {}
    for name in lacking:
        whole: Any = _inlined(schemas[name], schemas)
        whole["$id"] = f"{files.index.get('baseId')}{name}{SCHEMA_SUFFIX}"
        made[f"{name}{SCHEMA_SUFFIX}"] = (json.dumps(whole, indent=2) + "\n").encode()
    return made


def _holds(folder: Path, name: str) -> bool:
    return (folder / f"{name}{SCHEMA_SUFFIX}").exists()


def _inlined(schema: object, schemas: Mapping[str, Any]) -> object:
    if isinstance(schema, list):
        return [_inlined(item, schemas) for item in schema]
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return {keyword: _inlined(value, schemas) for keyword, value in schema.items()}
    file, _, pointer = reference.partition("#")
    target: Any = schemas[file.removesuffix(SCHEMA_SUFFIX)]
    for step in pointer.split("/")[1:]:
        target = target[step]
    return _inlined({**target, **{key: value for key, value in schema.items() if key != "$ref"}}, schemas)


def _notes(folder: Path, strange: Iterable[str]) -> Iterator[str]:
    """What is told and does not matter to a run: rules of lint, vectors and traces in a form the lab does not know."""
    for name in strange:
        yield f"{name}: a type that the lab does not know; its doubles refuse such a frame with protocol_unsupported"
    if not (folder / VECTORS_FOLDER).is_dir():
        yield "no vectors: `lab contract verify` has nothing to judge this contract by"
        yield from (
            line for line in lint(Contract.load(folder), ()) if not line.endswith("no file of vectors (CT-057)")
        )
        return
    vectors = load_vectors(folder)
    yield from vectors.faults
    yield from load_traces(folder).faults
    yield from lint(Contract.load(folder), vectors.files)

"""The contract of LA protocol v2, loaded from its folder: index, schemas, revisions.

The folder is the one source of every figure and shape of the wire; nothing in the code repeats them. The files describe
the newest revision, and `revisions.json` lists what to take back for each older one (CT-008, CT-061, CT-062).

    contract = Contract.load(default_contract_folder())
    broken = contract.check_frame("register", frame)      # None, or the keyword and the place, never a value
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import lab
from lab.errors import ContractError

if TYPE_CHECKING:
    import jsonschema_rs

INDEX_FILE = "index.json"
REVISIONS_FILE = "revisions.json"
SCHEMA_SUFFIX = ".schema.json"
BODIES = ("job.stream", "chat.session", "file.list")
"""Content kinds whose decoded body has a schema of its own (CT-013)."""

BODIES_SINCE = "2.3"
"""A folder of an older revision need not have the schemas of bodies (CT-014, CT-054)."""

# CT-009: an index without a revision is the first one
FIRST_REVISION = "2.0"

Document = dict[str, object]


class Direction(StrEnum):
    """Which side may send a type (TY-040)."""

    LA_TO_CP = "la-to-cp"
    CP_TO_LA = "cp-to-la"
    BOTH = "both"


@dataclass(frozen=True)
class TypeRecord:
    """What the index says of one frame type (CT-006, CT-007).

    `signed`: frames of it carry paramsRaw and sig. `control`: seq is 0 and the frame is not counted.
    `content_class`: none, relay, transit or secret.
    """

    name: str
    direction: Direction
    signed: bool
    control: bool
    content_class: str


@dataclass(frozen=True)
class Limits:
    """The figures of the protocol; the unit is in the name, sizes are bytes unless they say chars (WS-028)."""

    max_frame_bytes: int
    chunk_raw_bytes: int
    chunk_base64_chars: int
    max_chunks: int
    ack_timeout_ms: int
    max_retransmissions: int
    handshake_timeout_ms: int
    heartbeat_seconds: int
    session_ttl_seconds: int
    clock_skew_seconds: int
    dedupe_entries: int
    dedupe_window_seconds: int


@dataclass(frozen=True)
class SchemaBreak:
    """Where an instance breaks its schema: the JSON Schema keyword and a JSON pointer.

    Both are words of the contract and indices only. A value, or a member name that a peer chose, is content and never
    stands here (WS-045): the pointer ends at the object that holds such a member.
    """

    keyword: str
    path: str


@lru_cache(maxsize=16)
def contract_of(folder: Path, revision: str | None) -> Contract:
    """The contract of a folder at a revision, compiled once in this process; see `Contract.load`."""
    return Contract.load(folder, revision)


class Contract:
    """One revision of the contract, compiled and ready to judge frames and bodies. Make it with `load`."""

    def __init__(
        self,
        revision: str,
        limits: Limits,
        types: Mapping[str, TypeRecord],
        error_codes: tuple[str, ...],
        schemas: Mapping[str, Document],
        validators: Mapping[str, jsonschema_rs.Validator],
    ) -> None:
        self.revision = revision
        self.limits = limits
        self.types = types
        self.error_codes = error_codes
        self._schemas = schemas
        self._validators = validators
        self._names = frozenset(name for schema in schemas.values() for name in _member_names(schema))

    @classmethod
    def load(cls, folder: Path, revision: str | None = None) -> Contract:
        """Read and compile the contract in `folder`, as of `revision` (default: the one its index names).

        Raises ContractError, naming the file, for a folder that is missing, incomplete or inconsistent, and for a
        revision that the folder does not describe.
        """
        index, schemas = read_documents(folder, revision)
        types = _types(index, folder)
        kept = ("envelope", "defs", *types, *(f"{body}.body" for body in BODIES))
        for name in kept:
            if name not in schemas:
                raise ContractError(f"{folder / (name + SCHEMA_SUFFIX)}: missing, though the contract needs it")
        schemas = {name: schemas[name] for name in kept}
        _check_allowlist(schemas["envelope"], types, folder)
        return cls(
            revision=_revision_of(index, folder),
            limits=_limits(index, folder),
            types=types,
            error_codes=_error_codes(schemas["defs"], folder),
            schemas=schemas,
            validators=_compile(folder, index, schemas),
        )

    def check_frame(self, type_name: str, frame: Mapping[str, object]) -> SchemaBreak | None:
        """Judge a whole frame by the schema of `type_name`, which must be one of `types`; None when it holds.

        Never raises for anything a peer can send.
        """
        return self._check(type_name, frame)

    def check_body(self, body: str, value: object) -> SchemaBreak | None:
        """Judge the decoded body of a content.response; `body` is one of BODIES (CT-013, CT-067)."""
        return self._check(f"{body}.body", value)

    def schema(self, name: str) -> Mapping[str, object]:
        """The schema of this revision, by its file's name without the suffix: `envelope`, `job.stream.body`."""
        return self._schemas[name]

    def _check(self, name: str, instance: object) -> SchemaBreak | None:
        validator = self._validators[name]
        try:
            error = next(validator.iter_errors(instance), None)
        except ValueError:
            # Nested beyond the validator's depth, or a member name that is not UTF-8: no closed schema holds for it.
            return SchemaBreak("type", "")
        if error is None:
            return None
        by_dependency = error.schema_path[-1:] == ["dependentRequired"]
        return SchemaBreak(
            "dependentRequired" if by_dependency else error.kind.name, self._pointer(error.instance_path)
        )

    def _pointer(self, path: Iterable[str | int]) -> str:
        # WS-045: a name that the contract does not know was chosen by the peer
        pointer = ""
        for step in path:
            if isinstance(step, str) and step not in self._names:
                break
            pointer += f"/{step}"
        return pointer


def default_contract_folder() -> Path:
    """The contract beside the package `lab`, where a checkout or an editable install has it; it may be absent."""
    return Path(lab.__file__).resolve().parent.parent / "contract" / "la-protocol-v2"


def read_documents(folder: Path, revision: str | None = None) -> tuple[Document, dict[str, Document]]:
    """The index of the contract in `folder` and its schemas by name, as of `revision`; see `Contract.load`."""
    index, schemas = _read_folder(folder)
    own = _revision_of(index, folder)
    if revision is not None and revision != own:
        _take_back(folder, index, schemas, own, revision)
    return index, schemas


def _read_folder(folder: Path) -> tuple[Document, dict[str, Document]]:
    if not folder.is_dir():
        raise ContractError(
            f"{folder}: no such folder. The lab reads its contract from contract/la-protocol-v2 beside the package, "
            "as a checkout or an editable install has it; name a folder that holds one"
        )
    index = _read(folder / INDEX_FILE)
    files = sorted(folder.glob(f"*{SCHEMA_SUFFIX}"))
    return index, {file.name.removesuffix(SCHEMA_SUFFIX): _read(file) for file in files}


def _read(file: Path) -> Document:
    try:
        document = json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise ContractError(f"{file}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ContractError(f"{file}: not JSON: {error}") from error
    if not isinstance(document, dict):
        raise ContractError(f"{file}: a JSON object is due")
    return document


def _object(document: Document, name: str, file: Path) -> Document:
    value = document.get(name)
    if not isinstance(value, dict):
        raise ContractError(f"{file}: member `{name}` has to be an object")
    return value


def _revision_of(index: Document, folder: Path) -> str:
    revision = index.get("revision", FIRST_REVISION)
    if index.get("protocol") != 2 or not isinstance(revision, str):
        raise ContractError(f"{folder / INDEX_FILE}: protocol has to be 2 and revision, if present, a string")
    return revision


def _limits(index: Document, folder: Path) -> Limits:
    file = folder / INDEX_FILE
    limits = _object(index, "limits", file)
    found: dict[str, int] = {}
    for field in fields(Limits):
        first, *rest = field.name.split("_")
        name = first + "".join(word.capitalize() for word in rest)
        value = limits.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ContractError(f"{file}: limits.{name} has to be a positive integer")
        found[field.name] = value
    return Limits(**found)


def _types(index: Document, folder: Path) -> dict[str, TypeRecord]:
    file = folder / INDEX_FILE
    types = _object(index, "types", file)
    return {name: _type_record(name, _object(types, name, file), file) for name in types}


def _type_record(name: str, record: Document, file: Path) -> TypeRecord:
    match record:
        case {
            "direction": ("la-to-cp" | "cp-to-la" | "both") as direction,
            "signed": bool(signed),
            "control": bool(control),
            "contentClass": ("none" | "relay" | "transit" | "secret") as content_class,
        }:
            return TypeRecord(name, Direction(direction), signed, control, content_class)
    raise ContractError(
        f"{file}: types.{name} needs direction, signed, control and contentClass with their known values"
    )


def _enum(schema: Document, section: str, name: str, file: Path) -> tuple[str, ...]:
    values = _object(_object(schema, section, file), name, file).get("enum")
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ContractError(f"{file}: {section}.{name}.enum has to be a list of strings")
    if len(set(values)) != len(values):
        raise ContractError(f"{file}: {section}.{name}.enum names a value twice")
    return tuple(values)


def _error_codes(defs: Document, folder: Path) -> tuple[str, ...]:
    # WS-039, WS-040: the position in this enum is the number of the code
    return _enum(defs, "$defs", "errorCode", folder / f"defs{SCHEMA_SUFFIX}")


def _check_allowlist(envelope: Document, types: Mapping[str, TypeRecord], folder: Path) -> None:
    # TY-045: the envelope's enum is the allowlist
    file = folder / f"envelope{SCHEMA_SUFFIX}"
    odd = sorted(set(_enum(envelope, "properties", "type", file)) ^ set(types))
    if odd:
        raise ContractError(f"{file}: the type enum and the types of {INDEX_FILE} differ by {', '.join(odd)}")


def _take_back(folder: Path, index: Document, schemas: dict[str, Document], own: str, revision: str) -> None:
    """Edit the documents in place, from revision `own` back to `revision`."""
    file = folder / REVISIONS_FILE
    if not file.is_file():
        raise ContractError(
            f"{folder / INDEX_FILE}: is of revision {own}, and no {REVISIONS_FILE} leads back to {revision}; "
            "name a `revision` that the contract has"
        )
    revisions = _read(file)
    older = revisions.get("older") if revisions.get("newest") == own else None
    for step in older if isinstance(older, list) else ():
        match step:
            case {"revision": str(reached), "edits": list(edits)}:
                for edit in edits:
                    _edit({**schemas, "index": index}, edit, file)
                if reached == revision:
                    return
            case _:
                raise ContractError(f"{file}: each entry of `older` needs a revision and a list of edits")
    raise ContractError(
        f"{file}: does not lead from revision {own} back to {revision}; name a `revision` that the contract has"
    )


def _edit(documents: Mapping[str, Document], edit: object, file: Path) -> None:
    match edit:
        case {"schema": str(name), "pointer": str(pointer), **action} if name in documents:
            *parents, last = pointer.removeprefix("/").split("/")
        case _:
            raise ContractError(f"{file}: an edit needs the name of a schema and a pointer")
    target: object = documents[name]
    for parent in parents:
        target = target.get(parent) if isinstance(target, dict) else None
    if not isinstance(target, dict) or last not in target:
        raise ContractError(f"{file}: {name} has nothing at {pointer}")
    match action:
        case {"set": value}:
            target[last] = value
        case {"remove": True}:
            del target[last]
        case {"drop": item} if isinstance(target[last], list) and item in target[last]:
            target[last].remove(item)
        case _:
            raise ContractError(f"{file}: the edit of {name} at {pointer} has to set, remove, or drop an item it has")


def _compile(folder: Path, index: Document, schemas: Mapping[str, Document]) -> dict[str, jsonschema_rs.Validator]:
    import jsonschema_rs  # costs more than the rest of the start, so only a command that checks frames pays for it

    for name, schema in schemas.items():
        due = f"{index.get('baseId')}{name}{SCHEMA_SUFFIX}"
        if schema.get("$id") != due:
            raise ContractError(f"{folder / (name + SCHEMA_SUFFIX)}: $id has to be {due}")
    # Linear-time matching: no pattern, of this folder or a supplied one, can be made to backtrack.
    patterns = jsonschema_rs.RegexOptions()
    try:
        registry = jsonschema_rs.Registry([(str(schema["$id"]), schema) for schema in schemas.values()])
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise ContractError(f"{folder}: its schemas do not fit together: {error}") from error
    validators: dict[str, jsonschema_rs.Validator] = {}
    for name, schema in schemas.items():
        try:
            validators[name] = jsonschema_rs.Draft202012Validator(
                schema, registry=registry, offline=True, pattern_options=patterns
            )
        except (ValueError, jsonschema_rs.ReferencingError) as error:
            raise ContractError(f"{folder / (name + SCHEMA_SUFFIX)}: not a usable JSON Schema: {error}") from error
    return validators


def _member_names(schema: object) -> Iterable[str]:
    """Every name that some `properties` below `schema` gives to a member."""
    if isinstance(schema, dict):
        for keyword, value in schema.items():
            if keyword == "properties" and isinstance(value, dict):
                yield from value
            yield from _member_names(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from _member_names(item)

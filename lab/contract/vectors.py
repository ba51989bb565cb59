"""The vector files of a contract folder: named messages with the verdict due (CT-010, CT-011).

    vectors/<type>.vectors.json         messages of one frame type, judged by its schema
    vectors/cross-type.vectors.json     messages judged by the envelope, then by the type that they name
    vectors/<kind>.body.vectors.json    decoded bodies, judged by the body's schema and never as frames (CT-013)

A vector counts in every revision, or in those from `since` to `until`. A file may name `keys`, key id to base64 of a
secret Ed25519 seed (test keys, known to everybody): its signed frames are then really signed, and judged as such.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.errors import ContractError
from lab.protocol.contract import Direction

VECTORS_FOLDER = "vectors"
VECTORS_SUFFIX = ".vectors.json"
CROSS_TYPE = "cross-type"
BODY_SUFFIX = ".body"
ENVELOPE = "envelope"

_WORDS = frozenset({"about", "description", "note"})
_FILE_MEMBERS = _WORDS | {"type", "schema", "keys", "vectors"}
_VECTOR_MEMBERS = _WORDS | {"name", "since", "until", "direction", "message", "expect"}
_EXPECT_MEMBERS = frozenset({"valid", "code", "keyword", "rule"})


@dataclass(frozen=True, slots=True)
class Expectation:
    """What is due: `code` is the wire code of a refusal, `keyword` the JSON Schema keyword that refuses.

    `rule` names the rule that refuses what the schema lets pass (CT-012). None leaves open.
    """

    valid: bool
    code: str | None = None
    keyword: str | None = None
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class Vector:
    """One message and its verdict. Its repr has no message, which may be long."""

    name: str
    message: object
    expect: Expectation
    direction: Direction | None = None
    since: str | None = None
    until: str | None = None

    def __repr__(self) -> str:
        return f"Vector({self.name!r})"

    def counts_in(self, revision: str) -> bool:
        """Whether this vector says something about a revision."""
        place = revision_order(revision)
        early = self.since is not None and place < revision_order(self.since)
        return not early and (self.until is None or place <= revision_order(self.until))

    @property
    def schema_holds(self) -> bool:
        """Whether the message keeps its schema: a refusal by a rule is none by the schema."""
        return self.expect.valid or (self.expect.rule is not None and self.expect.keyword is None)


@dataclass(frozen=True, slots=True)
class VectorFile:
    """The vectors of one file. `schema` is the name of the schema that judges them, without its suffix."""

    path: Path
    schema: str
    keys: Mapping[str, bytes] = field(repr=False)
    vectors: tuple[Vector, ...]

    @property
    def name(self) -> str:
        """The file's name without the suffix: `job.assign`, `cross-type`, `job.stream.body`."""
        return self.path.name.removesuffix(VECTORS_SUFFIX)

    @property
    def is_body(self) -> bool:
        """Whether the messages are bodies, no frames."""
        return self.schema.endswith(BODY_SUFFIX)

    @property
    def is_cross_type(self) -> bool:
        """Whether each message is judged by the type that it names."""
        return self.schema == ENVELOPE


@dataclass(frozen=True, slots=True)
class VectorFiles:
    """All that could be read, by name, and a line for each file that could not."""

    files: tuple[VectorFile, ...]
    faults: tuple[str, ...]


def revision_order(revision: str) -> tuple[int, ...]:
    """What revisions sort by. Raises ContractError for a text that is no revision."""
    try:
        return tuple(int(part) for part in revision.split("."))
    except ValueError:
        raise ContractError(f"{revision!r} is no revision: numbers with dots between them are due") from None


def load_vectors(folder: Path) -> VectorFiles:
    """The vector files of the contract in `folder`; a missing folder of vectors is a fault like any other."""
    place = folder / VECTORS_FOLDER
    files: list[VectorFile] = []
    faults: list[str] = []
    for path in sorted(place.glob(f"*{VECTORS_SUFFIX}")):
        try:
            files.append(load_vector_file(path))
        except ContractError as error:
            faults.append(str(error))
    if not files and not faults:
        faults.append(f"{place}: no vector files")
    return VectorFiles(tuple(files), tuple(faults))


def load_vector_file(path: Path) -> VectorFile:
    """Raises ContractError, naming file and vector, for whatever has not the form."""
    try:
        document: Any = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ContractError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ContractError(f"{path}: not JSON: {error}") from error
    entries = document.get("vectors") if isinstance(document, dict) else None
    if not isinstance(entries, list) or not entries:
        raise ContractError(f"{path}: an object with a list `vectors` is due, and the list needs an entry")
    _known(path, "file", document, _FILE_MEMBERS)
    vectors = tuple(_vector(path, place, entry) for place, entry in enumerate(entries))
    names = [vector.name for vector in vectors]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ContractError(f"{path}: several vectors have the name {', '.join(twice)}")
    return VectorFile(path, _schema(path, document), _keys(path, document.get("keys", {})), vectors)


def _schema(path: Path, members: Mapping[str, object]) -> str:
    name = path.name.removesuffix(VECTORS_SUFFIX)
    if name == CROSS_TYPE:
        return ENVELOPE
    match members:
        case {"schema": str(schema)} if name.endswith(BODY_SUFFIX):
            # A real folder may name the file, and its address.
            return schema.rsplit("/", 1)[-1].removesuffix(".json").removesuffix(".schema")
        case {"type": str(type_name)} if type_name == name:
            return type_name
        case {"type": str(other)}:
            raise ContractError(f"{path}: `type` says {other}, the file's name says {name}")
    raise ContractError(f"{path}: a frame's file needs `type`, a body's file needs `schema`")


def _keys(path: Path, keys: object) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for key_id, text in keys.items() if isinstance(keys, dict) else [("keys", None)]:
        try:
            raw = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
        except (binascii.Error, ValueError):
            raw = b""
        if len(raw) != 32:
            raise ContractError(
                f"{path}: `keys` maps a key id to the base64 of a seed of 32 bytes, which {key_id} has not"
            )
        found[key_id] = raw
    return found


def _vector(path: Path, place: int, entry: Any) -> Vector:
    match entry:
        case {"name": str(name), "message": message, "expect": {"valid": bool(valid)}} if name:
            where = f"vector {name}"
        case _:
            raise ContractError(f"{path}: vector {place} needs a name, a message, and expect with valid true or false")
    _known(path, where, entry, _VECTOR_MEMBERS)
    _known(path, f"{where}, expect", entry["expect"], _EXPECT_MEMBERS)
    given = {key: entry["expect"].get(key) for key in ("code", "keyword", "rule")}
    if not all(text is None or isinstance(text, str) for text in given.values()):
        raise ContractError(f"{path}: {where}: code, keyword and rule are strings")
    if valid and any(given.values()):
        raise ContractError(f"{path}: {where}: what is valid breaks nothing, so code, keyword and rule stay out")
    return Vector(
        name=name,
        message=message,
        expect=Expectation(valid, **given),
        direction=_direction(path, where, entry.get("direction")),
        since=_revision(path, where, entry.get("since")),
        until=_revision(path, where, entry.get("until")),
    )


def _known(path: Path, where: str, members: Mapping[str, object], known: frozenset[str]) -> None:
    odd = sorted(name for name in members if name not in known and not name.startswith("x-"))
    if odd:
        raise ContractError(f"{path}: {where}: unknown member {', '.join(odd)}; known are {', '.join(sorted(known))}")


def _direction(path: Path, where: str, value: object) -> Direction | None:
    if value is None:
        return None
    try:
        return Direction(str(value))
    except ValueError:
        raise ContractError(f"{path}: {where}: direction is {' or '.join(Direction)}, not {value!r}") from None


def _revision(path: Path, where: str, value: object) -> str | None:
    if value is None:
        return None
    try:
        revision_order(str(value))
    except ContractError as error:
        raise ContractError(f"{path}: {where}: {error}") from None
    return str(value)

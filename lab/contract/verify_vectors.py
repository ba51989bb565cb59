"""The verdict on a vector, by the same core that the doubles use: the schema, then the rules that no schema can state.

Pure. A vector stands alone, so nothing here knows a session: the order of frames is a matter of the traces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from nacl.signing import SigningKey

from lab.contract.vectors import ENVELOPE, Expectation, Vector, VectorFile
from lab.protocol.chunks import ChunkTracker, decode_base64
from lab.protocol.contract import BODIES, Contract, Direction
from lab.protocol.frames import Chunk
from lab.protocol.signing import Verifier, params_equal
from lab.protocol.wire import byte_length, encode


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the core says of a message: `keyword` and `path` for a break of the schema, else the `rule` that refuses."""

    valid: bool
    code: str | None = None
    keyword: str | None = None
    path: str | None = None
    rule: str | None = None

    def __str__(self) -> str:
        if self.valid:
            return "valid"
        by = f"rule {self.rule}" if self.rule else f"{self.keyword} at {self.path or 'the top'}"
        return f"{self.code or 'invalid'} ({by})"


@dataclass(frozen=True, slots=True)
class Surprise:
    """A vector whose verdict is not the one due. The message stays out: it may be content."""

    revision: str
    file: str
    vector: str
    due: str
    seen: str

    def __str__(self) -> str:
        return f"{self.revision} {self.file}: {self.vector}: due {self.due}, seen {self.seen}"


@dataclass(frozen=True, slots=True)
class Row:
    """The vectors of one file that count in one revision."""

    revision: str
    file: str
    valid: int
    invalid: int
    surprises: tuple[Surprise, ...]


VALID: Final = Verdict(valid=True)


def verify_file(contract: Contract, file: VectorFile) -> Row | None:
    """Judge the vectors of a file in the contract's revision; None when the revision has no such type."""
    if not file.is_cross_type and not file.is_body and file.schema not in contract.types:
        return None
    counted = [vector for vector in file.vectors if vector.counts_in(contract.revision)]
    valid = sum(vector.expect.valid for vector in counted)
    surprises = tuple(_surprises(contract, file, counted))
    return Row(contract.revision, file.name, valid, len(counted) - valid, surprises)


def judge_vector(contract: Contract, file: VectorFile, vector: Vector) -> Verdict:
    """The verdict on one vector of a file. Never raises for what a message may be."""
    if file.is_body:
        broken = contract.check_body(file.schema.removesuffix(".body"), vector.message)
        return VALID if broken is None else Verdict(False, None, broken.keyword, broken.path)
    by_schema = _by_schema(contract, file.schema, vector.message)
    return by_schema or _by_rules(contract, file, vector) or VALID


def is_judged(file: VectorFile) -> bool:
    """Whether the lab has a schema for the file: its bodies are those of `BODIES`."""
    return not file.is_body or file.schema.removesuffix(".body") in BODIES


def _by_schema(contract: Contract, schema: str, message: object) -> Verdict | None:
    broken = contract.check_frame(schema, message)  # type: ignore[arg-type]
    named = message.get("type") if isinstance(message, dict) else None
    if broken is None and schema == ENVELOPE and isinstance(named, str):
        broken = contract.check_frame(named, message)  # type: ignore[arg-type]
    if broken is None:
        return None
    # WS-035: what is no object is no frame. CT-044: the allowlist speaks before the schema of a type.
    if not isinstance(message, dict):
        code = "bad_frame"
    elif schema == ENVELOPE and not (isinstance(named, str) and named in contract.types):
        code = "unknown_type"
    else:
        code = "schema_violation"
    return Verdict(False, code, broken.keyword, broken.path)


Rule = Callable[[Contract, VectorFile, Vector, Mapping[str, Any]], str | None]


def _frame_bytes(contract: Contract, _file: VectorFile, _vector: Vector, members: Mapping[str, Any]) -> str | None:
    # WS-057: the finished frame's bytes.
    return "frame_too_large" if byte_length(encode(members)) > contract.limits.max_frame_bytes else None


def _direction(contract: Contract, _file: VectorFile, vector: Vector, members: Mapping[str, Any]) -> str | None:
    allowed = (vector.direction, Direction.BOTH)
    right = vector.direction is None or contract.types[members["type"]].direction in allowed
    return None if right else "wrong_direction"


def _chunk_place(contract: Contract, _file: VectorFile, _vector: Vector, members: Mapping[str, Any]) -> str | None:
    return _chunk(contract, members, 0, 0)


def _decoded(contract: Contract, _file: VectorFile, _vector: Vector, members: Mapping[str, Any]) -> str | None:
    payload = members["payload"]
    data = decode_base64(payload["data"]) if members["type"] == "content.response" else b""
    due = payload["byteLength"] if members["type"] == "content.response" else 0
    return _chunk(contract, members, None if data is None else len(data), int(due))


def _chunk(contract: Contract, members: Mapping[str, Any], decoded: int | None, due: int) -> str | None:
    if members["type"] != "content.response":
        return None
    limits = contract.limits
    index, total = int(members["chunk"]["index"]), int(members["chunk"]["total"])
    tracker = ChunkTracker(limits.max_chunks, limits.chunk_raw_bytes)
    # The chunks before this one are taken to have come.
    for earlier in range(index if index < total <= limits.max_chunks else 0):
        tracker.advance(members["requestId"], Chunk(earlier, total, last=False))
    return tracker.refusal(members["requestId"], Chunk(index, total, members["chunk"]["last"]), decoded, due)


def _params(contract: Contract, file: VectorFile, _vector: Vector, members: Mapping[str, Any]) -> str | None:
    if not file.keys or not contract.types[members["type"]].signed:
        return None
    return None if params_equal(members["paramsRaw"], members["payload"]) else "params_mismatch"


def _signed(contract: Contract, file: VectorFile, _vector: Vector, members: Mapping[str, Any]) -> str | None:
    if not file.keys or not contract.types[members["type"]].signed:
        return None
    # A vector has no clock, so it is read at the moment that it says it was signed.
    public = {key_id: bytes(SigningKey(seed).verify_key) for key_id, seed in file.keys.items()}
    verifier = Verifier(public, contract.limits.clock_skew_seconds)
    return verifier.refusal(members, int(members["sig"]["timestamp"]))


RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "frameBytes": _frame_bytes,
        "direction": _direction,
        "chunkPlace": _chunk_place,
        "byteLength-decoded": _decoded,
        "paramsRaw": _params,
        "signed": _signed,
    }
)
"""The rules beyond the schema, in their order. paramsRaw and signed speak only where a file names `keys`."""


def _by_rules(contract: Contract, file: VectorFile, vector: Vector) -> Verdict | None:
    members = vector.message
    assert isinstance(members, dict)
    for name, rule in RULES.items():
        code = rule(contract, file, vector, members)
        if code is not None:
            return Verdict(False, code, rule=name)
    return None


def _surprises(contract: Contract, file: VectorFile, vectors: list[Vector]) -> Iterator[Surprise]:
    for vector in vectors:
        seen = judge_vector(contract, file, vector)
        if not _as_due(contract, file, vector, seen):
            yield Surprise(contract.revision, file.name, vector.name, _due(vector.expect), str(seen))


def _as_due(contract: Contract, file: VectorFile, vector: Vector, seen: Verdict) -> bool:
    due = vector.expect
    if due.valid or seen.valid:
        return due.valid is seen.valid
    same_code = due.code is None or file.is_body or due.code == seen.code
    same_rule = due.rule is None or due.rule == seen.rule
    same_keyword = due.keyword in (None, seen.keyword) or due.keyword in _keywords(contract, file, vector)
    return same_code and same_rule and same_keyword


def _due(due: Expectation) -> str:
    if due.valid:
        return "valid"
    by = [f"rule {due.rule}"] if due.rule else []
    by += [due.keyword] if due.keyword else []
    unknown = (
        f", a rule that is not known here; known are {', '.join(RULES)}" if due.rule and due.rule not in RULES else ""
    )
    return (due.code or "invalid") + (f" ({', '.join(by)})" if by else "") + unknown


def _keywords(contract: Contract, file: VectorFile, vector: Vector) -> set[str]:
    """All keywords that a message breaks: another validator may name another of them first."""
    import jsonschema_rs

    named = vector.message.get("type") if file.is_cross_type and isinstance(vector.message, dict) else None
    judges = [file.schema, *([named] if isinstance(named, str) and named in contract.types else [])]
    schemas: list[Any] = [contract.schema(name) for name in {ENVELOPE: None, "defs": None, **dict.fromkeys(judges)}]
    registry = jsonschema_rs.Registry([(schema["$id"], schema) for schema in schemas])
    validators = (
        jsonschema_rs.Draft202012Validator(dict(contract.schema(judge)), registry=registry, offline=True)
        for judge in judges
    )
    return {error.kind.name for validator in validators for error in validator.iter_errors(vector.message)}

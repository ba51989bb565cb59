"""Rules that hold for the schemas and the vectors of a contract as a whole; each finding is one line. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from lab.contract.vectors import CROSS_TYPE, ENVELOPE, VectorFile
from lab.protocol.contract import BODIES, Contract
from lab.protocol.errors import ERROR_CODES

CONTENT_FIELDS: Final = frozenset(
    {("content.response", "data"), ("job.assign", "inline"), ("webhook.forward", "bodyB64")}
)
"""The members of frames that hold client content: exactly these (WS-048)."""

LARGE_METADATA: Final = frozenset(
    {(ENVELOPE, "paramsRaw"), ("scan.upload", "signedPutUrl"), ("approval.decision", "token")}
)
"""Long strings that are no content (WS-049, WS-083, TY-035)."""

LONGEST_PLAIN_STRING: Final = 512
"""Characters of a string that is neither content nor large metadata (WS-047)."""

LEAST_VALID, LEAST_INVALID = 1, 2
"""Vectors that each type needs at least (CT-069)."""

_NARROWING: Final = frozenset({"if", "then", "else", "allOf", "dependentSchemas"})
_ENDLESS: Final = re.compile(r"[*+]|\{[0-9]+,\}")


def lint(contract: Contract, files: Iterable[VectorFile]) -> tuple[str, ...]:
    """The findings for one revision of a contract and its vector files."""
    names = (ENVELOPE, "defs", *contract.types, *(f"{body}.body" for body in BODIES))
    schemas: dict[str, Any] = {name: contract.schema(name) for name in names}
    found = [finding for name, schema in schemas.items() for finding in _schema_findings(name, schema)]
    frames = {name: schema for name, schema in schemas.items() if not name.endswith(".body")}
    found += _marks("x-content-class", "content fields", frames, CONTENT_FIELDS)
    found += _marks("x-large-metadata", "fields of large metadata", schemas, LARGE_METADATA)
    found += _error_codes(contract.error_codes)
    found += _vector_findings(contract, list(files))
    return tuple(found)


def _schema_findings(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    for path, node in _nodes(schema):
        place = f"{name}: /{'/'.join(path)}"
        if not _NARROWING & set(path):
            if node.get("type") == "object" and not _is_closed(name, path, node):
                yield f"{place}: the object is open; additionalProperties has to be false (WS-001, WS-017)"
            if node.get("type") == "array" and "maxItems" not in node:
                yield f"{place}: the list has no bound; maxItems is due"
        if node.get("type") == "string" and path != ("$defs", "base64"):
            yield from (f"{place}: {fault}" for fault in _string_faults(node))
        if node.get("$ref", "").endswith("/base64") and "maxLength" not in node:
            yield f"{place}: base64 text without a bound; maxLength is due (WS-047)"


def _is_closed(name: str, path: tuple[str, ...], node: Mapping[str, Any]) -> bool:
    if node.get("$ref") == f"{ENVELOPE}.schema.json" or (name, path) == (ENVELOPE, ("properties", "payload")):
        # CT-004: a frame's schema is the closed envelope, and each type closes its payload.
        return True
    if isinstance(node.get("additionalProperties"), dict):
        return {"propertyNames", "maxProperties"} <= node.keys()
    return node.get("additionalProperties") is False


def _string_faults(node: Mapping[str, Any]) -> Iterator[str]:
    special = "x-content-class" in node or "x-large-metadata" in node
    pattern = node.get("pattern")
    endless = pattern is None or _ENDLESS.search(re.sub(r"\[[^\]]*\]", "c", pattern)) is not None
    if "maxLength" not in node and endless and "enum" not in node and "const" not in node:
        yield "the string has no bound; maxLength, or a pattern that ends, is due (WS-047)"
    if node.get("maxLength", 0) > LONGEST_PLAIN_STRING and not special:
        yield f"{node['maxLength']} characters in a field that is neither content nor large metadata (WS-047)"


def _marks(keyword: str, what: str, schemas: Mapping[str, Any], due: frozenset[tuple[str, str]]) -> Iterator[str]:
    found = {
        (name, path[-1])
        for name, schema in schemas.items()
        for path, node in _nodes(schema)
        if path and keyword in node
    }
    due = frozenset(field for field in due if field[0] in schemas)
    for name, member in sorted(found - due):
        yield f"{name}: {member} is marked {keyword}, and is none of the {what} (WS-048, WS-049)"
    for name, member in sorted(due - found):
        yield f"{name}: {member} is one of the {what}, and is not marked {keyword} (WS-048, WS-049)"


def _error_codes(codes: tuple[str, ...]) -> Iterator[str]:
    # WS-039, WS-040: a code's place is its close code, so the order is part of the wire.
    due = tuple(ERROR_CODES)
    for place, (seen, expected) in enumerate(zip(codes, due, strict=False)):
        if seen != expected:
            yield f"defs: errorCode {place} is {seen}, due is {expected}: the order gives the close codes (WS-040)"
            return
    if len(codes) != len(due):
        yield f"defs: {len(codes)} error codes, due are {len(due)} (WS-039)"


def _vector_findings(contract: Contract, files: list[VectorFile]) -> Iterator[str]:
    by_name = {file.name: file for file in files}
    for name in (CROSS_TYPE, *contract.types, *(f"{body}.body" for body in BODIES)):
        if name not in by_name:
            yield f"{name}: no file of vectors (CT-057)"
            continue
        counted = [vector for vector in by_name[name].vectors if vector.counts_in(contract.revision)]
        valid = sum(vector.expect.valid for vector in counted)
        if valid < LEAST_VALID or len(counted) - valid < LEAST_INVALID:
            yield (
                f"{name}: {valid} valid and {len(counted) - valid} invalid vectors, "
                f"at least {LEAST_VALID} and {LEAST_INVALID} are due (CT-069)"
            )


def _nodes(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Every JSON object below a schema that is a schema itself, with the names that lead to it."""
    if isinstance(value, dict):
        if not (path and path[-1] in ("properties", "$defs") and path[-2:-1] != ("properties",)):
            yield path, value
        for name, child in value.items():
            yield from _nodes(child, (*path, name))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _nodes(child, (*path, str(index)))

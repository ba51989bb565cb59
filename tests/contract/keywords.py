"""Which keywords a schema has, and whether a vector's verdict hangs on one: the test's own small mutation engine."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import jsonschema_rs

from lab.contract.vectors import ENVELOPE, VectorFile, load_vectors
from lab.protocol.contract import BODIES, Contract, default_contract_folder

Documents = dict[str, Any]

ANNOTATIONS = frozenset({"$schema", "$id", "title"})
NAMED_CHILDREN = frozenset({"properties", "$defs", "dependentSchemas", "dependentRequired"})
SHARED = (ENVELOPE, "defs")


@dataclass(frozen=True, slots=True)
class Keyword:
    """One keyword of one schema, at the JSON pointer of the object that has it."""

    schema: str
    pointer: str
    keyword: str

    def __str__(self) -> str:
        return f"{self.schema}{self.pointer} {self.keyword}"


def keyword(text: str) -> Keyword:
    """The keyword that its text names."""
    place, _, name = text.partition(" ")
    schema, slash, pointer = place.partition("/")
    return Keyword(schema, slash + pointer, name)


@cache
def documents(revision: str) -> Documents:
    """The schemas of a revision by name."""
    contract = Contract.load(default_contract_folder(), revision)
    names = [*SHARED, *contract.types, *(f"{body}.body" for body in BODIES)]
    return {name: contract.schema(name) for name in names}


@cache
def cases(revision: str) -> dict[str, list[tuple[Any, bool]]]:
    """What a revision's vectors say of each schema: message and whether the schema holds, the short ones first."""
    found: dict[str, list[tuple[Any, bool]]] = {}
    for file in load_vectors(default_contract_folder()).files:
        if file.schema in documents(revision):
            found[file.schema] = sorted(_judged(file, revision), key=lambda case: len(repr(case[0])))
    return found


def _judged(file: VectorFile, revision: str) -> Iterator[tuple[Any, bool]]:
    for vector in file.vectors:
        if vector.counts_in(revision):
            by_envelope = file.is_cross_type and _envelope_holds(vector.message, revision)
            yield vector.message, by_envelope or (vector.schema_holds and not file.is_cross_type)


def _envelope_holds(message: object, revision: str) -> bool:
    # A file across types says what is due of envelope and type together.
    return _validator(documents(revision), ENVELOPE).is_valid(message)


def keywords(name: str, revision: str) -> list[Keyword]:
    """All keywords of a schema that judge anything."""
    return [
        Keyword(name, pointer, each)
        for pointer, node in _nodes(documents(revision)[name], "")
        for each in node
        if each not in ANNOTATIONS and not each.startswith("x-")
    ]


def _nodes(value: Any, pointer: str, named: bool = False) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        if not named:
            yield pointer, value
        for key, child in value.items():
            yield from _nodes(child, f"{pointer}/{key}", not named and key in NAMED_CHILDREN)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _nodes(child, f"{pointer}/{index}")


def without(originals: Documents, gone: Iterable[Keyword]) -> Documents:
    """The schemas without some keywords."""
    changed = dict(originals)
    for each in gone:
        changed[each.schema] = copy.deepcopy(changed[each.schema])
        node = changed[each.schema]
        for step in each.pointer.split("/")[1:]:
            node = node[int(step) if isinstance(node, list) else step]
        del node[each.keyword]
    return changed


def is_needed(each: Keyword, revision: str, twins: Iterable[Keyword] = ()) -> bool:
    """Whether some vector's verdict changes without the keyword, where `twins` are gone already."""
    before = without(documents(revision), twins)
    after = without(before, [each])
    for name in [name for name in cases(revision) if each.schema in (name, *SHARED)]:
        messages = cases(revision)[name]
        try:
            changed = _validator(after, name)
        except (ValueError, jsonschema_rs.ReferencingError):
            return True  # the folder would not even load
        if twins:
            plain = _validator(before, name)
            due = [(message, plain.is_valid(message)) for message, _ in messages]
        else:
            due = messages
        if any(changed.is_valid(message) is not holds for message, holds in due):
            return True
    return False


def _validator(schemas: Documents, name: str) -> jsonschema_rs.Draft202012Validator:
    registry = jsonschema_rs.Registry([(schemas[each]["$id"], schemas[each]) for each in {*SHARED, name}])
    return jsonschema_rs.Draft202012Validator(schemas[name], registry=registry)

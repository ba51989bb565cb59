"""Each keyword of each schema matters: taking it out, or moving a bound by one, changes the verdict of some case."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema_rs
import pytest

from lab.protocol.contract import BODIES, Contract
from tests.protocol.contract_files import FOLDER
from tests.protocol.frame_cases import body_cases, frame_cases

Documents = dict[str, Any]
Path = tuple[str | int, ...]

ANNOTATIONS = {"$schema", "$id", "title", "$defs", "properties", "x-provenance", "x-requirement", "x-content-class"} | {
    "x-large-metadata"
}
BOUND_STEP = {"maxLength", "maxItems", "maxProperties", "maximum", "minLength", "minItems", "minProperties", "minimum"}
NAMED_CHILDREN = {"properties", "$defs", "dependentSchemas", "dependentRequired"}
SHARED = ("envelope", "defs")


@cache
def contract() -> Contract:
    return Contract.load(FOLDER)


@cache
def originals() -> Documents:
    names = [*contract().types, *SHARED, *(f"{body}.body" for body in BODIES)]
    return {name: contract().schema(name) for name in names}


@cache
def cases() -> dict[str, list[tuple[Any, bool]]]:
    by_name: dict[str, list[tuple[Any, bool]]] = defaultdict(list)
    for name, instance, holds in (*frame_cases(contract()), *body_cases()):
        by_name[name].append((instance, holds))
    return by_name


def schema_nodes(value: Any, path: Path = ()) -> Iterator[tuple[Path, dict[str, Any]]]:
    if isinstance(value, dict):
        if not (path and path[-1] in NAMED_CHILDREN):
            yield path, value
        for key, child in value.items():
            yield from schema_nodes(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from schema_nodes(child, (*path, index))


def only_repeats(path: Path, node: dict[str, Any], keyword: str) -> bool:
    """True for what another schema says again, so that no verdict can change without it.

    Strict validators want `type` beside the keywords that depend on it. In the envelope, the allowlist and the range of
    seq are narrowed by each type's own schema; a test holds the allowlist to the index.
    """
    if keyword != "type":
        return (path, keyword) in ((("properties", "type"), "enum"), (("properties", "seq"), "$ref"))
    repeated = path in ((), ("properties", "payload"), ("$defs", "base64"), ("$defs", "memberName")) or "$ref" in node
    return repeated or bool({"if", "else"} & set(path))


def mutants(schema: Any) -> Iterator[tuple[str, Any]]:
    for path, node in schema_nodes(schema):
        for keyword, value in node.items():
            if keyword in ANNOTATIONS or only_repeats(path, node, keyword):
                continue
            yield f"{path} {keyword}", changed(schema, path, keyword, None)
            if keyword in BOUND_STEP:
                step = 4 if "$ref" in node else 1  # base64 text grows by four
                yield f"{path} {keyword} up", changed(schema, path, keyword, value + step)
                yield f"{path} {keyword} down", changed(schema, path, keyword, value - step)
            if keyword == "required":
                for item in value:
                    rest = [each for each in value if each != item]
                    yield f"{path} required {item}", changed(schema, path, keyword, rest)


def changed(schema: Any, path: Path, keyword: str, value: object) -> Any:
    copied = copy.deepcopy(schema)
    at = copied
    for step in path:
        at = at[step]
    del at[keyword]
    if value is not None:
        at[keyword] = value
    return copied


def flips(documents: Documents, names: list[str]) -> bool:
    try:
        registry = jsonschema_rs.Registry([(each["$id"], each) for each in documents.values()])
        validators = [jsonschema_rs.Draft202012Validator(documents[name], registry=registry) for name in names]
    except ValueError:
        return True  # the folder would not even load
    return any(
        validator.is_valid(instance) is not holds
        for name, validator in zip(names, validators, strict=True)
        for instance, holds in cases()[name]
    )


@pytest.mark.parametrize("name", sorted(originals()))
def test_no_keyword_is_idle(name: str) -> None:
    names = [each for each in originals() if each not in SHARED] if name in SHARED else [name]
    assert not flips(originals(), names)
    idle = [label for label, mutant in mutants(originals()[name]) if not flips({**originals(), name: mutant}, names)]
    assert idle == []

"""A JSON Schema as a shape: its references followed, its ways of writing the same made one. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from lab.protocol.contract import SCHEMA_SUFFIX

Node = Mapping[str, Any]
Schemas = Mapping[str, Node]

UNSAID: Final = frozenset(
    {"$id", "$schema", "$comment", "$defs", "title", "description", "examples", "default", "deprecated"}
    | {"x-provenance", "x-requirement", "$ref"}
)
"""Keywords that change no verdict, and those with a rule of their own."""

DEEPEST: Final = 64
"""References and members that are followed one behind the other: a schema may refer to itself."""

_FOLDABLE: Final = frozenset({"$ref", "type", "properties", "required", "title", "description", "$comment"})


@dataclass(frozen=True, slots=True)
class Side:
    """The schemas of one contract by name, to look references up in."""

    schemas: Schemas

    def target(self, reference: str, home: str) -> tuple[str, str]:
        """The name of the schema that a reference leads to, and the pointer within it."""
        address, _, pointer = reference.partition("#")
        return (address.rsplit("/", 1)[-1].removesuffix(SCHEMA_SUFFIX) if address else home), pointer

    def find(self, name: str, pointer: str) -> Any:
        """What stands at a pointer; None when nothing does."""
        found: Any = self.schemas.get(name)
        for step in pointer.split("/")[1:]:
            found = found.get(step) if isinstance(found, dict) else None
        return found


@dataclass(frozen=True, slots=True)
class Shape:
    """A schema at its place: which file it stands in, and the mark of the nearest choice around it."""

    node: Node
    home: str
    requirement: str | None = None


def as_node(value: Any) -> Node:
    """A schema as an object: `true`, and what is not there, say nothing; `false` rules everything out."""
    if isinstance(value, dict):
        return value
    return {"not": {}} if value is False else {}


def mark_of(shape: Shape) -> str | None:
    """The requirement that records the choice which this place is, or which it stands in; None for a stated one."""
    if shape.node.get("x-provenance") == "inferred":
        requirement = shape.node.get("x-requirement")
        return str(requirement) if requirement is not None else shape.requirement
    return shape.requirement


def resolved(shape: Shape, side: Side) -> Shape:
    """With what it refers to in it; the words beside a reference go before those of the definition."""
    node, home, requirement = dict(shape.node), shape.home, mark_of(shape)
    for _ in range(DEEPEST):
        node = dict(unfolded(Shape(node, home)).node)
        reference = node.pop("$ref", None)
        if not isinstance(reference, str):
            break
        name, pointer = side.target(reference, home)
        found = as_node(side.find(name, pointer))
        own = {"properties": {**members_of(found), **members_of(node)}} if "properties" in found else {}
        required = list(dict.fromkeys((*texts_of(found.get("required")), *texts_of(node.get("required")))))
        own_mark = mark_of(Shape(found, name, requirement))
        node = {**found, **node, **own, **({"required": required} if required else {})}
        home, requirement = name, own_mark
    return Shape({**node}, home, requirement)


def unfolded(shape: Shape) -> Shape:
    """With the parts of an `allOf` in the schema itself, where that means the same: a way to write, no difference."""
    node, left = dict(shape.node), []
    parts = node.pop("allOf", None)
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, dict) and part.keys() <= _FOLDABLE and not _clash(node, part):
            members = {**members_of(node), **members_of(part)}
            required = list(dict.fromkeys((*texts_of(node.get("required")), *texts_of(part.get("required")))))
            node.update(part)
            node.update({"properties": members} if members else {}, **({"required": required} if required else {}))
        else:
            left.append(part)
    return Shape({**node, "allOf": left} if left else node, shape.home, shape.requirement)


def _clash(node: Node, part: Node) -> bool:
    """Whether both say something of one keyword, or of one member."""
    twice = {key for key in part if key in node and node[key] != part[key]} - {"properties", "required"} - UNSAID
    ref_twice = "$ref" in part and "$ref" in node
    return bool(twice) or ref_twice or bool(members_of(node).keys() & members_of(part).keys())


def plain(shape: Shape, said: frozenset[str] = frozenset()) -> Node:
    """The keywords that decide something, without those of `said`."""
    return {keyword: value for keyword, value in shape.node.items() if keyword not in UNSAID | said}


def forbids(node: Node) -> bool:
    """Whether a plain schema holds for nothing: a member of it must be absent."""
    return node.get("not") in ({}, True) and len(node) == 1


def members_of(node: Node) -> dict[str, Any]:
    """The schemas of the members that are named."""
    members = node.get("properties")
    return members if isinstance(members, dict) else {}


def texts_of(value: Any) -> list[str]:
    """The texts in a list; none for what is no list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def values_of(node: Node) -> list[Any] | None:
    """The values that are allowed, where they are listed."""
    if "const" in node:
        return [node["const"]]
    values = node.get("enum")
    return values if isinstance(values, list) else None


def type_of(node: Node) -> Any:
    """The types, in an order; what `const` and `enum` tell needs no type of its own."""
    if values_of(node) is not None:
        return None
    found = node.get("type")
    return sorted(map(str, found)) if isinstance(found, list) else found


def type_words(node: Node) -> str:
    """The types in words."""
    found = type_of(node)
    if found is None:
        return "as its values" if values_of(node) is not None else "any"
    return " or ".join(found) if isinstance(found, list) else str(found)


def bare(value: Any) -> str:
    """A value for people: texts without quotes."""
    return value if isinstance(value, str) else json.dumps(value)

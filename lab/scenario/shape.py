"""Holds a scenario's tree against the JSON Schema of the language, with messages for people.

The schema is the one description of the shape: editors use it, this walker obeys it. It reads the keywords in
KEYWORDS and no others. A general validator costs more time to import than a scenario may take to load, and its
messages speak of schemas; that both accept the same scenarios is tested.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.errors import ContractError
from lab.scenario.findings import Findings, nearest, seen, short, words
from lab.scenario.yaml_places import ListNode, MapNode, Node, ScalarNode

Schema = Mapping[str, Any]

SCHEMA_FILE = Path(__file__).resolve().parents[2] / "contract" / "scenario.schema.json"

KEYWORDS = frozenset(
    (
        *("$ref", "type", "const", "enum", "pattern", "minLength", "maxLength", "minimum", "maximum"),
        *("items", "minItems", "maxItems", "uniqueItems"),
        *("properties", "required", "additionalProperties", "propertyNames", "minProperties", "maxProperties"),
        *("oneOf", "anyOf", "allOf", "not", "if", "then", "else"),
    )
)
ANNOTATIONS = frozenset(("$schema", "$id", "$defs", "title", "description", "examples", "x-due"))

_TYPE_WORDS = {
    "object": "a mapping",
    "array": "a list",
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "nothing",
}


@functools.cache
def scenario_schema() -> Schema:
    """The schema of the language. Raises ContractError if it is not there or broken."""
    try:
        loaded: Schema = json.loads(SCHEMA_FILE.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ContractError(f"{SCHEMA_FILE}: the schema of scenarios cannot be read: {error}.") from None
    return loaded


def resolved(schema: Schema) -> Schema:
    """`schema` with what its $ref names; its own members win."""
    while "$ref" in schema:
        target = scenario_schema()["$defs"][schema["$ref"].removeprefix("#/$defs/")]
        schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
    return schema


def branch(schema: Schema, node: Node | None) -> Schema:
    """The alternative of `schema` that is evidently meant at `node`; without one, the schema itself."""
    schema = resolved(schema)
    if "if" in schema and isinstance(node, MapNode):
        meant = any(node.members.keys() >= set(option["required"]) for option in schema["if"]["anyOf"])
        return branch(schema["then" if meant else "else"], node)
    if "if" in schema:
        return branch(schema["else"], node)
    if "anyOf" in schema and node is not None:
        for option in schema["anyOf"]:
            if _has_type(node, option["type"]):
                return branch(option, node)
    return schema


def sound(node: Node, findings: Findings) -> Node | None:
    """The part of `node` that fits the schema of a scenario; the rest is noted in `findings`.

    A member that does not fit is left out, and so is a mapping that lacks a member it needs, so that one mistake is
    reported once.
    """
    return _Walk(findings).value(node, scenario_schema())


def fitting(node: Node, definition: str, findings: Findings) -> Node | None:
    """The part of `node` that fits a definition of the schema, as by `sound`."""
    return _Walk(findings).value(node, {"$ref": f"#/$defs/{definition}"})


def _has_type(node: Node, types: str | list[str]) -> bool:
    wanted = [types] if isinstance(types, str) else types
    if isinstance(node, MapNode):
        return "object" in wanted
    if isinstance(node, ListNode):
        return "array" in wanted
    value = node.value
    if isinstance(value, bool):
        return "boolean" in wanted
    if value is None:
        return "null" in wanted
    if isinstance(value, str):
        return "string" in wanted
    return "number" in wanted or ("integer" in wanted and float(value).is_integer())


class _Walk:
    def __init__(self, findings: Findings) -> None:
        self._findings = findings

    def value(self, node: Node, schema: Schema) -> Node | None:
        schema = branch(schema, node)
        single = "enum" in schema or "const" in schema
        wrong_type = "type" in schema and not _has_type(node, schema["type"])
        if "anyOf" in schema or wrong_type or (single and not isinstance(node, ScalarNode)):
            self._unfit(node, schema)
            return None
        if isinstance(node, MapNode):
            return self._map(node, schema)
        if isinstance(node, ListNode):
            return self._list(node, schema)
        return self._scalar(node, schema)

    def _unfit(self, node: Node, schema: Schema) -> None:
        options = [option for option in schema.get("enum", ()) if isinstance(option, str)]
        word = node.value if isinstance(node, ScalarNode) and isinstance(node.value, str) else None
        self._findings.add(node, f"seen {seen(node)}, due {_due(schema)}.", word=word, among=options)

    def _scalar(self, node: ScalarNode, schema: Schema) -> Node | None:
        if _scalar_fits(node, schema):
            return node
        self._unfit(node, schema)
        return None

    def _list(self, node: ListNode, schema: Schema) -> Node | None:
        if not schema.get("minItems", 0) <= len(node.items) <= schema.get("maxItems", len(node.items)):
            bounds = f"{schema.get('minItems', 0)} to {schema['maxItems']}"
            self._findings.add(node, f"seen a list of {len(node.items)}, due are {bounds} entries.")
            return None
        items = [self.value(item, schema.get("items", {})) for item in node.items]
        if schema.get("uniqueItems"):
            self._unique(node)
        return ListNode(node.place, node.path, tuple(item for item in items if item is not None))

    def _unique(self, node: ListNode) -> None:
        first: dict[str, ScalarNode] = {}
        for item in node.items:
            if not isinstance(item, ScalarNode):
                continue
            if item.text in first:
                self._findings.add(item, f"`{short(item.text)}` is listed twice.")
            first.setdefault(item.text, item)

    def _map(self, node: MapNode, schema: Schema) -> Node | None:
        size = len(node.members)
        if not schema.get("minProperties", 0) <= size <= schema.get("maxProperties", size):
            self._size(node, schema)
            return None
        misspelt: set[str] = set()
        members: dict[str, Node] = {}
        for key, value in node.members.items():
            member_schema = self._member_schema(node, key, schema, misspelt)
            if member_schema is None:
                continue
            fitting = self.value(value, member_schema)
            if fitting is not None:
                members[key] = fitting
        whole = self._has_required(node, schema, misspelt) & self._has_one(node, schema, misspelt)
        whole &= self._has_no_pair(node, schema)
        lost = [key for key in _needed(schema) if key in node.members and key not in members]
        if node.path and (not whole or lost):
            return None
        return MapNode(node.place, node.path, members, node.keys)

    def _size(self, node: MapNode, schema: Schema) -> None:
        due = schema.get("x-due")
        if due is None:
            least, most = schema.get("minProperties", 0), schema.get("maxProperties")
            due = f"{least} to {most} members" if most is not None else f"at least {least} member"
        self._findings.add(node, f"seen a mapping of {len(node.members)} members, due {due}.")

    def _member_schema(self, node: MapNode, key: str, schema: Schema, misspelt: set[str]) -> Schema | None:
        place, path = node.keys[key], (*node.path, key)
        names = resolved(schema.get("propertyNames", {}))
        if names and not _text_fits(key, names):
            self._findings.add(node, f"seen the name `{short(key)}`, due {_due(names)}.", place=place, path=path)
            return None
        known: Schema = schema.get("properties", {})
        if key in known:
            member: Schema = known[key]
            return member
        others = schema.get("additionalProperties", {})
        if others is False:
            message = f"no member `{short(key)}` is known here; known are {words(known)}."
            self._findings.add(node, message, word=key, among=known, place=place, path=path)
            meant = None if self._findings.full else nearest(key, known)
            if meant is not None:
                misspelt.add(meant)
            return None
        further: Schema = others
        return further

    def _has_required(self, node: MapNode, schema: Schema, misspelt: set[str]) -> bool:
        missing = [name for name in schema.get("required", ()) if name not in node.members]
        for name in missing:
            if name not in misspelt:
                self._findings.add(node, f"`{name}` is missing.")
        return not missing

    def _has_one(self, node: MapNode, schema: Schema, misspelt: set[str]) -> bool:
        choice = [option["required"][0] for option in schema.get("oneOf", ())]
        there = [name for name in node.members if name in choice]
        if not choice or len(there) == 1:
            return True
        if len(there) > 1:
            message = f"{words(there, ' and ')} stand here together; due is one of {words(choice)}."
            self._findings.add(node, message, place=node.keys[there[1]])
        elif not misspelt.intersection(choice) and not (set(node.members) - set(schema["properties"])):
            self._findings.add(node, f"one of {words(choice)} is missing.")
        return False

    def _has_no_pair(self, node: MapNode, schema: Schema) -> bool:
        alone = True
        for rule in (schema, *schema.get("allOf", ())):
            pair = rule.get("not", {}).get("required", ())
            if pair and all(name in node.members for name in pair):
                message = f"{words(pair, ' and ')} stand here together; due is one of the two."
                self._findings.add(node, message, place=node.keys[pair[1]], path=(*node.path, pair[1]))
                alone = False
        return alone


def _needed(schema: Schema) -> tuple[str, ...]:
    return (*schema.get("required", ()), *(option["required"][0] for option in schema.get("oneOf", ())))


def _due(schema: Schema) -> str:
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "x-due" in schema:
        return str(schema["x-due"])
    if "enum" in schema:
        options = schema["enum"]
        return words(options) if len(options) == 1 else f"one of {words(options)}"
    types = schema["type"]
    return " or ".join(_TYPE_WORDS[name] for name in ([types] if isinstance(types, str) else types))


def _scalar_fits(node: ScalarNode, schema: Schema) -> bool:
    value = node.value
    if "const" in schema and value is not schema["const"]:
        return False
    if "enum" in schema and not (isinstance(value, str) and value in schema["enum"]):
        return False
    if isinstance(value, str):
        return _text_fits(value, schema)
    if value is None or isinstance(value, bool):
        return True
    return bool(schema.get("minimum", value) <= value <= schema.get("maximum", value))


def _text_fits(text: str, schema: Schema) -> bool:
    if not schema.get("minLength", 0) <= len(text) <= schema.get("maxLength", len(text)):
        return False
    return "pattern" not in schema or _full(schema["pattern"]).fullmatch(text) is not None


@functools.cache
def _full(pattern: str) -> re.Pattern[str]:
    """The anchored `pattern` of a schema: `$` also matches before a last line break, fullmatch does not."""
    return re.compile(pattern.removeprefix("^").removesuffix("$"))

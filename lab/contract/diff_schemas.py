"""Where two JSON Schemas differ, in words. Pure; `lab.contract.diff` gives it the schemas of two contracts.

Definitions are followed through `$ref`, so that it does not matter where a contract writes a shape down. Where both
refer to the same definition, nothing is told: the definition itself is compared once, in its own file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from lab.contract.schema_shapes import (
    DEEPEST,
    UNSAID,
    Node,
    Shape,
    Side,
    as_node,
    bare,
    forbids,
    mark_of,
    members_of,
    plain,
    resolved,
    texts_of,
    type_of,
    type_words,
    unfolded,
    values_of,
)

_BOUNDS: Final = {
    "minLength": "shortest text, characters",
    "maxLength": "longest text, characters",
    "minimum": "smallest number",
    "maximum": "largest number",
    "exclusiveMinimum": "number above",
    "exclusiveMaximum": "number below",
    "multipleOf": "multiple of",
    "minItems": "fewest entries",
    "maxItems": "most entries",
    "minProperties": "fewest members",
    "maxProperties": "most members",
    "pattern": "pattern",
    "format": "format",
    "contentEncoding": "encoding",
    "uniqueItems": "entries are unique",
    "x-content-class": "content class",
    "x-large-metadata": "large metadata",
}
_RULES: Final = {
    "anyOf": "alternatives",
    "oneOf": "exclusive alternatives",
    "allOf": "further rules",
    "not": "what is ruled out",
    "if": "condition",
    "then": "what holds under the condition",
    "else": "what holds otherwise",
    "dependentRequired": "members that need others",
    "dependentSchemas": "members that change others",
}
_CHILDREN: Final = {"items": "[]", "propertyNames": "(member names)", "contains": "[one of]"}
_SAID_BY_BASE: Final = frozenset({"type", "additionalProperties", "unevaluatedProperties"})
_DEEPEST_RULE: Final = 16
"""A rule is looked at with all that it refers to, and definitions may refer to each other in rounds."""

_SHOWN_CHARACTERS: Final = 160


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference. `place` is a path of members; `requirement` is the choice of ours that it is, None if stated."""

    place: str
    words: str
    requirement: str | None


def schema_findings(name: str, ours: Side, theirs: Side) -> Iterator[Finding]:
    """How the schema `name` of two contracts differs, definitions aside."""
    yield from _Pair(ours, theirs).compare(Shape(ours.schemas[name], name), Shape(theirs.schemas[name], name), "", 0)


def definition_findings(ours: Side, theirs: Side, name: str = "defs") -> Iterator[Finding]:
    """How the definitions that both have differ. One that a side lacks is no difference: it shows where it is used."""
    mine, others = ours.find(name, "/$defs"), theirs.find(name, "/$defs")
    if isinstance(mine, dict) and isinstance(others, dict):
        for key in mine:
            if key in others:
                yield from _Pair(ours, theirs).compare(Shape(mine[key], name), Shape(others[key], name), key, 0)


class _Pair:
    def __init__(self, ours: Side, theirs: Side) -> None:
        self._ours = ours
        self._theirs = theirs

    def compare(self, ours: Shape, theirs: Shape, place: str, depth: int) -> Iterator[Finding]:
        if depth > DEEPEST:
            return
        ours, theirs = unfolded(ours), unfolded(theirs)
        mark, base = mark_of(ours), frozenset[str]()
        same = self._refer_to_the_same(ours, theirs)
        if same:
            base = self._members_of_base(ours)
        else:
            ours, theirs = resolved(ours, self._ours), resolved(theirs, self._theirs)
            mark = mark_of(ours)
        # What the common definition says already, one side may say again.
        mine, others = (plain(shape, _SAID_BY_BASE if same else frozenset()) for shape in (ours, theirs))
        if forbids(mine) or forbids(others):
            if forbids(mine) != forbids(others):
                words = "ours must be absent, theirs may be there" if forbids(mine) else "ours may be there, theirs not"
                yield Finding(place, words, mark)
            return
        yield from (Finding(place, words, mark) for words in _keyword_words(mine, others))
        yield from (Finding(place, words, mark) for words in self._rule_words(ours, theirs))
        yield from self._members(ours, theirs, base, mark, place, depth)
        for keyword, step in _CHILDREN.items():
            yield from self._child(ours, theirs, keyword, f"{place}{step}", mark, depth)

    def _refer_to_the_same(self, ours: Shape, theirs: Shape) -> bool:
        """Whether both refer to one definition that both have."""
        mine, others = ours.node.get("$ref"), theirs.node.get("$ref")
        if not isinstance(mine, str) or not isinstance(others, str):
            return False
        target = self._ours.target(mine, ours.home)
        if target != self._theirs.target(others, theirs.home):
            return False
        return self._ours.find(*target) is not None and self._theirs.find(*target) is not None

    def _members_of_base(self, ours: Shape) -> frozenset[str]:
        found = self._ours.find(*self._ours.target(ours.node["$ref"], ours.home))
        members = found.get("properties") if isinstance(found, dict) else None
        return frozenset(members) if isinstance(members, dict) else frozenset()

    def _rule_words(self, ours: Shape, theirs: Shape) -> Iterator[str]:
        for keyword, words in _RULES.items():
            mine = _whole(ours.node.get(keyword), ours.home, self._ours)
            others = _whole(theirs.node.get(keyword), theirs.home, self._theirs)
            if mine != others:
                yield f"{words} ({keyword}): ours {_shown(mine)}, theirs {_shown(others)}"

    def _members(
        self, ours: Shape, theirs: Shape, base: frozenset[str], mark: str | None, place: str, depth: int
    ) -> Iterator[Finding]:
        mine, others = members_of(ours.node), members_of(theirs.node)
        for name in dict.fromkeys((*mine, *others)):
            where = f"{place}.{name}" if place else name
            my_node, other_node = mine.get(name), others.get(name)
            if name in base:
                # The base has the member; `true` beside it, or nothing, says no more.
                my_node, other_node = (True if node is None else node for node in (my_node, other_node))
            if my_node is None:
                if not forbids(plain(resolved(Shape(as_node(other_node), theirs.home), self._theirs))):
                    words = f"member only in theirs: {self._told(other_node, theirs, self._theirs)}"
                    yield Finding(where, words, mark)
            elif other_node is None:
                found = Shape(as_node(my_node), ours.home, mark)
                if not forbids(plain(resolved(found, self._ours))):
                    words = f"member only in ours: {self._told(my_node, ours, self._ours)}"
                    yield Finding(where, words, mark_of(found))
            else:
                yield from self.compare(
                    Shape(as_node(my_node), ours.home, mark), Shape(as_node(other_node), theirs.home), where, depth + 1
                )
        yield from self._required(ours, theirs, (mine, others), mark, place)

    def _required(
        self, ours: Shape, theirs: Shape, members: tuple[Node, Node], mark: str | None, place: str
    ) -> Iterator[Finding]:
        mine, others = texts_of(ours.node.get("required")), texts_of(theirs.node.get("required"))
        for name in dict.fromkeys((*mine, *others)):
            where = f"{place}.{name}" if place else name
            node = members[0].get(name)
            # That it is required is said around it, so the mark of a definition that it refers to says nothing of it.
            own = mark_of(Shape(as_node(node), ours.home, mark))
            if name not in others:
                yield Finding(where, "ours is required, theirs is not", own)
            elif name not in mine:
                yield Finding(where, "ours is not required, theirs is", own)

    def _child(
        self, ours: Shape, theirs: Shape, keyword: str, place: str, mark: str | None, depth: int
    ) -> Iterator[Finding]:
        mine, others = ours.node.get(keyword), theirs.node.get(keyword)
        if mine is None or others is None:
            if mine is not None or others is not None:
                told = self._told(others, theirs, self._theirs) if mine is None else self._told(mine, ours, self._ours)
                yield Finding(place, f"said only in {'theirs' if mine is None else 'ours'}: {told}", mark)
            return
        yield from self.compare(
            Shape(as_node(mine), ours.home, mark), Shape(as_node(others), theirs.home), place, depth + 1
        )

    def _told(self, node: Any, around: Shape, side: Side) -> str:
        found = plain(resolved(Shape(as_node(node), around.home), side))
        return _summary(found) if found else "anything"


def _keyword_words(mine: Node, others: Node) -> Iterator[str]:
    if type_of(mine) != type_of(others):
        yield f"type: ours {type_words(mine)}, theirs {type_words(others)}"
    yield from _value_words(mine, others)
    for keyword, words in _BOUNDS.items():
        if mine.get(keyword) != others.get(keyword):
            yield f"{words}: ours {_shown(mine.get(keyword))}, theirs {_shown(others.get(keyword))}"
    if _others(mine) != _others(others):
        yield f"members not named: ours {_others(mine)}, theirs {_others(others)}"
    known = {"type", "enum", "const", "properties", "required", "additionalProperties", "unevaluatedProperties"}
    known |= _BOUNDS.keys() | _RULES.keys() | _CHILDREN.keys() | UNSAID
    for keyword in dict.fromkeys((*mine, *others)):
        if keyword not in known and not keyword.startswith("x-") and mine.get(keyword) != others.get(keyword):
            yield f"keyword {keyword}: ours {_shown(mine.get(keyword))}, theirs {_shown(others.get(keyword))}"


def _value_words(mine: Node, others: Node) -> Iterator[str]:
    my_values, other_values = values_of(mine), values_of(others)
    if my_values is None or other_values is None:
        if my_values != other_values:
            yield f"values: ours {_shown(my_values)}, theirs {_shown(other_values)}"
        return
    if only := [value for value in my_values if value not in other_values]:
        yield f"values only in ours: {', '.join(map(bare, only))}"
    if only := [value for value in other_values if value not in my_values]:
        yield f"values only in theirs: {', '.join(map(bare, only))}"


def _others(node: Node) -> str:
    """What an object says of further members. One without members of its own says it only in words of its own."""
    found = node.get("additionalProperties", node.get("unevaluatedProperties"))
    if found is False:
        return "refused"
    return _shown(found) if isinstance(found, dict) and found else "allowed"


def _whole(value: Any, home: str, side: Side, depth: int = 0) -> Any:
    """A rule with all that it refers to, without words that change no verdict."""
    if depth > _DEEPEST_RULE:
        return "…"
    if isinstance(value, list):
        return [_whole(item, home, side, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("$ref"), str):
        found = resolved(Shape(value, home), side)
        return _whole(dict(found.node), found.home, side, depth + 1)
    kept = {key: item for key, item in value.items() if key not in UNSAID}
    return {key: _whole(item, home, side, depth + 1) for key, item in kept.items()}


def _summary(node: Node) -> str:
    values = values_of(node)
    if values is not None:
        return "one of " + ", ".join(map(bare, values)) if len(values) > 1 else f"always {bare(values[0])}"
    bounds = [f"{words} {_shown(node[keyword])}" for keyword, words in _BOUNDS.items() if keyword in node]
    return ", ".join([type_words(node), *bounds])


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"

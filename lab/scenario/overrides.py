"""Changes single values of a scenario's tree, as `lab run --set gateway.tenant_mode=hosted` asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lab.errors import Place, UsageError
from lab.scenario.findings import nearest, short, words
from lab.scenario.shape import Schema, branch, resolved, scenario_schema
from lab.scenario.yaml_places import (
    ListNode,
    MapNode,
    Node,
    Path,
    ScalarNode,
    parse_untrusted,
    path_words,
    resolve_plain,
)

MAX_VALUE = 4096


def override(root: Node, overrides: Mapping[str, str]) -> Node:
    """`root` with each dotted path set to its value.

    A path may name any member that the language knows at its place, there or not, and any entry that a list has. A
    value is a YAML scalar or flow collection; where the language wants a text, it is taken as it stands. Raises
    UsageError for an unknown path or an unreadable value.
    """
    for path, value in overrides.items():
        root = _Override(path, value).apply(root)
    return root


class _Override:
    def __init__(self, path: str, value: str) -> None:
        self._path = path
        self._value = value
        self._label = f"--set {short(path)}"

    def apply(self, root: Node) -> Node:
        if len(self._value) > MAX_VALUE:
            raise UsageError(f"{self._label}: the value is longer than {MAX_VALUE} characters.")
        return self._set(root, scenario_schema(), tuple(self._path.split(".")), ())

    def _set(self, node: Node | None, schema: Schema, left: tuple[str, ...], path: Path) -> Node:
        schema = branch(schema, node)
        if not left:
            return self._new_value(schema, path)
        part, rest = left[0], left[1:]
        if isinstance(node, ListNode) and "items" in schema:
            return self._set_entry(node, schema, part, rest)
        if node is not None and not isinstance(node, MapNode):
            raise UsageError(f"{self._label}: `{path_words(path)}` has no members, so no `{short(part)}`.")
        if node is None and schema.get("type") != "object":
            raise UsageError(f"{self._label}: there is no `{path_words(path)}` to set `{short(part)}` in.")
        return self._set_member(node, schema, (part, *rest), path)

    def _set_entry(self, node: ListNode, schema: Schema, part: str, rest: tuple[str, ...]) -> Node:
        known = [str(index) for index in range(len(node.items))]
        if part not in known:
            last = f"0 to {len(known) - 1}" if known else "none"
            raise UsageError(f"{self._label}: `{path_words(node.path)}` has no entry `{short(part)}`; it has {last}.")
        index = int(part)
        entry = self._set(node.items[index], schema["items"], rest, (*node.path, index))
        return replace(node, items=(*node.items[:index], entry, *node.items[index + 1 :]))

    def _set_member(self, node: MapNode | None, schema: Schema, left: tuple[str, ...], path: Path) -> Node:
        members = dict(node.members) if node else {}
        part, rest = self._member_of(members, schema, left, path)
        place = Place(self._label, 1)
        properties = schema.get("properties", {})
        others = schema.get("additionalProperties", {})
        inner = properties.get(part, others or {})
        members[part] = self._set(members.get(part), inner, rest, (*path, part))
        keys = {part: place, **(node.keys if node else {})}
        return MapNode(node.place if node else place, path, members, keys)

    def _member_of(
        self, members: Mapping[str, Node], schema: Schema, left: tuple[str, ...], path: Path
    ) -> tuple[str, tuple[str, ...]]:
        """The member that the path goes on with; a member's own name may hold dots."""
        known = dict.fromkeys((*members, *schema.get("properties", {})))
        dotted = ".".join(left)
        for name in known:
            if dotted == name:
                return name, ()
        part = left[0]
        others = schema.get("additionalProperties", {})
        is_open = path and others is not False and resolved(others).get("type") != "object"
        if part not in known and not is_open:
            where = f"`{path_words(path)}`" if path else "a scenario"
            near = nearest(part, known)
            hint = f" Did you mean `{path_words((*path, near))}`?" if near else f" It has {words(known)}."
            raise UsageError(f"{self._label}: {where} has no member `{short(part)}`.{hint}")
        return part, left[1:]

    def _new_value(self, schema: Schema, path: Path) -> Node:
        place = Place(self._label, 1)
        text = self._value
        wants_text = schema.get("type") == "string" or ("type" not in schema and "enum" in schema)
        if wants_text:
            return ScalarNode(place, path, text, text)
        if text[:1] not in ("[", "{", '"', "'"):
            return ScalarNode(place, path, resolve_plain(text), text)
        node, doubles = parse_untrusted(text, self._label)
        if doubles:
            raise doubles[0]
        return _moved(node, place, path)


def _moved(node: Node, place: Place, path: Path) -> Node:
    """`node` as the value at `path`."""
    if isinstance(node, MapNode):
        members = {key: _moved(value, place, (*path, key)) for key, value in node.members.items()}
        return MapNode(place, path, members, dict.fromkeys(members, place))
    if isinstance(node, ListNode):
        items = (_moved(item, place, (*path, index)) for index, item in enumerate(node.items))
        return ListNode(place, path, tuple(items))
    return replace(node, place=place, path=path)

"""YAML text as a tree in which every value knows its place and its path.

A bounded part of YAML 1.2's core schema: one document, no anchors, aliases or tags, no key twice. So `off`, `yes`
and `12:30` are texts, as in JSON and in editors, and the tree is never larger than the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import yaml

from lab.errors import Place, ScenarioError

MAX_DEPTH = 24
MAX_VALUES = 10_000
MAX_DIGITS = 18

Scalar = str | int | float | bool | None
Path = tuple[str | int, ...]

_WORDS: Mapping[str, Scalar] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
_INTEGER = re.compile(rf"[-+]?[0-9]{{1,{MAX_DIGITS}}}")
_FLOAT = re.compile(
    rf"[-+]?(\.[0-9]{{1,{MAX_DIGITS}}}|[0-9]{{1,{MAX_DIGITS}}}(\.[0-9]{{0,{MAX_DIGITS}}})?)([eE][-+]?[0-9]{{1,2}})?"
)


@dataclass(frozen=True)
class ScalarNode:
    """A single value. `text` is what was written, without quotes."""

    place: Place
    path: Path
    value: Scalar
    text: str


@dataclass(frozen=True)
class ListNode:
    """A list; an item keeps its index in its path."""

    place: Place
    path: Path
    items: tuple[Node, ...]


@dataclass(frozen=True)
class MapNode:
    """A mapping in file order. `keys` has the place of each key."""

    place: Place
    path: Path
    members: Mapping[str, Node]
    keys: Mapping[str, Place]


Node = ScalarNode | ListNode | MapNode


def path_words(path: Path) -> str:
    """`path` as people write it: `steps[3].fault.link`."""
    words = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return words.removeprefix(".")


def resolve_plain(text: str) -> Scalar:
    """What unquoted `text` means."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


def plain(node: Node) -> object:
    """The value of `node` as dicts, lists and scalars."""
    if isinstance(node, MapNode):
        return {key: plain(value) for key, value in node.members.items()}
    if isinstance(node, ListNode):
        return [plain(item) for item in node.items]
    return node.value


def parse_untrusted(text: str, file: str) -> tuple[Node, tuple[ScenarioError, ...]]:
    """The tree of the one document in `text`, and the keys that it gives twice (the first one counts).

    Raises ScenarioError at the place where it is no YAML, or not of the part that the language uses.
    """
    reader = _Reader(text, file)
    try:
        node = reader.document()
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, file) from None
    except yaml.reader.ReaderError as error:
        line, column = _line_and_column(text, error.position)
        message = f"a character that YAML does not allow (U+{ord(text[error.position]):04X})."
        raise ScenarioError(Place(file, line, column), "", message) from None
    return node, tuple(reader.doubles)


def _line_and_column(text: str, position: int) -> tuple[int, int]:
    before = text[:position]
    return before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1


def _syntax_error(error: yaml.MarkedYAMLError, file: str) -> ScenarioError:
    mark = error.problem_mark or error.context_mark
    place = Place(file, mark.line + 1, mark.column + 1) if mark else Place(file, 1, 1)
    began = error.context_mark
    since = ""
    if error.context and began and (began.line, began.column) != (place.line - 1, place.column - 1):
        since = f" ({error.context} from line {began.line + 1})"
    problem = (error.problem or "it cannot be read").replace("\\t", "tab")
    return ScenarioError(place, "", f"not valid YAML: {problem}{since}.")


class _Reader:
    """Makes nodes of the parser's events; its recursion is bounded by MAX_DEPTH."""

    def __init__(self, text: str, file: str) -> None:
        self._events: Iterator[yaml.Event] = iter(yaml.parse(text, yaml.SafeLoader))
        self._file = file
        self._values = 0
        self.doubles: list[ScenarioError] = []

    def document(self) -> Node:
        next(self._events)
        start = next(self._events)
        if isinstance(start, yaml.StreamEndEvent):
            raise ScenarioError(Place(self._file, 1, 1), "", "the file is empty.")
        node = self._node(next(self._events), ())
        next(self._events)
        end = next(self._events)
        if not isinstance(end, yaml.StreamEndEvent):
            raise ScenarioError(self._place(end), "", "a second document begins here; a file holds one.")
        return node

    def _place(self, event: yaml.Event) -> Place:
        mark = event.start_mark
        return Place(self._file, mark.line + 1, mark.column + 1) if mark else Place(self._file, 1)

    def _node(self, event: yaml.Event, path: Path) -> Node:
        place = self._place(event)
        self._values += 1
        if len(path) > MAX_DEPTH:
            raise ScenarioError(place, "", f"nested more than {MAX_DEPTH} deep.")
        if self._values > MAX_VALUES:
            raise ScenarioError(place, "", f"more than {MAX_VALUES} keys and values.")
        if getattr(event, "anchor", None) is not None:
            raise ScenarioError(
                place, path_words(path), "anchors and aliases have no meaning here; write the value out."
            )
        if getattr(event, "tag", None) is not None:
            raise ScenarioError(place, path_words(path), "tags have no meaning here; write the value without one.")
        if isinstance(event, yaml.ScalarEvent):
            value = resolve_plain(event.value) if event.implicit[0] else event.value
            return ScalarNode(place, path, value, event.value)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._list(place, path)
        return self._map(place, path)

    def _list(self, place: Place, path: Path) -> ListNode:
        items: list[Node] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(event, (*path, len(items))))
        return ListNode(place, path, tuple(items))

    def _map(self, place: Place, path: Path) -> MapNode:
        members: dict[str, Node] = {}
        keys: dict[str, Place] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if isinstance(event, yaml.CollectionStartEvent):
                raise ScenarioError(
                    self._place(event), path_words(path), "a key is a list or a mapping; due is a word."
                )
            key_node = self._node(event, path)
            key = key_node.text if isinstance(key_node, ScalarNode) else ""
            value = self._node(next(self._events), (*path, key))
            if key in members:
                message = f"`{_short(key)}` stands here twice; the first is in line {keys[key].line}."
                self.doubles.append(ScenarioError(key_node.place, path_words((*path, key)), message))
                continue
            members[key] = value
            keys[key] = key_node.place
        return MapNode(place, path, members, keys)


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"

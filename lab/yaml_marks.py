"""A YAML text as nodes that know their place, for files that people write.

Bounded: size, number of nodes and depth have limits, aliases and duplicate keys are refused. Each fault raises
one `ScenarioError` with its place and path.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from lab.errors import Place, ScenarioError

MAX_BYTES = 1 << 20
"""Largest file, in bytes."""
MAX_NODES = 50_000
MAX_DEPTH = 16

_STR, _INT, _BOOL = (f"tag:yaml.org,2002:{name}" for name in ("str", "int", "bool"))


@dataclass(frozen=True)
class Spot:
    """A node of the document: what was written, where, and its path such as `steps[2].text`."""

    node: yaml.Node
    file: str
    path: str
    key: yaml.Node | None = None
    """The key it is the value of."""

    @property
    def place(self) -> Place:
        """Where it was written."""
        return _place(self.node, self.file)

    @property
    def text_line(self) -> int:
        """The line, from 1, of the first character of a text; a block text starts below its `|`."""
        block = isinstance(self.node, yaml.ScalarNode) and self.node.style in ("|", ">")
        return self.place.line + 1 if block else self.place.line

    @property
    def is_literal(self) -> bool:
        """Whether it is a `|` text, in which each line of the value is a line of the file."""
        return isinstance(self.node, yaml.ScalarNode) and self.node.style == "|"

    @property
    def is_mapping(self) -> bool:
        """Whether it is a mapping."""
        return isinstance(self.node, yaml.MappingNode)

    def fault(self, message: str, nearest: str | None = None) -> ScenarioError:
        """The error that says what is wrong here."""
        return ScenarioError(self.place, self.path, message, nearest)

    def key_fault(self, message: str, nearest: str | None = None) -> ScenarioError:
        """The error that says what is wrong with its key."""
        return ScenarioError(_place(self.key or self.node, self.file), self.path, message, nearest)

    def mapping(self, due: str) -> dict[str, Spot]:
        """The members of a mapping, in the order written."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.fault(f"{due} is due here.")
        members: dict[str, Spot] = {}
        for key, value in self.node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise Spot(key, self.file, self.path).fault("A key must be a plain word.")
            name: str = key.value
            spot = Spot(value, self.file, f"{self.path}.{name}" if self.path else name, key)
            if name in members:
                raise spot.key_fault(f"`{name}` stands here twice.")
            members[name] = spot
        return members

    def members(self, due: str, allowed: Iterable[str], required: Iterable[str] = ()) -> dict[str, Spot]:
        """The members of a mapping in which only `allowed` words may stand and the `required` ones must."""
        members = self.mapping(due)
        words = list(allowed)
        for name, spot in members.items():
            if name not in words:
                message = f"`{name}` is not known here; one of {_listed(words)} is due."
                raise spot.key_fault(message, nearest(name, words))
        for name in required:
            if name not in members:
                raise self.fault(f"`{name}` is missing.")
        return members

    def items(self, due: str) -> list[Spot]:
        """The items of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.fault(f"{due} is due here.")
        return [Spot(node, self.file, f"{self.path}[{index}]") for index, node in enumerate(self.node.value)]

    def text(self, due: str) -> str:
        """A text that is not empty."""
        value = self.scalar(due)
        if not isinstance(value, str):
            raise self.fault(f"{due} is due here; put quotes around it.")
        if not value.strip():
            raise self.fault(f"{due} is due here, and this is empty.")
        return value

    def word(self, due: str, allowed: Iterable[str]) -> str:
        """One of the `allowed` words."""
        value = str(self.scalar(due))
        words = list(allowed)
        if value not in words:
            raise self.fault(f"{due} is due here: one of {_listed(words)}.", nearest(value, words))
        return value

    def count(self, due: str, least: int, most: int) -> int:
        """A whole number from `least` to `most`."""
        value = self.scalar(due)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.fault(f"{due} is due here: a whole number from {least} to {most}.")
        return value

    def flag(self, due: str) -> bool:
        """`true` or `false`."""
        value = self.scalar(due)
        if not isinstance(value, bool):
            raise self.fault(f"{due} is due here: true or false.")
        return value

    def scalar(self, due: str) -> str | int | bool:
        """A text, whole number or truth value; every other scalar (a date, a fraction) stays the text it was."""
        if not isinstance(self.node, yaml.ScalarNode):
            raise self.fault(f"{due} is due here.")
        value: str = self.node.value
        if any("\ud800" <= char <= "\udfff" for char in value):
            raise self.fault("Half a surrogate pair is no character.")
        if self.node.tag == _BOOL:
            return value.lower() in ("true", "yes", "on")
        if self.node.tag == _INT and value.lstrip("+-").isdecimal() and len(value) <= 16:
            return int(value)
        return value


def read_script_text(path: Path, example: str) -> str:
    """The text of a script's file; `example` is one that exists. Whatever is wrong raises `ScenarioError`."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        message = f"The script cannot be read: {error.strerror}. Name a file such as {example}."
        raise ScenarioError(Place(str(path), 1), "", message) from error
    if len(raw) > MAX_BYTES:
        raise ScenarioError(Place(str(path), 1), "", f"The file is too large: {MAX_BYTES} bytes are the most.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ScenarioError(Place(str(path), line), "", "The file is not UTF-8 text.") from error


def read_marks(text: str, file: str) -> Spot:
    """The root of the YAML document `text`, which errors call `file`."""
    try:
        _check_bounds(text, file)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(file, mark.line + 1, mark.column + 1) if mark else Place(file, 1)
        raise ScenarioError(place, "", f"This is no YAML: {error.problem}.") from error
    except yaml.YAMLError as error:
        message = "This is no YAML: it holds a character that may not stand in it."
        raise ScenarioError(Place(file, 1), "", message) from error
    if node is None:
        raise ScenarioError(Place(file, 1), "", "The file is empty.")
    return Spot(node, file, "")


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The one of `words` that `word` was most likely meant to be."""
    close = difflib.get_close_matches(word, list(words), n=1, cutoff=0.5)
    return close[0] if close else None


def _place(node: yaml.Node, file: str) -> Place:
    return Place(file, node.start_mark.line + 1, node.start_mark.column + 1)


def _check_bounds(text: str, file: str) -> None:
    depth = nodes = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        mark = event.start_mark
        place = Place(file, mark.line + 1, mark.column + 1) if mark else Place(file, 1)
        if isinstance(event, yaml.AliasEvent):
            raise ScenarioError(place, "", "Aliases (`*name`) are not taken; write the part out.")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        nodes += isinstance(event, yaml.NodeEvent)
        if depth > MAX_DEPTH or nodes > MAX_NODES:
            raise ScenarioError(place, "", f"The file may hold {MAX_NODES} parts, {MAX_DEPTH} deep at most.")


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)

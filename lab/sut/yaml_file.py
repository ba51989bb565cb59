"""YAML that a person wrote, read so that every fault can name its file, line and column."""

from __future__ import annotations

from pathlib import Path

import yaml

from lab.errors import Place, ScenarioError, UsageError
from lab.sut.template import nearest_word

MAX_BYTES = 64 * 1024
"""Far above any profile."""


class Item:
    """A value of the file with the path of keys that leads to it."""

    def __init__(self, file: str, lines: tuple[str, ...], node: yaml.Node, path: str) -> None:
        self._file = file
        self._lines = lines
        self._node = node
        self.path = path

    def fault(self, message: str, nearest: str | None = None, word: str = "") -> ScenarioError:
        """The error for this value; the place is that of `word` inside it when that stands on its first line."""
        mark = self._node.start_mark
        column = mark.column
        if word and mark.line < len(self._lines):
            found = self._lines[mark.line].find(word, column)
            column = found if found >= 0 else column
        return ScenarioError(Place(self._file, mark.line + 1, column + 1), self.path, message, nearest)

    def is_list(self) -> bool:
        """Whether this is a list."""
        return isinstance(self._node, yaml.SequenceNode)

    def text(self) -> str:
        """The scalar as written, so that `true` and `5055` stay what they are."""
        if isinstance(self._node, yaml.MappingNode):
            raise self.fault("a text is due here; one that begins with a brace needs quotes.")
        if not isinstance(self._node, yaml.ScalarNode):
            raise self.fault("a text is due here, not a list.")
        if self._node.tag == "tag:yaml.org,2002:null":
            raise self.fault('a text is due here; an empty one is written "".')
        return str(self._node.value)

    def items(self) -> tuple[Item, ...]:
        """The values of a list."""
        if not isinstance(self._node, yaml.SequenceNode):
            raise self.fault("a list is due here.")
        return tuple(self._child(node, f"{self.path}[{i}]") for i, node in enumerate(self._node.value))

    def entries(self) -> tuple[tuple[Item, Item], ...]:
        """The keys and values of a mapping, in the order of the file; a key given twice is a fault."""
        if not isinstance(self._node, yaml.MappingNode):
            raise self.fault("a mapping (`key: value`) is due here.")
        entries: list[tuple[Item, Item]] = []
        seen: set[str] = set()
        for key_node, value_node in self._node.value:
            key = self._child(key_node, self.path)
            name = key.text()
            if name in seen:
                raise key.fault(f"`{name}` is given twice.")
            seen.add(name)
            path = f"{self.path}.{name}" if self.path else name
            entries.append((self._child(key_node, path), self._child(value_node, path)))
        return tuple(entries)

    def members(self, known: tuple[str, ...], needed: tuple[str, ...] = ()) -> dict[str, Item]:
        """The values of a mapping whose keys are among `known`; those in `needed` are there."""
        members: dict[str, Item] = {}
        for key, value in self.entries():
            name = key.text()
            if name not in known:
                raise key.fault(f"`{name}` is no key here; there are {', '.join(known)}.", nearest_word(name, known))
            members[name] = value
        for name in needed:
            if name not in members:
                raise self.fault(f"`{name}` is missing.")
        return members

    def _child(self, node: yaml.Node, path: str) -> Item:
        return Item(self._file, self._lines, node, path)


def read_yaml(path: Path) -> Item:
    """The file's one document. Unreadable: `UsageError`; not YAML: `ScenarioError` at its place."""
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
    if len(raw) > MAX_BYTES:
        raise UsageError(f"{path} is larger than {MAX_BYTES} bytes, which no profile is.")
    try:
        text = raw.decode("utf-8")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = Place(str(path), mark.line + 1, mark.column + 1) if mark else Place(str(path), 1)
        raise ScenarioError(place, "", f"this is not YAML: {error.problem}.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ScenarioError(Place(str(path), 1), "", "this is not YAML in UTF-8.") from error
    except RecursionError as error:
        raise ScenarioError(Place(str(path), 1), "", "this is nested too deeply.") from error
    if node is None:
        raise ScenarioError(Place(str(path), 1), "", "the file is empty.")
    return Item(str(path), tuple(text.splitlines()), node, "")

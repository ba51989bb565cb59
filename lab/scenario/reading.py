"""What all readers of a scenario's parts share: the members of a mapping as typed values, and common checks.

Readers work on a tree that fits the schema, so a member that is there has its type; what they still note are the
mistakes that no schema can see.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from lab.durations import parse_duration
from lab.scenario.findings import Findings, words
from lab.scenario.names import Names
from lab.scenario.yaml_places import ListNode, MapNode, Node, ScalarNode, plain

MAX_INPUT_BYTES = 65_536


@dataclass(frozen=True)
class Reading:
    """What a reader needs: where errors go, the declared names, the project's root, the run's deadline."""

    findings: Findings
    names: Names
    root: Path
    deadline: float
    laws: Collection[str]
    """The ids that `must_judge` may name."""
    figures: Collection[str] | None
    """The names that `figures.<name>` may have; None takes any."""


@dataclass(frozen=True)
class StepBody:
    """A step's members, with the line and index of the step and its own deadline."""

    node: MapNode
    line: int
    index: int
    within: float | None


def mapping(node: MapNode, name: str) -> MapNode | None:
    """The mapping that is the member `name`."""
    member = node.members.get(name)
    return member if isinstance(member, MapNode) else None


def entries(node: MapNode, name: str) -> tuple[Node, ...]:
    """The entries of the list that is the member `name`."""
    member = node.members.get(name)
    return member.items if isinstance(member, ListNode) else ()


def text(node: MapNode, name: str) -> str | None:
    """The text that is the member `name`."""
    member = node.members.get(name)
    return member.value if isinstance(member, ScalarNode) and isinstance(member.value, str) else None


def texts(node: MapNode, name: str) -> tuple[str, ...]:
    """The texts of the list that is the member `name`."""
    return tuple(str(plain(entry)) for entry in entries(node, name))


def whole(node: MapNode, name: str) -> int | None:
    """The whole number that is the member `name`."""
    member = node.members.get(name)
    value = member.value if isinstance(member, ScalarNode) else None
    return int(value) if isinstance(value, int | float) else None


def duration(findings: Findings, node: MapNode, name: str, *, most: float | None = None) -> float | None:
    """The duration that is the member `name`, in seconds: above zero and not above the deadline `most`."""
    member = node.members.get(name)
    if not isinstance(member, ScalarNode):
        return None
    try:
        seconds = parse_duration(member.text)
    except ValueError as error:
        findings.add(member, f"seen `{member.text}`: {error}.")
        return None
    if seconds <= 0:
        findings.add(member, f"seen `{member.text}`, due a duration above zero.")
    elif most is not None and seconds > most:
        findings.add(member, f"seen `{member.text}`, which is longer than the scenario's deadline of {most:g} s.")
    return seconds


def reference(reading: Reading, node: MapNode, name: str, what: str, known: Collection[str]) -> str:
    """The name that the member `name` refers to. When it is left out, the only one there is."""
    member = node.members.get(name)
    if not isinstance(member, ScalarNode):
        if len(known) > 1:
            message = f"`{name}` is missing: there are several, {words(known)}."
            reading.findings.add(node, message)
        return next(iter(known))
    word = member.text
    if word not in known:
        message = f"no {what} is called `{word}`; there are {words(known)}."
        reading.findings.add(member, message, word=word, among=known)
    return word


def project_file(reading: Reading, node: ScalarNode) -> Path | None:
    """The existing file that `node` names below the project's root, as an absolute path."""
    written = Path(node.text)
    try:
        found = (reading.root / written).resolve()
        inside = not written.is_absolute() and found.is_relative_to(reading.root.resolve())
        there = inside and found.is_file()
    except (OSError, ValueError):
        inside, there = True, False
    if not inside:
        reading.findings.add(node, f"`{node.text}` leads out of the project; due is a file below its root.")
        return None
    if not there:
        among = _neighbours(reading.root / written.parent, written.parent)
        reading.findings.add(
            node, f"there is no file `{node.text}` below the project's root.", word=node.text, among=among
        )
        return None
    return found


def input_text(reading: Reading, node: Node) -> str:
    """An inline input: the text itself, a text repeated, or what the file holds that it names."""
    if isinstance(node, MapNode) and "repeat" in node.members:
        repeated = (text(node, "repeat") or "") * (whole(node, "count") or 0)
        if len(repeated.encode()) > MAX_INPUT_BYTES:
            reading.findings.add(node, f"the text is larger than {MAX_INPUT_BYTES // 1024} KiB.")
        return repeated
    if isinstance(node, MapNode):
        file = node.members["file"]
        path = project_file(reading, file) if isinstance(file, ScalarNode) else None
        return "" if path is None else _read_input(reading, file, path)
    return str(plain(node))


def _read_input(reading: Reading, node: Node, path: Path) -> str:
    try:
        if path.stat().st_size > MAX_INPUT_BYTES:
            reading.findings.add(node, f"the file is larger than {MAX_INPUT_BYTES // 1024} KiB.")
            return ""
        return path.read_text("utf-8")
    except UnicodeDecodeError:
        reading.findings.add(node, "the file is not UTF-8 text.")
    except OSError as error:
        reading.findings.add(node, f"the file cannot be read: {error.strerror}.")
    return ""


def _neighbours(folder: Path, written: Path) -> tuple[str, ...]:
    try:
        return tuple(sorted((written / file.name).as_posix() for file in folder.iterdir() if file.is_file()))[:256]
    except (OSError, ValueError):
        return ()

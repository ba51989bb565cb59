"""Where the lab's contract and another folder differ, in words that a reviewer understands. Pure.

Each line says whether the place is a choice of the lab, with the requirement that records it, or a stated rule: the
first is to be taken over, the second is to be asked about. Vectors, traces and the README are not compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lab.contract.diff_schemas import definition_findings, schema_findings
from lab.contract.schema_shapes import Side
from lab.contract.vectors import revision_order
from lab.protocol.contract import BODIES, BODIES_SINCE, FIRST_REVISION, INDEX_FILE, SCHEMA_SUFFIX
from lab.protocol.errors import CLOSE_BASE

_DEFS = "defs"
_RECORD_WORDS = {
    "direction": "direction",
    "signed": "signed",
    "control": "control frame",
    "contentClass": "content class",
}


@dataclass(frozen=True, slots=True)
class Documents:
    """A contract as documents: the index, and the schemas by name."""

    index: Mapping[str, Any]
    schemas: Mapping[str, Mapping[str, Any]]

    @property
    def revision(self) -> str:
        """What the index says; without a word it is the first (CT-009)."""
        return str(self.index.get("revision", FIRST_REVISION))


@dataclass(frozen=True, slots=True)
class Difference:
    """One line. `requirement` records the choice of the lab that the place is; None: a stated rule is contradicted."""

    file: str
    place: str
    words: str
    requirement: str | None

    def __str__(self) -> str:
        why = f"our choice {self.requirement}" if self.requirement else "contradicts a stated rule"
        return f"{self.place or 'the whole'}: {self.words}  [{why}]"

    def to_json(self) -> dict[str, Any]:
        """The same for machines."""
        return {
            "file": self.file,
            "place": self.place,
            "difference": self.words,
            "requirement": self.requirement,
            "contradictsStated": self.requirement is None,
        }


def diff(ours: Documents, theirs: Documents) -> tuple[Difference, ...]:
    """All differences, file by file: the index, the envelope, the definitions, then the types by name."""
    found = list(_index_differences(ours.index, theirs.index))
    mine, others = Side(ours.schemas), Side(theirs.schemas)
    for name in _names(ours, theirs):
        file = f"{name}{SCHEMA_SUFFIX}"
        if name not in theirs.schemas or name not in ours.schemas:
            if name in ours.schemas or name in theirs.schemas:
                words = "a file only in ours" if name in ours.schemas else "a file only in theirs"
                found.append(Difference(file, "", words, _mark(ours.index, name)))
            continue
        if name == _DEFS:
            findings = [*definition_findings(mine, others)]
            found += _order_differences(_codes(mine), _codes(others))
        else:
            findings = [*schema_findings(name, mine, others)]
        found += [Difference(file, one.place, one.words, one.requirement) for one in findings]
    return tuple(dict.fromkeys(found))


def _names(ours: Documents, theirs: Documents) -> list[str]:
    """The schemas to compare. Those of types that our revision has not, and bodies of a later one, do not count."""
    own_types = _object(ours.index.get("types"))
    early = revision_order(ours.revision) < revision_order(BODIES_SINCE)
    bodies = [f"{body}.body" for body in BODIES if not early or f"{body}.body" in theirs.schemas]
    mine = [name for name in ours.schemas if name in own_types or name in bodies]
    names = [name for name in dict.fromkeys((*mine, *theirs.schemas)) if name not in ("envelope", _DEFS)]
    return ["envelope", _DEFS, *sorted(names)]


def to_text(found: Iterable[Difference]) -> str:
    """Grouped by file, with a sum at the end."""
    lines: list[str] = []
    file, differences = "", list(found)
    for difference in differences:
        if difference.file != file:
            file = difference.file
            lines.append(file)
        lines.append(f"  {difference}")
    chosen = sum(difference.requirement is not None for difference in differences)
    count = f"{len(differences)} difference{'' if len(differences) == 1 else 's'}"
    lines.append(f"{count}: {chosen} in choices of the lab, {len(differences) - chosen} against stated rules")
    return "\n".join(lines)


def _index_differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[Difference]:
    def line(place: str, words: str, requirement: str | None = None) -> Difference:
        return Difference(INDEX_FILE, place, words, requirement)

    for name, otherwise in (("protocol", None), ("revision", FIRST_REVISION), ("baseId", None)):
        mine, other = ours.get(name, otherwise), theirs.get(name, otherwise)
        if mine != other:
            yield line(name, f"ours {_shown(mine)}, theirs {_shown(other)}")
    yield from (line(f"limits.{name}", words) for name, words in _pairs(ours.get("limits"), theirs.get("limits")))
    my_types, other_types = _object(ours.get("types")), _object(theirs.get("types"))
    for name in dict.fromkeys((*my_types, *other_types)):
        if name not in other_types or name not in my_types:
            words = "a type only in ours" if name in my_types else "a type only in theirs"
            yield line(f"types.{name}", words, _mark(ours, name))
            continue
        mine, other = _object(my_types[name]), _object(other_types[name])
        for member, words in _RECORD_WORDS.items():
            if mine.get(member) != other.get(member):
                told = f"{words}: ours {_shown(mine.get(member))}, theirs {_shown(other.get(member))}"
                yield line(f"types.{name}", told, _mark(ours, name))


def _pairs(ours: Any, theirs: Any) -> Iterator[tuple[str, str]]:
    mine, others = _object(ours), _object(theirs)
    for name in dict.fromkeys((*mine, *others)):
        if mine.get(name) != others.get(name):
            yield name, f"ours {_shown(mine.get(name))}, theirs {_shown(others.get(name))}"


def _codes(side: Side) -> list[str]:
    codes = side.find(_DEFS, "/$defs/errorCode/enum")
    return [code for code in codes if isinstance(code, str)] if isinstance(codes, list) else []


def _order_differences(ours: list[str], theirs: list[str]) -> Iterator[Difference]:
    # WS-040: the place in the enum gives the close code, so another order is another wire.
    moved = [code for code in ours if code in theirs and ours.index(code) != theirs.index(code)]
    if moved:
        told = (f"{code} {CLOSE_BASE + ours.index(code)} → {CLOSE_BASE + theirs.index(code)}" for code in moved)
        words = f"another order gives other close codes, ours → theirs: {', '.join(told)}"
        yield Difference(f"{_DEFS}{SCHEMA_SUFFIX}", "errorCode", words, None)


def _mark(index: Mapping[str, Any], type_name: str) -> str | None:
    record = _object(_object(index.get("types")).get(type_name))
    return str(record["x-requirement"]) if record.get("x-provenance") == "inferred" else None


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _shown(value: Any) -> str:
    return "none" if value is None else value if isinstance(value, str) else json.dumps(value)

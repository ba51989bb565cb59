"""Which requirements the tests show: the markers of the tests joined with the ledger. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypedDict

from lab.contract.markers import Marker
from lab.contract.requirements import Basis, Requirement

_BASES: Final[tuple[Basis, ...]] = ("stated", "inferred")


class RowJson(TypedDict):
    """One row of the coverage, for machines."""

    prefix: str
    basis: Basis
    total: int
    shown: int
    not_shown: int
    outside: int


class CoverageJson(TypedDict):
    """The whole coverage, for machines."""

    rows: list[RowJson]
    shown: list[str]
    not_shown: list[str]
    outside: list[str]
    unknown: list[str]


@dataclass(frozen=True)
class Row:
    """The entries of one prefix and basis: total = shown + not_shown + outside."""

    prefix: str
    basis: Basis
    total: int
    shown: int
    not_shown: int
    outside: int


@dataclass(frozen=True)
class Coverage:
    """What the tests show of a ledger; ids in each list are sorted, rows stand in the ledger's order.

    An entry outside the lab's scope that a test shows after all counts as shown. `unknown` are the markers whose
    id the ledger does not have.
    """

    rows: tuple[Row, ...]
    shown: tuple[str, ...]
    not_shown: tuple[str, ...]
    outside: tuple[str, ...]
    unknown: tuple[Marker, ...]

    def to_json(self) -> CoverageJson:
        """The same facts as plain lists and mappings; unknown ids come with their places."""
        return {
            "rows": [
                {
                    "prefix": row.prefix,
                    "basis": row.basis,
                    "total": row.total,
                    "shown": row.shown,
                    "not_shown": row.not_shown,
                    "outside": row.outside,
                }
                for row in self.rows
            ],
            "shown": list(self.shown),
            "not_shown": list(self.not_shown),
            "outside": list(self.outside),
            "unknown": [str(marker) for marker in self.unknown],
        }

    def to_text(self, *, missing: bool = False) -> str:
        """A table by prefix, each number as stated+inferred; with `missing`, the ids that no test shows follow."""
        lines = [_line("", "shown", "not shown", "outside", "total")]
        for prefix in dict.fromkeys(row.prefix for row in self.rows):
            lines.append(_table_line(prefix, [row for row in self.rows if row.prefix == prefix]))
        lines.append(_table_line("all", self.rows))
        lines.append("Each number is stated+inferred.")
        if missing:
            lines.extend(["", *_by_prefix(self.not_shown)])
        return "\n".join(lines)


def coverage(requirements: Mapping[str, Requirement], markers: Iterable[Marker]) -> Coverage:
    """Join the ledger with the markers of the tests."""
    named = list(markers)
    shown = {marker.id for marker in named} & requirements.keys()
    outside = {entry.id for entry in requirements.values() if entry.scope == "outside"} - shown
    families = dict.fromkeys(entry.prefix for entry in requirements.values())
    rows = (_row(prefix, basis, requirements.values(), shown, outside) for prefix in families for basis in _BASES)
    return Coverage(
        rows=tuple(row for row in rows if row.total),
        shown=tuple(sorted(shown)),
        not_shown=tuple(sorted(requirements.keys() - shown - outside)),
        outside=tuple(sorted(outside)),
        unknown=tuple(sorted(marker for marker in named if marker.id not in requirements)),
    )


def dropped(found: Coverage, baseline: Iterable[str]) -> tuple[str, ...]:
    """The ids that tests once showed and no longer do, sorted."""
    return tuple(sorted(set(baseline) - set(found.shown)))


def _row(
    prefix: str, basis: Basis, entries: Iterable[Requirement], shown: Collection[str], outside: Collection[str]
) -> Row:
    ids = [entry.id for entry in entries if entry.prefix == prefix and entry.basis == basis]
    seen = sum(id_ in shown for id_ in ids)
    out = sum(id_ in outside for id_ in ids)
    return Row(prefix, basis, total=len(ids), shown=seen, not_shown=len(ids) - seen - out, outside=out)


def _table_line(name: str, rows: Iterable[Row]) -> str:
    sums = {basis: [0, 0, 0, 0] for basis in _BASES}
    for row in rows:
        for place, number in enumerate((row.shown, row.not_shown, row.outside, row.total)):
            sums[row.basis][place] += number
    return _line(name, *(f"{stated}+{inferred}" for stated, inferred in zip(*sums.values(), strict=True)))


def _line(name: str, *cells: str) -> str:
    return f"{name:<6}" + "".join(f"{cell:>12}" for cell in cells)


def _by_prefix(ids: Iterable[str]) -> Iterator[str]:
    families: dict[str, list[str]] = {}
    for id_ in ids:
        prefix, _, number = id_.partition("-")
        families.setdefault(prefix, []).append(number)
    for prefix, numbers in families.items():
        yield f"{prefix}: {' '.join(numbers)}"

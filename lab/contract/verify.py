"""What `lab contract verify` says of a folder: faults, lint, and vectors and traces of each of its revisions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.contract.folder import folder_faults, known_types, read_folder
from lab.contract.lint import lint
from lab.contract.trace_core import TraceResult, verify_traces
from lab.contract.traces import load_traces
from lab.contract.vectors import VectorFile, load_vectors
from lab.contract.verify_vectors import Row, is_judged, verify_file
from lab.errors import ExitStatus
from lab.protocol.contract import Contract


@dataclass(frozen=True, slots=True)
class RevisionReport:
    """What was seen in one revision."""

    revision: str
    types: int
    rows: tuple[Row, ...]
    lint: tuple[str, ...]
    traces: tuple[TraceResult, ...]

    @property
    def surprises(self) -> tuple[str, ...]:
        """A line for each verdict that is not the one due, and for each finding of the lint."""
        vectors = [str(surprise) for row in self.rows for surprise in row.surprises]
        traces = [
            f"{self.revision} trace {one.name}{f' as {one.role}' if one.role else ''}: due {one.due}, seen {one.seen}"
            for one in self.traces
            if not one.held
        ]
        return (*vectors, *traces, *(f"{self.revision} lint: {finding}" for finding in self.lint))


@dataclass(frozen=True, slots=True)
class Verification:
    """The whole report. With `faults` the folder cannot be used, and nothing was judged."""

    folder: Path
    faults: tuple[str, ...]
    revisions: tuple[RevisionReport, ...]

    @property
    def surprises(self) -> tuple[str, ...]:
        """The lines of all revisions."""
        return tuple(line for report in self.revisions for line in report.surprises)

    @property
    def exit_status(self) -> ExitStatus:
        """2 for a folder that cannot be used, 1 for any surprise."""
        if self.faults:
            return ExitStatus.USAGE
        return ExitStatus.BROKEN if self.surprises else ExitStatus.HELD

    def to_json(self) -> dict[str, Any]:
        """The same facts for machines."""
        return {
            "folder": str(self.folder),
            "faults": list(self.faults),
            "surprises": list(self.surprises),
            "revisions": [_revision_json(report) for report in self.revisions],
        }

    def to_text(self) -> str:
        """A table with a column for each revision; each cell is valid+invalid vectors."""
        width = max(len(row.file) for report in self.revisions for row in report.rows) + 2
        lines = [_line("", (report.revision for report in self.revisions), width)]
        files = sorted({row.file for report in self.revisions for row in report.rows})
        lines += [_line(file, (_cell(report.rows, file) for report in self.revisions), width) for file in files]
        lines.append(_line("vectors", (_sum(report.rows) for report in self.revisions), width))
        lines.append(_line("frame types", (str(report.types) for report in self.revisions), width))
        lines.append(_line("traces, both roles", (str(len(report.traces)) for report in self.revisions), width))
        lines.append(_line("surprises", (str(len(report.surprises)) for report in self.revisions), width))
        return "\n".join(lines)


def verify(folder: Path, *, unknown_types: bool = False) -> Verification:
    """Judge a contract folder; with `unknown_types` one that has frame types which the lab does not know."""
    files, vectors = read_folder(folder), load_vectors(folder)
    faults = [*folder_faults(files, files.types if unknown_types else known_types(files))]
    if folder.is_dir():
        faults += vectors.faults
        faults += _unjudged(vectors.files, files.types) if files.types else ()
    if faults:
        faults += load_traces(folder).faults if folder.is_dir() else ()
        return Verification(folder, tuple(faults), ())
    reports = (_report(Contract.load(folder, revision), folder, vectors.files) for revision in files.revisions)
    return Verification(folder, (), tuple(reports))


def _report(contract: Contract, folder: Path, files: tuple[VectorFile, ...]) -> RevisionReport:
    rows = tuple(row for row in (verify_file(contract, file) for file in files) if row is not None)
    return RevisionReport(
        revision=contract.revision,
        types=len(contract.types),
        rows=rows,
        lint=lint(contract, files),
        traces=tuple(verify_traces(folder, contract)),
    )


def _unjudged(files: Iterable[VectorFile], types: Iterable[str]) -> Iterator[str]:
    known = set(types)
    for file in files:
        if not is_judged(file) or not (file.is_body or file.is_cross_type or file.schema in known):
            yield f"{file.path}: vectors for {file.schema}, of which the contract has no schema"


def _revision_json(report: RevisionReport) -> dict[str, Any]:
    return {
        "revision": report.revision,
        "types": report.types,
        "files": [
            {"file": row.file, "valid": row.valid, "invalid": row.invalid, "surprises": len(row.surprises)}
            for row in report.rows
        ],
        "traces": [
            {"name": one.name, "role": one.role and one.role.value, "held": one.held, "due": one.due, "seen": one.seen}
            for one in report.traces
        ],
        "lint": list(report.lint),
    }


def _cell(rows: Iterable[Row], file: str) -> str:
    return next((f"{row.valid}+{row.invalid}" for row in rows if row.file == file), "")


def _sum(rows: Iterable[Row]) -> str:
    found = list(rows)
    return f"{sum(row.valid for row in found)}+{sum(row.invalid for row in found)}"


def _line(name: str, cells: Iterable[str], width: int) -> str:
    return (f"{name:<{width}}" + "".join(f"{cell:>10}" for cell in cells)).rstrip()

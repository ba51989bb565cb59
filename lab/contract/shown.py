"""The ratchet on disk: the test tree's markers, and the recorded list of ids that tests show."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from lab.contract.markers import Marker, imports_of, markers_in
from lab.errors import ContractError

SHOWN_FILE: Final = "shown.txt"
"""Name of the record, in the requirements folder."""


def default_tests_folder() -> Path:
    """The tests that lie beside the package in the project's tree."""
    return Path(__file__).resolve().parents[2] / "tests"


def read_markers(tests: Path) -> list[Marker]:
    """The markers of every test module (`test_*.py`) below the folder; names are relative to the folder's parent.

    The cases of a test may lie in a module beside it: those that test modules import are read too. Raises
    ContractError for a folder without tests and for what `markers_in` refuses.
    """
    files = sorted(tests.rglob("test_*.py"))
    if not files:
        raise ContractError(f"{tests}: no test modules (test_*.py) here; coverage is counted in the project's tree")
    texts = {file: _text(file) for file in files}
    names = sorted({name for file, text in texts.items() for name in imports_of(text, _name(file, tests))})
    cases = [tests.parent / f"{name.replace('.', '/')}.py" for name in names if name.startswith(f"{tests.name}.")]
    found = [marker for file, text in texts.items() for marker in markers_in(text, _name(file, tests))]
    for file in cases:
        if file.is_file() and file not in texts:
            found.extend(markers_in(_text(file), _name(file, tests), collected=False))
    return found


def _name(file: Path, tests: Path) -> str:
    return str(file.relative_to(tests.parent))


def read_shown(file: Path) -> tuple[str, ...]:
    """The recorded ids. Raises ContractError for a file that is missing, empty or unreadable: then no drop shows."""
    if not file.exists():
        raise ContractError(f"{file}: missing; `lab contract coverage --accept` records what the tests show now")
    ids = tuple(line for line in _text(file).splitlines() if line)
    if not ids:
        raise ContractError(f"{file}: empty; `lab contract coverage --accept` records what the tests show now")
    return ids


def write_shown(file: Path, ids: Iterable[str]) -> None:
    """Record the ids, sorted, one a line; the file is replaced as a whole. Raises ContractError if it cannot be."""
    fresh = file.with_name(file.name + ".new")
    try:
        fresh.write_text("".join(f"{id_}\n" for id_ in sorted(set(ids))), encoding="utf-8")
        fresh.replace(file)
    except OSError as error:
        raise ContractError(f"{file}: cannot be written: {error}") from error


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ContractError(f"{file}: cannot be read: {error}") from error

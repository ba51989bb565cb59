"""What keeps the core pure: no I/O, clock, chance or ids inside, and no close code outside its table."""

from __future__ import annotations

import ast
import importlib
import re
from dataclasses import is_dataclass
from pathlib import Path

import pytest

import lab

ROOT = Path(lab.__file__).parent
CORE = sorted((ROOT / "protocol").glob("*.py"))
FORBIDDEN = {"asyncio", "aiohttp", "websockets", "socket", "time", "random", "uuid", "secrets", "threading", "os"}
CLOSE_CODE = re.compile(r"\b44\d\d\b")


def imported(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return found


@pytest.mark.parametrize("file", CORE, ids=lambda file: file.stem)
def test_core_imports_nothing_that_does_io(file: Path) -> None:
    assert not imported(ast.parse(file.read_text("utf-8"))) & FORBIDDEN


def test_core_reads_no_clock() -> None:
    for file in CORE:
        names = {node.attr for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.Attribute)}
        assert not names & {"now", "utcnow", "today", "monotonic", "urandom"}, file.name


def test_what_the_core_hands_out_or_takes_cannot_be_changed() -> None:
    changing: set[str] = set()
    for file in CORE:
        values = vars(importlib.import_module(f"lab.protocol.{file.stem}")).values()
        records = [value for value in values if isinstance(value, type) and is_dataclass(value)]
        changing |= {record.__name__ for record in records if not vars(record)["__dataclass_params__"].frozen}
    # A delivery tells its sender how the frame stands; the others are states of the core's own.
    assert changing == {"ContentSource", "Delivery", "Inbound", "KeptSession", "SentFrame", "_Series"}


@pytest.mark.req("WS-040")
@pytest.mark.parametrize("file", sorted(ROOT.rglob("*.py")), ids=lambda file: str(file.relative_to(ROOT)))
def test_no_close_code_is_written_as_a_number(file: Path) -> None:
    numbers = [
        node.value
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, int) and 4401 <= node.value <= 4499
    ]
    assert not numbers


def test_close_base_stands_in_the_error_table_alone() -> None:
    holders = [file.name for file in CORE if re.search(r"\b4400\b", file.read_text("utf-8"))]
    assert holders == ["errors.py"]

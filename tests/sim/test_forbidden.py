"""Code that runs on the virtual clock takes time, chance and ids from its run, and starts nothing of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import lab

ROOT = Path(lab.__file__).parent
PACKAGES = ("protocol", "gateway", "agent2", "localagent", "faults", "tap", "journal", "laws", "run", "sim")
"""What runs there, with the modules beside them."""

MODULES = {"threading", "_thread", "concurrent", "subprocess", "multiprocessing", "requests", "uvloop", "aiodns"}
"""Never imported: they block, leave the process, or bring a network of their own."""

NAMES = {
    "asyncio.as_completed",  # keeps what it is given in a set
    "asyncio.create_subprocess_exec",
    "asyncio.create_subprocess_shell",
    "asyncio.run_coroutine_threadsafe",
    "asyncio.to_thread",
    "datetime.date.today",
    "datetime.datetime.now",
    "datetime.datetime.today",
    "datetime.datetime.utcnow",
    "os.getrandom",
    "os.urandom",
    "time.monotonic",
    "time.monotonic_ns",
    "time.perf_counter",
    "time.perf_counter_ns",
    "time.process_time",
    "time.sleep",
    "time.time",
    "time.time_ns",
    "uuid.uuid1",
    "uuid.uuid4",
}
ANY_OF = ("random", "secrets")
"""Modules of which nothing may be used."""

METHODS = {"call_soon_threadsafe", "run_coroutine_threadsafe", "run_in_executor"}
"""Of a loop, whatever it is called."""

A_REAL_SERVER = "a Toxiproxy of the machine's, which a simulated run cannot have"

EXCEPTIONS = {
    ("faults/toxiproxy_calls.py", "requests"): A_REAL_SERVER,
    ("faults/toxiproxy_calls.py", "time.monotonic"): A_REAL_SERVER,
    ("faults/toxiproxy_link.py", "asyncio.to_thread"): A_REAL_SERVER,
    ("run/fault_server.py", "secrets.token_hex"): A_REAL_SERVER,
    ("run/runner.py", "datetime.datetime.now"): "the name of the run's folder, which is outside the journal",
    (
        "run/runner.py",
        "secrets.randbits",
    ): "secrets must not follow from the seed; a simulated run has its own dice here",
    ("run/runner.py", "time.perf_counter"): "how long the run took, which only result.json tells",
    ("run/runner.py", "time.time_ns"): "the epoch of the run, which is simulated where the clock is",
    ("sim/loop.py", "run_in_executor"): "what runs in place of it",
    ("sim/patches.py", "os.urandom"): "what is replaced",
    ("sim/patches.py", "random.getstate"): "what is kept of the machine's own",
    ("sim/patches.py", "random.seed"): "what libraries draw from",
    ("sim/patches.py", "random.setstate"): "what is given back",
    ("sim/patches.py", "time.monotonic"): "what is replaced",
    ("sim/patches.py", "time.monotonic_ns"): "what is replaced",
    ("sim/patches.py", "time.time"): "what is replaced",
    ("sim/patches.py", "time.time_ns"): "what is replaced",
    ("sim/selector.py", "time.perf_counter"): "the guard on the machine's own clock",
}
"""Who may use what, and why."""


def uses(source: str) -> Iterator[str]:
    """Every forbidden name that a source uses, by the name of its module."""
    tree = ast.parse(source)
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                known[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
                if alias.name.split(".")[0] in MODULES:
                    yield alias.name
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            module = node.module or ""
            for alias in node.names:
                known[alias.asname or alias.name] = f"{module}.{alias.name}"
                if module.split(".")[0] in MODULES:
                    yield f"{module}.{alias.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name):
            name = _full_name(node, known) or ""
            if name in NAMES or (name.split(".")[0] in ANY_OF and name not in ANY_OF):
                yield name
        if isinstance(node, ast.Attribute | ast.FunctionDef | ast.AsyncFunctionDef):
            method = node.attr if isinstance(node, ast.Attribute) else node.name
            if method in METHODS:
                yield method


def _full_name(node: ast.expr, known: dict[str, str]) -> str | None:
    """`time.sleep` for whatever a source calls it."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Attribute) and (inner := _full_name(node.value, known)) is not None:
        return f"{inner}.{node.attr}"
    return None


def files() -> list[Path]:
    packages = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]
    return sorted([*packages, *ROOT.glob("*.py")])


def used() -> set[tuple[str, str]]:
    return {(str(file.relative_to(ROOT)), name) for file in files() for name in uses(file.read_text("utf-8"))}


def test_nothing_forbidden_is_used() -> None:
    assert sorted(used() - set(EXCEPTIONS)) == []


def test_each_exception_is_still_needed() -> None:
    assert sorted(set(EXCEPTIONS) - used()) == []


def test_each_package_is_looked_at() -> None:
    looked_at = {file.relative_to(ROOT).parts[0] for file in files()}
    assert looked_at >= {*PACKAGES, "clock.py", "context.py", "draws.py"}


@pytest.mark.parametrize(
    ("source", "due"),
    [
        ("import time\ntime.sleep(1)", ["time.sleep"]),
        ("import time as clock\nclock.monotonic()", ["time.monotonic"]),
        ("from time import time\ntime()", ["time.time"]),
        ("from time import perf_counter as tick\nbegan = tick", ["time.perf_counter"]),
        ("import datetime\ndatetime.datetime.now()", ["datetime.datetime.now"]),
        ("from datetime import datetime\ndatetime.utcnow()", ["datetime.datetime.utcnow"]),
        ("from datetime import UTC, date\ndate.today()", ["datetime.date.today"]),
        ("import os\nos.urandom(4)", ["os.urandom"]),
        ("from os import urandom\nurandom(4)", ["os.urandom"]),
        ("import uuid\nuuid.uuid4()", ["uuid.uuid4"]),
        ("from uuid import uuid1\nuuid1()", ["uuid.uuid1"]),
        ("import random\nrandom.choice([])", ["random.choice"]),
        ("from random import Random\nRandom()", ["random.Random"]),
        ("import secrets as dice\ndice.token_hex()", ["secrets.token_hex"]),
        ("import threading", ["threading"]),
        ("from threading import Lock", ["threading.Lock"]),
        ("from concurrent.futures import ThreadPoolExecutor", ["concurrent.futures.ThreadPoolExecutor"]),
        ("import concurrent.futures as pools", ["concurrent.futures"]),
        ("import subprocess", ["subprocess"]),
        ("import multiprocessing.pool", ["multiprocessing.pool"]),
        ("import requests, uvloop", ["requests", "uvloop"]),
        ("def f():\n    import subprocess", ["subprocess"]),
        ("loop.run_in_executor(None, f)", ["run_in_executor"]),
        ("import asyncio\nasyncio.get_running_loop().call_soon_threadsafe(f)", ["call_soon_threadsafe"]),
        ("import asyncio\nasyncio.to_thread(f)", ["asyncio.to_thread"]),
        ("from asyncio import to_thread\nto_thread(f)", ["asyncio.to_thread"]),
        ("import asyncio\nasyncio.as_completed(x)", ["asyncio.as_completed"]),
        ("import asyncio\nasyncio.create_subprocess_exec('x')", ["asyncio.create_subprocess_exec"]),
    ],
)
def test_a_planted_use_is_found(source: str, due: list[str]) -> None:
    assert list(uses(source)) == due


@pytest.mark.parametrize(
    "source",
    [
        "import asyncio\nasyncio.get_running_loop().time()",
        "from lab.clock import timestamp\ntimestamp(0)",
        "import uuid\nuuid.UUID('0')",
        "from datetime import UTC, datetime\ndatetime.fromtimestamp(0, UTC)",
        "clock.now()",
        "self.time()",
        "import os\nos.replace('a', 'b')",
        "import time\ntime.strptime",
        "from lab.draws import Draws\nDraws(1, 'random', 'secrets')",
        "time = 3\nprint(time)",
    ],
)
def test_what_is_allowed_is_not_found(source: str) -> None:
    assert list(uses(source)) == []

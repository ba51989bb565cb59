"""The processes of a benchmark: a server that stays, a client that answers once. Each speaks a line of JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psutil

PATIENCE = 15.0
"""Seconds that a child has to end in, once its input has ended."""

Json = Mapping[str, Any]


class ChildFailed(Exception):
    """A child ended without an answer; its own words stand on the terminal above."""


@dataclass(frozen=True)
class ServerChild:
    """A running server: what it said of itself, and its process."""

    said: Json
    process: psutil.Process

    def cpu_seconds(self) -> float:
        """What its process has spent so far."""
        times = self.process.cpu_times()
        return float(times.user + times.system)

    def resident_bytes(self) -> int:
        """Its resident memory now."""
        return int(self.process.memory_info().rss)


@dataclass
class Meter:
    """Adds up what a server's process spends while it is measured; times of the clock suffer from neighbours."""

    child: ServerChild
    cpu_seconds: float = 0.0

    def measure(self, take: Callable[[], float]) -> float:
        """What `take` gives, with its CPU time added."""
        before = self.child.cpu_seconds()
        value = take()
        self.cpu_seconds += self.child.cpu_seconds() - before
        return value


@contextmanager
def server(kind: str, **order: Any) -> Iterator[ServerChild]:
    """A server of `benchmarks.servers` in a process of its own; it ends with the block."""
    with _started("benchmarks.servers", kind, json.dumps(order)) as child:
        try:
            line = child.stdout.readline() if child.stdout is not None else ""
            if not line:
                raise ChildFailed(f"the {kind} server did not start")
            yield ServerChild(json.loads(line), psutil.Process(child.pid))
        finally:
            _end(child)


@dataclass(frozen=True)
class ClientChild:
    """A running client."""

    kind: str
    child: subprocess.Popen[str]

    def answer(self) -> Json:
        """Its next line. Raises `ChildFailed` when it ended instead."""
        line = self.child.stdout.readline() if self.child.stdout is not None else ""
        if not line:
            raise ChildFailed(f"the {self.kind} client ended without an answer")
        answer: Json = json.loads(line)
        return answer


@contextmanager
def client(kind: str, **order: Any) -> Iterator[ClientChild]:
    """A client of `benchmarks.clients` in a process of its own; it may end once the block does."""
    with _started("benchmarks.clients", kind) as child:
        try:
            if child.stdin is None:
                raise ChildFailed(f"the {kind} client has no input")
            # The order holds tokens: it goes through a pipe, where no list of processes shows it.
            child.stdin.write(json.dumps(order) + "\n")
            child.stdin.flush()
            yield ClientChild(kind, child)
        finally:
            _end(child)


def ask(kind: str, **order: Any) -> Json:
    """The answer of a client that gives one."""
    with client(kind, **order) as child:
        return child.answer()


@contextmanager
def caller(module: str) -> Iterator[Callable[..., Json]]:
    """A client in a process of its own that answers one order after the other, so that its start is paid once."""
    with _started(module) as child:

        def call(**order: Any) -> Json:
            if child.stdin is None or child.stdout is None:
                raise ChildFailed(f"{module} has no pipes")
            child.stdin.write(json.dumps(order) + "\n")
            child.stdin.flush()
            line = child.stdout.readline()
            if not line:
                raise ChildFailed(f"{module} ended without an answer")
            answer: Json = json.loads(line)
            return answer

        try:
            yield call
        finally:
            _end(child)


def output(*arguments: str) -> str:
    """What this Python prints when it is called with `arguments`; it must end well."""
    command = (sys.executable, *arguments)
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout  # noqa: S603  own words only


def _started(*module: str) -> subprocess.Popen[str]:
    command = (sys.executable, "-m", *module)
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603  the same


def _end(child: subprocess.Popen[str]) -> None:
    # The end of its input is a child's sign to stop.
    if child.stdin is not None:
        child.stdin.close()
    try:
        child.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        child.kill()

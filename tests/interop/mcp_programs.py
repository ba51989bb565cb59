"""The four client programs, and how a test drives one against a running store."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.interop.environments import MCP_TS, node, python, run
from tests.store.bench import PRODUCT, Bench

SECONDS = 20.0
"""What an answer may take that comes; on a busy machine the first takes a while."""

LIST: Mapping[str, Any] = {"do": "list"}
CALL: Mapping[str, Any] = {"do": "call", "tool": PRODUCT["name"], "arguments": PRODUCT["arguments"]}


@dataclass(frozen=True, slots=True)
class Program:
    """A client, on one of the wires that it speaks."""

    client: str
    era: str

    def command(self) -> tuple[str | Path, ...]:
        """What starts it; the test ends here where it is not installed."""
        return _COMMANDS[self.client]()

    def __str__(self) -> str:
        return f"{self.client}-{self.era}"


@dataclass(frozen=True, slots=True)
class Heard:
    """What a client made of what it heard: of the whole connection, and of each step."""

    version: str | None
    error: Mapping[str, Any] | None
    steps: Sequence[Mapping[str, Any]]

    @property
    def last_error(self) -> Mapping[str, Any]:
        """The error of the last step, or of the connection where that ended all."""
        found = self.error or self.steps[-1].get("error")
        assert found is not None, self
        assert isinstance(found, Mapping)
        return found


async def drive(
    bench: Bench,
    program: Program,
    *steps: Mapping[str, Any],
    headers: Mapping[str, str] | None = None,
    seconds: float = SECONDS,
) -> Heard:
    """Connect the program with the bench's credential and these headers, and take the steps."""
    asked = {
        "url": bench.server.url,
        "headers": {**bench.credential, **(headers or {})},
        "era": program.era,
        "seconds": seconds,
        "steps": steps,
    }
    done = await run(*program.command(), given=json.dumps(asked))
    assert done.status == 0, done.err
    return Heard(**json.loads(done.out))


def _python(name: str, module: str) -> Callable[[], tuple[str | Path, ...]]:
    return lambda: (python(name), "-m", f"tests.interop.mcp_python.{module}")


def _typescript(file: str) -> Callable[[], tuple[str | Path, ...]]:
    return lambda: (node(), MCP_TS / "src" / file)


_COMMANDS: Mapping[str, Callable[[], tuple[str | Path, ...]]] = {
    "python-1": _python("mcp1", "client_v1"),
    "python-2": _python("mcp2", "client_v2"),
    "typescript-1": _typescript("client-v1.js"),
    "typescript-2": _typescript("client-v2.js"),
}
PROGRAMS_2025 = tuple(Program(client, "2025") for client in _COMMANDS)
PROGRAMS_2026 = tuple(Program(client, "2026") for client in ("python-2", "typescript-2"))

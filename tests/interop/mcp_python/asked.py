"""What a client program is asked on its standard input, and what it tells of each step; the same in TypeScript."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NoReturn


@dataclass(frozen=True, slots=True)
class Step:
    """`do` is list or call; the rest belongs to a call."""

    do: str
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Asked:
    """Where the server is, which headers go with each request, and the steps. `seconds` limits a call's answer."""

    url: str
    headers: Mapping[str, str]
    era: str
    seconds: float
    steps: tuple[Step, ...]


@dataclass(slots=True)
class Told:
    """`version` was agreed on; of the steps those that came about, the last of them or `begun` with an `error`."""

    version: str | None = None
    error: Mapping[str, object] | None = None
    steps: list[Mapping[str, object]] = field(default_factory=list)


def read() -> Asked:
    """What is asked."""
    given = json.load(sys.stdin)
    return Asked(**{**given, "steps": tuple(Step(**step) for step in given["steps"])})


async def take(asked: Asked, told: Told, step: Callable[[Step], Awaitable[Mapping[str, object]]]) -> None:
    """Take all steps, whatever becomes of one."""
    for one in asked.steps:
        began = time.monotonic()
        try:
            answer = await step(one)
        except Exception as error:  # noqa: BLE001  what a client throws is what is looked at
            answer = {"error": error_of(error)}
        told.steps.append({**answer, "seconds": round(time.monotonic() - began, 3)})


def error_of(error: BaseException) -> dict[str, object]:
    """An exception as the outside sees it; of a group the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    code = getattr(getattr(error, "error", None), "code", None)
    return {"name": type(error).__name__, "code": code, "message": str(error)}


def tell(told: Told) -> NoReturn:
    """Write it, and end."""
    sys.stdout.write(json.dumps(asdict(told)))
    sys.stdout.flush()
    sys.exit(0)

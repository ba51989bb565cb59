"""Ending what was started, all of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol


class Part(Protocol):
    """Something that was started and must be ended."""

    async def close(self) -> None:
        """End it. Safe to call again."""


async def close_all(parts: Iterable[Part]) -> list[BaseException]:
    """End parts in order; one that fails does not spare the others. Returns what was raised."""
    errors: list[BaseException] = []
    for part in parts:
        results = await asyncio.gather(part.close(), return_exceptions=True)
        errors += [result for result in results if isinstance(result, BaseException)]
    return errors

"""Ending what was started, all of it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Protocol

from lab.errors import EnvironmentFault

CLOSING_SECONDS = 20.0
"""What ending the world may take before the run says that something hangs."""


class Part(Protocol):
    """Something that was started and must be ended."""

    async def close(self) -> None:
        """End it. Safe to call again."""


async def end_in_time(close: Coroutine[None, None, None]) -> None:
    """Carry out `close` to its end, also when the caller is cancelled meanwhile.

    Raises `EnvironmentFault` when it does not end in time, and what it raised itself.
    """
    closing = asyncio.get_running_loop().create_task(close, name="end the world")
    cancelled: asyncio.CancelledError | None = None
    until = asyncio.get_running_loop().time() + CLOSING_SECONDS
    while not closing.done():
        left = until - asyncio.get_running_loop().time()
        if left <= 0:
            closing.cancel()
            break
        try:
            await asyncio.wait((closing,), timeout=left)
        except asyncio.CancelledError as error:
            cancelled = error
    if not closing.done():
        await asyncio.wait((closing,), timeout=1)
        raise EnvironmentFault(f"a part of the run did not end within {CLOSING_SECONDS:g} s")
    closing.result()
    if cancelled is not None:
        raise cancelled


async def close_all(parts: Iterable[Part]) -> list[BaseException]:
    """End parts in order; one that fails does not spare the others. Returns what was raised."""
    errors: list[BaseException] = []
    for part in parts:
        results = await asyncio.gather(part.close(), return_exceptions=True)
        errors += [result for result in results if isinstance(result, BaseException)]
    return errors

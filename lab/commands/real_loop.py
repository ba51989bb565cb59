"""The event loop of servers: uvloop's where the platform has it, else asyncio's own.

Fault proxies, and so runs with their links, stay on asyncio's: when uvloop's making of a connection is cancelled in
the instant in which it is made, it never tells that the connection ended, and whoever waits for that waits for ever.
Programs stay there too: uvloop gives a file that is no program to a shell, and leaves pipes open at a second interrupt.
The reference Local Agent stays there as well: with uvloop its tests against a deaf gateway do not end in time. The
virtual clock has a loop of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


def loop_factory() -> LoopFactory | None:
    """What makes a loop of uvloop; None, which is asyncio's own choice, where it is not installed."""
    try:
        import uvloop
    except ImportError:
        return None
    made: LoopFactory = uvloop.new_event_loop
    return made


def run_real(main: Coroutine[Any, Any, T], *, on_asyncio: bool = False) -> T:
    """Run `main` to its end as `asyncio.run` does; on asyncio's own loop where that is due."""
    with asyncio.Runner(loop_factory=None if on_asyncio else loop_factory()) as runner:
        return runner.run(main)

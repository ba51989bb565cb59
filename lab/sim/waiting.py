"""What each task waits for, in words: the report of a run that stands still."""

from __future__ import annotations

import asyncio
from types import FrameType

TASKS_TOLD = 20


def what_tasks_wait_for(loop: asyncio.AbstractEventLoop) -> str:
    """One clause a task: its name and the place in the code where it waits."""
    tasks = sorted((task for task in asyncio.all_tasks(loop) if not task.done()), key=lambda task: task.get_name())
    told = [f"{task.get_name()} waits in {_place(task)}" for task in tasks[:TASKS_TOLD]]
    more = [f"and {len(tasks) - TASKS_TOLD} more"] if len(tasks) > TASKS_TOLD else []
    return "; ".join([*told, *more]) + "." if told else "No task is left."


def _place(task: asyncio.Task[object]) -> str:
    """The innermost coroutine that the task is in."""
    place = "a callback"
    inner: object = task.get_coro()
    while inner is not None:
        frame: FrameType | None = getattr(inner, "cr_frame", None) or getattr(inner, "gi_frame", None)
        if frame is not None:
            place = f"{frame.f_code.co_qualname} ({_short(frame.f_code.co_filename)}:{frame.f_lineno})"
        inner = getattr(inner, "cr_await", None) or getattr(inner, "gi_yieldfrom", None)
    return place


def _short(path: str) -> str:
    return "/".join(path.split("/")[-2:])

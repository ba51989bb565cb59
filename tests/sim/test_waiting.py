"""What each task waits for."""

from __future__ import annotations

import asyncio

from lab.sim.waiting import TASKS_TOLD, what_tasks_wait_for


async def wait_deep_inside(event: asyncio.Event) -> None:
    await asyncio.wait_for(event.wait(), 100)


async def test_a_task_is_named_with_the_innermost_place() -> None:
    event = asyncio.Event()
    task = asyncio.create_task(wait_deep_inside(event), name="somebody")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    told = what_tasks_wait_for(asyncio.get_running_loop())
    assert "somebody waits in " in told
    assert "asyncio/" in told
    event.set()
    await task
    assert "somebody" not in what_tasks_wait_for(asyncio.get_running_loop())


async def test_many_are_counted() -> None:
    event = asyncio.Event()
    tasks = [asyncio.create_task(event.wait(), name=f"task {number:02}") for number in range(TASKS_TOLD + 5)]
    told = what_tasks_wait_for(asyncio.get_running_loop())
    assert told.count("waits in") == TASKS_TOLD
    assert told.endswith("and 6 more.")
    event.set()
    await asyncio.gather(*tasks)


def test_without_tasks_it_says_so() -> None:
    loop = asyncio.new_event_loop()
    assert what_tasks_wait_for(loop) == "No task is left."
    loop.close()

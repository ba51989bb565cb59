"""Ctrl-C in its two forms."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from lab.run.interrupts import SIGNALS, Interrupts, held_back


async def came(interrupts: Interrupts) -> None:
    """The loop has heard the signal."""
    for _ in range(1000):
        if interrupts.came:
            return
        await asyncio.sleep(0)
    raise AssertionError("the signal was not heard")


@pytest.mark.parametrize("number", SIGNALS)
async def test_the_first_one_cancels_and_the_next_do_nothing(number: signal.Signals) -> None:
    """What cleans up behind the first is not torn by the second."""
    interrupts, cleaned = Interrupts(), asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(3):
                await asyncio.sleep(0)
            cleaned.set()

    task = asyncio.get_running_loop().create_task(work())
    interrupts.watch(task)
    await asyncio.sleep(0)
    os.kill(os.getpid(), number)
    await came(interrupts)
    os.kill(os.getpid(), number)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)
    assert cleaned.is_set()


async def test_one_that_comes_before_the_task_is_not_lost() -> None:
    """The task ends before it has begun."""
    interrupts = Interrupts()
    os.kill(os.getpid(), signal.SIGINT)
    await came(interrupts)
    begun: list[int] = []

    async def work() -> None:
        begun.append(1)

    task = asyncio.get_running_loop().create_task(work())
    interrupts.watch(task)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert begun == []


@pytest.mark.parametrize("number", SIGNALS)
def test_one_that_is_held_back_tears_nothing(number: signal.Signals) -> None:
    """It is known behind the block, where the former handler is in force again."""
    former = signal.getsignal(number)
    done = []
    with held_back() as late:
        os.kill(os.getpid(), number)
        done.append("all of it")
    assert late.came
    assert done == ["all of it"]
    assert signal.getsignal(number) is former
    with held_back() as late:
        pass
    assert not late.came

"""The order of what the loop does, its numbers, and what it does in place of the machine."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.sim.guards import Limits
from lab.sim.kernel import Kernel
from lab.sim.loop import RESOLUTION, SimLoop
from lab.sim.run import run_virtual
from lab.sim.sockets import LOOPBACK

pytestmark = pytest.mark.usefixtures("collected")


def run(main: Callable[[], Awaitable[Any]]) -> Any:
    async def as_coroutine() -> Any:
        return await main()

    return run_virtual(as_coroutine, 1)


# Order


@settings(deadline=None, max_examples=50)
@given(st.lists(st.sampled_from([0.0, 0.25, 0.5]), max_size=30))
def test_timers_run_by_deadline_and_equal_ones_in_the_order_in_which_they_were_set(delays: list[float]) -> None:
    async def main() -> list[tuple[float, float, int]]:
        loop, ran = asyncio.get_running_loop(), []
        for number, delay in enumerate(delays):
            loop.call_at(delay, lambda one=(delay, number): ran.append((loop.time(), *one)))  # type: ignore[misc]
        await asyncio.sleep(1)
        return ran

    assert run(main) == sorted((delay, delay, number) for number, delay in enumerate(delays))


async def chain(depth: int, ran: list[int]) -> None:
    """Each callback asks for one more."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def step(number: int) -> None:
        ran.append(number)
        if number < depth:
            loop.call_soon(step, number + 10)
        else:
            done.set()

    for start in range(3):
        loop.call_soon(step, start)
    await done.wait()


def test_callbacks_run_in_the_order_in_which_they_were_asked_for() -> None:
    """As on asyncio's own loop."""

    async def main() -> list[int]:
        ran: list[int] = []
        await chain(30, ran)
        return ran

    assert run(main) == asyncio.run(main()) == sorted(run(main), key=lambda n: (n // 10, n % 10))


def test_a_cancelled_callback_does_not_run() -> None:
    async def main() -> list[str]:
        loop, ran = asyncio.get_running_loop(), list[str]()
        soon, later = loop.call_soon(ran.append, "soon"), loop.call_later(1, ran.append, "later")
        soon.cancel()
        later.cancel()
        await asyncio.sleep(2)
        return ran

    assert run(main) == []


def test_time_is_what_was_waited_for() -> None:
    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        moments = [loop.time()]
        for seconds in (1, 3600, 0):
            await asyncio.sleep(seconds)
            moments.append(loop.time())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 0.5)
        return [*moments, loop.time()]

    assert run(main) == [0.0, 1.0, 3601.0, 3601.0, 3601.5]


def test_a_timer_does_not_run_before_its_moment() -> None:
    """At most by what asyncio takes for one moment."""

    async def main() -> list[float]:
        loop, early = asyncio.get_running_loop(), list[float]()
        for number in range(100):
            when = number / 7
            loop.call_at(when, lambda when=when: early.append(when - loop.time()))  # type: ignore[misc]
        await asyncio.sleep(20)
        return early

    early = run(main)
    assert len(early) == 100
    assert max(early) <= RESOLUTION


def test_a_callback_runs_in_its_own_context() -> None:
    name: ContextVar[str] = ContextVar("name", default="nobody")

    async def main() -> list[str]:
        loop, ran = asyncio.get_running_loop(), list[str]()
        name.set("setter")
        loop.call_soon(lambda: ran.append(name.get()))
        loop.call_later(0.1, lambda: ran.append(name.get()))
        name.set("later")
        await asyncio.sleep(1)
        return ran

    assert run(main) == ["setter", "setter"]


# Sets


@pytest.mark.parametrize("make", ["task", "future"])
def test_sets_of_tasks_and_futures_have_the_order_of_their_making(make: str) -> None:
    """Whatever lies in memory between them."""

    async def main() -> list[int]:
        loop = asyncio.get_running_loop()
        littered, made = [], list[asyncio.Future[Any]]()
        for number in range(200):
            littered.append([object()] * (number * 7919 % 50))
            made.append(loop.create_task(asyncio.sleep(0)) if make == "task" else loop.create_future())
        order = [made.index(one) for one in set(made)]
        for one in made:
            one.cancel()
        await asyncio.gather(*made, return_exceptions=True)
        return order

    first, second = run(main), run(main)
    assert first == second
    # As integers in a set: in order, but for where its table begins anew.
    turn = first.index(min(first))
    assert first[turn:] + first[:turn] == sorted(first)


def test_a_number_is_given_once() -> None:
    async def main() -> set[int]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimLoop)
        task = loop.create_task(asyncio.sleep(0))
        await task
        return {hash(loop.create_future()), hash(loop.create_future()), hash(task), loop.number()}

    assert len(run(main)) == 4


def test_two_tasks_are_never_equal() -> None:
    async def main() -> bool:
        loop = asyncio.get_running_loop()
        one, other = loop.create_future(), loop.create_future()
        other._number = one._number  # type: ignore[attr-defined]
        return one == other or len({one, other}) != 2

    assert not run(main)


def test_cancelling_a_group_goes_in_the_order_of_its_making() -> None:
    """asyncio keeps the tasks of a group in a set."""

    async def main() -> list[int]:
        cancelled: list[int] = []

        async def wait(number: int) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(number)
                raise

        async def fail() -> None:
            raise ValueError

        async def group() -> None:
            async with asyncio.TaskGroup() as tasks:
                for number in range(5):
                    tasks.create_task(wait(number))
                tasks.create_task(fail())

        with pytest.raises(ExceptionGroup):
            await group()
        return cancelled

    assert run(main) == run(main)
    assert sorted(run(main)) == [0, 1, 2, 3, 4]


# In place of the machine


def test_what_would_go_to_an_executor_runs_at_once_in_this_thread() -> None:
    async def main() -> tuple[bool, bool, object]:
        loop = asyncio.get_running_loop()
        here = threading.get_ident()
        future = loop.run_in_executor(None, threading.get_ident)
        failed = loop.run_in_executor(None, int, "no number")
        return future.done(), await future == here, await asyncio.gather(failed, return_exceptions=True)

    done, same, (error,) = run(main)
    assert done
    assert same
    assert isinstance(error, ValueError)


def test_every_name_is_this_machine() -> None:
    async def main() -> tuple[Any, Any]:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo("gateway.example", "80", type=socket.SOCK_STREAM)
        return found, await loop.getnameinfo((LOOPBACK, 80))

    found, name = run(main)
    assert [address for *_, address in found] == [(LOOPBACK, 80)]
    assert name == (LOOPBACK, "80")


def test_a_closed_loop_takes_no_timer() -> None:
    loop = SimLoop(Kernel(1), Limits())
    loop.close()
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_at(1.0, print)


# Signals


def test_a_signal_is_handled_in_the_loop_and_given_back_at_its_end() -> None:
    former = signal.getsignal(signal.SIGINT)

    async def main() -> tuple[list[object], float]:
        loop, heard = asyncio.get_running_loop(), list[object]()
        loop.add_signal_handler(signal.SIGINT, heard.append, "first")
        loop.add_signal_handler(signal.SIGINT, heard.append, "second")
        loop.call_later(5, os.kill, os.getpid(), signal.SIGINT)
        await asyncio.sleep(5)
        for _ in range(3):
            await asyncio.sleep(0)
        return heard, loop.time()

    assert run(main) == (["second"], 5.0)
    assert signal.getsignal(signal.SIGINT) is former


def test_a_signal_wakes_a_loop_that_has_nothing_else_to_wait_for() -> None:
    async def main() -> float:
        loop, came = asyncio.get_running_loop(), asyncio.Event()
        loop.add_signal_handler(signal.SIGTERM, came.set)
        loop.call_soon(os.kill, os.getpid(), signal.SIGTERM)
        await came.wait()
        return loop.time()

    assert run(main) == 0.0


def test_a_removed_handler_leaves_what_was_there_before() -> None:
    former = signal.getsignal(signal.SIGTERM)

    async def main() -> tuple[bool, bool, object]:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, print)
        first = loop.remove_signal_handler(signal.SIGTERM)
        return first, loop.remove_signal_handler(signal.SIGTERM), signal.getsignal(signal.SIGTERM)

    assert run(main) == (True, False, former)

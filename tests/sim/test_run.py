"""A run on the virtual clock from its first to its last turn."""

from __future__ import annotations

import asyncio
import gc
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from lab.errors import ExitStatus
from lab.sim.guards import Deadlock, HorizonPassed, Limits, SimulationStopped, Standstill, WallClockPassed
from lab.sim.kernel import Network
from lab.sim.loop import SimLoop
from lab.sim.run import run_virtual
from lab.sim.sockets import LOOPBACK

pytestmark = pytest.mark.usefixtures("collected")

DESCRIPTORS = Path("/dev/fd")


async def hour() -> str:
    await asyncio.sleep(3600)
    return "over"


def test_an_hour_takes_no_time() -> None:
    began = time.perf_counter()
    assert run_virtual(hour, 1) == "over"
    assert time.perf_counter() - began < 5


def test_time_begins_at_0_in_each_run() -> None:
    async def main() -> float:
        return asyncio.get_running_loop().time()

    assert [run_virtual(main, 1), run_virtual(hour, 1), run_virtual(main, 1)] == [0.0, "over", 0.0]


def test_an_error_of_main_is_raised() -> None:
    async def main() -> None:
        raise KeyError("of main")

    with pytest.raises(KeyError, match="of main"):
        run_virtual(main, 1)


def test_what_is_left_is_ended_in_the_order_of_its_making() -> None:
    ended: list[object] = []

    async def wait(number: int) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(1)
            ended.append(number)

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            ended.append("generator")

    left: list[object] = []

    async def main() -> None:
        left.extend(asyncio.get_running_loop().create_task(wait(number)) for number in range(5))
        left.append(generator := numbers())
        await anext(generator)

    run_virtual(main, 1)
    assert ended == [0, 1, 2, 3, 4, "generator"]


def test_no_garbage_is_collected_meanwhile() -> None:
    async def main() -> bool:
        return gc.isenabled()

    assert gc.isenabled()
    assert not run_virtual(main, 1)
    assert gc.isenabled()
    gc.disable()
    try:
        run_virtual(main, 1)
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize("fails", [False, True])
def test_the_loop_is_closed(fails: bool) -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def main() -> None:
        loops.append(asyncio.get_running_loop())
        if fails:
            raise KeyError

    try:
        run_virtual(main, 1)
    except KeyError:
        assert fails
    assert isinstance(loops[0], SimLoop)
    assert loops[0].is_closed()


async def talk() -> list[object]:
    """Everything that would need the machine's network."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read(100))
        writer.close()

    server = await asyncio.start_server(answer, LOOPBACK, 0)
    port = server.sockets[0].getsockname()[1]
    readers, seen = [], list[object]()
    for _ in range(3):
        reader, writer = await asyncio.open_connection("gateway.example", port)
        writer.write(b"hello")
        readers.append((reader, writer))
    for reader, writer in readers:
        seen += [await reader.read(), asyncio.get_running_loop().time()]
        writer.close()
    server.close()
    await asyncio.sleep(1)
    return [*seen, descriptors()]


def descriptors() -> list[str]:
    return sorted(path.name for path in DESCRIPTORS.iterdir())


@pytest.mark.skipif(not DESCRIPTORS.is_dir(), reason="no list of open descriptors here")
def test_nothing_real_is_opened() -> None:
    before = descriptors()
    assert run_virtual(talk, 1)[-1] == before
    assert descriptors() == before


def test_one_seed_is_one_run_and_another_is_another() -> None:
    assert run_virtual(talk, 1) == run_virtual(talk, 1)
    assert run_virtual(talk, 1) != run_virtual(talk, 2)


def test_the_network_is_as_it_was_asked_for() -> None:
    slow = run_virtual(talk, 1, network=Network(latency=1.0, jitter=0.0))
    # There and back for each of three connections, then there and back for the last bytes.
    assert slow[-2] == 8.0


# Guards


async def wait_for_ever() -> None:
    await asyncio.Event().wait()


async def sleep_for_ever() -> None:
    for _ in itertools.count():
        await asyncio.sleep(60)


async def poll() -> None:
    for _ in itertools.count():
        await asyncio.sleep(0)


async def deadlock_of_two() -> None:
    one, other = asyncio.Event(), asyncio.Event()

    async def philosopher(mine: asyncio.Event, others: asyncio.Event) -> None:
        await mine.wait()
        others.set()

    loop = asyncio.get_running_loop()
    await asyncio.gather(
        loop.create_task(philosopher(one, other), name="plato"),
        loop.create_task(philosopher(other, one), name="socrates"),
    )


@pytest.mark.parametrize(
    ("main", "limits", "error", "said"),
    [
        (wait_for_ever, Limits(), Deadlock, "Event.wait"),
        (sleep_for_ever, Limits(horizon=1000.0), HorizonPassed, "1000 simulated s"),
        (poll, Limits(standstill=3000), Standstill, "waited for nothing"),
        (poll, Limits(wall_seconds=0.001), WallClockPassed, "machine's time"),
    ],
)
def test_a_guard_ends_the_run(
    main: Callable[[], Coroutine[Any, Any, None]], limits: Limits, error: type[SimulationStopped], said: str
) -> None:
    """It is the lab's failure, and says where each task is."""
    with pytest.raises(error, match=said) as raised:
        run_virtual(main, 1, limits=limits)
    assert raised.value.exit_status is ExitStatus.LAB_FAILED
    assert "waits in" in str(raised.value)
    assert "test_run.py" in str(raised.value) or "asyncio/" in str(raised.value)


def test_a_deadlock_names_each_task() -> None:
    with pytest.raises(Deadlock) as raised:
        run_virtual(deadlock_of_two, 1)
    assert "plato waits in Event.wait" in str(raised.value)
    assert "socrates waits in Event.wait" in str(raised.value)


def test_one_that_polls_for_a_moment_that_is_near_gets_there() -> None:
    """Time creeps for it."""

    async def main() -> float:
        loop = asyncio.get_running_loop()
        until = loop.time() + 0.001
        while loop.time() < until:  # noqa: ASYNC110  the poller that is meant
            await asyncio.sleep(0)
        return loop.time()

    assert run_virtual(main, 1) == pytest.approx(0.001, abs=1e-5)


def test_a_run_that_was_stopped_ends_its_tasks_in_good_order() -> None:
    """What ends takes simulated time, and gets it."""
    ended: list[str] = []

    async def main() -> None:
        try:
            await wait_for_ever()
        finally:
            await asyncio.sleep(1)
            ended.append("main")

    with pytest.raises(Deadlock):
        run_virtual(main, 1)
    assert ended == ["main"]


def test_all_ways_of_waiting_for_several_are_the_same_in_each_run() -> None:
    """What asyncio keeps in sets comes in one order, if it is given tasks."""

    async def main() -> list[str]:
        order: list[str] = []

        async def work(number: int) -> str:
            await asyncio.sleep(number % 3)
            order.append(f"worked {number}")
            return f"result {number}"

        async def collect(ways: Awaitable[Any]) -> None:
            done, _ = await ways
            order.extend(task.result() for task in done)

        loop = asyncio.get_running_loop()
        await collect(asyncio.wait([loop.create_task(work(number)) for number in range(20)]))
        for one in asyncio.as_completed([loop.create_task(work(number)) for number in range(20)]):
            order.append(await one)
        return order

    assert run_virtual(main, 1) == run_virtual(main, 1)

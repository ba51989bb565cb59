"""Machines that stop, go on, and die."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from lab.sim.hosts import HOST, Host, HostState
from lab.sim.loop import SimLoop
from lab.sim.run import run_virtual
from lab.sim.sockets import LOOPBACK


def sim_loop() -> SimLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimLoop)
    return loop


pytestmark = pytest.mark.usefixtures("collected")


def test_what_a_host_makes_is_its_own() -> None:
    async def main() -> list[Host | None]:
        seen: list[Host | None] = []

        async def inner() -> None:
            seen.append(HOST.get())

        async def outer() -> None:
            await asyncio.gather(inner(), asyncio.get_running_loop().create_task(inner()))

        await Host("machine").spawn(outer(), "outer")
        return [*seen, HOST.get()]

    first, second, outside = run_virtual(main, 1)
    assert first is second is not None
    assert outside is None


def ticking(seen: list[object]) -> Coroutine[Any, Any, None]:
    async def tick() -> None:
        try:
            while True:
                await asyncio.sleep(1)
                seen.append(asyncio.get_running_loop().time())
        finally:
            seen.append("finally")

    return tick()


def test_a_paused_host_does_nothing_and_then_what_came_due() -> None:
    seen: list[object] = []

    async def main() -> None:
        host, loop = Host("machine"), sim_loop()
        task = host.spawn(ticking(seen), "ticking")
        host_timers = Host("timers")

        async def set_timers() -> None:
            for name, when in (("c", 3.0), ("a", 2.6), ("b", 2.7)):
                loop.call_at(when, seen.append, name)

        await host_timers.spawn(set_timers(), "set timers")
        await asyncio.sleep(2.5)
        for one in (host, host_timers):
            one.pause()
            one.pause()
        await asyncio.sleep(10)
        assert seen == [1.0, 2.0]
        for one in (host_timers, host):
            loop.resume(one)
            loop.resume(one)
        await asyncio.sleep(1.1)
        task.cancel()

    run_virtual(main, 1)
    assert seen == [1.0, 2.0, "a", "b", "c", 12.5, 13.5, "finally"]


def test_what_a_paused_host_gives_up_meanwhile_does_not_run() -> None:
    """A timer that is cancelled while its host is paused."""
    seen: list[object] = []

    async def main() -> None:
        host, loop = Host("machine"), sim_loop()
        timers: list[asyncio.TimerHandle] = []

        async def set_timer() -> None:
            timers.append(loop.call_later(1, seen.append, "fired"))

        await host.spawn(set_timer(), "set timer")
        host.pause()
        await asyncio.sleep(2)
        timers[0].cancel()
        loop.resume(host)
        await asyncio.sleep(2)

    run_virtual(main, 1)
    assert seen == []


def test_a_paused_host_takes_bytes_and_reads_them_later() -> None:
    """The kernel goes on while the program stands still."""
    seen: list[object] = []

    async def main() -> None:
        host, loop = Host("machine"), sim_loop()

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(await reader.read(100))
            writer.close()

        async def serve() -> tuple[str, int]:
            server = await asyncio.start_server(answer, LOOPBACK, 0)
            name: tuple[str, int] = server.sockets[0].getsockname()
            return name

        address = await host.spawn(serve(), "serve")
        reader, writer = await asyncio.open_connection(*address)
        host.pause()
        writer.write(b"hello")
        await writer.drain()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await reader.read()
        loop.resume(host)
        async with asyncio.timeout(1):
            seen.append(await reader.read())
        writer.close()

    run_virtual(main, 1)
    assert seen == [b"hello"]


async def in_a_task(seen: list[object]) -> None:
    await ticking(seen)


async def in_a_generator(seen: list[object]) -> None:
    async def numbers() -> AsyncIterator[int]:
        try:
            while True:
                await asyncio.sleep(1)
                yield 1
        finally:
            seen.append("finally of the generator")

    async for _ in numbers():
        seen.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0.5)


async def in_a_context(seen: list[object]) -> None:
    try:
        async with asyncio.timeout(1_000), asyncio.TaskGroup() as group:
            group.create_task(ticking(seen))
    finally:
        seen.append("finally of the context")


@pytest.mark.parametrize("life", [in_a_task, in_a_generator, in_a_context], ids=lambda life: life.__name__)
@pytest.mark.parametrize("at", [1.2, 1.7])
def test_of_a_crashed_host_nothing_runs_any_more(
    life: Callable[[list[object]], Coroutine[Any, Any, None]], at: float
) -> None:
    """No timer and no `finally`, while the run lasts."""
    seen: list[object] = []

    async def main() -> list[object]:
        host = Host("machine")
        host.spawn(life(seen), "life")
        await asyncio.sleep(at)
        sim_loop().crash(host)
        assert host.state is HostState.CRASHED
        await asyncio.sleep(10)
        sim_loop().resume(host)
        await asyncio.sleep(10)
        gc.collect()
        assert not host.runs
        return list(seen)

    assert run_virtual(main, 1) == [1.0]


def test_a_crash_of_a_paused_host_drops_what_came_due() -> None:
    seen: list[object] = []

    async def main() -> list[object]:
        host = Host("machine")
        host.spawn(ticking(seen), "ticking")
        await asyncio.sleep(0.5)
        host.pause()
        await asyncio.sleep(1)
        sim_loop().crash(host)
        sim_loop().resume(host)
        await asyncio.sleep(5)
        return list(seen)

    assert run_virtual(main, 1) == []


@pytest.mark.filterwarnings("ignore:loop is closed:ResourceWarning")
@pytest.mark.parametrize("unread", [False, True])
def test_peers_of_a_crashed_host_hear_what_the_kernel_says_and_others_hear_nothing(unread: bool) -> None:
    """As after SIGKILL: the end of the stream, or a reset where bytes lay unread."""
    seen: list[object] = []

    async def main() -> None:
        host, other, loop = Host("machine"), Host("other"), sim_loop()

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()

        async def serve() -> tuple[str, int]:
            server = await asyncio.start_server(answer, LOOPBACK, 0)
            name: tuple[str, int] = server.sockets[0].getsockname()
            return name

        address, spared = await host.spawn(serve(), "serve"), await other.spawn(serve(), "serve")
        reader, writer = await asyncio.open_connection(*address)
        spared_reader, spared_writer = await asyncio.open_connection(*spared)
        await asyncio.sleep(0.1)
        if unread:
            host.pause()
            writer.write(b"what it never reads")
            await asyncio.sleep(0.1)
        loop.crash(host)
        (heard,) = await asyncio.gather(reader.read(), return_exceptions=True)
        assert isinstance(heard, ConnectionResetError) if unread else heard == b""
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*address)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await spared_reader.read()
        spared_writer.write_eof()
        assert await spared_reader.read() == b""
        for one in (writer, spared_writer):
            one.close()
        seen.append("done")

    run_virtual(main, 1)
    assert seen == ["done"]


async def set_timers(seen: list[object]) -> None:
    """Two of one moment, on the host of whoever calls."""
    for name in ("first", "second"):
        asyncio.get_running_loop().call_later(1, seen.append, name)


def test_what_came_due_waits_again_when_its_host_is_stopped_again_in_the_same_turn() -> None:
    """And comes in its order, once it goes on in earnest."""
    seen: list[object] = []

    async def main() -> list[object]:
        host, loop = Host("machine"), sim_loop()
        await host.spawn(set_timers(seen), "set timers")
        host.pause()
        await asyncio.sleep(2)
        loop.resume(host)
        host.pause()
        await asyncio.sleep(2)
        between = list(seen)
        loop.resume(host)
        await asyncio.sleep(1)
        return between

    assert run_virtual(main, 1) == []
    assert seen == ["first", "second"]


def test_what_came_due_never_runs_when_its_host_crashes_in_the_turn_in_which_it_goes_on() -> None:
    seen: list[object] = []

    async def main() -> None:
        host, loop = Host("machine"), sim_loop()
        await host.spawn(set_timers(seen), "set timers")
        host.pause()
        await asyncio.sleep(2)
        loop.resume(host)
        loop.crash(host)
        await asyncio.sleep(2)

    run_virtual(main, 1)
    assert seen == []


def test_one_callback_that_stops_its_own_host_keeps_the_next_from_running() -> None:
    """Of what came due together."""
    seen: list[object] = []

    async def main() -> None:
        host, loop = Host("machine"), sim_loop()

        async def stop_in_between() -> None:
            loop.call_later(1, host.pause)
            loop.call_later(1, seen.append, "behind it")

        await host.spawn(stop_in_between(), "stop in between")
        host.pause()
        await asyncio.sleep(2)
        loop.resume(host)
        await asyncio.sleep(1)
        seen.append("meanwhile")
        loop.resume(host)
        await asyncio.sleep(1)

    run_virtual(main, 1)
    assert seen == ["meanwhile", "behind it"]


def test_what_a_dead_hosts_finally_asks_for_never_runs() -> None:
    """Neither a callback, nor a timer, nor a task, though the loop turns once more to end the others."""
    seen: list[object] = []

    async def late() -> None:
        seen.append("task")

    async def main() -> None:
        host, loop = Host("machine"), sim_loop()

        async def asking() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                seen.append("finally")
                loop.call_soon(seen.append, "callback")
                loop.call_later(0.5, seen.append, "timer")
                loop.create_task(late())

        async def ending() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(1)
                seen.append("the lab's own")

        host.spawn(asking(), "asking")
        left.append(loop.create_task(ending()))
        await asyncio.sleep(1)
        loop.crash(host)

    left: list[object] = []
    run_virtual(main, 1)
    assert seen == ["finally", "the lab's own"]


def test_a_host_that_still_stands_at_the_end_of_the_run_ends_as_the_others() -> None:
    """Else its tasks could not be ended, and the run would be a deadlock."""
    seen: list[object] = []

    async def main() -> str:
        host = Host("machine")
        host.spawn(ticking(seen), "ticking")
        await asyncio.sleep(1.5)
        host.pause()
        return "over"

    assert run_virtual(main, 1) == "over"
    assert seen == [1.0, "finally"]

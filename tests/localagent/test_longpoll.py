import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from lab.draws import Draws
from lab.localagent.answer import Answer, refused
from lab.localagent.longpoll import Polls, answer_job_stream
from lab.localagent.streams import MAX_PAGE_BYTES, StreamBook
from tests.localagent.doubles import JOB, JOB_B, WORKSPACE

LONG = 3600.0


class Poller:
    """Asks for a job's stream."""

    def __init__(self, limit: int = 16) -> None:
        self.book = StreamBook(Draws(7, "agent", "cursors"))
        self.polls = Polls(limit)
        self.active: set[str] = set()

    def ask(self, ref: str = JOB, hold: float = LONG, max_bytes: int = MAX_PAGE_BYTES) -> asyncio.Task[Answer]:
        return asyncio.create_task(
            answer_job_stream(
                self.book,
                ref,
                max_bytes,
                hold=hold,
                is_active_chat=lambda job_id: job_id in self.active,
                polls=self.polls,
            )
        )

    async def waiting(self, count: int) -> None:
        for _ in range(100):
            await asyncio.sleep(0)
        assert self.polls.waiting == count


def body(answer: Answer) -> dict[str, Any]:
    assert (answer.status, answer.content_type, answer.error_code) == ("ok", "application/json", None)
    decoded: dict[str, Any] = json.loads(answer.body)
    return decoded


@pytest.mark.req("CHAT-036")
async def test_an_empty_page_when_the_hold_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    poller = Poller()
    poller.book.open(JOB, WORKSPACE)
    due: list[float] = []
    real = loop.call_at

    def at_once(when: float, *rest: Any, **more: Any) -> asyncio.TimerHandle:
        due.append(when - loop.time())
        return real(loop.time(), *rest, **more)

    monkeypatch.setattr(loop, "call_at", at_once)
    answer = body(await poller.ask(hold=8.0))
    assert due == [pytest.approx(8.0, abs=0.5)]
    assert (answer["events"], answer["done"]) == ([], False)
    poller.book.append(JOB, "a")
    assert body(await poller.ask(answer["nextRef"]))["events"] == [{"i": 0, "e": "a"}]


@pytest.mark.req("CHAT-039")
async def test_an_event_ends_the_hold() -> None:
    poller = Poller()
    poller.book.open(JOB, WORKSPACE)
    task = poller.ask()
    await poller.waiting(1)
    poller.book.append(JOB, "a")
    assert body(await task)["events"] == [{"i": 0, "e": "a"}]
    assert poller.polls.waiting == 0


async def test_the_end_of_the_stream_ends_the_hold() -> None:
    poller = Poller()
    poller.book.open(JOB, WORKSPACE)
    task = poller.ask()
    await poller.waiting(1)
    poller.book.close(JOB)
    assert body(await task)["done"] is True


@pytest.mark.req("CHAT-044")
async def test_a_queued_chat_is_waited_for() -> None:
    poller = Poller()
    poller.active.add(JOB)
    held = body(await poller.ask(hold=0.01))
    assert (held["events"], held["done"]) == ([], False)
    task = poller.ask(held["nextRef"])
    await poller.waiting(1)
    poller.book.open(JOB, WORKSPACE)
    await asyncio.sleep(0)
    poller.book.append(JOB, "a")
    assert body(await task)["events"] == [{"i": 0, "e": "a"}]


@pytest.mark.req("CHAT-043", "CHAT-045")
@pytest.mark.parametrize("ref", [JOB_B, "x" * 43])
async def test_what_is_not_there_is_said_at_once(ref: str) -> None:
    poller = Poller()
    poller.active.add(JOB)
    assert await poller.ask(ref) == refused("not_found")


@pytest.mark.req("CHAT-070")
async def test_so_many_may_wait_and_no_more() -> None:
    poller = Poller()
    poller.book.open(JOB, WORKSPACE)
    tasks = [poller.ask() for _ in range(16)]
    await poller.waiting(16)
    assert await poller.ask() == refused("error", "rate_limited")
    poller.book.append(JOB, "a")
    assert all(body(answer)["events"] for answer in await asyncio.gather(*tasks))
    poller.book.append(JOB, "b")
    assert body(await poller.ask())["events"]


async def test_a_cancelled_poll_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    poller = Poller()
    poller.book.open(JOB, WORKSPACE)
    timers: list[asyncio.TimerHandle] = []
    watched: list[str] = []
    call_at, watch = loop.call_at, poller.book.watch

    def timed(*args: Any, **more: Any) -> asyncio.TimerHandle:
        timers.append(call_at(*args, **more))
        return timers[-1]

    def watching(job_id: str, callback: Callable[[], None]) -> Callable[[], None]:
        stop = watch(job_id, callback)
        watched.append(job_id)

        def stopped() -> None:
            watched.remove(job_id)
            stop()

        return stopped

    monkeypatch.setattr(loop, "call_at", timed)
    monkeypatch.setattr(poller.book, "watch", watching)
    task = poller.ask()
    await poller.waiting(1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert (poller.polls.waiting, watched) == (0, [])
    assert [timer.cancelled() for timer in timers] == [True]


@pytest.mark.parametrize(("lines", "max_bytes"), [([], 10), (["a" * 50], 100)])
async def test_a_bound_that_nothing_fits(lines: list[str], max_bytes: int) -> None:
    poller = Poller()
    poller.book.open(JOB, WORKSPACE, lines)
    assert await poller.ask(hold=0.01, max_bytes=max_bytes) == refused("error", "payload_too_large")

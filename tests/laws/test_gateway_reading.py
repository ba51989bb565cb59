"""How a gateway reads a stream: on until done, again what failed, each event once."""

from __future__ import annotations

import pytest

from lab.journal.events import CallFailed, ContentRead, LinkChanged, StreamOver
from lab.laws import Status
from tests.laws.journals import JOB, Tale, numbered_lines, uuid

LAW = "stream-read-on"


def read(pages: int = 1) -> Tale:
    """A chat whose first pages of two events each were taken."""
    t = Tale()
    t.connect()
    t.ack_by_la(t.assign())
    for page in range(pages):
        ask(t, page)
        answer(t, page)
        t.taken(page + 1, 2, 2 * page + 2)
    return t


def ask(t: Tale, page: int, name: str | None = None) -> int:
    return t.ask(page + 2, name or f"r{page}", ref(page))


def ref(page: int) -> str:
    return f"x{page}" if page else JOB


def answer(t: Tale, page: int, name: str | None = None, done: bool = False) -> int:
    return t.page(ref(page), numbered_lines(2 * page, 2), f"x{page + 1}", done, name or f"r{page}")


def fails(t: Tale, name: str, code: str = "timeout") -> int:
    return t.add(CallFailed("content", code, request_id=uuid(name)))


def over(t: Tale) -> int:
    return t.add(StreamOver(JOB), "driver")


def test_a_stream_read_to_its_end() -> None:
    t = read()
    ask(t, 1)
    answer(t, 1, done=True)
    t.taken(2, 2, 4, done=True)
    over(t)
    t.wait(10).end()
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("CP-026")
def test_an_end_without_done() -> None:
    t = read()
    n = over(t)
    assert t.violation(LAW).seen == "the stream told to be over"
    assert t.violation(LAW).entries[-1] == n


@pytest.mark.req("CP-027")
@pytest.mark.parametrize("code", ["timeout", "agent_offline", "rate_limited"])
@pytest.mark.parametrize("told", ["over", "failed"])
def test_an_end_after_a_failure_that_passes(code: str, told: str) -> None:
    t = read()
    ask(t, 1)
    fails(t, "r1", code)
    n = over(t) if told == "over" else t.add(CallFailed("stream", "StreamFailed", JOB), "driver")
    assert t.violation(LAW).seen == f"the stream told to be over after {code}"
    assert t.violation(LAW).entries[-1] == n


def test_an_end_after_a_failure_that_stays() -> None:
    t = read()
    ask(t, 1)
    fails(t, "r1", "internal")
    t.add(CallFailed("stream", "StreamFailed", JOB), "driver")
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("CP-026", "CP-027")
@pytest.mark.parametrize("failed", [False, True])
def test_no_further_request(failed: bool) -> None:
    t = read()
    n = len(t.entries) - 1
    if failed:
        ask(t, 1)
        n = fails(t, "r1")
    t.wait(3).end()
    assert t.violation(LAW).entries == (n,)
    assert t.violation(LAW).seen == f"no request after {'a failed page' if failed else 'a page that is not the last'}"


@pytest.mark.parametrize("why", ["early end", "cut", "gone", "lost"])
def test_no_further_request_that_could_be_made(why: str) -> None:
    t = read()
    if why == "cut":
        t.add(LinkChanged("gateway", "cut"), "link")
    elif why == "gone":
        t.close()
    elif why == "lost":
        t.la("heartbeat", 9, fate="dropped", fault="f")
    t.wait(1 if why == "early end" else 3).end()
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("CP-027")
def test_an_event_twice() -> None:
    t = read()
    ask(t, 0, "again")
    answer(t, 0, "again")
    n = t.taken(2, 2, 4)
    assert (t.violation(LAW).seen, t.violation(LAW).entries) == ("4 events told, 2 came", (n,))


@pytest.mark.req("CP-027")
def test_an_event_that_is_not_told() -> None:
    t = read()
    ask(t, 1)
    answer(t, 1)
    n = t.taken(2, 1, 3)
    assert (t.violation(LAW).seen, t.violation(LAW).entries) == ("3 events told, 4 came in a row", (n,))


@pytest.mark.parametrize("why", ["another caller", "late"])
def test_an_event_that_need_not_be_told(why: str) -> None:
    t = read()
    ask(t, 1)
    if why == "late":
        fails(t, "r1")
    answer(t, 1)
    if why == "another caller":
        t.add(ContentRead(JOB, "job.stream", 1), "driver")
    t.taken(2, 0, 2)
    assert t.status(LAW) is Status.HELD


def test_what_nobody_follows() -> None:
    t = Tale()
    t.connect()
    t.ack_by_la(t.assign())
    ask(t, 0)
    answer(t, 0)
    t.wait(10).end()
    assert t.status(LAW) is Status.NOTHING

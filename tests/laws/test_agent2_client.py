"""How an agent asks agent2."""

from __future__ import annotations

from typing import Any

import pytest

from lab.journal.events import Agent2Request, LinkChanged
from lab.laws import Status
from tests.laws.journals import JOB, Tale

LAW = "agent2-client"


def running() -> Tale:
    t = Tale()
    t.connect()
    t.assign()
    t.post()
    return t


def broken(t: Tale, sent: int, wait: float, stream: str = "events") -> int:
    t.stream("opened", stream=stream)
    entry = t.stream("broken", sent, stream=stream)
    t.wait(wait)
    return entry


def test_good_manners() -> None:
    t = running()
    t.health()
    broken(t, 2, 0.25)
    broken(t, 2, 0.5)
    broken(t, 4, 0.25)
    t.stream("opened", stream="events")
    t.stream("ended", 5, stream="events")
    assert t.status(LAW) is Status.HELD


@pytest.mark.parametrize(
    ("request_", "seen"),
    [
        pytest.param(
            Agent2Request("GET", "/local/v1/health", 200, None, {"authorization": True}),
            "with a token",
            marks=pytest.mark.req("A2-002"),
        ),
        pytest.param(
            Agent2Request("POST", "/local/v1/jobs", 401), "without the right token", marks=pytest.mark.req("A2-017")
        ),
        pytest.param(
            Agent2Request("GET", "/local/v1/jobs/{id}/events", 200, JOB, {"accepts_sse": False}),
            "without Accept",
            marks=pytest.mark.req("A2-021"),
        ),
    ],
)
def test_a_request_without_manners(request_: Any, seen: str) -> None:
    t = running()
    entry = t.add(request_, "agent2")
    found = t.violation(LAW)
    assert seen in found.seen
    assert found.entries == (entry,)


def test_a_401_that_the_script_ordered() -> None:
    t = Tale()
    t.connect()
    t.assign()
    t.post(401)
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("A2-042")
@pytest.mark.parametrize("stream", ["events", "stream"])
@pytest.mark.parametrize(("waits", "seen"), [((0.0,), "attempt 1"), ((0.25, 0.25), "attempt 2")])
def test_an_attempt_that_comes_too_soon(stream: str, waits: tuple[float, ...], seen: str) -> None:
    t = running()
    for wait in waits:
        broken(t, 1, wait, stream)
    t.stream("opened", stream=stream)
    found = t.violation(LAW)
    assert found.seen.startswith(f"{seen} at the {stream} stream after {waits[-1]:.2f} s")


@pytest.mark.req("A2-043")
def test_a_sixth_attempt() -> None:
    t = running()
    for attempt in range(1, 7):
        broken(t, 1, 0.25 * attempt)
    t.stream("opened", stream="events")
    assert t.violation(LAW).seen == "attempt 6 in a row at the events stream"


@pytest.mark.req("A2-042")
def test_a_stream_that_is_not_opened_again() -> None:
    t = running()
    entry = broken(t, 1, 5)
    t.end()
    assert t.violation(LAW).entries == (entry,)


@pytest.mark.parametrize("why", ["ended", "result", "cancelled", "content", "cut"])
def test_a_stream_that_nobody_needs(why: str) -> None:
    t = running()
    if why == "cut":
        t.add(LinkChanged("agent2", "cut"), "link")
    broken(t, 1, 0.1, "stream" if why == "content" else "events")
    if why == "ended":
        t.ended()
    elif why == "result":
        t.la("job.result", 1, payload={"jobId": JOB, "outcome": "failed"})
    elif why == "cancelled":
        t.cp("job.cancel", 2, payload={"jobId": JOB})
    t.wait(5).end()
    assert t.status(LAW) is Status.HELD

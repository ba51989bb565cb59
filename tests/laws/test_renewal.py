"""A result that was lost with its session."""

from __future__ import annotations

import pytest

from lab.journal.events import LinkChanged, SutChanged
from lab.laws import Status
from tests.laws.journals import JOB, SESSION, SESSION_2, Tale

LAW = "result-renewed"
RESULT = {"jobId": JOB, "outcome": "no_change"}


def lost(acked: str = "") -> tuple[Tale, int]:
    t = Tale()
    t.connect()
    result = t.la("job.result", 1, payload=RESULT)
    if acked:
        t.ack_by_cp(result, fate=acked, fault="f" if acked == "dropped" else None)
    t.wait(1).close()
    return t, result


@pytest.mark.req("RS-006", "RS-011")
@pytest.mark.parametrize("acked", ["", "dropped"])
def test_it_does_not_come_again(acked: str) -> None:
    t, result = lost(acked)
    ready = t.connect("c2", SESSION_2, resume=(SESSION, 0))
    t.la("heartbeat", 1)
    t.wait(6).end()
    assert t.violation(LAW).entries == (result, ready)


@pytest.mark.req("RS-006")
def test_it_comes_again() -> None:
    t, _ = lost()
    t.connect("c2", SESSION_2, resume=(SESSION, 0))
    t.la("job.result", 1, payload=RESULT)
    t.wait(6).end()
    assert t.status(LAW) is Status.HELD


def test_another_job_is_not_it() -> None:
    t, _ = lost()
    t.connect("c2", SESSION_2, resume=(SESSION, 0))
    t.la("job.result", 1, payload={**RESULT, "jobId": SESSION})
    t.wait(6).end()
    assert t.status(LAW) is Status.BROKEN


@pytest.mark.parametrize("way", ["acked", "number", "resumed", "early end", "no session", "refused"])
def test_nothing_is_due(way: str) -> None:
    t = Tale()
    t.connect()
    result = t.la("job.result", 1, payload=RESULT)
    if way == "acked":
        t.ack_by_cp(result)
    if way == "number":
        t.cp("job.cancel", 1, ack=1)
    t.close()
    if way == "resumed":
        t.connect("c2", resume=(SESSION, 0), resumed=True, peer_last=1)
    elif way != "no session":
        t.connect("c2", SESSION_2, resume=(SESSION, 0))
    if way == "refused":
        t.cp("error", payload={"code": "unauthorized"})
    t.wait(1 if way == "early end" else 6).end()
    assert t.status(LAW) is Status.NOTHING


@pytest.mark.parametrize("way", ["process", "link", "faults"])
def test_what_explains_it(way: str) -> None:
    t, _ = lost()
    if way == "process":
        t.add(SutChanged("la", "started"), "sut")
    t.connect("c2", SESSION_2, resume=(SESSION, 0))
    if way == "faults":
        t.ack_by_cp(t.la("heartbeat", 1), fate="dropped", fault="f")
    if way == "link":
        t.add(LinkChanged("gateway", "cut"), "links")
    t.wait(6).end()
    assert t.status(LAW) is Status.UNKNOWN

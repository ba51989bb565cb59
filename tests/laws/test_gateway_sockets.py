"""Whom a gateway lets in, and which socket it keeps."""

from __future__ import annotations

import pytest

from lab.journal.events import SocketOpened
from lab.laws import Status
from tests.laws.journals import SESSION_2, Tale

LAW = "gateway-sockets"


@pytest.mark.req("HS-002", "WS-054")
@pytest.mark.parametrize(
    ("credential", "status"), [("ok", Status.HELD), ("none", Status.BROKEN), ("unknown", Status.BROKEN)]
)
def test_a_credential(credential: str, status: Status) -> None:
    t = Tale()
    t.add(SocketOpened("c1", "/ws", credential=credential))
    assert t.status(LAW) is status


def test_a_credential_that_nobody_looked_at() -> None:
    t = Tale()
    t.add(SocketOpened("c1", "/ws"))
    assert t.status(LAW) is Status.NOTHING


def two() -> tuple[Tale, int]:
    """The second connection of an agent that has one; the entry of its ready."""
    t = Tale()
    t.connect()
    return t, t.wait(1).connect("c2", SESSION_2)


def close_first(t: Tale, by: str, code: int | None) -> int:
    t.conn = "c1"
    return t.close(by, code)


def test_the_older_one_is_closed_plainly() -> None:
    t, _ = two()
    close_first(t, "local", 1000)
    t.wait(20).end()
    assert t.status(LAW) is Status.HELD
    assert t.judged(LAW).judgement.judged == 3


@pytest.mark.req("RS-021")
def test_the_older_one_with_the_code_of_an_error() -> None:
    t, ready = two()
    closed = close_first(t, "local", 4420)
    assert t.violation(LAW).entries == (ready, closed)


@pytest.mark.req("RS-021")
def test_the_older_one_stays() -> None:
    t, ready = two()
    t.wait(9).end()
    assert (t.violation(LAW).entries, t.violation(LAW).due) == ((ready,), "close 1000")


@pytest.mark.req("RS-021")
def test_the_older_one_is_written_to() -> None:
    t, ready = two()
    n = t.cp("ack", conn="c1", payload={"status": "accepted", "ackSeq": 1, "ackMsgId": "x"})
    assert t.violation(LAW).entries == (ready, n)


def test_a_copy_by_the_lab_is_nothing_that_the_gateway_wrote() -> None:
    t, _ = two()
    t.cp("job.cancel", 1, conn="c1", fate="copied", fault="f")
    close_first(t, "local", 1000)
    assert t.status(LAW) is Status.HELD


@pytest.mark.parametrize("how", ["cut", "early end", "closed before"])
def test_what_cannot_be_told(how: str) -> None:
    t = Tale()
    t.connect()
    if how == "closed before":
        t.close()
    t.wait(1).connect("c2", SESSION_2)
    if how == "cut":
        close_first(t, "none", None)
    t.wait(5).end()
    assert t.status(LAW) is Status.HELD
    assert t.judged(LAW).judgement.judged == 2
    assert t.judged(LAW).judgement.unsure == (how == "cut")

"""Register, and hello right behind it."""

from __future__ import annotations

import pytest

from lab.journal.events import LinkChanged
from lab.laws import Status
from tests.laws.journals import SESSION, Tale

LAW = "handshake"


@pytest.mark.req("HS-007", "HS-009")
def test_no_hello() -> None:
    t = Tale()
    n = t.register()
    t.wait(1.1).end()
    found = t.violation(LAW)
    assert (found.seen, found.entries) == ("no hello after register", (n,))


@pytest.mark.req("HS-009")
def test_a_late_hello() -> None:
    t = Tale()
    n = t.register()
    later = t.wait(1.1).hello()
    found = t.violation(LAW)
    assert (found.seen, found.entries) == ("hello 1.1 s after register", (n, later))


@pytest.mark.req("HS-040")
def test_a_resume_has_the_whole_handshake() -> None:
    t = Tale()
    t.connect()
    t.close()
    t.conn = "c2"
    n = t.register((SESSION, 0))
    t.wait(2).end()
    found = t.violation(LAW)
    assert (found.seen, found.entries) == ("no hello after register with resume", (n,))


@pytest.mark.req("HS-009")
def test_hello_without_an_answer() -> None:
    t = Tale()
    t.register()
    t.hello()
    t.wait(20).end()
    assert t.status(LAW) is Status.HELD


@pytest.mark.parametrize("code", ["protocol_unsupported", "clock_skew"])
def test_a_refused_register_needs_no_hello(code: str) -> None:
    t = Tale()
    t.register()
    t.cp("error", payload={"code": code})
    t.wait(20).end()
    assert t.status(LAW) is Status.NOTHING


def test_a_connection_that_ends_before() -> None:
    t = Tale()
    t.register()
    t.wait(0.5).close()
    t.wait(20).end()
    assert t.status(LAW) is Status.NOTHING


def test_a_cut_link_cannot_be_told() -> None:
    t = Tale()
    t.register()
    t.add(LinkChanged("gateway", "cut"), "links")
    t.wait(20).end()
    assert t.status(LAW) is Status.UNKNOWN


def test_a_register_of_v1_has_none() -> None:
    t = Tale()
    t.la("register", None, version=None, agent_id=None)
    t.wait(20).end()
    assert t.status(LAW) is Status.NOTHING

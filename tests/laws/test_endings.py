"""What an error ends: a fatal one everything, any other one nothing."""

from __future__ import annotations

from typing import Any

import pytest

from lab.journal.events import FaultFired, StepEnded, SutChanged
from lab.laws import Status
from tests.laws.journals import SESSION, Tale

SOFT = ["protocol_unsupported", "agent_offline", "rate_limited", "internal"]
SIDES = {"goes-on": "remote", "gateway-goes-on": "local"}


def connected() -> Tale:
    t = Tale()
    t.connect()
    return t


def error(t: Tale, by: str, code: str, **fields: Any) -> int:
    payload = {"code": code, "retryable": True}
    return t.la("error", payload=payload, **fields) if by == "la" else t.cp("error", payload=payload, **fields)


@pytest.mark.parametrize("law", SIDES)
@pytest.mark.parametrize("by", ["la", "cp"])
@pytest.mark.parametrize("code", SOFT)
@pytest.mark.req("WS-043")
def test_a_close_after_an_error_that_is_not_fatal(law: str, by: str, code: str) -> None:
    t = connected()
    n = error(t, by, code)
    closed = t.wait(0.1).close(SIDES[law], 1000)
    t.wait(5).end()
    found = t.violation(law)
    assert (found.seen, found.entries) == (f"close 1000 after {code}, which is not fatal", (n, closed))


@pytest.mark.parametrize("law", SIDES)
@pytest.mark.req("WS-043")
def test_going_on(law: str) -> None:
    t = connected()
    error(t, "cp", "internal")
    t.wait(2).close(SIDES[law], 1000)
    assert t.status(law) is Status.HELD


@pytest.mark.parametrize("law", SIDES)
@pytest.mark.parametrize("by", ["other", "none"])
def test_a_close_by_somebody_else(law: str, by: str) -> None:
    other = "local" if SIDES[law] == "remote" else "remote"
    t = connected()
    error(t, "cp", "internal")
    t.close(other if by == "other" else by, 1000)
    assert t.status(law) is Status.NOTHING


@pytest.mark.parametrize("law", SIDES)
@pytest.mark.parametrize("way", ["fatal", "over", "fault", "process"])
def test_what_explains_a_close(law: str, way: str) -> None:
    t = connected()
    error(t, "cp", "internal")
    if way == "fatal":
        error(t, "la", "seq_gap")
    if way == "over":
        t.add(StepEnded(0, "done"), "runner")
    if way == "fault":
        t.add(FaultFired("f", "stop", "gw"), "faults")
    if way == "process":
        t.add(SutChanged("la", "stopping"), "sut")
    t.wait(0.1).close(SIDES[law], 1000)
    t.end()
    assert t.status(law) is Status.UNKNOWN


@pytest.mark.parametrize("law", SIDES)
def test_a_fatal_error_or_one_that_never_came(law: str) -> None:
    t = connected()
    error(t, "cp", "internal", fate="dropped", fault="f")
    error(t, "cp", "seq_gap")
    t.close(SIDES[law], 1000)
    assert t.status(law) is Status.NOTHING


@pytest.mark.req("WS-042", "WS-043")
def test_the_refusal_of_v2_does_not_close() -> None:
    t = Tale()
    t.register()
    n = error(t, "cp", "protocol_unsupported")
    closed = t.close("local", 4417)
    t.wait(5).end()
    assert t.violation("gateway-goes-on").entries == (n, closed)


@pytest.mark.parametrize(("law", "code"), [("gateway-goes-on", "internal"), ("goes-on", "protocol_unsupported")])
def test_other_ends_of_the_handshake_are_free(law: str, code: str) -> None:
    t = Tale()
    t.register()
    error(t, "cp", code)
    t.close(SIDES[law], 1000)
    t.wait(5).end()
    assert t.status(law) is Status.NOTHING


BEHIND = "nothing-behind-fatal"


def junk(t: Tale) -> int:
    return t.cp(None, None, facts={"parse": "not JSON"})


@pytest.mark.req("WS-042", "WS-043")
def test_a_job_that_came_behind_what_was_refused() -> None:
    t = connected()
    wrong = junk(t)
    assign = t.assign()
    refused = error(t, "la", "bad_frame")
    post = t.post()
    assert t.violation(BEHIND).entries == (wrong, assign, refused, post)


@pytest.mark.req("WS-042")
def test_a_job_that_comes_again() -> None:
    t = connected()
    junk(t)
    t.assign()
    error(t, "la", "bad_frame")
    t.close("remote", 4400)
    t.connect("c2", resume=(SESSION, 0), resumed=True)
    t.assign()
    t.post()
    assert t.status(BEHIND) is Status.HELD


@pytest.mark.parametrize("way", ["before", "no error", "soft", "ack", "v1", "delayed"])
def test_a_job_that_may_be_begun(way: str) -> None:
    t = connected()
    if way == "before":
        t.assign()
    if way == "ack":
        t.cp("ack", facts={"schema": {"keyword": "required", "path": "payload"}})
    elif way == "v1":
        t.cp(None, None, version=None, facts={"v1": True, "type": "unknown_type"})
    else:
        t.cp(None, None, facts={"parse": "not JSON"}, fate="delayed" if way == "delayed" else "passed")
    if way != "before":
        t.assign()
    if way != "no error":
        error(t, "la", "internal" if way == "soft" else "bad_frame")
    t.post()
    assert t.status(BEHIND) is Status.NOTHING

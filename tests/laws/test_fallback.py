"""The fallback to v1."""

from __future__ import annotations

import pytest

from lab.journal.events import LinkChanged, StepEnded, SutChanged
from lab.laws import Status
from tests.laws.journals import Tale

LAW = "v1-fallback"


def v1(t: Tale) -> int:
    return t.la("register", None, version=None, agent_id=None, facts={"schema": {"keyword": "required", "path": ""}})


def refused(code: str | None, wait: float = 0.1) -> Tale:
    t = Tale()
    t.register()
    t.hello()
    t.wait(wait)
    if code is not None:
        t.cp("error", payload={"code": code, "retryable": False})
    return t


@pytest.mark.req("HS-020")
@pytest.mark.parametrize(("code", "wait"), [("protocol_unsupported", 0.1), (None, 10.0)])
def test_a_fallback_that_is_due(code: str | None, wait: float) -> None:
    t = refused(code, wait)
    v1(t)
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("HS-019", "HS-023")
@pytest.mark.parametrize("code", ["signature_mode_insufficient", "clock_skew", "unauthorized", "timeout"])
def test_no_other_refusal_leads_to_v1(code: str) -> None:
    t = refused(code, 11)
    old = v1(t)
    found = t.violation(LAW)
    assert found.seen == f"a v1 register after {code}"
    assert found.entries[-1] == old


@pytest.mark.req("HS-019", "HS-023")
@pytest.mark.parametrize(("how", "status"), [("paused", Status.UNKNOWN), ("stopping", Status.BROKEN)])
def test_a_ready_that_a_program_was_too_late_to_read(how: str, status: Status) -> None:
    """It stood still for longer than it waits for ready."""
    t = Tale()
    t.connect()
    t.add(SutChanged("la", how), "sut")
    t.wait(25).add(SutChanged("la", "went-on"), "sut")
    v1(t)
    assert t.status(LAW) is status


@pytest.mark.parametrize(("holds", "status"), [(None, Status.UNKNOWN), (0.5, Status.BROKEN)])
def test_a_ready_that_a_link_held_back(holds: float | None, status: Status) -> None:
    """It was sent, and came when the wait for it was over, or never."""
    t = Tale()
    t.add(LinkChanged("gateway", "toxic-added", 0.0, "f.made.1", "made", holds))
    t.connect()
    t.wait(25)
    v1(t)
    assert t.status(LAW) is status


@pytest.mark.parametrize(("holds", "status"), [(None, Status.UNKNOWN), (0.5, Status.BROKEN)])
def test_a_fallback_that_a_link_held_back(holds: float | None, status: Status) -> None:
    """The connection ended before it came, and the next one is v1."""
    t = Tale()
    t.connect()
    t.add(LinkChanged("gateway", "toxic-added", 0.0, "f.made.1", "made", holds))
    t.wait(12).close()
    t.add(LinkChanged("gateway", "toxic-removed", 0.0, "f.made.1"))
    t.wait(5)
    t.conn = "c2"
    v1(t)
    assert t.status(LAW) is status


def test_v1_on_the_next_connection() -> None:
    t = refused("clock_skew")
    t.close()
    t.conn = "c2"
    v1(t)
    assert t.status(LAW) is Status.BROKEN


@pytest.mark.req("HS-020")
@pytest.mark.parametrize("ready", [True, False])
def test_a_fallback_too_soon_or_after_ready(ready: bool) -> None:
    t = refused(None, 0.2)
    if ready:
        t.ready()
        t.wait(20)
    v1(t)
    assert t.status(LAW) is Status.BROKEN


@pytest.mark.req("HS-020", "HS-024")
@pytest.mark.parametrize(("code", "wait"), [("protocol_unsupported", 4), (None, 14)])
def test_a_fallback_that_does_not_come(code: str | None, wait: float) -> None:
    t = refused(code)
    t.wait(wait).end()
    assert t.violation(LAW).due == "a v1 register on the same connection"


def test_a_connection_that_ends_before() -> None:
    t = refused("protocol_unsupported")
    t.close("local", 4417)
    t.wait(20).end()
    assert t.status(LAW) is Status.NOTHING


@pytest.mark.req("HS-019")
def test_staying_with_v2_after_another_refusal() -> None:
    t = refused("clock_skew")
    t.wait(20).end()
    assert t.status(LAW) is Status.HELD


def test_a_ready_ends_the_wait() -> None:
    t = Tale()
    t.connect()
    t.wait(30).end()
    assert t.status(LAW) is Status.NOTHING


@pytest.mark.req("HS-021", "V1-012")
@pytest.mark.parametrize(("seconds", "status"), [(300, Status.BROKEN), (601, Status.HELD)])
def test_v2_is_not_offered_for_ten_minutes(seconds: float, status: Status) -> None:
    t = refused("protocol_unsupported")
    v1(t)
    t.close()
    t.wait(seconds).connect("c2")
    assert t.status(LAW) is status


@pytest.mark.req("HS-021")
def test_v1_goes_on_at_the_next_connection() -> None:
    t = refused("protocol_unsupported")
    v1(t)
    t.close()
    t.wait(1)
    t.conn = "c2"
    v1(t)
    assert t.status(LAW) is Status.HELD
    assert t.judged(LAW).judgement.judged == 2


def test_a_new_process_offers_v2_at_once() -> None:
    t = refused("protocol_unsupported")
    v1(t)
    t.close()
    t.wait(1).add(SutChanged("la", "started"), "sut")
    t.wait(1).connect("c2")
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("V1-012")
def test_a_v2_frame_after_the_fallback() -> None:
    t = refused("protocol_unsupported")
    old = v1(t)
    later = t.la("heartbeat", 1)
    assert t.violation(LAW).entries == (old, later)


def test_an_agent_that_never_spoke_v2_cannot_be_told() -> None:
    t = Tale()
    v1(t)
    assert t.status(LAW) is Status.UNKNOWN


def closing(code: str | None, wait: float = 0.1, by: str = "remote") -> tuple[Tale, int]:
    t = refused(code)
    return t, t.wait(wait).close(by, 1000)


@pytest.mark.req("HS-020")
@pytest.mark.parametrize(
    ("code", "wait", "seen"),
    [
        ("protocol_unsupported", 0.1, "closed the connection after protocol_unsupported"),
        (None, 10.0, "closed the connection after 10.1 s without ready"),
    ],
)
def test_an_agent_that_closes_in_place_of_the_fallback(code: str | None, wait: float, seen: str) -> None:
    t, closed = closing(code, wait)
    t.wait(1).connect("c2")
    t.end()
    found = t.violation(LAW)
    assert (found.seen, found.entries[-1]) == (seen, closed)


@pytest.mark.parametrize("way", ["soon", "other refusal", "end", "process", "gateway"])
def test_a_close_that_is_no_refusal_to_fall_back(way: str) -> None:
    t = refused({"soon": None, "other refusal": "clock_skew"}.get(way, "protocol_unsupported"))
    if way == "end":
        t.add(StepEnded(0, "done"), "runner")
    if way == "process":
        t.add(SutChanged("la", "stopping"), "sut")
    t.close("local" if way == "gateway" else "remote", 1000)
    t.end()
    assert t.status(LAW) is (Status.HELD if way == "other refusal" else Status.NOTHING)


@pytest.mark.parametrize("by", ["local", "none"])
def test_a_fallback_that_the_gateway_s_close_hid(by: str) -> None:
    t, _ = closing("protocol_unsupported", by=by)
    t.conn = "c2"
    v1(t.wait(1))
    assert t.status(LAW) is Status.UNKNOWN
    t.close()
    t.wait(1).connect("c3")
    assert t.violation(LAW).due == "v1 for 600 s"


@pytest.mark.req("HS-021", "V1-012")
def test_v2_offered_again_where_v1_follows() -> None:
    t = refused("protocol_unsupported")
    first = v1(t)
    t.close()
    t.conn = "c2"
    again = t.wait(1).register()
    t.cp("error", payload={"code": "protocol_unsupported"})
    v1(t)
    assert t.violation(LAW).entries == (first, again)

"""Signs of life and timeouts, clause by clause."""

from __future__ import annotations

import pytest

from lab.journal.events import LinkChanged, SutChanged, TextMessage
from lab.laws import Status
from tests.laws.journals import Tale


def ping(t: Tale, direction: str = "la-to-cp") -> int:
    return t.add(TextMessage(t.conn, direction, "ping", 4))


def living(seconds: int, beats: bool = True, pings: bool = True) -> Tale:
    t = Tale()
    t.connect()
    for seq in range(1, seconds // 30 + 1):
        t.wait(30)
        if beats:
            t.ack_by_cp(t.la("heartbeat", seq))
        if pings:
            ping(t)
    return t


@pytest.mark.req("SQ-028")
def test_both_signs_every_thirty_seconds() -> None:
    t = living(90)
    t.end()
    assert t.status("heartbeats") is Status.HELD
    assert t.judged("heartbeats").judgement.judged == 6


def test_a_short_run_has_none() -> None:
    t = living(0)
    t.wait(29).end()
    assert t.status("heartbeats") is Status.NOTHING


@pytest.mark.req("SQ-028")
@pytest.mark.parametrize(("beats", "pings", "seen"), [(False, True, "no heartbeat"), (True, False, "no ping")])
def test_one_of_them_is_missing(beats: bool, pings: bool, seen: str) -> None:
    t = living(60, beats, pings)
    t.end()
    found = t.violation("heartbeats")
    assert found.seen == f"{seen} for 60.0 s"
    assert found.due.endswith("every 30 s")


@pytest.mark.req("SQ-028")
def test_a_heartbeat_that_comes_late() -> None:
    t = living(30)
    t.wait(20)
    ping(t)
    t.wait(25)
    ping(t)
    late = t.la("heartbeat", 2)
    found = t.violation("heartbeats")
    assert found.seen == "no heartbeat for 45.0 s"
    assert found.entries[-1] == late


@pytest.mark.req("HS-027")
def test_the_period_of_ready() -> None:
    t = Tale()
    t.connect(ready={"facts": {}})
    limits = {"ackTimeoutMs": 5000, "heartbeatSeconds": 5}
    t.entries.pop()
    t.cp("ready", payload={"sessionId": t.session, "resumed": False, "peerLastSeq": 0, "limits": limits})
    t.wait(8).end()
    assert t.violation("heartbeats").due == "a heartbeat every 5 s"


@pytest.mark.req("WS-052")
def test_the_json_form_of_a_ping_counts() -> None:
    t = living(30, pings=False)
    t.la(None, None, version=None, agent_id=None, facts={"ping": "ping"})
    t.wait(10).end()
    assert t.status("heartbeats") is Status.HELD


@pytest.mark.parametrize("why", ["stopped", "delayed", "cut", "held"])
def test_a_sign_that_was_not_due_or_kept_back(why: str) -> None:
    t = living(30)
    if why == "stopped":
        t.wait(1).add(SutChanged("la", "stopping"), "sut")
    elif why == "delayed":
        t.add(LinkChanged("gateway", "delayed", 30.0), "link")
    elif why == "cut":
        t.wait(1).add(LinkChanged("gateway", "cut"), "link")
    else:
        t.cp("ack", payload={}, fate="dropped")
    t.wait(40).end()
    assert t.status("heartbeats") is Status.HELD


# Timeouts


def error(t: Tale, party: str) -> int:
    payload = {"code": "timeout", "retryable": True}
    return t.la("error", payload=payload) if party == "la" else t.cp("error", payload=payload)


@pytest.mark.req("SQ-029", "SQ-030")
@pytest.mark.parametrize(("seconds", "status"), [(90.0, Status.HELD), (70.0, Status.BROKEN)])
def test_the_gateway_ends_a_silent_connection_and_not_before(seconds: float, status: Status) -> None:
    t = living(30)
    t.wait(seconds)
    error(t, "cp")
    t.close("local", 4420)
    assert t.status("gateway-timeouts") is status


@pytest.mark.req("SQ-029")
def test_a_silent_connection_that_stays_open() -> None:
    t = living(30)
    t.wait(96).end()
    found = t.violation("gateway-timeouts")
    assert (found.seen, found.due) == ("still open after 96.0 s without a message", "close 4420 after 90 s")


@pytest.mark.req("SQ-030")
@pytest.mark.parametrize("sign", ["ping", "frame"])
def test_either_sign_alone_keeps_it_open(sign: str) -> None:
    t = living(30)
    t.wait(60)
    if sign == "ping":
        ping(t)
    else:
        t.la("heartbeat", 2)
    t.wait(60).end()
    assert t.status("gateway-timeouts") is Status.NOTHING


@pytest.mark.req("SQ-020", "SQ-022")
@pytest.mark.parametrize("party", ["la", "cp"])
@pytest.mark.parametrize(("copies", "wait", "held"), [(4, 5, True), (3, 5, False), (4, 1, False)])
def test_a_timeout_after_three_copies(party: str, copies: int, wait: float, held: bool) -> None:
    t = Tale()
    t.connect()
    for copy in range(copies):
        t.wait(5 if copy else 0.1)
        if party == "la":
            t.la("heartbeat", 1)
        else:
            t.cp("job.cancel", 1)
        ping(t)
        t.add(TextMessage(t.conn, "cp-to-la", "pong", 4))
    t.wait(wait)
    error(t, party)
    law = "timeouts" if party == "la" else "gateway-timeouts"
    assert t.status(law) is (Status.HELD if held else Status.BROKEN)


@pytest.mark.req("WS-023")
@pytest.mark.parametrize(("seconds", "status"), [(10.0, Status.HELD), (3.0, Status.BROKEN)])
def test_the_handshake_has_ten_seconds(seconds: float, status: Status) -> None:
    t = Tale()
    t.register()
    t.wait(seconds)
    error(t, "cp")
    assert t.status("gateway-timeouts") is status


def test_an_agent_without_ready_cannot_be_told() -> None:
    t = Tale()
    t.register()
    error(t, "la")
    assert t.status("timeouts") is Status.UNKNOWN

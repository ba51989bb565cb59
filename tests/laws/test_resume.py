"""Going on with a session, clause by clause."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lab.journal.events import LinkChanged, SutChanged
from lab.laws import Status
from tests.laws.journals import SESSION, SESSION_2, Tale, uuid

LAW = "resume-rules"
TWIN = "gateway-resume-rules"


def lost(sent: int = 2, got: int = 1) -> Tale:
    """A session in which the agent sent and the gateway sent, all acked, and whose socket is lost."""
    t = Tale()
    t.connect()
    for seq in range(1, got + 1):
        t.ack_by_la(t.cp("job.cancel", seq), ack=seq)
    for seq in range(1, sent + 1):
        t.ack_by_cp(t.la("heartbeat", seq, ack=got), ack=seq)
    t.close()
    return t


def resumed(t: Tale, last_recv: int = 1, peer_last: int = 2) -> Tale:
    t.connect("c2", resume=(SESSION, last_recv), resumed=True, peer_last=peer_last)
    return t


def test_a_session_goes_on() -> None:
    t = resumed(lost().wait(5))
    t.la("heartbeat", 3)
    assert t.status(LAW) is Status.HELD
    assert t.status(TWIN) is Status.HELD


def test_a_session_that_is_not_resumed_starts_anew() -> None:
    t = lost().wait(100)
    t.connect("c2", SESSION_2, resume=(SESSION, 1))
    t.la("heartbeat", 1)
    assert t.status(LAW) is Status.HELD
    assert t.status(TWIN) is Status.HELD


# What the agent asks


@pytest.mark.req("RS-006")
def test_a_session_it_did_not_have() -> None:
    t = lost()
    n = len(t.entries) + 1
    t.connect("c2", SESSION_2, resume=(uuid("strange"), 1))
    assert t.violation(LAW).seen == "resume of a session it did not have"
    assert t.violation(LAW).entries == (n,)


@pytest.mark.req("RS-006")
def test_a_first_register_that_asks() -> None:
    t = Tale()
    t.connect(resume=(SESSION_2, 0))
    assert t.status(LAW) is Status.BROKEN


@pytest.mark.req("RS-006")
def test_an_older_session_is_gone_once_a_newer_was_used() -> None:
    t = lost()
    t.connect("c2", SESSION_2, resume=(SESSION, 1))
    t.la("heartbeat", 1)
    t.close()
    n = len(t.entries) + 1
    t.connect("c3", uuid("third"), resume=(SESSION, 1))
    assert t.violation(LAW).entries == (n,)


def test_a_ready_that_was_lost_on_the_way_leaves_the_older_session() -> None:
    t = lost()
    t.connect("c2", SESSION_2, resume=(SESSION, 1))
    t.close()
    t.connect("c3", uuid("third"), resume=(SESSION, 1))
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("RS-008")
def test_too_late() -> None:
    t = lost()
    closed = len(t.entries) - 1
    t.wait(120.5).connect("c2", SESSION_2, resume=(SESSION, 1))
    found = t.violation(LAW)
    assert (found.seen, found.due, found.entries) == (
        "resume 120.5 s after the loss",
        "within 120 s",
        (closed, closed + 2),
    )


def test_too_late_by_less_than_the_delay_of_the_link() -> None:
    t = lost()
    t.add(LinkChanged("gateway", "delayed", 0.5))
    t.wait(120.5).connect("c2", SESSION_2, resume=(SESSION, 1))
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("RS-008")
def test_too_late_even_if_the_gateway_goes_on() -> None:
    t = resumed(lost().wait(121))
    assert t.violation(LAW).due == "within 120 s"


def test_a_register_while_the_old_socket_is_open() -> None:
    t = lost()
    t.entries.pop()
    t.wait(130).connect("c2", SESSION_2)
    t.conn = "c1"
    t.close()
    assert t.status(LAW) is Status.NOTHING


def test_a_register_without_resume_when_a_newer_session_may_have_been_missed() -> None:
    t = lost()
    t.connect("c2", SESSION_2, resume=(SESSION, 1))
    t.close()
    t.connect("c3", uuid("third"))
    assert t.judged(LAW).judgement.judged == 1


@pytest.mark.parametrize("fault", [True, False])
def test_an_error_that_was_lost_counts_as_one(fault: bool) -> None:
    """The fifth is not seen: the socket was gone before it came."""
    t = Tale()
    t.connect()
    for number in range(4):
        t.cp("job.cancel", 1, facts={"parse": "not JSON"})
        t.la("error", payload={"code": "bad_frame"})
        t.close("remote", 4400)
        t.wait(1).connect(f"r{number}", resume=(SESSION, 0), resumed=True)
    t.cp("job.cancel", 1, facts={"parse": "not JSON"} if fault else {})
    t.close()
    t.wait(1).connect("fresh", SESSION_2)
    assert t.status(LAW) is (Status.HELD if fault else Status.BROKEN)


@pytest.mark.parametrize(("ends", "status"), [(4, Status.BROKEN), (5, Status.HELD)])
def test_a_session_that_timed_out_five_times_need_not_be_asked_for(ends: int, status: Status) -> None:
    t = Tale()
    t.connect()
    for number in range(ends):
        t.la("heartbeat", 1)
        t.cp("error", payload={"code": "timeout"})
        t.close("local", 4420)
        if number < ends - 1:
            t.wait(1).connect(f"r{number}", resume=(SESSION, 0), resumed=True)
    t.wait(1).connect("fresh", SESSION_2)
    assert t.status(LAW) is status


@pytest.mark.req("RS-016")
@pytest.mark.parametrize(("by", "code"), [("none", None), ("local", 1000), ("remote", 4420)])
def test_a_register_without_resume(by: str, code: int | None) -> None:
    t = lost()
    t.entries.pop()
    t.close(by, code)
    closed = len(t.entries) - 1
    t.wait(3).connect("c2", SESSION_2)
    found = t.violation(LAW)
    assert (found.seen, found.entries) == ("register without resume", (closed, closed + 2))


@pytest.mark.req("RS-016")
def test_a_register_without_resume_when_nothing_shows_that_ready_came() -> None:
    t = Tale()
    t.connect()
    t.close()
    t.wait(1).connect("c2", SESSION_2)
    assert t.status(LAW) is Status.UNKNOWN


@pytest.mark.parametrize("why", ["late", "restart", "error", "attach", "left"])
def test_a_register_without_resume_may_be_right(why: str) -> None:
    t = Tale("attach" if why == "attach" else "reference")
    t.connect()
    t.la("heartbeat", 1)
    if why == "error":
        t.la("error", payload={"code": "handshake_violation"})
    t.close(*(("remote", 1000) if why == "left" else ()))
    if why == "restart":
        t.add(SutChanged("la", "started"))
    t.wait(121 if why == "late" else 1).connect("c2", SESSION_2)
    assert t.status(LAW) is (Status.NOTHING if why == "late" else Status.UNKNOWN)


@pytest.mark.parametrize("said", [0, 3])
@pytest.mark.req("RS-020")
def test_last_recv_seq(said: int) -> None:
    """Two frames were passed on, the first of them acked: 1 or 2 is right."""
    t = lost(got=1)
    t.entries.pop()
    second = t.cp("job.cancel", 2)
    t.close()
    n = len(t.entries) + 1
    t.connect("c2", resume=(SESSION, said), resumed=True, peer_last=2)
    found = t.violation(LAW)
    assert (found.seen, found.due) == (f"lastRecvSeq {said}", "lastRecvSeq 1 to 2")
    assert found.entries[-1] == n
    if said == 3:
        assert found.entries == (second, n)


@pytest.mark.parametrize("said", [1, 2])
def test_a_frame_before_the_cut_may_or_may_not_have_come(said: int) -> None:
    t = lost(got=1)
    t.entries.pop()
    t.cp("job.cancel", 2)
    t.close()
    resumed(t, last_recv=said)
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("RS-020")
def test_last_recv_seq_without_what_the_lab_dropped() -> None:
    t = lost(got=1)
    t.entries.pop()
    t.cp("job.cancel", 2, fate="dropped", fault="f")
    t.close()
    resumed(t, last_recv=2)
    assert t.violation(LAW).due == "lastRecvSeq 1"


@pytest.mark.req("SQ-033", "WS-033")
@pytest.mark.parametrize(("said", "status"), [(0, Status.HELD), (1, Status.BROKEN)])
def test_last_recv_seq_without_what_the_agent_refused(said: int, status: Status) -> None:
    t = Tale()
    t.connect()
    t.assign(facts={"signature": {"present": True, "verified": False, "bound": True, "equal": True}})
    t.la("error", payload={"code": "unauthorized"})
    t.close("remote", 4418)
    resumed(t, last_recv=said)
    assert t.status(LAW) is status


@pytest.mark.req("SQ-033")
def test_what_was_refused_counts_once_it_came_again() -> None:
    t = Tale()
    t.connect()
    t.assign(facts={"schema": {"keyword": "required", "path": "payload"}})
    t.la("error", payload={"code": "schema_violation"})
    t.close("remote", 4402)
    resumed(t, last_recv=0)
    t.ack_by_la(t.assign(), "rejected", ack=1)
    t.close()
    t.connect("c3", resume=(SESSION, 1), resumed=True)
    assert t.status(LAW) is Status.HELD


def test_what_it_gets_after_the_resume_does_not_count() -> None:
    t = resumed(lost())
    t.ack_by_la(t.cp("job.cancel", 2), ack=2)
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("RS-020")
def test_last_recv_seq_does_not_go_back() -> None:
    t = lost(got=1)
    t.entries.pop()
    t.cp("job.cancel", 2)
    t.close()
    n = resumed(t, last_recv=2).entries[-3].n
    t.close()
    again = len(t.entries) + 1
    t.connect("c3", resume=(SESSION, 1), resumed=True, peer_last=2)
    found = t.violation(LAW)
    assert (found.seen, found.due, found.entries) == ("lastRecvSeq 1", "lastRecvSeq 2", (n, again))


# How the agent goes on


@pytest.mark.req("RS-002", "RS-012")
@pytest.mark.parametrize("seq", [1, 2, 4])
def test_the_first_seq_after_resumed_true(seq: int) -> None:
    t = resumed(lost())
    ready = len(t.entries) - 1
    n = t.la("heartbeat", seq)
    found = t.violation(LAW)
    assert (found.due, found.entries) == ("seq 3", (ready, n))


@pytest.mark.req("RS-005")
def test_the_first_seq_after_resumed_false() -> None:
    t = lost()
    ready = t.connect("c2", SESSION_2, resume=(SESSION, 1))
    n = t.la("heartbeat", 3)
    found = t.violation(LAW)
    assert (found.seen, found.due, found.entries) == ("seq 3 after resumed:false", "seq 1", (ready, n))


def unacked(**fields: Any) -> Tale:
    """The agent's frame 3 was dropped by the lab and the socket was lost."""
    t = lost()
    t.entries.pop()
    t.la("heartbeat", 3, fate="dropped", fault="f", **fields)
    t.close()
    return resumed(t)


def test_an_unacked_frame_comes_again() -> None:
    t = unacked()
    t.la("heartbeat", 3)
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("RS-002", "RS-003")
def test_an_unacked_frame_that_does_not_come_again() -> None:
    t = unacked()
    t.wait(5.1).end()
    found = t.violation(LAW)
    assert (found.seen, found.due) == ("seq 3 not sent again", "every unacked frame again")


def test_an_unacked_frame_is_not_due_yet() -> None:
    t = unacked()
    t.wait(4).end("interrupted")
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("RS-003")
def test_an_unacked_frame_with_other_bytes() -> None:
    t = unacked()
    n = t.la("heartbeat", 3, sha256="0" * 64)
    found = t.violation(LAW)
    assert (found.due, found.entries[-1]) == ("the same bytes", n)


# What the gateway answers


@pytest.mark.req("HS-039")
def test_another_session_than_asked() -> None:
    t = lost()
    n = t.connect("c2", SESSION_2, resume=(SESSION, 1), resumed=True, peer_last=2)
    assert t.violation(TWIN).entries == (n,)


@pytest.mark.req("HS-039")
def test_resumed_without_being_asked() -> None:
    t = lost()
    n = t.connect("c2", SESSION, resumed=True, peer_last=2)
    assert t.violation(TWIN).entries == (n,)


@pytest.mark.req("RS-018")
def test_a_session_that_the_gateway_never_had() -> None:
    t = Tale()
    n = t.connect(resume=(SESSION, 0), resumed=True)
    found = t.violation(TWIN)
    assert (found.due, found.entries) == ("resumed:false", (n,))


@pytest.mark.req("RS-018")
def test_a_session_of_another_agent() -> None:
    t = lost()
    t.conn = "c2"
    other = uuid("another agent")
    t.la("register", payload={"resume": {"sessionId": SESSION, "lastRecvSeq": 1}}, agent_id=other)
    n = t.ready(SESSION, True, 2)
    assert t.violation(TWIN).entries == (n,)
    (found,) = t.judged(LAW).judgement.violations
    assert found.seen == "resume of a session it did not have"


@pytest.mark.req("RS-009")
def test_a_session_of_another_gateway() -> None:
    t = resumed(lost())
    t.entries = [replace(one, by="gw2") if getattr(one.event, "conn", "") == "c2" else one for one in t.entries]
    (found,) = t.judged(TWIN).judgement.violations
    assert (found.participant, found.due) == ("gw2", "resumed:false")


@pytest.mark.req("RS-009")
def test_a_session_that_is_too_old() -> None:
    t = lost()
    closed = len(t.entries) - 1
    resumed(t.wait(91))
    found = t.violation(TWIN)
    assert (found.seen, found.entries) == ("resumed:true 91.0 s after the loss", (closed, len(t.entries) - 1))


@pytest.mark.req("RS-020")
@pytest.mark.parametrize("said", [1, 3])
def test_peer_last_seq(said: int) -> None:
    t = resumed(lost(), peer_last=said)
    found = t.violation(TWIN)
    assert (found.seen, found.due) == (f"peerLastSeq {said}", "peerLastSeq 2")
    assert found.entries[-1] == len(t.entries) - 1


def test_peer_last_seq_without_what_the_lab_dropped() -> None:
    t = unacked()
    assert t.status(TWIN) is Status.HELD


@pytest.mark.parametrize("said", [2, 3])
def test_peer_last_seq_is_open_after_a_refusal(said: int) -> None:
    t = lost()
    t.entries.pop()
    t.la("heartbeat", 3, facts={"schema": {"keyword": "type", "path": "payload"}})
    t.close()
    resumed(t, peer_last=said)
    assert t.status(TWIN) is not Status.BROKEN


@pytest.mark.req("RS-001")
def test_a_live_session_refused() -> None:
    t = lost()
    closed = len(t.entries) - 1
    n = t.wait(80).connect("c2", SESSION_2, resume=(SESSION, 1))
    found = t.violation(TWIN)
    assert (found.seen, found.entries) == ("resumed:false 80.0 s after the loss", (closed, n))


@pytest.mark.parametrize("why", ["newer", "impossible", "old"])
def test_a_session_refused_rightly(why: str) -> None:
    t = lost()
    if why == "newer":
        t.connect("c0", uuid("newer"))
        t.close()
    t.wait(89.9 if why != "old" else 90.1)
    t.connect("c2", SESSION_2, resume=(SESSION, 9 if why == "impossible" else 1))
    assert t.status(TWIN) is Status.HELD


@pytest.mark.req("RS-020")
def test_peer_last_seq_of_a_new_session() -> None:
    t = lost()
    n = t.wait(100).connect("c2", SESSION_2, resume=(SESSION, 1), peer_last=2)
    assert t.violation(TWIN).entries == (n,)


@pytest.mark.req("HS-039")
def test_a_new_session_with_an_old_id() -> None:
    t = lost()
    n = t.wait(100).connect("c2", SESSION, resume=(SESSION, 1))
    assert t.violation(TWIN).entries == (n,)


# How the gateway goes on


@pytest.mark.req("RS-005")
def test_the_gateways_first_seq_after_resumed_false() -> None:
    t = lost().wait(100)
    ready = t.connect("c2", SESSION_2, resume=(SESSION, 1))
    n = t.assign(2)
    assert t.violation(TWIN).entries == (ready, n)


@pytest.mark.req("RS-004")
@pytest.mark.parametrize("again", ["same", "none", "other"])
def test_what_the_agent_lacks_comes_again(again: str) -> None:
    t = lost()
    t.entries.pop()
    before = t.cp("job.cancel", 2)
    t.close()
    resumed(t)
    if again == "same":
        t.cp("job.cancel", 2, sha256="2" * 64)
        assert t.status(TWIN) is Status.HELD
        return
    if again == "other":
        copy = t.cp("job.cancel", 2, msg_id=uuid("other"))
        assert t.violation(TWIN).entries == (before, copy)
        return
    t.wait(5.1).end()
    assert t.violation(TWIN).seen == "seq 2 not sent again"
    assert t.violation(TWIN).entries[0] == before


@pytest.mark.parametrize(("ends", "status"), [(5, Status.HELD), (4, Status.BROKEN)])
def test_a_session_that_ended_fatally_five_times_may_be_dropped(ends: int, status: Status) -> None:
    t = Tale()
    t.connect()
    for end in range(ends):
        t.la("heartbeat", 1, facts={"schema": {"keyword": "type", "path": "payload"}})
        t.cp("error", payload={"code": "schema_violation", "retryable": False})
        t.close("local", 4402)
        t.wait(0.2)
        if end < ends - 1:
            t.connect(f"c{end + 2}", resume=(SESSION, 0), resumed=True)
    t.connect("last", SESSION_2, resume=(SESSION, 0))
    assert t.status("gateway-resume-rules") is status

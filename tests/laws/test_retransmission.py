"""Retransmission, clause by clause."""

from __future__ import annotations

import pytest

from lab.journal.events import LinkChanged
from lab.laws import Status
from tests.laws.journals import SESSION, Tale, uuid


def tale() -> Tale:
    begun = Tale()
    begun.connect()
    return begun


class TestRetransmission:
    def test_copies_apart_by_the_ack_timeout_and_then_the_close(self) -> None:
        t = tale()
        t.la("heartbeat", 1)
        for _ in range(3):
            t.wait(5).la("heartbeat", 1)
        t.wait(5).la("error", payload={"code": "timeout"})
        t.close("remote", 4420)
        t.end()
        assert t.judged("retransmission").judgement.judged == 3
        assert t.status("retransmission") is Status.HELD

    @pytest.mark.req("SQ-019")
    def test_a_copy_with_other_bytes(self) -> None:
        t = tale()
        first = t.la("heartbeat", 1)
        copy = t.wait(5).la("heartbeat", 1, sha256="0" * 64)
        found = t.violation("retransmission")
        assert (found.due, found.entries) == ("the same bytes", (first, copy))

    @pytest.mark.req("SQ-021")
    def test_a_copy_too_late(self) -> None:
        t = tale()
        first = t.la("heartbeat", 1)
        second = t.wait(5).la("heartbeat", 1)
        copy = t.wait(10).la("heartbeat", 1)
        found = t.violation("retransmission")
        assert (found.seen, found.due, found.entries) == (
            "a copy of seq 1 after 10.00 s",
            "5 s apart",
            (second, copy),
        )
        assert first < second

    @pytest.mark.req("SQ-021")
    def test_a_copy_too_early(self) -> None:
        t = tale()
        first = t.la("heartbeat", 1)
        copy = t.wait(2).la("heartbeat", 1)
        found = t.violation("retransmission")
        assert (found.seen, found.due, found.entries) == (
            "a copy of seq 1 after 2.00 s",
            "5 s apart",
            (first, copy),
        )
        assert found.near_miss == "4.50 s least"

    @pytest.mark.req("SQ-019", "SQ-020")
    def test_a_fourth_copy(self) -> None:
        t = tale()
        t.la("heartbeat", 1)
        for _ in range(3):
            third = t.wait(5).la("heartbeat", 1)
        fourth = t.wait(5).la("heartbeat", 1)
        found = t.violation("retransmission")
        assert (found.seen, found.entries) == ("copy 4 of seq 1", (third, fourth))

    @pytest.mark.req("SQ-019")
    def test_no_copy(self) -> None:
        t = tale()
        n = t.la("heartbeat", 1)
        t.wait(10.1).end()
        found = t.violation("retransmission")
        assert (found.seen, found.due, found.entries) == (
            "nothing for 10.0 s after seq 1 without an ack",
            "copy 1 after 5 s",
            (n,),
        )

    @pytest.mark.parametrize(("after", "status"), [(3, Status.NOTHING), (20, Status.BROKEN)])
    def test_no_copy_is_due_once_the_connection_is_refused(self, after: float, status: Status) -> None:
        t = tale()
        t.la("heartbeat", 1)
        t.wait(after).cp("error", payload={"code": "unauthorized"})
        t.wait(60).end()
        assert t.status("retransmission") is status

    def test_a_copy_of_a_held_frame_is_due(self) -> None:
        t = tale()
        t.la("heartbeat", 1)
        t.la("heartbeat", 2, ack=0, fate="delayed", fault="f")
        t.cp("job.cancel", 1, ack=1)
        t.wait(60).end()
        assert t.violation("retransmission").seen == "nothing for 10.0 s after seq 2 without an ack"

    @pytest.mark.req("SQ-020")
    def test_no_close_after_the_third_copy(self) -> None:
        t = tale()
        t.la("heartbeat", 1)
        for _ in range(3):
            third = t.wait(5).la("heartbeat", 1)
        t.wait(10.1).end()
        found = t.violation("retransmission")
        assert (found.due, found.entries) == ("close 4420", (third,))

    def test_a_copy_of_an_acked_frame(self) -> None:
        t = tale()
        n = t.la("heartbeat", 1)
        t.ack_by_cp(n)
        copy = t.wait(5).la("heartbeat", 1)
        found = t.violation("retransmission")
        assert (found.due, found.entries) == ("no copy of an acked frame", (n, copy))

    @pytest.mark.parametrize(("after", "status"), [(0.6, Status.BROKEN), (0.4, Status.HELD)])
    def test_only_a_copy_that_was_under_way_may_come_after_the_ack(self, after: float, status: Status) -> None:
        t = tale()
        n = t.la("heartbeat", 1)
        t.wait(5 - after).ack_by_cp(n)
        t.wait(after).la("heartbeat", 1)
        assert t.status("retransmission") is status

    def test_a_copy_that_crosses_its_ack(self) -> None:
        t = tale()
        n = t.la("heartbeat", 1)
        t.wait(4.9).ack_by_cp(n)
        t.wait(0.1).la("heartbeat", 1)
        assert t.status("retransmission") is Status.HELD

    @pytest.mark.parametrize("settle", ["ack", "running"])
    def test_both_forms_of_an_ack_settle(self, settle: str) -> None:
        t = tale()
        n = t.la("heartbeat", 1)
        if settle == "ack":
            t.ack_by_cp(n)
        else:
            t.cp("job.cancel", 1, ack=1)
        t.wait(60).end()
        assert t.status("retransmission") is Status.NOTHING

    def test_another_frame_settles_nothing(self) -> None:
        t = tale()
        n = t.la("heartbeat", 1)
        t.ack_by_la(t.cp("job.cancel", 1, ack=0), ack=1)
        t.wait(60).end()
        assert t.violation("retransmission").entries == (n,)

    def test_a_dropped_ack_settles_nothing(self) -> None:
        t = tale()
        t.ack_by_cp(t.la("heartbeat", 1), fate="dropped", fault="f")
        t.wait(60).end()
        assert t.status("retransmission") is Status.BROKEN

    @pytest.mark.req("WS-085")
    @pytest.mark.parametrize("form", ["ack", "running"])
    def test_an_ack_that_breaks_a_rule_settles_nothing(self, form: str) -> None:
        t = tale()
        n = t.cp("job.cancel", 1)
        broken = {"schema": {"keyword": "required", "path": "payload"}}
        if form == "ack":
            t.ack_by_la(n, facts=broken)
        else:
            t.la("heartbeat", 1, ack=1, facts=broken)
        t.wait(60).end()
        assert t.violation("gateway-retransmission").entries == (n,)

    @pytest.mark.parametrize(("after", "status"), [(1, Status.NOTHING), (20, Status.BROKEN)])
    def test_a_held_ack_settles_where_it_is_let_go(self, after: float, status: Status) -> None:
        t = tale()
        ack = t.held(t.ack_by_cp(t.la("heartbeat", 1)))
        t.wait(after).released(ack)
        t.wait(60).end()
        assert t.status("retransmission") is status

    def test_a_delay_that_begins_behind_an_ack_holds_it(self) -> None:
        t = tale()
        t.ack_by_cp(t.la("heartbeat", 1))
        t.wait(0.01).add(LinkChanged("gateway", "delayed", 3.0))
        t.wait(4.99).la("heartbeat", 1)
        t.end()
        assert t.status("retransmission") is Status.HELD

    def test_the_copy_after_a_resume_is_no_retransmission(self) -> None:
        t = tale()
        t.la("heartbeat", 1)
        t.wait(1).close()
        t.connect("c2", resume=(SESSION, 0), resumed=True)
        t.ack_by_cp(t.la("heartbeat", 1))
        t.end()
        assert t.status("retransmission") is Status.NOTHING

    def test_the_timeout_is_that_of_ready(self) -> None:
        t = Tale()
        t.connect(ack_ms=200)
        t.la("heartbeat", 1)
        t.wait(0.2).la("heartbeat", 1)
        assert t.status("retransmission") is Status.HELD


class TestGatewayRetransmission:
    @pytest.mark.req("SQ-026")
    @pytest.mark.parametrize(("answer", "status"), [("r", Status.NOTHING), ("other", Status.BROKEN)])
    def test_the_first_content_response_settles_its_request(self, answer: str, status: Status) -> None:
        t = tale()
        t.cp("content.request", 1, request_id=uuid("r"))
        t.la("content.response", 1, request_id=uuid(answer))
        t.wait(60).end()
        assert t.status("gateway-retransmission") is status

    @pytest.mark.parametrize(("name", "answer"), [("job.cancel", "content.response"), ("content.request", "heartbeat")])
    def test_only_content_settles_and_only_a_request(self, name: str, answer: str) -> None:
        t = tale()
        t.cp(name, 1, request_id=uuid("r"))
        t.la(answer, 1, request_id=uuid("r"))
        t.wait(60).end()
        assert t.status("gateway-retransmission") is Status.BROKEN

    def test_signed_anew(self) -> None:
        t = tale()
        t.assign()
        t.wait(5).assign(sha256="1" * 64)
        assert t.status("gateway-retransmission") is Status.HELD

    @pytest.mark.req("SQ-023")
    def test_with_the_old_nonce(self) -> None:
        t = tale()
        old = {"present": True, "verified": True, "bound": True, "equal": True, "nonce": "n"}
        first = t.assign(facts={"signature": old})
        copy = t.wait(5).assign(facts={"signature": old})
        found = t.violation("gateway-retransmission")
        assert (found.seen, found.entries) == ("a copy of seq 1 with the old nonce", (first, copy))

    @pytest.mark.req("SQ-022")
    def test_another_payload(self) -> None:
        t = tale()
        first = t.assign()
        copy = t.wait(5).assign(kind="fix")
        assert t.violation("gateway-retransmission").entries == (first, copy)

    @pytest.mark.req("SQ-022")
    def test_no_copy(self) -> None:
        t = tale()
        n = t.assign()
        t.wait(10.1).end()
        assert t.violation("gateway-retransmission").entries == (n,)

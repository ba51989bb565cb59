"""Seq and acks, clause by clause."""

from __future__ import annotations

import pytest

from lab.journal.events import LinkChanged, LoopLag
from lab.laws import Status
from tests.laws.journals import SESSION, SESSION_2, Tale, uuid


def tale() -> Tale:
    begun = Tale()
    begun.connect()
    return begun


# numbering


@pytest.mark.parametrize("law", ["numbering", "gateway-numbering"])
class TestNumbering:
    def send(self, law: str, tale: Tale, seq: int, **fields: object) -> int:
        return tale.la("heartbeat", seq, **fields) if law == "numbering" else tale.cp("job.cancel", seq, **fields)

    def test_on_by_one_with_copies_holds(self, law: str) -> None:
        t = tale()
        for seq in (1, 2, 2, 3, 1):
            self.send(law, t, seq)
        assert t.judged(law).judgement.judged == 5
        assert t.status(law) is Status.HELD

    @pytest.mark.req("SQ-001", "SQ-004")
    def test_a_skipped_seq(self, law: str) -> None:
        t = tale()
        first = self.send(law, t, 1)
        third = self.send(law, t, 3)
        found = t.violation(law)
        assert (found.due, found.entries) == ("seq 2", (first, third))
        assert found.seen.startswith("seq 3")

    @pytest.mark.req("SQ-001")
    def test_a_session_that_does_not_start_at_1(self, law: str) -> None:
        t = tale()
        n = self.send(law, t, 2)
        assert t.violation(law).due == "seq 1"
        assert t.violation(law).entries == (n,)

    @pytest.mark.req("SQ-003")
    def test_a_seq_again_with_another_msg_id(self, law: str) -> None:
        t = tale()
        first = self.send(law, t, 1)
        again = self.send(law, t, 1, msg_id=uuid("other"))
        found = t.violation(law)
        assert found.seen.startswith("seq 1 again with another msgId")
        assert found.entries == (first, again)

    @pytest.mark.req("RS-002", "RS-005")
    def test_a_resumed_session_numbers_on_and_a_new_one_does_not(self, law: str) -> None:
        t = tale()
        self.send(law, t, 1)
        t.close()
        t.connect("c2", resume=(SESSION, 0), resumed=True)
        self.send(law, t, 2)
        t.close()
        t.connect("c3", SESSION_2, resume=(SESSION, 0))
        self.send(law, t, 1)
        assert t.status(law) is Status.HELD
        n = self.send(law, t, 3)
        assert t.violation(law).entries[-1] == n

    def test_a_copy_made_by_the_lab_is_not_the_senders(self, law: str) -> None:
        t = tale()
        self.send(law, t, 1)
        self.send(law, t, 7, fate="copied", fault="f1")
        assert t.status(law) is Status.HELD

    def test_a_frame_without_a_seq_is_not_counted(self, law: str) -> None:
        t = tale()
        self.send(law, t, 1)
        t.la("heartbeat", None)
        t.cp("job.cancel", None)
        self.send(law, t, 2)
        assert t.judged(law).judgement.judged == 2
        assert t.status(law) is Status.HELD

    def test_a_dropped_frame_was_sent_all_the_same(self, law: str) -> None:
        t = tale()
        self.send(law, t, 1, fate="dropped", fault="f1")
        self.send(law, t, 2)
        assert t.status(law) is Status.HELD


# acks


class TestAcks:
    def test_accepted_and_a_repeat_as_duplicate(self) -> None:
        t = tale()
        t.ack_by_la(t.assign(), ack=1)
        t.ack_by_la(t.assign(), "duplicate", ack=1)
        assert t.status("acks") is Status.HELD

    @pytest.mark.req("SQ-007")
    def test_no_ack(self) -> None:
        t = tale()
        n = t.assign()
        t.wait(5.1).end()
        found = t.violation("acks")
        assert (found.seen, found.due, found.entries) == (
            "no ack of seq 1 (job.assign)",
            "an ack within 5 s",
            (n,),
        )

    def test_no_ack_is_not_due_before_the_journal_ends(self) -> None:
        t = tale()
        t.assign()
        t.wait(4.9).end("interrupted")
        assert t.status("acks") is Status.NOTHING

    def test_no_ack_is_due_of_a_control_frame_or_one_before_ready(self) -> None:
        t = Tale()
        t.register()
        t.assign()
        t.ready()
        t.ack_by_cp(t.la("heartbeat", 1))
        t.cp("job.cancel", None)
        t.wait(60).end()
        assert t.status("acks") is Status.NOTHING

    @pytest.mark.parametrize(("after", "status"), [(4, Status.NOTHING), (6, Status.BROKEN)])
    def test_no_ack_is_due_once_the_connection_is_refused(self, after: float, status: Status) -> None:
        t = tale()
        t.assign()
        t.wait(after).la("error", payload={"code": "unauthorized"})
        t.cp("job.cancel", 2)
        t.wait(60).end()
        assert t.status("acks") is status

    def test_what_was_acked_before_a_fatal_error_counts(self) -> None:
        t = tale()
        t.ack_by_la(t.assign())
        t.la("error", payload={"code": "unauthorized"})
        assert t.status("acks") is Status.HELD

    def test_one_ack_frame_may_be_the_last_word_on_all_copies(self) -> None:
        """The socket ended before the copies had theirs; its number covers them."""
        t = tale()
        n = t.assign()
        t.wait(5).assign()
        t.cp("error", payload={"code": "timeout"})
        t.ack_by_la(n, ack=1)
        t.close("local", 4420)
        assert t.status("acks") is Status.HELD

    def test_who_called_a_fatal_error_reads_no_more(self) -> None:
        """What still comes is not acked, and is new on the next connection."""
        t = tale()
        t.cp("error", payload={"code": "timeout"})
        t.la("heartbeat", 1)
        t.wait(5).close("local", 4420)
        t.connect("c2", resume=(SESSION, 0), resumed=True, peer_last=0)
        t.ack_by_cp(t.la("heartbeat", 1))
        t.wait(5).end()
        assert t.status("acked-at-once") is Status.HELD
        assert t.status("gateway-resume-rules") is Status.HELD

    def test_no_ack_is_due_over_a_lost_socket(self) -> None:
        t = tale()
        t.assign()
        t.wait(1).close()
        t.wait(60).end()
        assert t.status("acks") is Status.NOTHING

    def test_no_ack_is_due_of_a_dropped_frame_or_one_behind_it(self) -> None:
        t = tale()
        t.assign(fate="dropped", fault="f1")
        t.cp("job.cancel", 2)
        t.wait(60).end()
        assert t.status("acks") is Status.NOTHING

    def test_no_ack_is_due_of_a_frame_to_be_refused(self) -> None:
        t = tale()
        t.assign(facts={"schema": {"keyword": "required", "path": "payload"}})
        t.wait(60).end()
        assert t.status("acks") is Status.NOTHING

    def test_a_held_frame_is_due_an_ack_from_its_release_on(self) -> None:
        t = tale()
        n = t.held(t.assign())
        released = t.wait(20).released(n)
        t.ack_by_la(n)
        assert t.status("acks") is Status.HELD
        t.entries.pop()
        t.wait(60).end()
        assert t.violation("acks").entries == (released,)

    def test_a_held_frame_that_its_copy_overtook_is_a_duplicate(self) -> None:
        t = tale()
        n = t.held(t.assign())
        t.ack_by_la(t.wait(5).assign(), ack=1)
        t.wait(1).released(n)
        t.ack_by_la(n, "accepted")
        assert t.violation("acks").seen == "seq 1 accepted again"

    def test_what_passes_a_held_frame_is_no_ack_of_it(self) -> None:
        """It would be refused for the gap, so nothing behind it is judged."""
        t = tale()
        t.held(t.assign())
        t.cp("job.cancel", 2)
        t.wait(60).end()
        assert t.status("acks") is Status.NOTHING

    @pytest.mark.req("SQ-027")
    def test_a_late_ack(self) -> None:
        t = tale()
        n = t.assign()
        ack = t.wait(6).ack_by_la(n)
        found = t.violation("acks")
        assert (found.seen, found.due, found.entries, found.near_miss) == (
            "ack of seq 1 after 6.0 s",
            "within 5 s",
            (n, ack),
            "1.0 s late",
        )

    @pytest.mark.parametrize(
        "event", [LinkChanged("gateway", "delayed", 0.6), LoopLag(1.1)], ids=["link", "lag of the loop"]
    )
    def test_a_bound_widens_by_what_the_lab_held_back(self, event: LinkChanged | LoopLag) -> None:
        t = tale()
        n = t.assign()
        t.wait(1).add(event)
        t.wait(5).ack_by_la(n)
        assert t.status("acks") is Status.HELD

    def test_a_delay_that_is_over_widens_nothing(self) -> None:
        t = tale()
        t.add(LinkChanged("gateway", "delayed", 2))
        t.wait(1).add(LinkChanged("gateway", "healed"))
        n = t.wait(10).assign()
        t.wait(6).ack_by_la(n)
        assert t.status("acks") is Status.BROKEN

    @pytest.mark.req("SQ-002", "SQ-008", "SQ-025")
    def test_a_repeat_accepted_again(self) -> None:
        t = tale()
        t.ack_by_la(t.assign())
        again = t.assign()
        ack = t.ack_by_la(again)
        found = t.violation("acks")
        assert (found.seen, found.due, found.entries) == (
            "seq 1 accepted again",
            "status duplicate",
            (again, ack),
        )

    @pytest.mark.req("SQ-002")
    def test_both_of_two_deliveries_accepted(self) -> None:
        t = tale()
        first, again = t.assign(), t.assign()
        t.ack_by_la(first)
        ack = t.ack_by_la(again)
        assert t.violation("acks").entries == (again, ack)

    @pytest.mark.req("SQ-002")
    @pytest.mark.req("SQ-003")
    def test_another_frame_under_a_used_number_gets_no_ack(self) -> None:
        t = tale()
        t.ack_by_la(t.assign(), ack=1)
        t.cp("job.cancel", 1, msg_id=uuid("another"))
        t.la("error", payload={"code": "seq_replayed", "retryable": False}, ack=1)
        t.close("remote", 4409)
        assert t.status("acks") is Status.HELD

    @pytest.mark.req("SQ-007", "SQ-015")
    def test_a_number_that_rides_along_is_no_ack_frame(self) -> None:
        t = tale()
        assign = t.assign()
        beat = t.la("heartbeat", 1, ack=1)
        assert t.violation("acks").entries == (assign, beat)

    def test_a_repeat_of_what_the_running_ack_covered(self) -> None:
        t = tale()
        t.ack_by_la(t.assign(), ack=1)
        t.la("heartbeat", 1, ack=1)
        t.close()
        t.connect("c2", resume=(SESSION, 1), resumed=True, peer_last=1)
        again = t.assign()
        ack = t.ack_by_la(again)
        assert t.violation("acks").entries == (again, ack)

    def test_an_ack_number_of_an_older_session_covers_nothing(self) -> None:
        t = tale()
        t.close()
        t.conn = "c2"
        t.la("register", ack=7)
        t.ready(SESSION_2)
        t.ack_by_la(t.assign(), ack=1)
        assert t.status("acks") is Status.HELD

    @pytest.mark.parametrize("status", ["accepted", "duplicate"])
    def test_a_repeat_after_a_resume_may_be_the_first_that_came(self, status: str) -> None:
        t = tale()
        t.assign()
        t.close()
        t.connect("c2", resume=(SESSION, 0), resumed=True)
        t.ack_by_la(t.assign(), status)
        assert t.status("acks") is Status.HELD

    @pytest.mark.req("SQ-010")
    def test_a_first_delivery_called_duplicate(self) -> None:
        t = tale()
        n = t.assign()
        ack = t.ack_by_la(n, "duplicate")
        assert t.violation("acks").entries == (n, ack)
        assert t.violation("acks").due == "accepted or rejected"

    def test_an_ack_with_another_msg_id(self) -> None:
        t = tale()
        n = t.assign()
        ack = t.la("ack", payload={"status": "accepted", "ackSeq": 1, "ackMsgId": uuid("x")})
        assert t.violation("acks").entries == (n, ack)
        assert "ackMsgId" in t.violation("acks").seen

    def test_an_ack_of_nothing(self) -> None:
        t = tale()
        ack = t.la("ack", payload={"status": "accepted", "ackSeq": 4, "ackMsgId": uuid("x")})
        assert t.violation("acks").entries == (ack,)
        assert t.violation("acks").seen == "ack of seq 4"

    @pytest.mark.req("SQ-026")
    def test_the_first_content_response_acks_its_request(self) -> None:
        t = tale()
        t.cp("content.request", 1, request_id=uuid("r"))
        t.la("content.response", 1, request_id=uuid("r"))
        t.wait(60).end()
        assert t.status("acks") is Status.HELD

    @pytest.mark.req("SQ-026")
    @pytest.mark.parametrize("why", ["other request", "other type", "by the lab", "no request"])
    def test_nothing_else_acks_a_request(self, why: str) -> None:
        t = tale()
        name = "job.cancel" if why == "no request" else "content.request"
        t.cp(name, 1, request_id=uuid("r"))
        answer = "heartbeat" if why == "other type" else "content.response"
        asked = uuid("x" if why == "other request" else "r")
        by_lab = {"fate": "copied", "fault": "f"} if why == "by the lab" else {}
        t.la(answer, 1, request_id=asked, **by_lab)
        t.wait(60).end()
        assert t.violation("acks").seen == f"no ack of seq 1 ({name})"

    def test_one_ack_more_than_was_due(self) -> None:
        t = tale()
        n = t.assign()
        t.ack_by_la(n)
        t.ack_by_la(n, "duplicate")
        assert t.status("acks") is Status.HELD

    @pytest.mark.req("WS-006")
    def test_an_ack_number_of_a_dropped_frame(self) -> None:
        t = tale()
        t.assign(fate="dropped", fault="f")
        n = t.la("heartbeat", 1, ack=1)
        assert t.violation("acks").entries == (n,)

    def test_the_labs_copy_of_an_older_ack_number(self) -> None:
        t = tale()
        t.ack_by_la(t.assign(), ack=1)
        t.la("ack", ack=0, fate="copied", fault="f")
        assert t.status("acks") is Status.HELD

    @pytest.mark.req("WS-006")
    def test_an_ack_number_above_what_was_passed_on(self) -> None:
        t = tale()
        t.ack_by_la(t.assign(), ack=1)
        n = t.la("heartbeat", 1, ack=2)
        found = t.violation("acks")
        assert (found.seen, found.due, found.entries) == ("ack 2", "at most 1, the last in sequence", (n,))

    @pytest.mark.req("WS-006")
    def test_an_ack_number_that_goes_back(self) -> None:
        t = tale()
        first = t.ack_by_la(t.assign(), ack=1)
        n = t.la("heartbeat", 1, ack=0)
        found = t.violation("acks")
        assert (found.seen, found.due, found.entries) == ("ack 0 after ack 1", "at least 1", (first, n))

    def test_a_copy_repeats_its_old_ack_number(self) -> None:
        t = tale()
        t.la("heartbeat", 1, ack=0)
        t.ack_by_la(t.assign(), ack=1)
        t.wait(5).la("heartbeat", 1, ack=0)
        assert t.status("acks") is Status.HELD

    def test_a_frame_lost_with_the_old_socket_repeats_its_old_ack_number(self) -> None:
        t = tale()
        t.ack_by_la(t.assign(), ack=1)
        t.close()
        t.connect("c2", resume=(SESSION, 1), resumed=True)
        t.la("heartbeat", 1, ack=0)
        assert t.status("acks") is Status.HELD
        t.la("ack", ack=0)
        assert t.status("acks") is Status.BROKEN

    def test_a_short_ack_timeout_leaves_a_second(self) -> None:
        t = Tale()
        t.connect(ack_ms=50)
        t.ack_by_la(t.wait(1).assign(), ack=1)
        n = t.cp("job.cancel", 2)
        t.wait(0.9).ack_by_la(n)
        assert t.status("acks") is Status.HELD


class TestAckedAtOnce:
    def test_on_receipt(self) -> None:
        t = tale()
        t.ack_by_cp(t.la("heartbeat", 1), ack=1)
        t.ack_by_cp(t.la("heartbeat", 1), "duplicate", ack=1)
        assert t.status("acked-at-once") is Status.HELD

    @pytest.mark.req("SQ-034")
    def test_late(self) -> None:
        t = tale()
        n = t.la("heartbeat", 1)
        ack = t.wait(1.5).ack_by_cp(n)
        assert t.violation("acked-at-once").entries == (n, ack)

    def test_what_came_behind_a_refused_frame_was_not_taken(self) -> None:
        t = tale()
        t.la("heartbeat", 1, facts={"schema": {"keyword": "type", "path": "/payload"}})
        t.la("heartbeat", 2)
        t.cp("error", payload={"code": "schema_violation", "retryable": False})
        t.close("local", 4402)
        t.connect("c2", resume=(SESSION, 0), resumed=True)
        t.ack_by_cp(t.la("heartbeat", 1), "rejected", ack=1)
        t.ack_by_cp(t.la("heartbeat", 2), ack=2)
        assert t.status("acked-at-once") is Status.HELD

    def test_what_came_behind_a_lost_frame_was_not_taken(self) -> None:
        t = tale()
        t.la("heartbeat", 1, fate="dropped", fault="f1")
        t.la("heartbeat", 2)
        t.cp("error", payload={"code": "seq_gap", "retryable": False})
        t.close("local", 4408)
        t.connect("c2", resume=(SESSION, 0), resumed=True)
        t.ack_by_cp(t.la("heartbeat", 1), ack=1)
        t.ack_by_cp(t.la("heartbeat", 2), ack=2)
        assert t.status("acked-at-once") is Status.HELD

    def test_an_ack_that_the_lab_dropped_was_given(self) -> None:
        t = tale()
        t.ack_by_cp(t.la("heartbeat", 1), fate="dropped", fault="f1")
        t.wait(10).end()
        assert t.status("acked-at-once") is Status.HELD

    def test_the_copy_of_a_frame_that_the_lab_dropped_is_the_first(self) -> None:
        t = tale()
        t.la("heartbeat", 1, fate="dropped", fault="f1")
        t.ack_by_cp(t.wait(5).la("heartbeat", 1))
        assert t.status("acked-at-once") is Status.HELD

    @pytest.mark.req("SQ-002")
    def test_a_repeat_accepted_again_over_connections(self) -> None:
        t = tale()
        t.la("heartbeat", 1)
        t.close()
        t.connect("c2", resume=(SESSION, 0), resumed=True, peer_last=1)
        again = t.la("heartbeat", 1)
        ack = t.ack_by_cp(again)
        assert t.violation("acked-at-once").entries == (again, ack)

    @pytest.mark.req("SQ-015")
    @pytest.mark.parametrize(("first", "status"), [(True, Status.BROKEN), (False, Status.HELD)])
    def test_a_rejection_comes_before_the_ack_number(self, first: bool, status: Status) -> None:
        t = tale()
        beat = t.la("heartbeat", 1)
        if first:
            t.cp("job.cancel", 1, ack=1)
        t.ack_by_cp(beat, "rejected", ack=1)
        assert t.status("acked-at-once") is status

    @pytest.mark.req("WS-006")
    def test_an_ack_number_above_what_came(self) -> None:
        t = tale()
        n = t.cp("job.cancel", 1, ack=1)
        assert t.violation("acked-at-once").entries == (n,)

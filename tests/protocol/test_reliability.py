"""Numbering, acks, retransmission and duplicates, with literal clocks."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.protocol.events import Ended, Overdue, Received, Repeated, Settled
from lab.protocol.frames import Draft, RefusedDraft
from lab.protocol.gateway_side import SessionStore
from lab.protocol.reliability import REFUSALS_REMEMBERED, Inbound, Outbound, QueueFull, Verdict
from tests.protocol.sides import (
    CONTRACT,
    JOB,
    SESSION,
    TS,
    WORKSPACE,
    ack,
    agent_outbox,
    cancel_draft,
    chunk_frame,
    event_draft,
    heartbeat,
    hello,
    members,
    new_gateway,
    outputs,
    ready_agent,
    ready_gateway,
    register,
    resumed_agent,
    signed_cancel,
    take,
    text,
    texts,
    uuid,
    written,
)


def request_draft(number: int) -> Draft:
    return Draft("content.request", {"kind": "job.stream", "ref": JOB}, WORKSPACE, uuid(number))


# Outbound alone


def sending(count: int, window: int = 8) -> Outbound:
    outbound = Outbound(window, 256, 3)
    for number in range(count):
        outbound.enqueue(event_draft(number))
    while (delivery := outbound.take()) is not None:
        outbound.sent(delivery, uuid(outbound.next_seq), f"raw {outbound.next_seq}", 0)
    return outbound


@pytest.mark.req("SQ-001", "SQ-017")
def test_window_of_eight_and_the_rest_waits() -> None:
    outbound = sending(20)
    assert [frame.seq for frame in outbound.unacked()] == list(range(1, 9))
    assert outbound.queued == 12
    assert not outbound.has_room
    outbound.acked_up_to(3)
    assert [outbound.take() is not None for _ in range(4)] == [True, True, True, True]


@pytest.mark.req("SQ-018")
def test_queue_of_256_refuses_the_next_and_drops_nothing() -> None:
    outbound = sending(8)
    for number in range(256):
        outbound.enqueue(event_draft(number))
    with pytest.raises(QueueFull):
        outbound.enqueue(event_draft(999))
    assert (outbound.queued, len(outbound.unacked())) == (256, 8)


@pytest.mark.req("SQ-014", "SQ-016")
@pytest.mark.parametrize(("number", "settled"), [(0, 0), (1, 1), (5, 5), (8, 8), (9, 0), (2**62, 0)])
def test_cumulative_ack(number: int, settled: int) -> None:
    outbound = sending(8)
    assert [delivery.seq for delivery in outbound.acked_up_to(number)] == list(range(1, settled + 1))
    assert outbound.highest_acked == settled


@pytest.mark.req("SQ-014")
def test_ack_frame_settles_the_one_it_names() -> None:
    outbound = sending(4)
    assert outbound.acked_one(3, uuid(2), None) is None
    assert outbound.acked_one(3, uuid(4), None) is None
    assert outbound.acked_one(9, uuid(9), None) is None
    third = outbound.acked_one(3, uuid(3), None)
    assert third is not None
    assert (third.state, third.code) == ("delivered", None)
    second = outbound.acked_one(2, uuid(2), "rate_limited")
    assert second is not None
    assert (second.state, second.code, second.over) == ("rejected", "rate_limited", True)
    assert [frame.seq for frame in outbound.unacked()] == [1, 4]
    assert outbound.acked_one(3, uuid(3), None) is None


def test_an_ack_frame_too_says_what_the_peer_has() -> None:
    """A peer that acked 3 by name cannot resume with less (decision 24)."""
    outbound = sending(4)
    outbound.acked_one(3, uuid(3), None)
    assert outbound.highest_acked == 3


@pytest.mark.req("SQ-021", "WS-022")
def test_lapse_counts_each_frame_for_itself() -> None:
    outbound = Outbound(8, 256, 3)
    for moment in (0.0, 2.0):
        outbound.enqueue(event_draft(1))
        delivery = outbound.take()
        assert delivery is not None
        outbound.sent(delivery, uuid(1), "raw", moment)
    assert outbound.deadline(5) == 5
    assert outbound.lapse(4.999, 5).again == ()
    (first,) = outbound.lapse(5, 5).again
    outbound.resent(first, "raw", 5)
    assert outbound.deadline(5) == 7


@pytest.mark.req("RS-002", "RS-003")
def test_resume_drops_what_the_peer_had_and_repeats_the_rest() -> None:
    outbound = sending(5)
    for frame in outbound.unacked():
        outbound.resent(frame, frame.raw, 5)
    had, again = outbound.resume(2, 100)
    assert [delivery.seq for delivery in had] == [1, 2]
    assert [(frame.seq, frame.retransmissions, frame.sent_at) for frame in again] == [(n, 0, 100) for n in (3, 4, 5)]
    assert outbound.next_seq == 6


@pytest.mark.req("RS-005")
def test_reset_fails_what_had_a_number_and_keeps_what_is_told() -> None:
    outbound = sending(12)
    outbound.acked_up_to(2)
    kept = [outbound.waiting()[0], outbound.waiting()[3]]
    failed = outbound.reset("agent_offline", kept)
    assert [delivery.draft.payload["iteration"] for delivery in failed] == [*range(2, 8), 9, 10]
    assert {(delivery.state, delivery.code) for delivery in failed} == {("failed", "agent_offline")}
    assert list(outbound.waiting()) == kept
    assert (outbound.next_seq, outbound.highest_acked, outbound.unacked()) == (1, 0, ())


def test_two_equal_drafts_are_two_deliveries() -> None:
    outbound = sending(0)
    first, second = outbound.enqueue(event_draft(1)), outbound.enqueue(event_draft(1))
    assert outbound.reset("agent_offline", [second]) == [first]
    assert first.over
    assert not second.over


# Inbound alone


@pytest.mark.req("SQ-003", "SQ-004", "SQ-005", "SQ-006", "WS-027")
def test_512_pairs_are_kept() -> None:
    inbound = Inbound(512)
    for seq in range(1, 601):
        assert inbound.judge(seq, uuid(seq)) is Verdict.FRESH
        inbound.received(seq, uuid(seq))
    assert inbound.judge(89, uuid(89)) is Verdict.DUPLICATE
    assert inbound.judge(88, uuid(88)) is Verdict.REPLAYED
    assert inbound.judge(600, uuid(1)) is Verdict.REPLAYED
    assert inbound.judge(602, uuid(602)) is Verdict.GAP
    assert inbound.judge(601, uuid(3)) is Verdict.FRESH


@given(st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), max_size=60))
def test_no_seq_is_fresh_twice(frames: list[tuple[int, int]]) -> None:
    inbound, taken = Inbound(4), []
    for seq, number in frames:
        if inbound.judge(seq, uuid(number)) is Verdict.FRESH:
            inbound.received(seq, uuid(number))
            taken.append(seq)
    assert taken == list(range(1, len(taken) + 1))


def test_refusals_are_remembered_within_a_bound() -> None:
    inbound = Inbound(512)
    for number in range(REFUSALS_REMEMBERED + 1):
        inbound.refuse(1, uuid(number), "schema_violation")
    assert inbound.refused_code(1, uuid(0)) is None
    assert inbound.refused_code(1, uuid(1)) == "schema_violation"
    inbound.reset()
    assert inbound.refused_code(1, uuid(1)) is None


# On a connection


@pytest.mark.req("SQ-019", "SQ-020", "SQ-021", "WS-022", "WS-042", "WS-079", "SQ-032")
def test_agent_repeats_the_same_bytes_at_5_10_15_and_closes_at_20() -> None:
    agent = ready_agent()
    delivery = agent.send(event_draft(1), 0)
    (first,) = texts(agent)
    for moment in (5.0, 10.0, 15.0):
        assert agent.next_timeout() == moment
        assert agent.handle_timeout(moment - 0.001) == []
        assert texts(agent) == []
        agent.handle_timeout(moment)
        assert texts(agent) == [first]
    assert agent.next_timeout() == 20
    events = agent.handle_timeout(20)
    assert [type(event) for event in events] == [Overdue, Ended]
    frames, close = outputs(agent)
    assert [(frame["type"], frame["payload"]["code"]) for frame in frames] == [("error", "timeout")]
    assert close == 4420
    # The frame is kept for the resume.
    assert not delivery.over
    agent.closed(20)
    again = resumed_agent(agent.outbox, 21, 0)
    assert texts(again) == [first]
    assert Settled(delivery) in again.receive_untrusted(ack(1, uuid_of(first)), 21)
    assert delivery.state == "delivered"


def uuid_of(text: str) -> str:
    return str(json.loads(text)["msgId"])


@pytest.mark.req("SQ-022", "SQ-023", "SQ-024", "RS-016", "CP-031")
def test_gateway_signs_each_copy_anew_and_keeps_the_frame() -> None:
    store = SessionStore(90)
    gateway = ready_gateway(store=store)
    delivery = gateway.send(cancel_draft(), 0)
    copies = written(gateway)
    for moment in (5.0, 10.0, 15.0):
        gateway.handle_timeout(moment)
        copies += written(gateway)
    events = gateway.handle_timeout(20)
    assert Overdue(delivery) in events
    assert outputs(gateway)[1] == 4420
    gateway.closed(20)
    session_id = gateway.session.session_id
    again = new_gateway(store=store, now=30)
    again.receive_untrusted(
        register(payload={"resume": {"sessionId": session_id, "lastRecvSeq": 0}}, ts="2026-11-04T10:00:30Z"), 30
    )
    again.receive_untrusted(hello(ts="2026-11-04T10:00:30Z"), 30)
    copies += [frame for frame in written(again) if frame["type"] == "job.cancel"]
    assert len(copies) == 5
    assert len({(frame["seq"], frame["msgId"], frame["paramsRaw"]) for frame in copies}) == 1
    assert len({frame["sig"]["nonce"] for frame in copies}) == 5
    moments = [frame["sig"]["timestamp"] - copies[0]["sig"]["timestamp"] for frame in copies]
    assert moments == [0, 5000, 10_000, 15_000, 30_000]
    # Each copy holds at the agent, which runs it once.
    agent = ready_agent()
    kinds = []
    for frame, moment in zip(copies, (0, 5, 10, 15, 30), strict=True):
        kinds += [type(event) for event in take(agent, json.dumps(frame), moment)]
    assert kinds == [Received, Repeated, Repeated, Repeated, Repeated]


@pytest.mark.req("SQ-007", "SQ-010", "SQ-002", "SQ-008", "WS-006")
def test_each_data_frame_gets_an_ack_frame() -> None:
    agent = ready_agent()
    for seq in (1, 2, 3):
        take(agent, signed_cancel(seq))
    take(agent, signed_cancel(2, nonce=50))
    frames = written(agent)
    assert [(frame["payload"]["status"], frame["payload"]["ackSeq"], frame["ack"]) for frame in frames] == [
        ("accepted", 1, 1),
        ("accepted", 2, 2),
        ("accepted", 3, 3),
        ("duplicate", 2, 3),
    ]
    agent.send(event_draft(1), 0)
    assert written(agent)[0]["ack"] == 3


@pytest.mark.req("SQ-013")
def test_ack_and_error_are_not_acked_or_repeated() -> None:
    for connection in (ready_agent(), ready_gateway()):
        take(connection, ack(1, uuid(1)))
        connection.fail("internal", 0)
        assert [frame["type"] for frame in written(connection)] == ["error"]
        due = connection.next_timeout()
        assert due is not None
        assert due >= 30


def test_ack_is_left_out_before_anything_came() -> None:
    agent = ready_agent()
    agent.send(event_draft(1), 0)
    assert "ack" not in written(agent)[0]


@pytest.mark.req("SQ-009", "SQ-012", "WS-076")
def test_rejected_frame_uses_its_seq_up() -> None:
    agent = ready_agent()
    take(agent, signed_cancel(1), answer="protocol_unsupported")
    (frame,) = written(agent)
    assert frame["payload"]["status"] == "rejected"
    assert frame["payload"]["errorCode"] == "protocol_unsupported"
    assert frame["ack"] == 1
    assert [type(event) for event in take(agent, signed_cancel(2))] == [Received]


@pytest.mark.req("SQ-015")
def test_rejection_is_not_hidden_by_the_piggyback_of_its_own_ack() -> None:
    agent, gateway = ready_agent(), ready_gateway()
    delivery = gateway.send(cancel_draft(), 0)
    take(agent, texts(gateway)[0], answer="rate_limited")
    (answer,) = texts(agent)
    assert gateway.receive_untrusted(answer, 0) == [Settled(delivery)]
    assert (delivery.state, delivery.code) == ("rejected", "rate_limited")


@pytest.mark.req("SQ-015")
def test_nothing_overtakes_the_ack_of_a_frame_that_waits_for_its_answer() -> None:
    agent = ready_agent()
    (received,) = take(agent, signed_cancel(1), answer=None)
    agent.send(event_draft(1), 0)
    assert written(agent) == []
    assert isinstance(received, Received)
    agent.reject(received.frame, "rate_limited", 0)
    assert [frame["type"] for frame in written(agent)] == ["ack", "job.event"]


@pytest.mark.req("SQ-014")
def test_piggyback_stops_the_retransmission() -> None:
    agent = ready_agent()
    delivery = agent.send(event_draft(1), 0)
    assert Settled(delivery) in take(agent, signed_cancel(1, ack=1))
    agent.handle_timeout(5)
    assert [frame["type"] for frame in written(agent)] == ["job.event", "ack"]


@pytest.mark.req("SQ-016")
@pytest.mark.parametrize("number", [2, 999, 2**53 - 1, 1.0e15])
def test_ack_of_what_was_never_sent_is_ignored(number: float) -> None:
    agent = ready_agent()
    delivery = agent.send(event_draft(1), 0)
    written(agent)
    take(agent, signed_cancel(1, ack=number))
    assert not delivery.over
    assert [frame["type"] for frame in written(agent)] == ["ack"]


@pytest.mark.parametrize("number", [2**53, 2**63, 10**40, -1, 0.5, "1", None])
@pytest.mark.parametrize("member", ["seq", "ack"])
def test_number_outside_the_bounds_is_a_schema_violation(member: str, number: object) -> None:
    gateway = ready_gateway()
    frame = json.loads(heartbeat(1))
    frame[member] = number
    gateway.receive_untrusted(json.dumps(frame), 0)
    frames, close = outputs(gateway)
    assert (frames[0]["payload"]["code"], close) == ("schema_violation", 4402)


def test_a_whole_number_with_a_point_is_a_seq() -> None:
    gateway = ready_gateway()
    (event,) = take(gateway, heartbeat(1).replace('"seq":1', '"seq":1.0'))
    assert isinstance(event, Received)
    assert event.frame.seq == 1


def test_ack_on_a_refused_frame_settles_nothing() -> None:
    agent = ready_agent()
    delivery = agent.send(event_draft(1), 0)
    take(agent, signed_cancel(3, ack=1))
    assert delivery.state == "sent"


@pytest.mark.req("SQ-026", "SQ-027")
@pytest.mark.parametrize("moment", [1, 6])
def test_first_response_acks_the_request(moment: float) -> None:
    gateway = ready_gateway()
    delivery = gateway.send(request_draft(7), 0)
    gateway.handle_timeout(moment)
    expected = 2 if moment > 5 else 1
    assert len(written(gateway)) == expected
    assert Settled(delivery) in take(gateway, chunk_frame(1, 7, 0, 2), moment)
    written(gateway)
    gateway.handle_timeout(moment + 30)
    assert written(gateway) == []


def test_response_to_another_request_acks_nothing() -> None:
    gateway = ready_gateway()
    delivery = gateway.send(request_draft(7), 0)
    take(gateway, chunk_frame(1, 8, 0, 1))
    assert not delivery.over


def test_no_other_frame_that_names_the_request_acks_it() -> None:
    gateway = ready_gateway()
    delivery = gateway.send(request_draft(7), 0)
    audit = members("audit.event", {"code": "note", "at": TS}, 1, requestId=uuid(7))
    for message in (text(audit), heartbeat(2, requestId=uuid(7))):
        take(gateway, message)
    assert not delivery.over


@pytest.mark.req("SQ-003", "SQ-004", "WS-067", "WS-068")
@pytest.mark.parametrize(
    ("seq", "number", "due"),
    [
        (4, 4, None),
        (5, 5, ("seq_gap", 4408)),
        (3, 9, ("seq_replayed", 4409)),
        (1, 4, ("seq_replayed", 4409)),
        (3, 3, None),
    ],
)
def test_seq_and_msg_id(seq: int, number: int, due: tuple[str, int] | None) -> None:
    gateway = ready_gateway()
    for one in (1, 2, 3):
        take(gateway, heartbeat(one))
    written(gateway)
    take(gateway, heartbeat(seq, number))
    frames, close = outputs(gateway)
    assert ((frames[0]["payload"].get("code"), close) if close else None) == due


@pytest.mark.req("SQ-005", "SQ-006", "CP-032")
@pytest.mark.parametrize(("kept", "count"), [(None, 520), (4, 10)])
def test_replay_of_the_oldest_kept_and_of_the_next(kept: int | None, count: int) -> None:
    gateway = ready_gateway(dedupe=kept)
    for seq in range(1, count + 1):
        take(gateway, heartbeat(seq))
    entries = kept or 512
    assert [type(event) for event in take(gateway, heartbeat(count - entries + 1))] == [Repeated]
    written(gateway)
    take(gateway, heartbeat(count - entries))
    assert outputs(gateway)[1] == 4409


@pytest.mark.req("SQ-018")
def test_full_queue_tells_the_caller_and_takes_no_seq() -> None:
    agent = ready_agent()
    for number in range(8 + 256):
        agent.send(event_draft(number), 0)
    with pytest.raises(RefusedDraft) as refused:
        agent.send(event_draft(1), 0)
    assert refused.value.code == "rate_limited"
    assert [frame["seq"] for frame in written(agent)] == list(range(1, 9))


@pytest.mark.req("SQ-017")
def test_agent_stops_at_eight_until_acks_come() -> None:
    agent = ready_agent()
    for number in range(20):
        agent.send(event_draft(number), 0)
    assert len(written(agent)) == 8
    take(agent, signed_cancel(1, ack=5))
    assert [frame["seq"] for frame in written(agent) if frame["type"] == "job.event"] == [9, 10, 11, 12, 13]


@pytest.mark.req("CP-033")
def test_gateway_stops_at_sixteen() -> None:
    gateway = ready_gateway()
    for _ in range(20):
        gateway.send(cancel_draft(), 0)
    assert [frame["seq"] for frame in written(gateway)] == list(range(1, 17))


@pytest.mark.req("RS-005", "RS-006", "RS-020", "SQ-001")
def test_lost_session_fails_what_had_a_number_and_renumbers_the_rest() -> None:
    outbox = agent_outbox()
    agent = ready_agent(outbox)
    deliveries = [agent.send(event_draft(number), 0) for number in range(10)]
    agent.closed(1)
    again = ready_agent(outbox, sessionId=uuid(5))
    assert {(delivery.state, delivery.code) for delivery in deliveries[:8]} == {("failed", "agent_offline")}
    assert [delivery.seq for delivery in deliveries[8:]] == [1, 2]
    assert again.session.session_id == uuid(5) != SESSION
    assert CONTRACT.limits.dedupe_entries == 512

"""The content relay on its own: time limits, and what it keeps."""

from __future__ import annotations

import pytest

from lab.gateway.relay import MOST_WAITING, Answer, ContentRelay
from lab.protocol.frames import Chunk, Draft, Frame
from lab.protocol.reliability import Delivery

REQUEST, OTHER = "r-1", "r-2"


def delivery(state: str = "sent") -> Delivery:
    made = Delivery(Draft("content.request", {}, "ws", REQUEST))
    made.state = "sent" if state == "sent" else "waiting"
    return made


def chunk(index: int, total: int, request: str = REQUEST, **payload: object) -> Frame:
    members = {"status": "ok", **payload}
    place = Chunk(index, total, index == total - 1)
    return Frame("content.response", "m", 1, "t", "ws", "ts", members, None, request, "a", place)


@pytest.mark.req("CH-037")
def test_the_limits_start_when_a_waiting_request_is_written() -> None:
    relay, waits = ContentRelay(), delivery("waiting")
    relay.asked(REQUEST, "a", waits, 1)
    assert relay.next_timeout() == 11
    waits.state = "sent"
    relay.note_written(7)
    relay.note_written(8)
    assert relay.next_timeout() == 17
    relay.take(chunk(0, 2), b"x", "a")
    assert relay.next_timeout() == 37
    assert relay.handle_timeout(36.9) == []
    assert relay.handle_timeout(37) == [Answer(REQUEST, "error", code="timeout")]
    assert relay.next_timeout() is None


@pytest.mark.req("CH-028", "SEC-001")
def test_nothing_of_a_request_that_is_over_is_kept() -> None:
    relay = ContentRelay()
    relay.asked(REQUEST, "a", delivery(), 0)
    relay.take(chunk(0, 2), b"x", "a")
    assert relay.fail(REQUEST, "internal") == Answer(REQUEST, "error", code="internal")
    assert relay.take(chunk(1, 2), b"y", "a") is None
    assert relay.fail(REQUEST, "internal") is None
    assert vars(relay) == {"_pending": {}}


def streaming() -> ContentRelay:
    relay = ContentRelay()
    relay.asked(REQUEST, "a", delivery(), 0, in_chunks=True)
    return relay


@pytest.mark.req("CH-026", "WS-080")
def test_sixteen_chunks_wait_for_a_caller_and_the_next_one_costs_it_the_request() -> None:
    relay = streaming()
    for index in range(MOST_WAITING):
        assert relay.take(chunk(index, 64), b"x", "a") is None
    assert relay.read(REQUEST) == (b"x", None)
    assert relay.take(chunk(16, 64), b"y", "a") is None
    assert relay.take(chunk(17, 64), b"z", "a") == Answer(REQUEST, "error", code="rate_limited")
    # Nothing of it is kept, and what comes after it is dropped.
    assert relay.take(chunk(18, 64), b"z", "a") is None
    assert relay.read(REQUEST) == (None, None)
    assert vars(relay) == {"_pending": {}}


def test_a_caller_that_takes_chunk_by_chunk_has_its_answer_with_the_last_one() -> None:
    relay = streaming()
    assert relay.read(REQUEST) == (None, None)
    relay.take(chunk(0, 2), b"x", "a")
    assert relay.take(chunk(1, 2, totalBytes=2), b"y", "a") is None
    # What is here whole does not go with its session.
    assert relay.fail_all("a", "agent_offline") == []
    assert relay.read(REQUEST) == (b"x", None)
    assert relay.read(REQUEST) == (b"y", Answer(REQUEST, "ok"))


@pytest.mark.req("SEC-001")
def test_chunks_that_nobody_takes_are_not_kept_for_ever() -> None:
    relay = streaming()
    relay.take(chunk(0, 1), b"x", "a")
    assert (relay.next_timeout(), relay.handle_timeout(29)) == (30, [])
    assert relay.handle_timeout(30) == [Answer(REQUEST, "error", code="timeout")]
    assert vars(relay) == {"_pending": {}}


@pytest.mark.req("CH-030")
def test_a_total_that_does_not_fit_fails_a_caller_of_chunks_too() -> None:
    relay = streaming()
    relay.take(chunk(0, 2), b"x", "a")
    wrong = relay.take(chunk(1, 2, totalBytes=3), b"y", "a")
    assert wrong == Answer(REQUEST, "error", code="chunk_inconsistent")


def test_two_requests_are_told_apart() -> None:
    relay = ContentRelay()
    relay.asked(REQUEST, "a", delivery(), 0)
    relay.asked(OTHER, "b", delivery(), 5)
    assert relay.take(chunk(0, 2), b"x", "a") is None
    assert relay.take(chunk(0, 1, OTHER), b"z", "b") == Answer(OTHER, "ok", b"z")
    assert relay.take(chunk(1, 2), b"y", "a") == Answer(REQUEST, "ok", b"xy")


def test_only_the_agent_that_was_asked_can_answer() -> None:
    relay = ContentRelay()
    relay.asked(REQUEST, "a", delivery(), 0)
    assert relay.take(chunk(0, 1), b"x", "b") is None
    assert relay.fail_all("b", "agent_offline") == []
    assert relay.fail_all("a", "agent_offline") == [Answer(REQUEST, "error", code="agent_offline")]

"""Single frames, and what follows a fatal error."""

from __future__ import annotations

from typing import Any

import pytest

from lab.journal.events import LinkChanged, SocketOpened, SutChanged, TextMessage
from lab.laws import Status
from lab.laws.codes import CLOSE_CODES, CODES, FATAL
from tests.laws.journals import Tale, uuid


def tale() -> Tale:
    begun = Tale()
    begun.connect()
    return begun


BREAKS: list[Any] = [
    pytest.param({"parse": "not JSON"}, "not JSON", id="parse", marks=pytest.mark.req("WS-001")),
    pytest.param({"parse": "binary message"}, "binary message", id="binary", marks=pytest.mark.req("WS-036")),
    pytest.param(
        {"parse": "a member stands twice"}, "a member stands twice", id="twice", marks=pytest.mark.req("WS-034")
    ),
    pytest.param({"size": "frame_too_large"}, "frame_too_large", id="size", marks=pytest.mark.req("WS-019")),
    pytest.param(
        {"schema": {"keyword": "pattern", "path": "msgId"}},
        "schema_violation at msgId (pattern)",
        id="schema",
        marks=pytest.mark.req("WS-031", "LA-007"),
    ),
    pytest.param({"type": "unknown_type"}, "unknown_type", id="type", marks=pytest.mark.req("WS-031")),
    pytest.param({"direction": False}, "wrong_direction", id="direction", marks=pytest.mark.req("WS-038")),
    pytest.param({"tenant": "tenant_mismatch"}, "tenant_mismatch", id="tenant", marks=pytest.mark.req("WS-008")),
    pytest.param({"agent": "agent_mismatch"}, "agent_mismatch", id="agent", marks=pytest.mark.req("WS-009")),
]


@pytest.mark.parametrize(("facts", "seen"), BREAKS)
@pytest.mark.parametrize("law", ["agent-frames-valid", "gateway-frames-valid"])
def test_each_fact_of_the_tap(law: str, facts: dict[str, Any], seen: str) -> None:
    t = tale()
    n = t.la("heartbeat", 1, facts=facts) if law == "agent-frames-valid" else t.cp("job.cancel", 1, facts=facts)
    found = t.violation(law)
    assert found.seen.split(": ", 1)[1] == seen
    assert found.entries == (n,)


@pytest.mark.req("WS-009")
def test_a_frame_in_the_name_of_another_agent() -> None:
    t = tale()
    n = t.la("heartbeat", 1, agent_id=uuid("other"))
    found = t.violation("agent-frames-valid")
    assert (found.due, found.entries) == ("the agent that registered here", (n,))


@pytest.mark.req("HS-016")
def test_the_first_frame_is_register() -> None:
    t = Tale()
    n = t.la("hello")
    assert t.violation("agent-frames-valid").seen == "hello as the first frame"
    assert t.violation("agent-frames-valid").entries == (n,)


@pytest.mark.req("HS-017")
def test_no_data_frame_of_the_agent_before_ready() -> None:
    t = Tale()
    t.register()
    n = t.la("heartbeat", 1)
    assert t.violation("agent-frames-valid").seen == "heartbeat before ready"
    assert t.violation("agent-frames-valid").entries == (n,)


@pytest.mark.req("HS-038")
def test_no_data_frame_of_the_gateway_before_ready() -> None:
    t = Tale()
    t.register()
    n = t.assign()
    assert t.violation("gateway-frames-valid").entries == (n,)


def test_a_gateway_goes_by_a_ready_that_the_lab_dropped() -> None:
    t = Tale()
    t.register()
    t.ready(fate="dropped", fault="f")
    t.assign()
    assert t.status("gateway-frames-valid") is Status.HELD
    t.la("heartbeat", 1)
    assert t.status("agent-frames-valid") is Status.BROKEN


@pytest.mark.req("HS-018")
@pytest.mark.parametrize("type_", ["register", "hello"])
def test_a_second_handshake_frame(type_: str) -> None:
    t = tale()
    n = t.la(type_)
    assert t.violation("agent-frames-valid").seen == f"a second {type_}"
    assert t.violation("agent-frames-valid").entries == (n,)


@pytest.mark.req("HS-038")
def test_a_second_ready() -> None:
    t = tale()
    n = t.ready()
    assert t.violation("gateway-frames-valid").entries == (n,)


def test_frames_of_v1_after_a_fallback_are_not_judged() -> None:
    v1 = {"schema": {"keyword": "required", "path": ""}, "type": "unknown_type"}
    t = Tale()
    t.register()
    t.cp("error", payload={"code": "protocol_unsupported"})
    t.la(None, version=None, facts=v1)
    assert t.judged("agent-frames-valid").judgement.judged == 1
    assert t.status("agent-frames-valid") is Status.HELD


def test_frames_of_v1_after_a_wait_without_ready_are_not_judged() -> None:
    v1 = {"type": "unknown_type"}
    t = Tale()
    t.add(SocketOpened("c1", "/"))
    t.register()
    early = t.wait(0.9).la(None, version=None, facts=v1)
    t.wait(0.2).la(None, version=None, facts=v1)
    assert t.violation("agent-frames-valid").entries == (early,)


# after a fatal error

SIDES = pytest.mark.parametrize(
    ("law", "by", "other"),
    [("after-fatal", "remote", "local"), ("gateway-after-fatal", "local", "remote")],
)


def error(t: Tale, law: str, code: str = "seq_gap") -> int:
    payload = {"code": code, "retryable": False}
    return t.la("error", payload=payload) if law == "after-fatal" else t.cp("error", payload=payload)


@SIDES
class TestAfterFatal:
    @pytest.mark.parametrize("code", sorted(FATAL))
    def test_the_close_of_its_code(self, law: str, by: str, other: str, code: str) -> None:
        t = tale()
        error(t, law, code)
        t.close(by, 4400 + CODES.index(code))
        assert t.status(law) is Status.HELD

    @pytest.mark.req("WS-040")
    def test_another_close_code(self, law: str, by: str, other: str) -> None:
        t = tale()
        n = error(t, law)
        closed = t.close(by, 1000)
        found = t.violation(law)
        assert (found.seen, found.due, found.entries) == ("close 1000 after seq_gap", "close 4408", (n, closed))

    @pytest.mark.req("WS-042")
    def test_a_frame_after_it(self, law: str, by: str, other: str) -> None:
        t = tale()
        n = error(t, law)
        later = t.la("heartbeat", 1) if law == "after-fatal" else t.cp("job.cancel", 1)
        t.close(by, 4408)
        assert t.violation(law).entries == (n, later)

    @pytest.mark.req("WS-042")
    def test_a_text_message_after_it(self, law: str, by: str, other: str) -> None:
        t = tale()
        n = error(t, law)
        direction = "la-to-cp" if law == "after-fatal" else "cp-to-la"
        later = t.add(TextMessage("c1", direction, "ping", 4))
        t.close(by, 4408)
        assert t.violation(law).entries == (n, later)
        assert t.violation(law).seen == "text ping after the fatal error seq_gap"

    @pytest.mark.req("WS-042")
    def test_no_close(self, law: str, by: str, other: str) -> None:
        t = tale()
        n = error(t, law)
        t.wait(5.1).end()
        assert t.violation(law).entries == (n,)
        assert t.violation(law).due == "close 4408"

    def test_no_close_is_not_due_yet_or_behind_a_slow_link(self, law: str, by: str, other: str) -> None:
        t = tale()
        t.add(LinkChanged("gateway", "delayed", 1))
        error(t, law)
        t.wait(6.9).end("interrupted")
        assert t.status(law) is Status.NOTHING

    def test_the_peer_closed_first(self, law: str, by: str, other: str) -> None:
        t = tale()
        error(t, law)
        t.close(other, 1000)
        assert t.status(law) is Status.UNKNOWN

    def test_a_copy_by_the_lab_after_it(self, law: str, by: str, other: str) -> None:
        t = tale()
        error(t, law)
        more = {"fate": "copied", "fault": "f"}
        t.la("heartbeat", 1, **more) if law == "after-fatal" else t.cp("job.cancel", 1, **more)
        t.close(by, 4408)
        assert t.status(law) is Status.HELD

    def test_an_error_that_is_not_fatal_ends_nothing(self, law: str, by: str, other: str) -> None:
        t = tale()
        error(t, law, "rate_limited")
        t.la("heartbeat", 1)
        t.cp("job.cancel", 1)
        t.wait(60).end()
        assert t.status(law) is Status.NOTHING

    @pytest.mark.req("WS-042")
    def test_a_close_of_a_protocol_error_without_its_frame(self, law: str, by: str, other: str) -> None:
        t = tale()
        n = t.close(by, 4420)
        found = t.violation(law)
        assert (found.due, found.entries) == ("an error frame timeout before it", (n,))

    def test_a_close_that_repeats_the_peers(self, law: str, by: str, other: str) -> None:
        t = tale()
        error(t, "gateway-after-fatal" if law == "after-fatal" else "after-fatal")
        t.close(by, 4408)
        assert t.status(law) is Status.NOTHING


@pytest.mark.req("WS-039", "WS-041")
def test_the_table_of_close_codes() -> None:
    assert len(CODES) == 23
    assert CLOSE_CODES["timeout"] == 4420
    assert CLOSE_CODES["bad_frame"] == 4400
    assert CLOSE_CODES["internal"] == 4422


def test_the_witness_may_tell_whose_socket_it_is() -> None:
    t = Tale()
    t.add(SocketOpened("c1", "/", "other"))
    t.la("hello", agent_id=None)
    (found,) = t.judged("agent-frames-valid").judgement.violations
    assert found.participant == "other"


def test_nothing_is_due_of_a_process_that_is_being_stopped() -> None:
    t = tale()
    error(t, "after-fatal")
    t.wait(1).add(SutChanged("la", "stopping"))
    t.wait(60).end()
    assert t.status("after-fatal") is Status.NOTHING

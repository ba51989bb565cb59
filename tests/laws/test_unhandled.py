"""What an agent has no handler for."""

from __future__ import annotations

from typing import Any

import pytest

from lab.journal.events import ParticipantDeclared
from lab.laws import Status
from tests.laws.journals import AGENT, Tale, uuid

LAW = "unhandled-rejected"
SCHEMA = {"keyword": "required", "path": "payload"}


def declared(**facts: Any) -> Tale:
    t = Tale()
    told = {"agentId": AGENT, "handles": ["job.assign", "content.request"], "serves": ["job.stream"], **facts}
    t.add(ParticipantDeclared("la", "local_agent", "reference", told), "runner")
    t.connect()
    return t


def ack(t: Tale, of: int, status: str, code: str | None = None) -> int:
    payload = {"status": status, "ackSeq": 1, "ackMsgId": t.msg(of)}
    return t.la("ack", payload=payload | ({"errorCode": code} if code else {}))


@pytest.mark.req("SQ-009")
@pytest.mark.parametrize(
    ("status", "code", "told"), [("accepted", None, "accepted"), ("rejected", "internal", "internal")]
)
def test_a_type_that_is_not_rejected_so(status: str, code: str | None, told: str) -> None:
    t = declared()
    n = t.cp("config.update", 1)
    answer = ack(t, n, status, code)
    found = t.violation(LAW)
    assert (found.seen, found.entries) == (f"config.update without a handler acked {told}", (n, answer))


@pytest.mark.req("SQ-009")
def test_a_type_that_is_rejected() -> None:
    t = declared()
    ack(t, t.cp("config.update", 1), "rejected", "protocol_unsupported")
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("CH-035")
def test_an_answer_with_content_of_a_kind_that_is_not_served() -> None:
    t = declared()
    n = t.ask(1, "r", "x", kind="scan.report")
    ack(t, n, "accepted")
    answer = t.answer(1, "r")
    found = t.violation(LAW)
    assert (found.seen, found.entries) == (
        "an answer with content of kind scan.report, which it does not serve",
        (n, answer),
    )


@pytest.mark.req("CH-035")
@pytest.mark.parametrize(("code", "status"), [("protocol_unsupported", Status.HELD), ("internal", Status.BROKEN)])
def test_a_kind_that_is_rejected(code: str, status: Status) -> None:
    t = declared()
    ack(t, t.ask(1, "r", "x", kind="scan.report"), "rejected", code)
    assert t.status(LAW) is status


def test_what_is_handled_and_served() -> None:
    t = declared()
    ack(t, t.assign(), "rejected", "rate_limited")
    ack(t, t.ask(2, "r", "x"), "accepted")
    assert t.status(LAW) is Status.NOTHING


@pytest.mark.parametrize("status", [None, "duplicate"])
def test_without_the_first_ack_nobody_can_tell(status: str | None) -> None:
    t = declared()
    n = t.cp("config.update", 1)
    if status is not None:
        ack(t, n, status)
    assert t.status(LAW) is Status.UNKNOWN


def test_of_an_agent_that_nobody_declared() -> None:
    t = Tale()
    t.connect()
    ack(t, t.assign(), "accepted")
    ack(t, t.ask(2, "r", "x"), "accepted")
    assert t.status(LAW) is Status.NOTHING
    ack(t, t.cp("config.update", 3), "accepted")
    ack(t, t.ask(4, "s", "x", kind="scan.report"), "accepted")
    assert t.status(LAW) is Status.UNKNOWN


@pytest.mark.parametrize("fields", [{"facts": {"schema": SCHEMA}}, {"fate": "dropped", "fault": "f"}])
def test_what_was_not_in_order_or_never_came(fields: dict[str, Any]) -> None:
    t = declared()
    ack(t, t.cp("config.update", 1, request_id=uuid("r"), **fields), "accepted")
    assert t.status(LAW) is Status.NOTHING

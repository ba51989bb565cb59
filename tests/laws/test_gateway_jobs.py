"""What a gateway makes of its caller's order, and what it tells of the job."""

from __future__ import annotations

from typing import Any

import pytest

from lab.journal.events import digest
from lab.laws import Status
from tests.laws.journals import JOB, Tale, uuid

ORDER = "assigned-as-ordered"
TOLD = "reports-told-once"


def inline(text: str) -> dict[str, Any]:
    """An input of a job.assign, as it stands in a journal."""
    return {"inline": digest("inline", text), "transient": True}


def ordered(kind: str = "fix", **payload: Any) -> Tale:
    t = Tale()
    t.connect()
    t.assigned("one", "two", kind="fix")
    t.assign(kind=kind, payload={"inputs": [inline("one"), inline("two")], **payload})
    return t


def test_as_ordered() -> None:
    assert ordered(incidentRef={"id": "i-1"}).status(ORDER) is Status.HELD


@pytest.mark.req("CP-016")
@pytest.mark.parametrize(
    ("payload", "seen"),
    [
        ({"inputs": [inline("two"), inline("one")]}, "2 inputs that are not the caller's"),
        ({"inputs": [inline("one")]}, "1 inputs that are not the caller's"),
        ({"inputs": [inline("one"), {"ref": "x"}]}, "2 inputs that are not the caller's"),
        ({"kind": "implement"}, "a job of kind implement"),
    ],
)
def test_not_as_ordered(payload: dict[str, Any], seen: str) -> None:
    t = ordered(**payload)
    assert t.violation(ORDER).seen == seen
    assert len(t.violation(ORDER).entries) == 2


@pytest.mark.req("CP-016", "CP-017")
def test_a_chat_with_an_incident() -> None:
    t = Tale()
    t.connect()
    n = t.assign(payload={"incidentRef": {"id": "i-1"}})
    assert t.violation(ORDER).entries == (n,)


def test_an_order_that_nobody_saw() -> None:
    t = Tale()
    t.connect()
    t.assign(kind="fix")
    assert t.status(ORDER) is Status.HELD


# Reports


def report(t: Tale, seq: int, type_: str = "job.event", **fields: Any) -> int:
    return t.la(type_, seq, payload={"jobId": JOB, "state": "running"}, **fields)


def running() -> Tale:
    t = Tale()
    t.connect()
    t.ack_by_la(t.assign())
    return t


def test_each_report_is_told_once() -> None:
    t = running()
    t.ack_by_cp(report(t, 1))
    t.moved("running", 1)
    n = report(t, 1)
    t.ack_by_cp(n, "duplicate")
    t.ack_by_cp(report(t, 2, "job.result"))
    t.moved("ended", 1, 1)
    assert t.status(TOLD) is Status.HELD


@pytest.mark.req("SQ-002")
@pytest.mark.parametrize("type_", ["job.event", "job.result"])
def test_a_repeat_that_is_told(type_: str) -> None:
    t = running()
    n = report(t, 1, type_)
    report(t, 1, type_)
    told = t.moved("running", 2, 0) if type_ == "job.event" else t.moved("running", 0, 2)
    assert t.violation(TOLD).entries == (n, told)
    assert t.violation(TOLD).seen == f"2 {type_} told, 1 came"


def test_a_report_that_is_accepted_and_not_told() -> None:
    t = running()
    t.ack_by_cp(report(t, 1))
    ack = t.ack_by_cp(report(t, 2))
    told = t.moved("running", 1)
    assert t.violation(TOLD).entries == (ack, told)


def test_what_did_not_come_or_is_nobodys_need_not_be_told() -> None:
    t = running()
    report(t, 1, fate="dropped", fault="f")
    t.conn = "c2"
    t.ack_by_cp(report(t, 1, agent_id=uuid("another agent"), msg_id=uuid("its report")))
    t.moved("running", 0)
    assert t.status(TOLD) is Status.NOTHING


def test_a_journal_without_the_counts() -> None:
    t = running()
    report(t, 1)
    t.moved("running", None, None)
    assert t.status(TOLD) is Status.NOTHING

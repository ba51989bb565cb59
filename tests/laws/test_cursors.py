"""Refs: found, and not found."""

from __future__ import annotations

import pytest

from lab.journal.events import SutChanged
from lab.laws import Status
from tests.laws.journals import JOB, Tale, uuid

LAW = "refs"
CURSOR = "x" * 43


def tale(kind: str = "chat", how: str = "reference", accepted: bool = True) -> Tale:
    t = Tale(how)
    t.connect()
    assign = t.assign(kind=kind)
    if accepted:
        t.ack_by_la(assign)
    return t


def answered(t: Tale, ref: str, status: str, content: str = "job.stream", after: float = 0.1, seq: int = 2) -> int:
    name = f"r{seq}"
    t.ask(seq, name, ref, content)
    t.wait(after).answer(seq, name)
    return t.body(name, content, ref, status, JOB, **({"next": CURSOR} if status == "ok" else {}))


@pytest.mark.parametrize("status", ["ok", "error"])
def test_a_chat_is_found(status: str) -> None:
    t = tale()
    answered(t, JOB, status)
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("CHAT-044", "CHAT-019")
def test_a_chat_that_was_accepted_is_not_found() -> None:
    t = tale()
    answered(t, JOB, "not_found")
    assert t.violation(LAW).seen == "not_found for a chat that was accepted"


@pytest.mark.parametrize("why", ["failed", "not accepted", "restarted"])
def test_a_chat_that_need_not_be_found(why: str) -> None:
    t = tale(accepted=why != "not accepted")
    if why == "failed":
        t.la("job.result", 1, payload={"jobId": JOB, "outcome": "failed", "errorCode": "infra"})
    elif why == "restarted":
        t.add(SutChanged("la", "started"), "sut")
    answered(t, JOB, "not_found")
    assert t.status(LAW) is Status.UNKNOWN


@pytest.mark.req("CHAT-045")
@pytest.mark.parametrize(
    ("status", "after", "held"), [("not_found", 0.1, True), ("not_found", 2, False), ("ok", 0.1, False)]
)
def test_a_job_of_another_kind(status: str, after: float, held: bool) -> None:
    t = tale("fix")
    answered(t, JOB, status, after=after)
    assert t.status(LAW) is (Status.HELD if held else Status.BROKEN)


@pytest.mark.req("CHAT-045", "CHAT-043")
@pytest.mark.parametrize(
    ("ref", "status", "after", "held"),
    [
        (uuid("nobody"), "not_found", 0.1, True),
        (uuid("nobody"), "not_found", 8.0, False),
        (uuid("nobody"), "ok", 0.1, False),
        ("y" * 43, "ok", 0.1, False),
        ("y" * 43, "not_found", 0.1, True),
    ],
)
def test_a_ref_that_nobody_handed_out(ref: str, status: str, after: float, held: bool) -> None:
    t = tale()
    answered(t, ref, status, after=after)
    assert t.status(LAW) is (Status.HELD if held else Status.BROKEN)


@pytest.mark.req("CHAT-043")
@pytest.mark.parametrize("before", [True, False])
def test_a_ref_of_a_page_that_its_witness_could_not_read(before: bool) -> None:
    t = tale()
    t.ask(9, "torn", JOB)
    if before:
        t.answer(9, "torn", 1, 2)
    answered(t, "y" * 43, "ok")
    assert t.status(LAW) is (Status.UNKNOWN if before else Status.BROKEN)


def test_an_attached_agent_may_know_more() -> None:
    t = tale(how="attach")
    answered(t, "y" * 43, "ok")
    assert t.status(LAW) is Status.UNKNOWN


@pytest.mark.req("CHAT-046")
@pytest.mark.parametrize("restarted", [False, True])
def test_a_cursor_lives_as_long_as_its_record(restarted: bool) -> None:
    t = tale()
    t.ask(2, "r2", JOB)
    t.answer(2, "r2")
    t.page(JOB, [], CURSOR, name="r2")
    answered(t, CURSOR, "ok", seq=3)
    if restarted:
        t.wait(1).add(SutChanged("la", "started"), "sut")
    answered(t, CURSOR, "not_found", seq=4)
    assert t.status(LAW) is (Status.HELD if restarted else Status.BROKEN)


@pytest.mark.req("CHAT-054", "CHAT-055", "CHAT-057")
@pytest.mark.parametrize(
    ("ref", "status", "posted", "word"),
    [
        (JOB, "ok", True, Status.HELD),
        (JOB, "not_found", True, Status.BROKEN),
        (JOB, "not_found", False, Status.UNKNOWN),
        (uuid("nobody"), "not_found", True, Status.HELD),
        (uuid("nobody"), "ok", True, Status.BROKEN),
    ],
)
def test_a_conversation(ref: str, status: str, posted: bool, word: Status) -> None:
    t = tale()
    if posted:
        t.post()
    answered(t, ref, status, "chat.session")
    assert t.status(LAW) is word


@pytest.mark.req("CHAT-019")
@pytest.mark.parametrize("why", ["posted", "unlisted", "listed"])
def test_a_failed_chat_was_opened_first(why: str) -> None:
    t = tale()
    if why == "posted":
        t.post(503)
    else:
        t.health(kinds=["fix", "implement"] if why == "unlisted" else ["chat"])
    t.la("job.result", 1, payload={"jobId": JOB, "outcome": "failed", "errorCode": "infra"})
    answered(t, JOB, "not_found")
    assert t.status(LAW) is (Status.UNKNOWN if why == "listed" else Status.BROKEN)


# Another workspace


def foreign(t: Tale, ref: str, status: str, content: str = "job.stream") -> int:
    t.ask(2, "r", ref, content, workspace_id="ws-other")
    t.wait(0.1).answer(2, "r")
    return t.body("r", content, ref, status)


def owned() -> Tale:
    t = Tale()
    t.connect()
    t.ack_by_la(t.assign(workspace_id="ws-main"))
    t.post()
    return t


@pytest.mark.req("CH-036")
@pytest.mark.parametrize("content", ["job.stream", "chat.session"])
@pytest.mark.parametrize(
    ("status", "word"),
    [
        ("forbidden", Status.HELD),
        ("ok", Status.BROKEN),
        ("not_found", Status.BROKEN),
        ("error", Status.UNKNOWN),
    ],
)
def test_a_request_of_another_workspace(content: str, status: str, word: Status) -> None:
    t = owned()
    foreign(t, JOB, status, content)
    assert t.status(LAW) is word


@pytest.mark.req("CH-036")
def test_a_cursor_in_the_name_of_another_workspace() -> None:
    t = owned()
    t.ask(2, "p", JOB, workspace_id="ws-main")
    t.answer(2, "p")
    t.page(JOB, [], CURSOR, name="p")
    t.ask(3, "r", CURSOR, workspace_id="ws-other")
    t.answer(3, "r")
    t.page(CURSOR, [], CURSOR, name="r")
    assert t.violation(LAW).seen == "its content for a request of another workspace"


def test_the_workspace_that_the_job_was_assigned_to() -> None:
    t = owned()
    t.ask(2, "r", JOB, workspace_id="ws-main")
    t.answer(2, "r")
    t.page(JOB, [], CURSOR, name="r")
    assert t.status(LAW) is Status.HELD


# What a cursor tells

OPAQUE = "cursors-tell-nothing"


@pytest.mark.req("CHAT-046", "SEC-018")
@pytest.mark.parametrize(("alike", "word"), [(0, Status.HELD), (32, Status.HELD), (33, Status.BROKEN)])
def test_cursors_of_a_stream_are_not_alike(alike: int, word: Status) -> None:
    t = owned()
    n = t.page(JOB, [], CURSOR, nextAlike=alike)
    assert t.status(OPAQUE) is word
    if word is Status.BROKEN:
        found = t.violation(OPAQUE)
        assert found.seen == "a cursor that differs from an earlier one of its stream in 10 characters"
        assert found.entries == (n,)


def test_the_first_cursor_has_nothing_beside_it() -> None:
    t = owned()
    t.page(JOB, [], CURSOR)
    assert t.status(OPAQUE) is Status.NOTHING

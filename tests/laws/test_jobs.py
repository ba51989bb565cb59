"""A job runs at most once, clause by clause."""

from __future__ import annotations

import pytest

from lab.journal.events import Agent2Request, ParticipantDeclared, SutChanged
from lab.laws import Status
from tests.laws.journals import AGENT, JOB, SESSION, SESSION_2, Tale, sha, uuid

LAW = "job-at-most-once"
OTHER = uuid("other")
RESULT = {"jobId": JOB, "outcome": "no_change"}


def tale(how: str = "reference") -> Tale:
    begun = Tale(how)
    begun.connect()
    begun.assign()
    return begun


def test_one_post_and_one_result_with_its_copy() -> None:
    t = tale()
    t.post()
    t.la("job.result", 1, payload=RESULT)
    t.la("job.result", 1, payload=RESULT)
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("SQ-002", "SQ-008", "SQ-025")
def test_a_second_accepted_post() -> None:
    t = tale()
    first, second = t.post(), t.post()
    found = t.violation(LAW)
    assert (found.due, found.entries) == ("one accepted POST /jobs", (first, second))


@pytest.mark.req("SQ-008", "SQ-025")
def test_a_second_post_that_agent2_knew_better_than_to_run() -> None:
    t = Tale()
    t.connect()
    t.assign()
    first = t.post()
    again = t.post(409)
    assert t.violation("job-at-most-once").entries == (first, again)


def test_a_refused_post_ran_nothing() -> None:
    t = tale()
    t.post(503)
    t.post()
    assert t.status(LAW) is Status.HELD


@pytest.mark.parametrize("how", ["reference", "attach"])
def test_a_new_process_cannot_know(how: str) -> None:
    t = tale(how)
    t.post()
    if how == "reference":
        t.add(SutChanged("la", "killed"))
        t.add(SutChanged("la", "started"))
    t.post()
    assert t.status(LAW) is Status.UNKNOWN


@pytest.mark.req("SQ-008")
def test_a_second_result_in_the_same_session() -> None:
    t = tale()
    first = t.la("job.result", 1, payload=RESULT)
    second = t.la("job.result", 2, payload=RESULT)
    found = t.violation(LAW)
    assert (found.seen, found.entries) == ("a second job.result", (first, second))


def test_the_result_again_in_a_new_session() -> None:
    t = tale()
    t.la("job.result", 1, payload=RESULT)
    t.close()
    t.connect("c2", SESSION_2, resume=(SESSION, 1))
    t.la("job.result", 1, payload=RESULT)
    assert t.status(LAW) is Status.HELD


def test_the_result_again_after_the_job_was_assigned_again() -> None:
    t = tale()
    t.la("job.result", 1, payload=RESULT)
    t.assign(2)
    t.la("job.result", 2, payload=RESULT)
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("SQ-025")
def test_the_result_again_says_the_same() -> None:
    t = tale()
    first = t.la("job.result", 1, payload=RESULT)
    t.close()
    t.connect("c2", SESSION_2, resume=(SESSION, 1))
    other = t.la("job.result", 1, payload={"jobId": JOB, "outcome": "failed"})
    found = t.violation(LAW)
    assert (found.seen, found.entries) == ("a job.result that differs from the one before", (first, other))


def test_a_result_in_another_frame_of_the_lab() -> None:
    t = tale()
    t.la("job.result", 1, payload=RESULT)
    t.la("job.result", 2, payload=RESULT, msg_id=uuid("x"), fate="copied", fault="f")
    assert t.status(LAW) is Status.HELD


def test_an_early_stop() -> None:
    t = tale()
    t.end("interrupted")
    assert t.status(LAW) is Status.NOTHING


@pytest.mark.req("CHAT-023")
@pytest.mark.parametrize(("kind", "status"), [("chat", Status.HELD), ("fix", Status.BROKEN)])
def test_a_job_keeps_its_kind(kind: str, status: Status) -> None:
    t = tale()
    t.health()
    t.add(Agent2Request("POST", "/local/v1/jobs", 202, JOB, {"kind": kind}), "agent2")
    assert t.status("as-assigned") is status


def test_without_a_post_there_is_no_kind_to_judge() -> None:
    assert tale().status("as-assigned") is Status.NOTHING


def test_a_job_that_nobody_assigned_reaches_agent2() -> None:
    t = Tale()
    t.connect()
    post = t.post()
    assert t.violation("as-assigned").entries == (post,)


def test_a_job_that_nobody_assigned_and_agent2_refused() -> None:
    t = Tale()
    t.connect()
    t.post(422)
    assert t.status("as-assigned") is Status.NOTHING


def rooted(t: Tale, root: str | None) -> int:
    told = {"kind": "fix", **({} if root is None else {"root": sha(root)})}
    return t.add(Agent2Request("POST", "/local/v1/jobs", 202, JOB, told), "agent2")


def at_home(roots: dict[str, list[str]] | None) -> Tale:
    t = Tale()
    facts = {"agentId": AGENT} | ({} if roots is None else {"roots": roots})
    t.add(ParticipantDeclared("la", "local_agent", "reference", facts), "runner")
    t.connect()
    t.assign(kind="fix", workspace_id="ws-1")
    return t


@pytest.mark.req("A2-008", "LA-016")
def test_another_workspace_than_the_assigned_one() -> None:
    t = at_home({"ws-1": [sha("/one"), sha("/real/one")], "ws-2": [sha("/two")]})
    entry = rooted(t, "/two")
    found = t.violation("as-assigned")
    assert found.seen == "posted to agent2 with another workspaceRoot"
    assert found.entries[1] == entry


@pytest.mark.parametrize(
    ("roots", "root", "judged"),
    [
        ({"ws-1": [sha("/one"), sha("/real/one")]}, "/real/one", 2),
        ({"ws-2": [sha("/two")]}, "/one", 1),
        (None, "/one", 1),
        ({"ws-1": [sha("/one")]}, None, 1),
    ],
)
def test_a_workspace_that_is_right_or_unknown(
    roots: dict[str, list[str]] | None, root: str | None, judged: int
) -> None:
    t = at_home(roots)
    rooted(t, root)
    assert (t.status("as-assigned"), t.judged("as-assigned").judgement.judged) == (Status.HELD, judged)


@pytest.mark.req("CHAT-023")
@pytest.mark.parametrize("when", ["never", "before the assignment", "for the job before"])
def test_a_chat_without_a_look_at_agent2(when: str) -> None:
    t = Tale()
    t.connect()
    if when == "before the assignment":
        t.health()
    elif when == "for the job before":
        t.assign(1, job=OTHER)
    t.assign(2)
    if when == "for the job before":
        t.health()
        t.post(job=OTHER)
    entry = t.post()
    found = t.violation("as-assigned")
    assert (found.seen, found.entries[1]) == ("a chat posted to agent2 without asking its health", entry)


def test_an_agent_of_another_process_may_have_asked() -> None:
    t = tale("attach")
    t.post()
    assert t.judged("as-assigned").judgement.unsure == 1

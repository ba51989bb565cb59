"""A job.result tells what agent2 said, clause by clause."""

from __future__ import annotations

from typing import Any

import pytest

from lab.journal.events import FaultFired, LinkChanged, LinkOpened, ParticipantDeclared
from lab.journal.redaction import redact_payload
from lab.laws import Status
from tests.laws.journals import JOB, Tale

LAW = "job-outcome"


def tale(kind: str = "fix", post: int | None = 202) -> Tale:
    begun = Tale()
    begun.connect()
    begun.assign(kind=kind)
    if post is not None:
        begun.post(post)
    return begun


def result(t: Tale, **payload: Any) -> int:
    return t.la("job.result", 1, payload={"jobId": JOB, **payload})


def told(t: Tale, state: str, **payload: Any) -> int:
    """agent2's end, over an events stream that was read to its end."""
    n = t.ended(state, **payload)
    t.stream("ended", 2, stream="events")
    return n


@pytest.mark.parametrize(
    ("state", "payload"),
    [
        ("done", {"outcome": "no_change", "filesChangedCount": 2}),
        ("failed", {"outcome": "failed"}),
        ("cancelled", {"outcome": "cancelled"}),
    ],
)
def test_what_agent2_said(state: str, payload: dict[str, Any]) -> None:
    t = tale()
    told(t, state, **payload)
    result(t, **payload)
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("LA-025")
def test_another_outcome() -> None:
    t = tale()
    end = told(t, "done", outcome="no_change", filesChangedCount=0)
    n = result(t, outcome="failed", errorCode="infra")
    found = t.violation(LAW)
    assert (found.seen, found.due, found.entries) == (
        "outcome failed (infra)",
        "outcome no_change, as agent2 said",
        (end, n),
    )


@pytest.mark.req("LA-025")
@pytest.mark.parametrize(
    ("name", "value", "other"),
    [
        ("prUrl", "https://git.example/pr/1", "https://git.example/pr/2"),
        ("branch", "fix/one", "fix/two"),
        ("commitSha", "a" * 40, "b" * 40),
        ("filesChangedCount", 3, 4),
        ("diffSha256", "a" * 64, "b" * 64),
        ("tests", {"passed": 1, "failed": 0, "skipped": 0}, {"passed": 2, "failed": 0, "skipped": 0}),
    ],
)
@pytest.mark.parametrize("raw", [True, False], ids=["raw", "redacted"])
def test_a_member_that_is_not_passed_on(name: str, value: object, other: object, raw: bool) -> None:
    said: dict[str, Any] = {"outcome": "pr_opened", name: value}
    said = said if raw else dict(redact_payload("job.result", said))
    t = tale()
    end = told(t, "done", **said)
    result(t, **redact_payload("job.result", {"outcome": "pr_opened", name: value}))
    assert t.status(LAW) is Status.HELD
    for sent in ({"outcome": "pr_opened", name: other}, {"outcome": "pr_opened"}):
        t = tale()
        end = told(t, "done", **said)
        n = result(t, **redact_payload("job.result", sent))
        assert t.violation(LAW).entries == (end, n)
        assert t.violation(LAW).due.startswith(name)


def test_a_member_that_agent2_did_not_give() -> None:
    t = tale()
    end = told(t, "done", outcome="no_change")
    n = result(t, outcome="no_change", filesChangedCount=1)
    assert t.violation(LAW).entries == (end, n)


@pytest.mark.req("LA-024")
def test_cancelled_has_no_other_member() -> None:
    t = tale()
    end = told(t, "cancelled", outcome="cancelled")
    n = result(t, outcome="cancelled", filesChangedCount=0)
    found = t.violation(LAW)
    assert (found.seen, found.entries) == ("cancelled with filesChangedCount", (end, n))


@pytest.mark.req("CHAT-009", "CHAT-010", "CHAT-011")
@pytest.mark.parametrize(
    ("own", "events", "due"),
    [
        (2, [], 2),
        (None, [], 0),
        (1, [{"state": "running", "filesChanged": 3}], 3),
        (4, [{"state": "running", "filesChanged": 3}], 4),
        (1, [{"state": "done", "filesChanged": 9}], 1),
        (1, [{"state": "running", "filesChanged": 9, "terminal": True}], 1),
        (2.5, [], 0),
        (2**53, [], 0),
        (True, [], 0),
    ],
)
def test_the_changed_files_of_a_chat(own: object, events: list[dict[str, Any]], due: int) -> None:
    for sent, status in ((due, Status.HELD), (due + 1, Status.BROKEN), (None, Status.BROKEN)):
        t = tale("chat")
        for number, event in enumerate(events, 1):
            t.told(number, "job.event", **event)
        told(t, "done", outcome="no_change", **({} if own is None else {"filesChangedCount": own}))
        result(t, outcome="no_change", **({} if sent is None else {"filesChangedCount": sent}))
        assert t.status(LAW) is status
        if status is Status.BROKEN:
            assert t.violation(LAW).due == f"filesChangedCount {due}"


@pytest.mark.req("CHAT-007")
def test_a_pull_request_of_a_chat_is_passed_on() -> None:
    t = tale("chat")
    told(t, "done", outcome="pr_opened", filesChangedCount=0)
    result(t, outcome="no_change", filesChangedCount=0)
    assert t.violation(LAW).due == "outcome pr_opened, as agent2 said"


@pytest.mark.req("A2-045")
@pytest.mark.parametrize(
    ("status", "code"),
    [(403, "policy_denied"), (401, "infra"), (409, "infra"), (400, "unknown"), (422, "unknown"), (500, "infra")],
)
def test_a_refused_post(status: int, code: str) -> None:
    t = tale(post=status)
    result(t, outcome="failed", errorCode=code)
    assert t.status(LAW) is Status.HELD
    for other in ({"outcome": "failed", "errorCode": "llm"}, {"outcome": "no_change"}):
        t = tale(post=None)
        post = t.post(status)
        n = result(t, **other)
        assert t.violation(LAW).due == f"outcome failed ({code})"
        assert t.violation(LAW).entries == (post, n)


@pytest.mark.req("A2-051", "LA-027")
def test_a_success_that_agent2_never_told() -> None:
    t = tale(post=None)
    post = t.post()
    n = result(t, outcome="no_change", filesChangedCount=0)
    found = t.violation(LAW)
    assert (found.due, found.entries) == ("failed", (post, n))


def test_silence_of_agent2_is_a_failure() -> None:
    t = tale()
    result(t, outcome="failed", errorCode="infra")
    assert t.status(LAW) is Status.HELD


def test_a_success_without_asking_agent2() -> None:
    t = tale(post=None)
    t.ended("running")
    n = result(t, outcome="no_change")
    assert t.violation(LAW).entries == (n,)


@pytest.mark.parametrize("cancelled", [True, False])
def test_cancelled_wants_a_cancel(cancelled: bool) -> None:
    t = tale()
    if cancelled:
        t.cp("job.cancel", 2, payload={"jobId": JOB})
    result(t, outcome="cancelled")
    assert t.status(LAW) is (Status.HELD if cancelled else Status.BROKEN)


def test_a_cancel_may_race_with_the_end() -> None:
    t = tale()
    t.cp("job.cancel", 2, payload={"jobId": JOB})
    told(t, "done", outcome="no_change")
    result(t, outcome="cancelled")
    assert t.status(LAW) is Status.UNKNOWN


@pytest.mark.parametrize("trouble", ["broken", "link", "delay", "unread", "http"])
@pytest.mark.req("A2-051")
def test_an_agent_that_could_not_read_the_end_fails(trouble: str) -> None:
    t = tale()
    t.told(1, "job.result", outcome="no_change")
    if trouble == "link":
        t.add(LinkChanged("agent2", "cut"))
    elif trouble == "delay":
        t.add(LinkChanged("agent2", "delayed", 2))
    elif trouble == "http":
        t.post(500)
    t.ended("done", outcome="no_change")
    if trouble == "broken":
        t.stream("broken", 0, stream="events")
    elif trouble != "unread":
        t.stream("ended", 1, stream="events")
    result(t, outcome="failed", errorCode="infra")
    assert t.status(LAW) is Status.UNKNOWN


def test_a_reader_that_hung_up_with_the_result_knows_it() -> None:
    t = tale()
    t.told(1, "job.result", outcome="no_change")
    end = t.ended("done", outcome="no_change")
    n = result(t, outcome="failed", errorCode="infra")
    t.stream("broken", 1, stream="events")
    assert t.violation(LAW).entries == (end, n)


def test_an_end_without_a_result_tells_its_state() -> None:
    t = tale()
    t.ended("failed")
    result(t, outcome="failed", errorCode="unknown")
    assert t.status(LAW) is Status.HELD


@pytest.mark.parametrize("payload", [{}, {"reason": "x"}])
def test_an_end_that_the_witness_did_not_describe(payload: dict[str, Any]) -> None:
    t = tale()
    told(t, "done", **payload)
    result(t, outcome="no_change", filesChangedCount=7)
    assert t.status(LAW) is Status.UNKNOWN


def test_no_result() -> None:
    t = tale(post=None)
    began = len(t.entries) - 1
    t.post()
    end = t.wait(1).ended("done", outcome="no_change")
    t.wait(10.1).end()
    found = t.violation(LAW)
    assert (found.due, found.entries) == ("a job.result", (began, end))


@pytest.mark.parametrize("stop", ["early", "closed", "cut"])
def test_no_result_is_not_due(stop: str) -> None:
    t = tale()
    t.ended("done", outcome="no_change")
    if stop == "closed":
        t.close()
    elif stop == "cut":
        t.add(LinkChanged("agent2", "cut"))
    t.wait(9 if stop == "early" else 60).end("interrupted")
    assert t.status(LAW) is (Status.UNKNOWN if stop == "cut" else Status.NOTHING)


@pytest.mark.req("A2-051", "LA-023")
@pytest.mark.parametrize("service", ["agent2", "another"])
def test_a_job_ends_with_an_agent2_that_dies(service: str) -> None:
    t = tale()
    crash = t.add(FaultFired("f1", "crash", f"service {service}"), "faults")
    t.wait(10.1).end()
    if service == "agent2":
        found = t.violation(LAW)
        assert (found.seen, found.entries[1]) == ("no job.result 10 s after agent2 died", crash)
    else:
        assert t.status(LAW) is Status.NOTHING


def test_a_job_that_was_over_before_the_crash_has_its_own_end() -> None:
    t = tale()
    end = t.ended("done", outcome="no_change")
    t.add(FaultFired("f1", "crash", "service agent2"), "faults")
    t.wait(10.1).end()
    assert t.violation(LAW).entries[1] == end


@pytest.mark.parametrize(("link", "status"), [("agent2", Status.BROKEN), ("gateway", Status.UNKNOWN)])
def test_after_a_crash_only_the_way_to_the_gateway_counts(link: str, status: Status) -> None:
    t = tale()
    t.add(ParticipantDeclared("agent2", "agent2", "double"), "run")
    for to in ("agent2", "gw"):
        t.add(LinkOpened("agent2" if to == "agent2" else "gateway", to), "link")
    t.add(FaultFired("f1", "crash", "service agent2"), "faults")
    t.add(LinkChanged(link, "cut"), "link")
    t.wait(10.1).end()
    assert t.status(LAW) is status


def test_an_agent2_that_dies_before_it_has_the_job_owes_nothing() -> None:
    t = tale(post=None)
    t.add(FaultFired("f1", "crash", "service agent2"), "faults")
    t.post()
    t.wait(11).end()
    assert t.status(LAW) is Status.NOTHING


@pytest.mark.req("A2-063")
def test_words_of_a_refusal_in_the_result() -> None:
    t = tale(post=403)
    words = {"kind": "token", "bytes": 9, "sha256": "0" * 64}
    t.la("job.result", 1, payload={"jobId": JOB, "outcome": "failed", "errorCode": words})
    assert t.violation(LAW).due == "outcome failed (policy_denied)"

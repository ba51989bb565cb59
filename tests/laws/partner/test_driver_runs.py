"""Bind, then message; resume, then poll; and fresh grants only."""

from __future__ import annotations

import pytest

from lab.journal.partner_events import PartnerStream
from lab.laws import Status
from tests.laws.partner.journals import ANSWER, PartnerTale, ready, running

RESUMES = "resumes-with-last-id"
APPLIED = "applied-once"
RECONNECTS = "reconnects-bounded"
OUTCOME = "outcome-from-authority"
FIRST = "binds-before-message"
FRESH = "fresh-grants"
UPLOADS = "uploads-before-message"
ASKS = "asks-for-grants-rightly"
ORDERED = {"byOrder": True}


@pytest.mark.req("SSE-047", "SSE-048")
@pytest.mark.parametrize(
    ("after", "word"), [(2, Status.HELD), (1, Status.BROKEN), (3, Status.BROKEN), (None, Status.BROKEN)]
)
def test_a_stream_that_is_opened_again(after: int | None, word: Status) -> None:
    t = running()
    t.tell(ANSWER[:2])
    t.event(3, "text", {"applied": False})
    t.close("broken")
    n = t.open(after)
    assert t.status(RESUMES) is word
    if word is Status.BROKEN:
        assert t.violation(RESUMES).entries == (n,)


@pytest.mark.req("SSE-047")
def test_a_refused_stream_asked_for_something_as_well() -> None:
    t = running()
    t.tell(ANSWER[:2])
    n = t.add(PartnerStream(9, "run", "refused", "conv", 400, "CHAT_INVALID", 5))
    assert t.violation(RESUMES).entries == (n,)


def test_a_scenario_may_choose_where_a_stream_begins() -> None:
    t = running()
    t.tell(ANSWER[:2])
    t.open(0, byOrder=True)
    assert t.status(RESUMES) is Status.HELD


def test_a_last_event_id_that_never_came_to_the_api() -> None:
    t = running()
    t.tell(ANSWER[:2])
    n = t.open(2, model=False)
    assert t.violation(RESUMES).entries == (n,)


@pytest.mark.req("SSE-046")
def test_an_event_that_is_taken_twice() -> None:
    t = running()
    t.tell(ANSWER[:2])
    t.open(1)
    again = t.event(2, "tool_call")
    assert t.violation(APPLIED).entries[-1] == again
    t = running()
    t.tell(ANSWER[:2])
    t.open(1)
    t.event(2, "tool_call", {"applied": False})
    assert t.status(APPLIED) is Status.HELD


@pytest.mark.req("SSE-047")
@pytest.mark.parametrize(("times", "word"), [(5, Status.HELD), (6, Status.BROKEN)])
def test_reconnections_without_getting_on(times: int, word: Status) -> None:
    t = running()
    for _ in range(times):
        t.close("broken")
        t.open()
    assert t.status(RECONNECTS) is word


def test_streams_that_nobody_opened_count_as_well() -> None:
    t = running()
    for number in range(6):
        t.add(PartnerStream(50 + number, "run", "broken", "conv"))
    assert t.violation(RECONNECTS).seen == "6 reconnections without an event"


def test_reconnections_that_get_on() -> None:
    t = running()
    for number in range(1, 9):
        t.event(number, "text")
        t.close("broken")
        t.open(number)
    assert t.status(RECONNECTS) is Status.HELD


@pytest.mark.req("MSG-015", "SSE-050")
def test_an_outcome_that_nothing_told() -> None:
    t = running()
    t.tell(ANSWER[:5])
    n = t.text("completed", "run_status")
    assert t.violation(OUTCOME).entries == (n,)
    t = running()
    t.tell(ANSWER)
    t.text("failed", "run_status")
    assert t.violation(OUTCOME).seen == "outcome failed that no run_status told"
    t = running()
    t.poll("running")
    t.text("completed", "poll")
    assert t.violation(OUTCOME).seen == "outcome completed that no poll told"


@pytest.mark.req("SSE-018")
def test_no_poll_after_an_error_event() -> None:
    t = running()
    began = len(t.entries)
    n = t.event(1, "error", None, code="CHAT_EXECUTION_FAILED")
    t.poll("failed", reason="CHAT_EXECUTION_FAILED", began=began)
    told = t.text("failed", "poll", "")
    found = t.violation(OUTCOME)
    assert (found.seen, found.entries) == ("no poll after an error event", (n, told))


def test_an_outcome_that_was_told() -> None:
    t = running()
    t.event(1, "error", None, code="CHAT_EXECUTION_FAILED")
    t.poll("failed", reason="CHAT_EXECUTION_FAILED")
    t.text("failed", "poll", "")
    assert t.status(OUTCOME) is Status.HELD


# Grants and binds


@pytest.mark.req("CV-009")
def test_a_message_before_any_bind() -> None:
    t = PartnerTale()
    t.create()
    t.message()
    assert t.violation(FIRST).seen == "a message before any bind"
    t = PartnerTale()
    t.create()
    t.message(marks=ORDERED)
    assert t.status(FIRST) is Status.NOTHING


@pytest.mark.req("CX-004", "CX-011")
def test_a_first_bind_at_another_version() -> None:
    t = PartnerTale()
    t.create()
    n = t.bind(3)
    assert t.violation(FIRST).entries == (n,)
    t = PartnerTale()
    t.create()
    t.context(3)
    t.bind(3)
    assert t.status(FIRST) is Status.HELD


def test_without_a_store_no_bind_is_due() -> None:
    t = ready(mcp=False)
    t.message()
    assert t.status(FIRST) is Status.NOTHING


@pytest.mark.req("CX-009", "GR-007")
def test_a_grant_that_is_bound_again_after_one_without_success() -> None:
    t = ready()
    t.bind(1, "g1")
    assert t.status(FRESH) is Status.HELD
    first = t.lost("bind", {"expectedVersion": 2, "grant": "g2"})
    t.context(2)
    n = t.bind(2, "g2")
    found = t.violation(FRESH)
    assert (found.due, found.entries) == ("a fresh grant", (first, n))


@pytest.mark.req("CX-012")
def test_a_grant_that_has_expired() -> None:
    t = ready()
    n = t.bind(1, "g2", expires=t.at(-1))
    assert t.violation(FRESH).entries == (n,)


def test_a_grant_that_had_expired_when_it_came() -> None:
    """It is the freshest there is."""
    t = ready()
    ends = t.at(1)
    t.wait(2)
    t.call("grant", 200, {}, {"grant": "g2", "expiresAt": ends})
    t.bind(1, "g2", expires=ends)
    assert t.status(FRESH) is Status.HELD


@pytest.mark.req("CX-008", "CX-010", "CX-011")
@pytest.mark.parametrize("how", ["lost", "conflict"])
def test_a_bind_after_one_without_success(how: str) -> None:
    def failed() -> PartnerTale:
        t = ready()
        sent = {"expectedVersion": 1, "grant": "g2"}
        if how == "lost":
            t.lost("bind", sent)
        else:
            t.refused("bind", 409, "MCP_CONTEXT_CONFLICT", sent)
        return t

    t = failed()
    t.bind(1, "g3")
    assert t.violation(FRESH).due == "GET context first"
    t = failed()
    t.context(2)
    t.bind(1, "g3")
    assert t.violation(FRESH).due == "2"
    t = failed()
    t.context(2)
    t.bind(2, "g3")
    assert t.status(FRESH) is Status.HELD


def test_a_bind_that_was_denied_for_good_may_be_followed_by_another() -> None:
    t = ready()
    t.refused("bind", 403, "MCP_CONTEXT_DENIED", {"expectedVersion": 1, "grant": "g2"})
    t.bind(1, "g3")
    assert t.status(FRESH) is Status.HELD


@pytest.mark.req("AT-011")
def test_a_file_that_was_not_uploaded_before() -> None:
    t = ready()
    t.call("upload", 201, {}, {"id": "f"})
    t.message(sent={"attachmentIds": ("f",)})
    assert t.status(UPLOADS) is Status.HELD
    n = t.message(sent={"attachmentIds": ("f", "g")})
    assert t.violation(UPLOADS).entries == (n,)
    t.made.conversation = "elsewhere"
    t.message(sent={"attachmentIds": ("f",)})
    assert len(t.judged(UPLOADS).judgement.violations) == 2


@pytest.mark.req("CV-008", "GR-006", "GR-017")
@pytest.mark.parametrize("create", ["nothing", "no store"])
def test_a_grant_for_no_conversation_with_a_store(create: str) -> None:
    t = PartnerTale()
    if create == "no store":
        t.create(mcp=False)
    n = t.grant()
    assert t.violation(ASKS).entries == (n,)
    assert ready().status(ASKS) is Status.HELD

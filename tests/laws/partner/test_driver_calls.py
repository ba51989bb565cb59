"""One key a message, tries that end, the right key and lease, and a walk that ends."""

from __future__ import annotations

import pytest

from lab.laws import Status
from tests.laws.partner.journals import PartnerTale, ready, running

KEY = "one-key-per-message"
FINAL = "no-retry-after-final"
TRIES = "tries-bounded"
POLLS = "polls-back-off"
RIGHT = "right-key-for-the-route"
LEASE = "lease-asked"
WALK = "walk-ends"
ORDERED = {"byOrder": True}


@pytest.mark.req("MSG-032")
def test_a_retry_with_another_key_or_body() -> None:
    t = ready()
    first = t.lost("message", call="m", idempotency_key="k", request="r")
    again = t.lost("message", call="m", idempotency_key="k2", request="r", attempt=2)
    assert t.violation(KEY).entries == (first, again)
    t = ready()
    t.lost("message", call="m", idempotency_key="k", request="r")
    t.lost("message", call="m", idempotency_key="k", request="r2", attempt=2)
    assert t.violation(KEY).due == "the same key and body"


@pytest.mark.req("MSG-032")
def test_a_key_that_another_message_had() -> None:
    t = ready()
    first = t.lost("message", idempotency_key="k", request="r")
    again = t.lost("message", idempotency_key="k", request="r2")
    assert t.violation(KEY).entries == (first, again)
    t = ready()
    t.message(idempotency_key="k")
    t.message(text="another", idempotency_key="k", marks=ORDERED)
    assert t.status(KEY) is Status.HELD


def test_a_message_that_is_sent_again_on_purpose() -> None:
    t = ready()
    t.message(idempotency_key="k")
    t.message(idempotency_key="k")
    assert t.status(KEY) is Status.HELD


def test_another_body_that_came_under_one_key() -> None:
    t = ready()
    first = t.request("message", 202, idempotency_key="k", request="r")
    again = t.request("message", 409, idempotency_key="k", request="r2")
    assert t.violation(KEY).entries == (first, again)


@pytest.mark.req("CV-024", "MSG-033")
def test_a_retry_as_it_is_due() -> None:
    t = ready()
    t.lost("message", call="m", idempotency_key="k", request="r")
    t.message(call="m", idempotency_key="k", request="r", attempt=2)
    assert t.status(KEY) is Status.HELD


@pytest.mark.req("PA-043", "PA-020")
@pytest.mark.parametrize(
    ("status", "code", "word"),
    [
        (202, None, Status.BROKEN),
        (400, "CHAT_INVALID", Status.BROKEN),
        (403, "EXECUTION_DENIED", Status.BROKEN),
        (409, "CHAT_CONFLICT", Status.BROKEN),
        (429, "QUOTA_EXCEEDED", Status.BROKEN),
        (503, "CHAT_CONFIGURATION", Status.BROKEN),
        (503, None, Status.HELD),
    ],
)
def test_another_try_after_an_answer(status: int, code: str | None, word: Status) -> None:
    t = PartnerTale()
    t.call("message", status, call="m", code=code)
    t.call("message", 202, call="m", attempt=2)
    assert t.status(FINAL) is word


def test_tries_that_the_driver_does_not_tell() -> None:
    t = ready()
    t.message(idempotency_key="k")
    t.request("message", 202, idempotency_key="k", request="r")
    assert t.status(FINAL) is Status.HELD
    t.request("message", 202, idempotency_key="k", request="r")
    assert t.violation(FINAL).due == "each try is told"


def tries(waits: list[float]) -> PartnerTale:
    t = PartnerTale()
    t.lost("context", call="x")
    for attempt, seconds in enumerate(waits, 2):
        t.wait(seconds)
        t.lost("context", call="x", attempt=attempt)
    return t


@pytest.mark.req("PA-043")
def test_tries_without_a_bound_or_a_wait() -> None:
    assert tries([0.25, 0.5, 1.0, 2.0, 2.0]).status(TRIES) is Status.HELD
    assert tries([0.1]).violation(TRIES).due == "0.25 s"
    assert tries([0.25, 0.25]).violation(TRIES).due == "0.5 s"
    assert tries([3.0] * 8).violation(TRIES).seen == "9 tries of one call"


@pytest.mark.req("MSG-043")
def test_polls_that_come_too_soon_or_go_on() -> None:
    t = running()
    t.poll("running", 1)
    t.wait(0.25).poll("running", 2)
    t.wait(0.5).poll("completed", 3)
    assert t.status(POLLS) is Status.HELD
    t.wait(5.0).poll("completed", 4)
    assert t.violation(POLLS).due == "no further poll"
    t = running()
    t.poll("running", 1)
    t.wait(0.25).poll("running", 2)
    t.wait(0.3).poll("running", 3)
    assert t.violation(POLLS).due == "0.5 s"


def test_polls_of_two_loops_are_no_loop() -> None:
    t = running()
    t.poll("completed", 1)
    t.poll("completed", 1)
    assert t.status(POLLS) is Status.NOTHING


@pytest.mark.req("PRIV-020", "PA-005")
@pytest.mark.parametrize("role", ["provisioning", None])
def test_another_key_at_the_api(role: str | None) -> None:
    t = PartnerTale()
    n = t.request("context", key="other", key_role=role)
    assert t.violation(RIGHT).entries == (n,)
    t.call("context", key="other", marks=ORDERED)
    assert t.status(RIGHT) is Status.NOTHING


def test_the_key_of_an_instance_that_is_gone_was_right() -> None:
    t = PartnerTale()
    t.request("context")
    t.request("context", 401, key_role=None)
    assert (t.status(RIGHT), t.judged(RIGHT).judgement.judged) == (Status.HELD, 1)


@pytest.mark.req("PRIV-020", "GR-002")
def test_one_key_at_two_doors() -> None:
    t = ready()
    n = t.call("grant", key="chat-key")
    assert t.violation(RIGHT).entries[-1] == n
    assert ready().status(RIGHT) is Status.HELD


@pytest.mark.req("MB-022")
@pytest.mark.parametrize(("seconds", "word"), [(240, Status.HELD), (299, Status.HELD), (301, Status.BROKEN)])
def test_the_lease_that_is_asked_for(seconds: float, word: Status) -> None:
    t = PartnerTale()
    t.call("membership", 200, {"active": True, "validUntil": t.at(seconds)})
    assert t.status(LEASE) is word
    t = PartnerTale()
    t.call("membership", 200, {"active": True, "validUntil": t.at(seconds)}, {}, ORDERED)
    assert t.status(LEASE) is Status.NOTHING


@pytest.mark.req("HIS-005", "HIS-036")
def test_a_walk_with_another_cursor_or_the_same_again() -> None:
    t = PartnerTale()
    t.history(following="c")
    t.history(cursor="c", following="c", page=2)
    assert t.status(WALK) is Status.HELD
    n = t.history(cursor="c", page=3)
    found = t.violation(WALK)
    assert (found.due, found.entries) == ("the walk ends", (n,))
    t = PartnerTale()
    t.history(following="c")
    t.history(cursor="c2", page=2)
    assert t.violation(WALK).due == "nextCursor unchanged"

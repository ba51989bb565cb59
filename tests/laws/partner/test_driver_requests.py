"""What the driver sends is what the contract and earlier answers say."""

from __future__ import annotations

import pytest

from lab.journal.events import StepStarted
from lab.laws import Status
from tests.laws.partner.journals import PartnerTale, ready, running


@pytest.mark.req("MB-001", "PA-044")
def test_a_request_with_too_little_or_too_much() -> None:
    t = ready()
    assert t.status("requests-fit-contract") is Status.HELD
    t.actor = {"externalUserId": "user"}
    t.context(1)
    assert t.violation("requests-fit-contract").seen == "context without externalTeamId"
    t = PartnerTale()
    t.membership()
    t.call("membership", 400, {"sourceRevision": 1, "role": "x", "active": True, "validUntil": None, "*": {}})
    assert t.status("requests-fit-contract") is Status.BROKEN


@pytest.mark.req("CX-030", "CX-034")
def test_a_bind_of_something_else() -> None:
    t = ready()
    assert t.status("binds-as-told") is Status.HELD
    t.bind(1, expires=t.at(9000))
    assert t.violation("binds-as-told").due == "the issuer's expiresAt"
    t = ready()
    t.refused("bind", 403, "MCP_CONTEXT_DENIED", {"serverId": "srv", "destination": "http://127.0.0.1:1/mcp"})
    assert t.violation("binds-as-told").seen == "a bind with another destination than was told"


@pytest.mark.req("MB-036")
def test_a_lease_that_is_renewed_late_or_with_an_old_revision() -> None:
    t = PartnerTale()
    t.membership(1)
    t.wait(120).membership(2)
    assert t.status("leases-renewed") is Status.HELD
    t.membership(2)
    assert t.violation("leases-renewed").due == "a higher one"
    t = PartnerTale()
    t.membership(1)
    t.wait(300).membership(2)
    assert t.violation("leases-renewed").due == "half of it"


@pytest.mark.req("MSG-034")
def test_a_message_that_nobody_asked_for() -> None:
    t = ready()
    t.add(StepStarted(1, "poll", "run", 3), "runner")
    t.message()
    assert t.status("messages-by-step") is Status.BROKEN


@pytest.mark.req("MSG-020", "US-029")
def test_a_loop_of_polls_that_ends_early() -> None:
    t = running()
    t.poll("running", k=1)
    t.wait(10).end()
    assert t.status("polls-to-the-end") is Status.BROKEN
    t = running()
    t.poll(k=1)
    assert t.status("polls-to-the-end") is Status.HELD

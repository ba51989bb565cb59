"""Versions are compared and set, and a grant serves its own conversation alone."""

from __future__ import annotations

import pytest

from lab.laws import Status
from tests.laws.partner.journals import PartnerTale, ready, running

CAS = "context-cas"
TOLD = "context-told"
BOUND = "bound-before-run"
GRANT = "grant-binds-the-conversation"
NEWEST = "newest-grant"
REVOKED = "revoked-binding-stays-denied"
NAMED = "store-calls-named"
CONFLICT = "MCP_CONTEXT_CONFLICT"


@pytest.mark.req("CX-019")
def test_a_version_that_does_not_rise_by_one() -> None:
    t = ready()
    n = t.bind(1, "g2", version=3)
    found = t.violation(CAS)
    assert (found.seen, found.due, found.entries) == ("version 3 for expectedVersion 1", "2", (n,))


@pytest.mark.req("CX-032")
def test_two_binds_for_one_version() -> None:
    t = ready()
    began = len(t.entries)
    first = t.bind(1, "g2")
    again = t.bind(1, "g3", began=began)
    assert t.violation(CAS).entries == (first, again)


@pytest.mark.req("CX-004", "CX-013", "PA-014")
@pytest.mark.parametrize("by", ["bind", "context"])
def test_a_stale_bind_that_was_taken(by: str) -> None:
    t = ready()
    if by == "bind":
        t.bind(1, "g2")
        t.bind(2, "g3")
    else:
        t.context(3)
    t.bind(1, "g4", version=4)
    due = {one.due for one in t.judged(CAS).judgement.violations}
    assert due == {"2", "409 MCP_CONTEXT_CONFLICT"}


@pytest.mark.req("CX-013")
def test_a_conflict_for_the_version_that_stands() -> None:
    t = ready()
    n = t.refused("bind", 409, CONFLICT, {"expectedVersion": 1, "grant": "g2"})
    found = t.violation(CAS)
    assert (found.due, found.entries[-1]) == ("2", n)


@pytest.mark.parametrize("what", ["stale", "unsettled"])
def test_a_conflict_that_is_right_or_may_be(what: str) -> None:
    t = ready()
    if what == "stale":
        t.refused("bind", 409, CONFLICT, {"expectedVersion": 0, "grant": "g2"})
    else:
        t.lost("bind", {"expectedVersion": 1, "grant": "g2"})
        t.refused("bind", 409, CONFLICT, {"expectedVersion": 1, "grant": "g3"})
    judged = t.judged(CAS)
    assert (judged.status, judged.judgement.unsure) == (Status.HELD, what == "unsettled")


@pytest.mark.req("CX-005", "CX-014")
def test_a_context_before_any_bind() -> None:
    t = ready(mcp=False)
    t.context(0, active=False, expires=None)
    assert t.status(TOLD) is Status.HELD
    t.context(0, active=True)
    assert t.violation(TOLD).due == "version 0, expiresAt null, inactive"


@pytest.mark.req("CX-006")
def test_a_version_that_falls_or_comes_from_nowhere() -> None:
    t = ready()
    t.context(0)
    assert t.violation(TOLD).due == "a version that never falls"
    t = ready()
    t.context(2)
    assert t.violation(TOLD).seen == "version 2 though 1 was bound last"
    t = ready()
    t.lost("bind")
    t.context(2)
    assert t.status(TOLD) is Status.HELD


@pytest.mark.req("CX-024")
def test_an_active_context_whose_grant_has_expired() -> None:
    t = ready()
    expires = t.at(1)
    t.wait(10).context(1, active=True, expires=expires)
    assert t.violation(TOLD).due == "inactive"
    t = ready()
    t.wait(10).context(1, active=False, expires=t.at(-9))
    assert t.status(TOLD) is Status.HELD


@pytest.mark.req("CX-025")
def test_a_message_before_any_bind() -> None:
    t = PartnerTale()
    t.create()
    n = t.message()
    assert t.violation(BOUND).entries == (n,)
    t = PartnerTale()
    t.create()
    t.lost("bind")
    t.message()
    assert t.status(BOUND) is Status.HELD


@pytest.mark.req("CX-015", "CX-020")
def test_a_bind_without_a_store() -> None:
    t = ready(mcp=False)
    t.message()
    assert t.status(BOUND) is Status.HELD
    t.refused("bind", 403, "MCP_CONTEXT_DENIED")
    assert t.status(BOUND) is Status.HELD
    n = t.bind()
    assert t.violation(BOUND).entries == (n,)


@pytest.mark.req("CX-007", "CX-021", "CX-026")
@pytest.mark.parametrize("what", ["bind", "message", "context", "store"])
def test_a_revoked_binding_that_serves(what: str) -> None:
    t = running()
    revoked = t.request("unbind")
    t.wait(1.0)
    if what == "bind":
        n = t.bind(1, "g2")
    elif what == "context":
        n = t.context(1)
    else:
        n = t.message() if what == "message" else t.tool()
    assert t.violation(REVOKED).entries == (revoked, n)


def test_a_revoked_binding_that_stays_denied() -> None:
    t = running()
    t.tool()
    t.request("unbind")
    t.tool("call_2")
    t.context(1, active=False)
    t.refused("bind", 403, "MCP_CONTEXT_DENIED")
    t.refused("message", 403, "MCP_CONTEXT_DENIED")
    assert (t.status(REVOKED), t.judged(REVOKED).judgement.judged) == (Status.HELD, 3)


@pytest.mark.req("CX-017", "MCP-002")
@pytest.mark.parametrize("name", ["conversationId", "actorId", "teamId", "agentId", "destination"])
def test_a_store_call_under_another_s_grant(name: str) -> None:
    t = running()
    n = t.tool(claims={name: "other"})
    found = t.violation(GRANT)
    assert (found.seen, found.entries[-1]) == (f"a store call under a grant of another {name}", n)


def test_a_store_call_of_a_turn_that_nobody_knows() -> None:
    t = running()
    t.tool(turn_id="elsewhere")
    assert t.status(GRANT) is Status.NOTHING
    t.tool()
    assert t.status(GRANT) is Status.HELD


def test_a_refused_store_call_has_no_grant_to_judge() -> None:
    t = running()
    t.tool(claims={"actorId": "other"}, executed=False, refused="grant-unknown", status=403)
    assert t.status(GRANT) is Status.NOTHING


@pytest.mark.req("CX-029")
def test_a_store_call_under_an_older_grant() -> None:
    t = running()
    newer = t.bind(1, "g2")
    t.wait(1.0)
    n = t.tool()
    assert t.violation(NEWEST).entries == (newer, n)


def test_a_store_call_under_the_newest_grant_or_just_before_it() -> None:
    t = running()
    t.bind(1, "g2")
    t.tool()
    t.wait(1.0).tool("call_2", "g2")
    assert (t.status(NEWEST), t.judged(NEWEST).judgement.judged) == (Status.HELD, 2)


@pytest.mark.req("CX-017")
def test_a_store_call_under_a_grant_that_was_not_bound_here() -> None:
    t = running()
    n = t.tool(grant="g9")
    assert t.violation(NEWEST).entries[-1] == n


@pytest.mark.req("MCP-003")
@pytest.mark.parametrize("name", ["turn", "call"])
def test_a_store_call_without_a_name(name: str) -> None:
    t = running()
    n = t.tool(**{f"{name}_id": None})
    assert t.violation(NAMED).entries == (n,)

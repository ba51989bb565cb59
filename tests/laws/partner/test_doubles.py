"""The lab's store gives no data without a right grant, and its issuer true grants only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from lab.journal.events import ParticipantDeclared
from lab.laws import Status
from tests.laws.partner.journals import PartnerTale, ready

STATIC = "static-only-gets-no-data"
WRONG = "wrong-grant-never-reaches-a-tool"
REFUSAL = "refusal-before-execution"
ONCE = "executed-once"
MINTS = "mints-for-registered"
DIFFER = "grants-differ"
CLAIMS = "claims-as-registered"


@pytest.mark.req("MCP-001", "MCP-014")
def test_a_tool_that_ran_without_a_grant() -> None:
    t = ready()
    n = t.tool(grant=None)
    assert t.violation(STATIC).entries == (n,)
    t = ready()
    n = t.tool(grant=None, method="tools/list")
    assert t.violation(STATIC).seen == "a tool ran for tools/list"
    t = ready()
    t.tool(grant=None, method="initialize", executed=False)
    t.tool(grant=None, executed=False, refused="grant-missing", status=403)
    assert t.status(STATIC) is Status.HELD


@pytest.mark.req("CX-017", "MCP-002", "MCP-014")
@pytest.mark.parametrize(
    ("fields", "seen"),
    [
        ({"binding": None}, "a tool ran for a grant that does not open"),
        (
            {"conversation_header": "other"},
            "a tool ran for a grant of another conversation than its header names",
        ),
    ],
)
def test_a_tool_that_ran_for_a_wrong_grant(fields: Mapping[str, Any], seen: str) -> None:
    t = ready()
    n = t.tool(**fields)
    found = t.violation(WRONG)
    assert (found.seen, found.entries) == (seen, (n,))


@pytest.mark.req("MCP-014")
def test_a_tool_that_ran_for_a_grant_that_has_expired() -> None:
    t = ready()
    t.tool()
    assert t.status(WRONG) is Status.HELD
    n = t.wait(301).tool("call_2")
    assert t.violation(WRONG).entries == (n,)


@pytest.mark.req("MCP-014")
@pytest.mark.parametrize("by", ["id", "conversation"])
def test_a_tool_that_ran_for_a_grant_that_was_revoked(by: str) -> None:
    t = ready()
    facts = {} if by == "id" else {"grantIds": ["id-g0", "id-g1"]}
    revoked = t.issuer("lab-revocations", grant_id="id-g1" if by == "id" else None, facts=facts)
    t.issuer("grants", grant="g2", grant_id="id-g2")
    t.tool("call_2", "g2")
    assert t.status(WRONG) is Status.HELD
    n = t.tool()
    assert t.violation(WRONG).entries == (revoked, n)


@pytest.mark.req("MCP-014", "MCP-015")
def test_a_refusal_with_an_effect_or_without_a_word() -> None:
    t = ready()
    n = t.tool(refused="grant-expired", status=403)
    assert t.violation(REFUSAL).entries == (n,)
    t = ready()
    t.tool(executed=False, refused="grant-expired")
    assert t.violation(REFUSAL).due == "a refusal that says so"
    t = ready()
    t.tool(executed=False, refused="grant-expired", is_error=True)
    t.tool(executed=False, refused="static", status=401)
    assert t.status(REFUSAL) is Status.HELD


@pytest.mark.req("MCP-021")
def test_a_call_that_ran_twice() -> None:
    t = ready()
    first, again = t.tool(), t.tool()
    assert t.violation(ONCE).entries == (first, again)
    t = ready()
    t.tool(executed=False, duplicate=True)
    assert t.violation(ONCE).seen == "a first call answered from an earlier one"
    t = ready()
    t.tool()
    t.tool(executed=False, duplicate=True)
    assert t.status(ONCE) is Status.HELD


@pytest.mark.req("GR-012")
def test_a_grant_for_a_conversation_that_nobody_registered() -> None:
    t = PartnerTale()
    n = t.issuer("grants", grant="g1", grant_id="id-g1")
    assert t.violation(MINTS).entries == (n,)
    t = PartnerTale()
    t.issuer("grants", 404, code="not_found")
    assert t.status(MINTS) is Status.HELD


@pytest.mark.req("GR-007")
@pytest.mark.parametrize(("grant", "grant_id"), [("g1", "id-g2"), ("g2", "id-g1")])
def test_a_grant_that_was_minted_before(grant: str, grant_id: str) -> None:
    t = ready()
    n = t.issuer("grants", grant=grant, grant_id=grant_id)
    found = t.violation(DIFFER)
    assert (found.due, found.entries[-1], len(found.entries)) == ("a fresh grant", n, 2)


@pytest.mark.req("GR-010", "GR-012")
@pytest.mark.parametrize("name", ["conversationId", "actorId", "teamId", "agentId", "destination"])
def test_a_grant_of_another_than_was_registered(name: str) -> None:
    t = ready()
    n = t.tool(claims={name: "other"})
    found = t.violation(CLAIMS)
    assert (found.seen, found.entries[-1]) == (f"a grant of another {name}", n)


def test_a_grant_that_was_made_wrong_by_order_is_the_issuer_s_duty() -> None:
    t = ready()
    t.issuer("lab-grants", grant="g9", grant_id="id-g9")
    t.tool(grant="g9", claims={"actorId": "other"})
    assert t.status(CLAIMS) is Status.NOTHING


@pytest.mark.req("CX-017", "MCP-002")
def test_a_grant_for_another_destination_than_the_store_s() -> None:
    t = ready()
    t.add(ParticipantDeclared("store", "store", "double", {"destination": "https://elsewhere/mcp"}), "run")
    n = t.tool()
    found = t.violation(WRONG)
    assert (found.seen, found.entries) == ("a tool ran for a grant of another destination", (n,))


def test_a_wrong_grant_that_is_refused_is_a_case_that_held() -> None:
    t = ready()
    t.tool(binding=None, executed=False, refused="grant-unknown", status=403)
    assert t.status(WRONG) is Status.HELD
    t = ready()
    t.tool(executed=False, refused="ordered", status=403)
    assert t.status(WRONG) is Status.NOTHING

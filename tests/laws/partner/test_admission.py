"""Who is let in: by the key, the form of the request, the membership, and whose the conversation is."""

from __future__ import annotations

import pytest

from lab.laws import Status
from tests.laws.partner.journals import PartnerTale, ready

FOREIGN = {"externalUserId": "eve"}


@pytest.mark.req("PA-003", "PA-010", "PA-036", "PA-037")
@pytest.mark.parametrize(
    ("shows", "status", "word"),
    [
        ("none", 200, Status.BROKEN),
        ("none", 401, Status.HELD),
        ("only:chat:context", 200, Status.BROKEN),
        ("only:chat:context", 401, Status.BROKEN),
        ("only:chat:context", 403, Status.HELD),
        ("only:chat:read", 200, Status.HELD),
    ],
)
def test_a_key_opens_its_own_routes(shows: str, status: int, word: Status) -> None:
    t = ready()
    t.call("history", status, marks={"shows": shows, "byOrder": True})
    assert t.status("keys-open-their-routes") is word


@pytest.mark.req("AT-030", "CV-019", "CX-023", "PA-045", "PA-046")
def test_what_is_malformed_is_refused() -> None:
    law = "malformed-is-refused"
    t = ready()
    n = t.call("create", 403, code="EXECUTION_DENIED", idempotency_key=None)
    assert t.violation(law).entries == (n,)
    t = ready()
    t.call("history", 200, {"externalTeamId": None})
    assert t.violation(law).seen.endswith("no employee named")
    t = ready()
    t.call("membership", 200, {"*": {"kind": "unlisted", "bytes": 1, "sha256": "x"}})
    assert t.violation(law).due == "400 CHAT_INVALID"
    t = ready()
    t.bind(1, expires=t.at(-60))
    assert t.status(law) is Status.BROKEN
    t = ready()
    t.message(text="  ")
    assert t.violation(law).due == "400 VALIDATION_ERROR"
    t = ready()
    t.refused("history", 400, "CHAT_INVALID", {"externalUserId": None})
    assert t.status(law) is Status.HELD


@pytest.mark.req("CV-013", "CX-033", "PA-039")
def test_a_conversation_is_ones_own() -> None:
    law = "conversations-are-ones-own"
    t = ready()
    t.call("context", 200, FOREIGN)
    assert t.status(law) is Status.BROKEN
    t = ready()
    t.refused("context", 404, "CHAT_UNAVAILABLE", FOREIGN)
    assert t.status(law) is Status.HELD
    t.actor = {**t.actor, **FOREIGN}
    t.membership()
    t.wait(0.1).refused("context", 403, "EXECUTION_DENIED")
    assert t.violation(law).seen == "a stranger is told 403"


@pytest.mark.req("MB-006", "CV-026")
def test_nobody_is_served_unconfirmed() -> None:
    t = PartnerTale()
    t.create()
    assert t.status("members-only") is Status.BROKEN
    assert ready().status("members-only") is Status.HELD


@pytest.mark.req("MB-016", "MB-017")
def test_the_last_owner_is_guarded_and_can_be_revoked() -> None:
    law = "owners-guarded"
    t = PartnerTale()
    t.request("membership")
    t.membership(1, role="owner")
    t.membership(2, role="admin", membershipVersion=2)
    assert t.violation(law).seen == "the last owner was demoted"
    t = PartnerTale()
    t.request("membership")
    t.membership(1, role="owner")
    t.refused("membership", 409, "CHAT_CONFLICT", {"active": False, "sourceRevision": 2})
    assert t.violation(law).seen == "an owner could not be revoked"

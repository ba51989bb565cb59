"""Versions only rise, a lease is short, and what was revoked stays so."""

from __future__ import annotations

import pytest

from lab.laws import Status
from tests.laws.partner.journals import PartnerTale, ready

VERSIONS = "membership-versions-rise"
LEASE = "lease-bounded"
REVOKED = "revoked-stays-revoked"
REVISIONS = "revisions-decide"
IDENTITY = "identity-permanent"


@pytest.mark.req("MB-008", "MB-009", "MB-031")
@pytest.mark.parametrize("name", ["subjectVersion", "membershipVersion"])
def test_a_version_that_falls(name: str) -> None:
    t = PartnerTale()
    first = t.membership(1, **{name: 3})  # type: ignore[arg-type]
    again = t.membership(2, **{name: 2})  # type: ignore[arg-type]
    judged = t.judged(VERSIONS)
    assert judged.status is Status.BROKEN
    assert judged.judgement.violations[0].entries == (first, again)


@pytest.mark.req("MB-007", "MB-009", "MB-031")
def test_a_role_that_changes_without_its_version_or_a_version_without_it() -> None:
    t = PartnerTale()
    t.membership(1)
    t.membership(2, role="admin", membershipVersion=1)
    assert t.violation(VERSIONS).due == "a higher one: role or active changed"
    t = PartnerTale()
    t.membership(1)
    t.membership(2, membershipVersion=2)
    assert t.violation(VERSIONS).due == "1: nothing changed"


def test_versions_as_they_are_due() -> None:
    t = PartnerTale()
    t.membership(1)
    t.membership(2)
    t.membership(3, role="admin", membershipVersion=2)
    t.membership(4, role="admin", active=False, membershipVersion=3)
    assert t.status(VERSIONS) is Status.HELD


def test_what_may_have_come_between_is_not_judged() -> None:
    t = PartnerTale()
    t.membership(1)
    t.lost("membership", {"sourceRevision": 2, "role": "admin", "active": True})
    t.membership(3, membershipVersion=3)
    assert t.status(VERSIONS) is Status.HELD


@pytest.mark.req("MB-011", "MB-022")
@pytest.mark.parametrize(("seconds", "word"), [(240, Status.HELD), (304, Status.HELD), (310, Status.BROKEN)])
def test_a_lease_that_is_too_long(seconds: int, word: Status) -> None:
    t = PartnerTale()
    t.wait(3).membership(1, validUntil=t.at(seconds))
    assert t.status(LEASE) is word


def test_a_lease_of_a_moved_clock() -> None:
    t = PartnerTale()
    t.request("clock")
    t.membership(1, validUntil=t.at(1000))
    assert t.status(LEASE) is Status.NOTHING


@pytest.mark.req("MB-012", "MB-026")
def test_a_repeat_that_moves_the_lease() -> None:
    t = PartnerTale()
    first = t.membership(1)
    again = t.wait(5).membership(1)
    found = t.violation(LEASE)
    assert (found.due, found.entries) == ("the lease of its first confirmation", (first, again))


@pytest.mark.req("MB-024")
def test_a_lease_of_a_revoked_membership() -> None:
    t = PartnerTale()
    t.membership(1, active=False, validUntil=t.at(10))
    assert t.violation(LEASE).due == "validUntil null"


@pytest.mark.req("MB-014", "MB-028")
def test_a_revoked_membership_that_is_active_again() -> None:
    t = PartnerTale()
    t.membership(1)
    off = t.membership(2, active=False)
    on = t.membership(3)
    assert t.violation(REVOKED).entries == (off, on)


def test_a_revoked_membership_that_stays_so() -> None:
    t = PartnerTale()
    t.membership(1, active=False)
    t.membership(2, active=False)
    t.refused("membership", 409, "CHAT_CONFLICT", {"sourceRevision": 3, "active": True})
    assert t.status(REVOKED) is Status.HELD


def test_a_revoked_membership_whose_return_is_refused() -> None:
    t = PartnerTale()
    t.membership(1, active=False)
    assert t.status(REVOKED) is Status.NOTHING
    t.refused("membership", 409, "CHAT_CONFLICT", {"sourceRevision": 3, "active": True})
    assert t.status(REVOKED) is Status.HELD


@pytest.mark.req("MB-013", "MB-025", "MB-027")
def test_an_older_or_contradicting_revision_that_is_taken() -> None:
    t = PartnerTale()
    first, old = t.membership(5), t.membership(4, sourceRevision=5)
    assert t.violation(REVISIONS).entries == (first, old)
    t = PartnerTale()
    t.membership(5)
    t.membership(5, role="admin")
    assert t.violation(REVISIONS).due == "409 CHAT_CONFLICT"


@pytest.mark.req("MB-010")
def test_a_newer_confirmation_that_is_refused() -> None:
    t = PartnerTale()
    t.membership(1)
    sent = {"sourceRevision": 2, "role": "member", "active": True}
    t.refused("membership", 409, "CHAT_CONFLICT", sent)
    assert t.violation(REVISIONS).due == "200"


@pytest.mark.req("MB-008")
def test_another_revision_than_was_sent() -> None:
    t = PartnerTale()
    t.membership(4, sourceRevision=9)
    assert t.violation(REVISIONS).due == "4"


def test_revisions_that_decide() -> None:
    t = PartnerTale()
    t.membership(5)
    t.refused("membership", 409, "CHAT_CONFLICT", {"sourceRevision": 4, "role": "member", "active": True})
    t.membership(5)
    t.membership(6)
    assert t.status(REVISIONS) is Status.HELD


@pytest.mark.req("MB-004", "MB-018", "PA-027")
@pytest.mark.parametrize("name", ["actorId", "teamId"])
def test_another_identity_for_one_employee_or_team(name: str) -> None:
    t = ready()
    n = t.create(answer={name: "other"})
    found = t.violation(IDENTITY)
    assert (found.seen, found.entries[1]) == (f"another {name} for the same external id", n)


def test_another_employee_is_another_actor() -> None:
    t = ready()
    t.actor = {"externalUserId": "other", "externalTeamId": "team"}
    t.membership(1, actorId="another")
    assert t.status(IDENTITY) is Status.HELD

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.partner.model.memberships import Confirmation, Membership, confirm
from lab.partner.model.refusals import Refusal
from lab.partner.model.words import Code, Role
from tests.partner.model.calls import TEAM, USER, running

NOW = 1_000_000
LEASE = NOW + 240_000
STORED = Membership(5, Role.MEMBER, True, LEASE, 2)
REVOKED = Membership(5, Role.MEMBER, False, None, 3)
OWNER = replace(STORED, role=Role.OWNER)


def said(revision: int, role: Role = Role.MEMBER, active: bool = True, until: int | None = LEASE) -> Confirmation:
    return Confirmation(revision, role, active, until)


def outcome(stored: Membership | None, confirmation: Confirmation, others: int = 0) -> Membership | Code:
    result = confirm(stored, confirmation, lambda: others, NOW)
    return result.code if isinstance(result, Refusal) else result


@pytest.mark.req("MB-009", "MB-010", "MB-031")
def test_a_newer_unchanged_confirmation_moves_the_lease_and_the_revision_alone() -> None:
    assert outcome(STORED, said(6, until=LEASE + 1)) == Membership(6, Role.MEMBER, True, LEASE + 1, 2)


@pytest.mark.req("MB-007", "MB-031")
def test_a_change_of_role_or_activity_raises_the_version_by_one() -> None:
    assert outcome(STORED, said(6, Role.ADMIN)) == Membership(6, Role.ADMIN, True, LEASE, 3)
    assert outcome(STORED, said(6, active=False)) == Membership(6, Role.MEMBER, False, None, 3)
    assert outcome(STORED, said(6, Role.ADMIN, active=False)) == Membership(6, Role.ADMIN, False, None, 3)


@pytest.mark.req("MB-013", "MB-025")
def test_an_outdated_confirmation_conflicts_whatever_its_lease() -> None:
    for until in (LEASE, LEASE + 1, NOW - 1, NOW + 600_000):
        assert outcome(STORED, said(4, until=until)) is Code.CHAT_CONFLICT


@pytest.mark.req("MB-012", "MB-026")
def test_a_repeated_confirmation_gives_what_is_stored_whatever_its_lease() -> None:
    for until in (LEASE, LEASE + 1, NOW - 1, NOW + 600_000):
        assert outcome(STORED, said(5, until=until)) == STORED


@pytest.mark.req("MB-027")
def test_a_contradictory_confirmation_conflicts() -> None:
    assert outcome(STORED, said(5, Role.ADMIN)) is Code.CHAT_CONFLICT
    assert outcome(STORED, said(5, active=False)) is Code.CHAT_CONFLICT


@pytest.mark.req("MB-014", "MB-028")
def test_a_revoked_membership_stays_revoked_and_repeating_that_is_progress() -> None:
    assert outcome(REVOKED, said(6)) is Code.CHAT_CONFLICT
    assert outcome(REVOKED, said(6, Role.ADMIN, active=False)) == replace(REVOKED, source_revision=6)


@pytest.mark.req("MB-024")
def test_a_first_confirmation_may_revoke() -> None:
    assert outcome(None, said(0, active=False, until=NOW - 1)) == Membership(0, Role.MEMBER, False, None, 1)


@pytest.mark.req("MB-011", "MB-022", "MB-023")
@pytest.mark.parametrize("stored", [None, STORED])
def test_a_lease_ends_in_the_future_and_within_five_minutes(stored: Membership | None) -> None:
    for until in (NOW + 1, NOW + 301_000, NOW + 305_000):
        kept = outcome(stored, said(6, until=until))
        assert isinstance(kept, Membership)
        assert kept.valid_until_ms == until
    for until in (NOW - 1, NOW, NOW + 305_001, NOW + 600_000):
        assert outcome(stored, said(6, until=until)) is Code.CHAT_INVALID


@pytest.mark.req("MB-016", "MB-017", "MB-030")
def test_the_last_owner_is_demoted_only_after_another_was_promoted() -> None:
    assert outcome(OWNER, said(6)) is Code.CHAT_CONFLICT
    assert outcome(OWNER, said(6, until=NOW - 1)) is Code.CHAT_CONFLICT
    assert outcome(OWNER, said(6, Role.OWNER)) == Membership(6, Role.OWNER, True, LEASE, 2)
    assert outcome(OWNER, said(6), others=1) == Membership(6, Role.MEMBER, True, LEASE, 3)
    assert outcome(OWNER, said(6, Role.OWNER, active=False)) == Membership(6, Role.OWNER, False, None, 3)


CONFIRMATIONS = st.lists(
    st.builds(
        Confirmation,
        st.integers(0, 6),
        st.sampled_from(Role),
        st.booleans(),
        st.sampled_from([NOW - 1, NOW + 60_000, NOW + 300_000, NOW + 900_000]),
    ),
    max_size=12,
)


@pytest.mark.req("MB-008", "MB-014")
@given(CONFIRMATIONS)
def test_any_sequence_agrees_with_the_rules_in_one_line_each(sequence: list[Confirmation]) -> None:
    stored: Membership | None = None
    accepted: list[int] = []
    was_revoked = False
    versions = [0]
    for confirmation in sequence:
        result = confirm(stored, confirmation, lambda: 1, NOW)
        if isinstance(result, Refusal):
            continue
        if stored is None or confirmation.source_revision > stored.source_revision:
            accepted.append(confirmation.source_revision)
        stored = result
        versions.append(stored.version)
        was_revoked = was_revoked or not stored.active
        assert stored.source_revision == max(accepted)
        assert stored.active is not was_revoked
        assert (stored.valid_until_ms is None) is was_revoked
        assert stored.valid_until_ms is None or NOW < stored.valid_until_ms <= NOW + 305_000
    assert all(later - earlier in (0, 1) for earlier, later in pairwise(versions))


@pytest.mark.req("MB-039")
@given(CONFIRMATIONS)
def test_the_end_equals_the_highest_revision_in_any_order_of_arrival(sequence: list[Confirmation]) -> None:
    # Only confirmations that each could be applied, one for a revision: what two in flight at once are.
    usable = {c.source_revision: replace(c, active=True, valid_until_ms=LEASE) for c in sequence}
    stored: Membership | None = None
    for confirmation in usable.values():
        result = confirm(stored, confirmation, lambda: 1, NOW)
        stored = stored if isinstance(result, Refusal) else result
    if usable:
        assert stored is not None
        highest = usable[max(usable)]
        assert (stored.source_revision, stored.role) == (highest.source_revision, highest.role)


# Over the wire


@pytest.mark.req("MB-002", "MB-019", "MB-020", "MB-032")
async def test_a_confirmation_is_answered_by_eight_members() -> None:
    async with running() as api:
        first, second = await api.member(), await api.member()
        assert (first.status, second.status) == (200, 200)
        assert set(first.data) == {
            "actorId",
            "teamId",
            "sourceRevision",
            "role",
            "subjectVersion",
            "membershipVersion",
            "active",
            "validUntil",
        }
        assert (first.data["subjectVersion"], first.data["membershipVersion"]) == (1, 1)
        assert (second.data["sourceRevision"], second.data["membershipVersion"]) == (2, 1)


@pytest.mark.req("MB-001", "MB-020", "MB-021", "MB-023", "MB-038", "PA-015", "PA-041", "PA-046")
@pytest.mark.parametrize(
    "changes",
    [
        {"externalUserId": ""},
        {"externalUserId": "x" * 256},
        {"externalTeamId": 7},
        {"externalUserId": "\ud800"},
        {"sourceRevision": -1},
        {"sourceRevision": 1.0},
        {"sourceRevision": "1"},
        {"sourceRevision": True},
        {"sourceRevision": 2**53},
        {"role": "Owner"},
        {"role": "ADMIN"},
        {"role": "guest"},
        {"role": ["member"]},
        {"active": "true"},
        {"active": 1},
        {"validUntil": None},
        {"validUntil": 17},
        {"validUntil": "tomorrow"},
        {"stray": 1},
    ],
)
async def test_a_malformed_confirmation_is_refused_and_changes_nothing(changes: dict[str, object]) -> None:
    body: dict[str, object] = {
        "externalUserId": USER,
        "externalTeamId": TEAM,
        "sourceRevision": 1,
        "role": "member",
        "active": True,
        "validUntil": "2026-01-01T00:04:00.000Z",
    }
    async with running() as api:
        refused = await api.call("PUT", "/memberships", {**body, **changes})
        assert refused.refusal == (400, "CHAT_INVALID")
        assert api.server.controls.counts()["identities"] == 0
        for name in body:
            partial = {member: value for member, value in body.items() if member != name}
            assert (await api.call("PUT", "/memberships", partial)).refusal == (400, "CHAT_INVALID")
        assert (await api.call("PUT", "/memberships", body)).status == 200


@pytest.mark.req("PA-046")
async def test_unknown_members_are_passed_over_when_the_model_is_not_strict() -> None:
    async with running(strict_json=False) as api:
        until = "2026-01-01T00:04:00.000Z"
        body = {"externalUserId": USER, "externalTeamId": TEAM, "sourceRevision": 1, "role": "member", "active": True}
        assert (await api.call("PUT", "/memberships", {**body, "validUntil": until, "stray": 1})).status == 200


@pytest.mark.req("MB-038")
async def test_external_ids_are_taken_as_they_are() -> None:
    async with running() as api:
        users = ("A", "a", " a", "\U0001f600" * 255)
        actors = [(await api.member(user)).data["actorId"] for user in users]
        assert len(set(actors)) == len(users)


@pytest.mark.req("MB-004", "MB-033")
async def test_one_employee_is_one_actor_in_all_teams_and_each_pair_has_its_revisions() -> None:
    async with running() as api:
        here = await api.member(revision=9)
        there = await api.member(team="team-2", revision=3)
        assert here.data["actorId"] == there.data["actorId"]
        assert here.data["teamId"] != there.data["teamId"]
        assert there.data["sourceRevision"] == 3


@pytest.mark.req("MB-034")
async def test_an_unknown_team_is_not_there() -> None:
    async with running() as api:
        assert (await api.member(team="nobody")).refusal == (404, "CHAT_UNAVAILABLE")


@pytest.mark.req("MB-005")
async def test_who_acts_is_never_the_owner_account_of_the_team() -> None:
    async with running() as api:
        actors = [(await api.member(role, role=role)).data["actorId"] for role in ("owner", "admin", "member")]
        owners = [row["owner_actor_id"] for row in api.server.core.parts.state.rows("SELECT * FROM teams")]
        assert len(owners) == 2
        assert not set(actors) & set(owners)


@pytest.mark.req("MB-016", "MB-017", "MB-030", "MB-040")
async def test_a_lapsed_owner_is_still_the_last_one() -> None:
    async with running() as api:
        before = await api.member("boss", role="owner", seconds=60)
        api.server.controls.move_clock(120_000)
        refused = await api.member("boss", role="member")
        assert refused.refusal == (409, "CHAT_CONFLICT")
        row = api.server.core.parts.state.row("SELECT * FROM memberships")
        assert row is not None
        assert (row["role"], row["version"], row["source_revision"]) == ("owner", 1, before.data["sourceRevision"])
        assert (await api.member("second", role="owner")).status == 200
        assert (await api.member("boss", role="member")).status == 200
        assert (await api.member("second", role="owner", active=False, seconds=None)).data["validUntil"] is None


@pytest.mark.req("MB-040")
async def test_an_owner_whose_lease_lapsed_counts_as_an_owner() -> None:
    async with running() as api:
        await api.member("boss", role="owner", seconds=60)
        api.server.controls.move_clock(120_000)
        await api.member("second", role="owner")
        assert (await api.member("second", role="member")).status == 200


@pytest.mark.req("MB-015", "MB-029")
async def test_a_deleted_identity_never_comes_back() -> None:
    async with running() as api:
        before = (await api.member()).data["actorId"]
        api.server.controls.delete_identity(USER)
        for active in (True, False):
            assert (await api.member(revision=50, active=active)).refusal == (404, "CHAT_UNAVAILABLE")
            assert (await api.member(team="team-2", active=active)).refusal == (404, "CHAT_UNAVAILABLE")
        rows = api.server.core.parts.state.rows("SELECT * FROM identities")
        assert [(row["actor_id"], row["deleted"]) for row in rows] == [(before, 1)]


@pytest.mark.req("MB-011", "MB-022")
async def test_a_far_lease_is_refused_over_the_wire_and_a_near_one_stored_as_sent() -> None:
    async with running() as api:
        assert (await api.member(seconds=600)).refusal == (400, "CHAT_INVALID")
        kept = await api.member(seconds=301)
        assert kept.status == 200
        assert kept.data["validUntil"].endswith("Z")
        assert (await api.member(revision=0, seconds=600)).refusal == (409, "CHAT_CONFLICT")

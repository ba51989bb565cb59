"""Explicit synchronization of memberships: revisions, leases, the last owner, no resurrection (MB-*)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from lab.partner.model.answers import Answer, ApiRequest, success
from lab.partner.model.authority import Caller
from lab.partner.model.parts import Parts
from lab.partner.model.refusals import Refusal, conflict, invalid, unavailable
from lab.partner.model.shape import Fields, read_object_untrusted
from lab.partner.model.words import EXTERNAL_ID_CHARACTERS, LEASE_MS, LEASE_SLACK_MS, Role


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What the source of truth says of a membership. `valid_until_ms` counts only with `active` (MB-024)."""

    source_revision: int
    role: Role
    active: bool
    valid_until_ms: int | None


@dataclass(frozen=True, slots=True)
class Membership:
    """A membership as it is stored; `valid_until_ms` is None exactly when it is revoked."""

    source_revision: int
    role: Role
    active: bool
    valid_until_ms: int | None
    version: int


def confirm(
    stored: Membership | None, said: Confirmation, other_owners: Callable[[], int], now_ms: int
) -> Membership | Refusal:
    """The membership after a confirmation, or why it stays as it was.

    `other_owners` counts the team's further active owners, lapsed ones too (MB-040). Revision comes first; validUntil
    is judged only for what would be applied (MB-022, MB-023).
    """
    if stored is None:
        return _judged(Membership(said.source_revision, said.role, said.active, _lease(said), 1), now_ms)
    if said.source_revision < stored.source_revision:
        # MB-013, MB-025
        return conflict("outdated revision")
    if said.source_revision == stored.source_revision:
        # MB-012, MB-026, MB-027
        same = (said.role, said.active) == (stored.role, stored.active)
        return stored if same else conflict("contradictory revision")
    if not stored.active:
        # MB-014, MB-028: a revocation stays; repeating it is progress of the reconciliation
        return conflict("revoked") if said.active else replace(stored, source_revision=said.source_revision)
    if said.active and stored.role is Role.OWNER and said.role is not Role.OWNER and other_owners() == 0:
        # MB-016, MB-030; a revocation is allowed (MB-017)
        return conflict("last owner")
    # MB-009, MB-031: an unchanged confirmation moves the lease alone
    step = 0 if (said.role, said.active) == (stored.role, stored.active) else 1
    return _judged(
        Membership(said.source_revision, said.role, said.active, _lease(said), stored.version + step), now_ms
    )


def put_membership(parts: Parts, caller: Caller, request: ApiRequest) -> Answer:
    """PUT /memberships (MB-001, MB-002, MB-019)."""
    fields = Fields(read_object_untrusted(request), parts.settings.strict_json)
    user = fields.text("externalUserId", EXTERNAL_ID_CHARACTERS)
    external_team = fields.text("externalTeamId", EXTERNAL_ID_CHARACTERS)
    said = _read_confirmation_untrusted(fields)
    team = parts.state.row("SELECT * FROM teams WHERE external_team_id = ? AND removed = 0", external_team)
    if team is None:
        # MB-034
        raise unavailable("team")
    with parts.state.transaction():
        actor_id, subject_version = _identity(parts, caller.namespace, user)
        stored = stored_membership(parts, actor_id, team["team_id"])
        result = confirm(stored, said, lambda: _other_owners(parts, actor_id, team["team_id"]), parts.now_ms())
        if isinstance(result, Refusal):
            raise result
        store_membership(parts, actor_id, team["team_id"], result)
    parts.bell.ring()
    data: dict[str, object] = {
        "actorId": actor_id,
        "teamId": team["team_id"],
        "sourceRevision": result.source_revision,
        "role": str(result.role),
        "subjectVersion": subject_version,
        "membershipVersion": result.version,
        "active": result.active,
        "validUntil": parts.stamp(result.valid_until_ms),
    }
    return success(200, data, facts=data)


def stored_membership(parts: Parts, actor_id: str, team_id: str) -> Membership | None:
    """The membership of this employee in this team."""
    row = parts.state.row("SELECT * FROM memberships WHERE actor_id = ? AND team_id = ?", actor_id, team_id)
    if row is None:
        return None
    return Membership(
        row["source_revision"], Role(row["role"]), bool(row["active"]), row["valid_until_ms"], row["version"]
    )


def store_membership(parts: Parts, actor_id: str, team_id: str, membership: Membership) -> None:
    """Write it, new or in place of the former one."""
    parts.state.run(
        "INSERT OR REPLACE INTO memberships VALUES (?, ?, ?, ?, ?, ?, ?)",
        actor_id,
        team_id,
        membership.source_revision,
        str(membership.role),
        membership.active,
        membership.valid_until_ms,
        membership.version,
    )


def _read_confirmation_untrusted(fields: Fields) -> Confirmation:
    revision = fields.integer("sourceRevision")
    role = Role(fields.choice("role", tuple(Role)))
    active = fields.boolean("active")
    valid_until = fields.optional_instant("validUntil")
    fields.done()
    if active and valid_until is None:
        # MB-023: always, whatever the revision
        raise invalid("active without validUntil")
    return Confirmation(revision, role, active, valid_until)


def _lease(said: Confirmation) -> int | None:
    """MB-024: a revoked membership has no lease, whatever was sent."""
    return said.valid_until_ms if said.active else None


def _judged(membership: Membership, now_ms: int) -> Membership | Refusal:
    until = membership.valid_until_ms
    if until is None:
        return membership
    if until <= now_ms:
        # MB-023
        return invalid("validUntil is past")
    if until > now_ms + LEASE_MS + LEASE_SLACK_MS:
        # MB-011, MB-022: refused, never clamped
        return invalid("validUntil is too far")
    return membership


def _identity(parts: Parts, namespace: str, external_user_id: str) -> tuple[str, int]:
    """The permanent identity of an employee, made at the first confirmation (MB-004, MB-018)."""
    row = parts.state.row(
        "SELECT * FROM identities WHERE namespace = ? AND external_user_id = ?", namespace, external_user_id
    )
    if row is None:
        actor_id = parts.ids.uuid()
        parts.state.run(
            "INSERT INTO identities (actor_id, namespace, external_user_id) VALUES (?, ?, ?)",
            actor_id,
            namespace,
            external_user_id,
        )
        return actor_id, 1
    if row["deleted"]:
        # MB-015, MB-029
        raise unavailable("identity")
    return row["actor_id"], row["subject_version"]


def _other_owners(parts: Parts, actor_id: str, team_id: str) -> int:
    return parts.state.count(
        "SELECT COUNT(*) FROM memberships WHERE team_id = ? AND role = 'owner' AND active = 1 AND actor_id <> ?",
        team_id,
        actor_id,
    )

"""Slips of a partner API in what it makes of confirmations, and in what a membership gives a right to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lab.partner.model import authority, memberships
from lab.partner.model.answers import ApiRequest
from lab.partner.model.authority import Authority, Caller
from lab.partner.model.memberships import Confirmation, Membership
from lab.partner.model.parts import Parts
from lab.partner.model.refusals import Refusal, conflict
from lab.partner.model.shape import Fields, read_object_untrusted
from lab.partner.model.turn import Turn
from lab.partner.model.words import LEASE_MS, Role
from tests.bugs.partner import patching
from tests.bugs.partner.plants import plant
from tests.bugs.plants import Function, Patch

Stored = Membership | None
Result = Membership | Refusal
Judge = Callable[[Stored, Confirmation, Result, int], Result | None]


def confirmed(patch: Patch, judge: Judge) -> None:
    """Let `judge` give another result of a confirmation, knowing the right one; None leaves that."""

    def make(original: Function) -> Function:
        def confirm(stored: Stored, said: Confirmation, owners: Callable[[], int], now_ms: int) -> Result:
            usual: Result = original(stored, said, owners, now_ms)
            other = judge(stored, said, usual, now_ms)
            if other is None:
                return usual
            patch.slipped()
            return other

        return confirm

    patch.wrap(memberships, "confirm", make)


def applied(stored: Membership, said: Confirmation) -> Membership:
    """The confirmation as it would be stored by whoever looks at nothing."""
    step = (said.role, said.active) != (stored.role, stored.active)
    lease = said.valid_until_ms if said.active else None
    return Membership(said.source_revision, said.role, said.active, lease, stored.version + step)


# Versions


@plant("api-role-change-keeps-version", scenario="revisions", law="membership-versions-rise")
def role_change_keeps_version(patch: Patch) -> None:
    """Another role is no other membership."""

    def judge(stored: Stored, said: Confirmation, usual: Result, _: int) -> Result | None:
        if stored is None or isinstance(usual, Refusal) or usual.role is stored.role:
            return None
        return replace(usual, version=stored.version)

    confirmed(patch, judge)


@plant("api-confirmation-raises-version", scenario="lease-lapses", law="membership-versions-rise")
def confirmation_raises_version(patch: Patch) -> None:
    """Each confirmation is a change."""

    def judge(stored: Stored, said: Confirmation, usual: Result, _: int) -> Result | None:
        if stored is None or isinstance(usual, Refusal) or usual.version != stored.version:
            return None
        return replace(usual, version=stored.version + 1)

    confirmed(patch, judge)


@plant("api-versions-from-zero", scenario="partner-chat", law="answers-fit-contract")
def versions_from_zero(patch: Patch) -> None:
    """Both versions count from 0."""

    def lower(data: patching.Data) -> bool:
        data["membershipVersion"] -= 1
        data["subjectVersion"] -= 1
        return True

    patching.data(patch, patching.MEMBERSHIPS, lower)


@plant("api-revision-not-advanced", scenario="lease-lapses", law="revisions-decide")
def revision_not_advanced(patch: Patch) -> None:
    """A confirmation that changes nothing is no progress."""

    def judge(stored: Stored, said: Confirmation, usual: Result, _: int) -> Result | None:
        if stored is None or isinstance(usual, Refusal) or usual.version != stored.version:
            return None
        return None if said.source_revision == stored.source_revision else replace(usual, source_revision=1)

    confirmed(patch, judge)


# Revisions


@plant("api-stale-revision-applied", scenario="revisions", law="membership-versions-rise")
def stale_revision_applied(patch: Patch) -> None:
    """Only the very same revision is an old one."""

    def judge(stored: Stored, said: Confirmation, usual: Result, _: int) -> Result | None:
        stale = stored is not None and said.source_revision < stored.source_revision
        return applied(stored, said) if stale and stored is not None else None

    confirmed(patch, judge)


@plant("api-contradiction-repeated", scenario="revisions", law="revisions-decide")
def contradiction_repeated(patch: Patch) -> None:
    """The same revision is a repeat, whatever it says."""

    def judge(stored: Stored, said: Confirmation, usual: Result, _: int) -> Result | None:
        same = stored is not None and said.source_revision == stored.source_revision
        return stored if same and isinstance(usual, Refusal) else None

    confirmed(patch, judge)


@plant("api-revision-per-user", scenario="revision-of-a-team", law="revisions-decide")
def revision_per_user(patch: Patch) -> None:
    """An employee has one revision, in whatever team."""
    highest: dict[str, int] = {}

    def make(original: Function) -> Function:
        def stored(parts: Parts, actor_id: str, team_id: str) -> Stored:
            found: Stored = original(parts, actor_id, team_id)
            row = parts.state.row("SELECT MAX(source_revision) AS most FROM memberships WHERE actor_id = ?", actor_id)
            highest["most"] = -1 if row is None or row["most"] is None else row["most"]
            return found

        return stored

    def judge(stored: Stored, said: Confirmation, usual: Result, _: int) -> Result | None:
        return conflict("outdated revision") if stored is None and said.source_revision <= highest["most"] else None

    patch.wrap(memberships, "stored_membership", make)
    confirmed(patch, judge)


# Leases


@plant("api-repeat-extends-lease", scenario="repeated-lease", law="lease-bounded")
def repeat_extends_lease(patch: Patch) -> None:
    """A repeat is taken at its word."""

    def judge(stored: Stored, said: Confirmation, usual: Result, _: int) -> Result | None:
        if stored is None or usual is not stored or said.valid_until_ms is None:
            return None
        return replace(stored, valid_until_ms=said.valid_until_ms)

    confirmed(patch, judge)


@plant("api-lease-clamped", scenario="lease-too-long", law="lease-bounded")
def lease_clamped(patch: Patch) -> None:
    """A lease that is too long is cut to what is allowed."""

    def judge(stored: Stored, said: Confirmation, usual: Result, now_ms: int) -> Result | None:
        if not isinstance(usual, Refusal) or usual.why != "validUntil is too far":
            return None
        version = 1 if stored is None else stored.version
        return Membership(said.source_revision, said.role, said.active, now_ms + LEASE_MS, version)

    confirmed(patch, judge)


@plant("api-lease-unbounded", scenario="lease-too-long", law="lease-bounded")
def lease_unbounded(patch: Patch) -> None:
    """A lease lasts as long as was asked for."""
    patch.set(memberships, "LEASE_MS", 1 << 50)
    patch.after(memberships, "confirm", lambda *_: patch.slipped())


@plant("api-revocation-keeps-lease", scenario="membership-revoked", law="lease-bounded")
def revocation_keeps_lease(patch: Patch) -> None:
    """A revoked membership shows the lease that it had."""
    last: list[object] = []

    def keep(data: patching.Data) -> bool:
        if data["active"]:
            last.append(data["validUntil"])
            return False
        data["validUntil"] = last[-1]
        return True

    patching.data(patch, patching.MEMBERSHIPS, keep)


@plant("api-lapse-is-final", scenario="lease-lapses", law="revisions-decide")
def lapse_is_final(patch: Patch) -> None:
    """Who let the lease lapse is revoked."""

    def judge(stored: Stored, said: Confirmation, usual: Result, now_ms: int) -> Result | None:
        lapsed = stored is not None and stored.valid_until_ms is not None and stored.valid_until_ms <= now_ms
        return conflict("revoked") if lapsed else None

    confirmed(patch, judge)


# Revocation and the last owner


@plant("api-revoked-comes-back", scenario="membership-revoked", law="revoked-stays-revoked")
def revoked_comes_back(patch: Patch) -> None:
    """A newer word counts, after a revocation too."""

    def judge(stored: Stored, said: Confirmation, usual: Result, _: int) -> Result | None:
        if stored is None or stored.active or not said.active or said.source_revision <= stored.source_revision:
            return None
        return applied(stored, said)

    confirmed(patch, judge)


@plant("api-last-owner-demoted", scenario="revisions", law="owners-guarded")
def last_owner_demoted(patch: Patch) -> None:
    """Owners are demoted like anybody else."""

    def judge(stored: Stored, said: Confirmation, usual: Result, _: int) -> Result | None:
        last = stored is not None and isinstance(usual, Refusal) and usual.why == "last owner"
        return applied(stored, said) if last and stored is not None else None

    confirmed(patch, judge)


@plant("api-last-owner-not-revoked", scenario="owner-revoked", law="owners-guarded")
def last_owner_not_revoked(patch: Patch) -> None:
    """The last owner stays, whatever happened."""

    def judge(stored: Stored, said: Confirmation, usual: Result, _: int) -> Result | None:
        owner = stored is not None and stored.active and stored.role is Role.OWNER
        return conflict("last owner") if owner and not said.active else None

    confirmed(patch, judge)


# Identities


@plant("api-actor-per-team", scenario="two-teams", law="identity-permanent")
def actor_per_team(patch: Patch) -> None:
    """An employee is somebody else in each team."""

    def other(data: patching.Data) -> bool:
        data["actorId"] = f"{data['actorId'][:24]}{data['teamId'][:12]}"
        return True

    patching.data(patch, patching.MEMBERSHIPS, other)


@plant("api-actor-changes-on-rotation", scenario="rotated-and-confirmed", law="identity-permanent")
def actor_changes_on_rotation(patch: Patch) -> None:
    """Whose the employee is depends on the key."""

    def make(original: Function) -> Function:
        def check(self: Authority, authorization: Any, organization_id: str | None) -> Caller:
            caller: Caller = original(self, authorization, organization_id)
            patch.slipped()
            return replace(caller, namespace=f"{caller.namespace}-{caller.key_hash[:8]}")

        return check

    patch.wrap(Authority, "check_key", make)


@plant("api-membership-invented", scenario="never-confirmed", law="members-only")
def membership_invented(patch: Patch) -> None:
    """Whoever opens a conversation is a member."""

    def make(original: patching.Route) -> patching.Route:
        def create(parts: Parts, caller: Caller, request: ApiRequest) -> Any:
            try:
                return original(parts, caller, request)
            except Refusal as refusal:
                if refusal.why != "no membership":
                    raise
            patch.slipped()
            fields = Fields(read_object_untrusted(request), False)
            actor_id, _ = memberships._identity(parts, caller.namespace, fields.text("externalUserId", 255))
            team = parts.state.row("SELECT * FROM teams WHERE external_team_id = ?", fields.text("externalTeamId", 255))
            assert team is not None
            until = parts.now_ms() + LEASE_MS
            memberships.store_membership(parts, actor_id, team["team_id"], Membership(0, Role.MEMBER, True, until, 1))
            return original(parts, caller, request)

        return create

    patching.route(patch, patching.CONVERSATIONS, make)


# What is checked while a run goes on


@plant("api-effects-after-revocation", scenario="revoked-during-a-tool", law="no-effect-after-denial")
def effects_after_revocation(patch: Patch) -> None:
    """Authority counts when a message comes, and no more."""

    def make(original: Function) -> Function:
        def check(self: Turn) -> None:
            if self._parts.authority.still_allowed(self._run.authority) is not None:
                patch.slipped()
                return
            original(self)

        return check

    patch.wrap(Turn, "_check_authority", make)


@plant("api-stream-goes-on-after-revocation", scenario="revoked-in-a-stream", law="no-delivery-after-denial")
def stream_goes_on_after_revocation(patch: Patch) -> None:
    """Who may open a stream gets all of it."""

    def make(original: Function) -> Function:
        def may_deliver(self: Authority, caller: Caller, run: authority.RunAuthority) -> None:
            if original(self, caller, run) is not None:
                patch.slipped()

        return may_deliver

    patch.wrap(Authority, "may_deliver", make)

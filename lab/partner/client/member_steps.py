"""The steps about who may act, and until when."""

from __future__ import annotations

from lab.clock import timestamp
from lab.partner.client.asking import Departure
from lab.partner.client.ground import Ground, odd_one
from lab.partner.client.outcomes import Done, Outcome
from lab.partner.client.records import Member
from lab.partner.client.shapes import Membership, membership_untrusted
from lab.partner.client.words import PUT_MEMBERSHIP

LONGEST_LEASE_S = 300
"""What the contract allows (MB-011)."""


class MemberSteps(Ground):
    """Memberships and their leases."""

    async def membership(
        self,
        who: str,
        *,
        role: str | None = None,
        active: bool = True,
        revision: int | None = None,
        lease_s: float | None = None,
        team: str | None = None,
        external_user_id: str | None = None,
        renew: bool | None = None,
        departure: Departure | None = None,
    ) -> Outcome[Membership]:
        """Confirm, change or revoke a membership (MB-001).

        Its lease is renewed from then on unless `renew` or the settings say no. A refused step leaves an earlier lease
        in the care of its renewal.
        """
        member = self.member(who, team=team, external_user_id=external_user_id)
        member.role = role or member.role
        odd = odd_one(departure, revision is not None or (lease_s or 0) > LONGEST_LEASE_S)
        outcome = await self._confirm(member, active, revision, lease_s, odd)
        if isinstance(outcome, Done):
            if outcome.value.active and _either(renew, self.settings.renews_leases):
                self.leases.keep(who, outcome.value, lambda: self._confirm(member, True, None, lease_s, None))
            else:
                self.leases.stop(who)
        return outcome

    async def _confirm(
        self, member: Member, active: bool, revision: int | None, lease_s: float | None, departure: Departure | None
    ) -> Outcome[Membership]:
        number = member.revision + 1 if revision is None else revision
        member.revision = max(member.revision, number)
        until = self.wall_ms() + round(1000 * (self.settings.lease_s if lease_s is None else lease_s))
        members = {
            **member.actor,
            "sourceRevision": number,
            "role": member.role,
            "active": active,
            "validUntil": timestamp(until) if active else None,
        }
        ask = self.site.ask(PUT_MEMBERSHIP, {}, members=members, departure=departure)
        outcome = await self.calls.call(ask, membership_untrusted)
        if isinstance(outcome, Done):
            member.stored = outcome.value
        return outcome


def _either(chosen: bool | None, usual: bool) -> bool:
    return usual if chosen is None else chosen

"""Binding a conversation to a store grant, and finding back to a known version when that went wrong."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from lab.partner.client.asking import Departure, Site
from lab.partner.client.calls import Calls
from lab.partner.client.outcomes import ApiRefusal, Done, Outcome, TransportError
from lab.partner.client.records import ConversationRecord, Member
from lab.partner.client.shapes import Context, Grant, context_untrusted, version_untrusted
from lab.partner.client.words import CONTEXT_CONFLICT, GET_CONTEXT, PUT_CONTEXT

MOST_ROUNDS = 5
"""Recovery ends after so many rounds of GET and PUT (CX-031)."""


@dataclass(frozen=True, slots=True)
class Contested:
    """Recovery gave up: every round lost, the last by `last`."""

    rounds: int
    last: ApiRefusal | TransportError


class Binder:
    """Binds and recovers. `mint` gets a fresh grant; `wall_ms` is the time in milliseconds since 1970."""

    def __init__(
        self,
        calls: Calls,
        site: Callable[[], Site],
        mint: Callable[[ConversationRecord], Awaitable[Outcome[Grant]]],
        wall_ms: Callable[[], int],
        most_rounds: int = MOST_ROUNDS,
    ) -> None:
        self._calls = calls
        self._site = site
        self._mint = mint
        self._wall_ms = wall_ms
        self._most_rounds = most_rounds

    async def read(
        self, record: ConversationRecord, member: Member, departure: Departure | None = None
    ) -> Outcome[Context]:
        """The context as the API has it; its version is then the known one."""
        ask = self._site().ask(GET_CONTEXT, record.ids, query=member.actor, departure=departure)
        outcome = await self._calls.call(ask, context_untrusted)
        if isinstance(outcome, Done):
            record.version = outcome.value.version
        return outcome

    async def bind(
        self,
        record: ConversationRecord,
        member: Member,
        grant: Grant,
        expected_version: int,
        departure: Departure | None = None,
    ) -> Outcome[int]:
        """One PUT, never repeated by itself: when its answer is lost, the version has to be read first (CX-008)."""
        mcp = record.told.mcp
        # CX-015: without a target, what a mistaken client would send.
        members = {
            **member.actor,
            "serverId": "none" if mcp is None else mcp.server_id,
            "destination": "https://none.invalid/" if mcp is None else mcp.destination,
            "grant": grant.text,
            # CX-030: the issuer's own text.
            "expiresAt": grant.expires_at.text,
            "expectedVersion": expected_version,
        }
        ask = self._site().ask(PUT_CONTEXT, record.ids, members=members, departure=departure, repeat=False)
        outcome = await self._calls.call(ask, version_untrusted)
        if isinstance(outcome, Done):
            record.version = outcome.value
        elif isinstance(outcome, TransportError) or outcome.code == CONTEXT_CONFLICT:
            # CX-010, CX-011: nobody knows it now, and it is not guessed.
            record.version = None
        return outcome

    async def usable_grant(self, record: ConversationRecord) -> Outcome[Grant]:
        """The newest grant, or a fresh one where that has expired or there is none (CX-012)."""
        if record.grants and record.grants[-1].expires_at.ms > self._wall_ms():
            return Done(record.grants[-1], 0)
        return await self._mint(record)

    async def recover(self, record: ConversationRecord, member: Member) -> Outcome[int] | Contested:
        """Rounds of: read the version, mint a fresh grant, bind it there (CX-009, CX-010). Other refusals end it."""
        for round_number in range(1, self._most_rounds + 1):
            context = await self.read(record, member)
            if not isinstance(context, Done):
                return context
            grant = await self._mint(record)
            if not isinstance(grant, Done):
                return grant
            bound = await self.bind(record, member, grant.value, context.value.version)
            if isinstance(bound, Done) or not recoverable(bound):
                return bound
            if round_number == self._most_rounds:
                return Contested(round_number, bound)
        raise AssertionError("at least one round")


def recoverable(outcome: ApiRefusal | TransportError) -> bool:
    """Whether a bind that ended so is followed by a recovery: a conflict, or an answer that was lost."""
    if isinstance(outcome, TransportError):
        return True
    return outcome.code == CONTEXT_CONFLICT

"""The steps that open conversations and bind them to store grants."""

from __future__ import annotations

from lab.clock import timestamp
from lab.errors import UsageError
from lab.partner.client.asking import Departure
from lab.partner.client.context import Contested, recoverable
from lab.partner.client.ground import Ground, odd_one
from lab.partner.client.members import Moment
from lab.partner.client.outcomes import Done, Outcome
from lab.partner.client.records import ConversationRecord
from lab.partner.client.settings import LEASE_S
from lab.partner.client.shapes import Context, Conversation, Grant, conversation_untrusted
from lab.partner.client.words import POST_CONVERSATION


class ConversationSteps(Ground):
    """Conversations, grants and contexts."""

    async def conversation(
        self,
        label: str,
        who: str,
        *,
        agent: str | None = None,
        intent: str | None = None,
        register: bool = True,
        departure: Departure | None = None,
    ) -> Outcome[Conversation]:
        """Open a conversation and register it with the issuer. The same `intent`, the label's own by default, has the
        same Idempotency-Key: naming it again repeats the call (CV-010)."""
        member = self.member(who)
        agent_id = agent or self.target.agent_id
        if agent_id is None:
            # PA-052
            raise UsageError("no agentId is known: give one in the step, the settings or the fixture file")
        key = self.key_of(intent or f"conversation {label}")
        ask = self.site.ask(
            POST_CONVERSATION,
            {},
            members={**member.actor, "agentId": agent_id},
            idempotency_key=key,
            departure=departure,
        )
        outcome = await self.calls.call(ask, conversation_untrusted)
        if isinstance(outcome, Done):
            known = self.conversations.get(label)
            if known is None or known.told.conversation_id != outcome.value.conversation_id:
                self.conversations[label] = ConversationRecord(label, member, outcome.value)
            if register and outcome.value.mcp is not None and self.issuer is not None:
                registered = await self.issuer.register(outcome.value)
                if not isinstance(registered, Done):
                    return registered
        return outcome

    async def grant(self, conversation: str, *, departure: Departure | None = None) -> Outcome[Grant]:
        """Mint a fresh grant for the conversation, to be bound next (GR-006)."""
        return await self.mint(self.conversation_of(conversation), departure)

    async def bind(
        self,
        conversation: str,
        *,
        who: str | None = None,
        expected_version: int | None = None,
        grant: Grant | None = None,
        recover: bool = True,
        departure: Departure | None = None,
    ) -> Outcome[int] | Contested:
        """Bind the newest grant at the known version, 0 for a new conversation; the version that this made.

        After a conflict or a lost answer it recovers, unless `recover` is false or the scenario chose the version. A
        version that nobody knows is read first (CX-011).
        """
        record, member = self.with_member(conversation, who)
        odd = odd_one(departure, expected_version is not None or grant is not None)
        version = record.version if expected_version is None else expected_version
        if version is None:
            read = await self.binder.read(record, member)
            if not isinstance(read, Done):
                return read
            version = read.value.version
        if grant is None:
            usable = await self._grant_for(record)
            if not isinstance(usable, Done):
                return usable
            grant = usable.value
        outcome = await self.binder.bind(record, member, grant, version, odd)
        if recover and odd is None and not isinstance(outcome, Done) and recoverable(outcome):
            return await self.binder.recover(record, member)
        return outcome

    async def _grant_for(self, record: ConversationRecord) -> Outcome[Grant]:
        if record.told.mcp is None:
            # CX-015: the issuer makes none for such a conversation.
            soon = self.wall_ms() + 1000 * LEASE_S
            return Done(Grant("no-grant", Moment(timestamp(soon), soon)), 0)
        return await self.binder.usable_grant(record)

    async def recover_context(self, conversation: str, *, who: str | None = None) -> Outcome[int] | Contested:
        """Read the version and bind a fresh grant there, at most five rounds (CX-031); the version that this made."""
        record, member = self.with_member(conversation, who)
        return await self.binder.recover(record, member)

    async def context(
        self, conversation: str, *, who: str | None = None, departure: Departure | None = None
    ) -> Outcome[Context]:
        """Read the context."""
        return await self.binder.read(*self.with_member(conversation, who), departure)

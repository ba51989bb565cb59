"""What the driver's steps stand on."""

from __future__ import annotations

from dataclasses import replace

import aiohttp

from lab.context import RunContext
from lab.errors import MisuseError, RemoteError, UsageError
from lab.partner.client.asking import Departure, Site
from lab.partner.client.calls import Calls, open_session
from lab.partner.client.context import Binder
from lab.partner.client.follow import Follower
from lab.partner.client.issuer import IssuerClient, IssuerTarget
from lab.partner.client.lease import LeaseKeeper
from lab.partner.client.outcomes import Done, Outcome
from lab.partner.client.records import ConversationRecord, FileRecord, Member, RunRecord
from lab.partner.client.settings import DriverSettings, Target
from lab.partner.client.shapes import Grant
from lab.tap.partner import PartnerTap


class NotThere(RemoteError):
    """A step names a thing that no earlier step got."""


class Ground:
    """What all steps stand on: the session, the keys of intentions, and the records of what labels name."""

    def __init__(
        self,
        ctx: RunContext,
        name: str,
        target: Target,
        issuer: IssuerTarget | None,
        tap: PartnerTap,
        settings: DriverSettings | None = None,
    ) -> None:
        self.ctx = ctx
        self.name = name
        self.target = target
        self._issuer_target = issuer
        self._tap = tap
        self.settings = settings or DriverSettings()
        self._keys = ctx.draws(name, "idempotency-keys")
        self._employees = ctx.draws(name, "employees")
        self._session: aiohttp.ClientSession | None = None
        self.leases = LeaseKeeper(self.wall_ms, ctx.fail)
        self.clock_offset_ms = 0
        """How far the API's wall clock was moved ahead of the lab's."""
        self._intents: dict[str, str] = {}
        self.members: dict[str, Member] = {}
        self.conversations: dict[str, ConversationRecord] = {}
        self.files: dict[str, FileRecord] = {}
        self.runs: dict[str, RunRecord] = {}

    async def start(self) -> None:
        """Open the driver's session."""
        self._session = open_session()
        calls = Calls(self.ctx, self.name, self._session, self._tap, self.settings.calls)
        self.calls = calls
        self.follower = Follower(self.ctx, self.name, calls, self._tap, self.settings.following)
        self.issuer = None if self._issuer_target is None else IssuerClient(calls, self._issuer_target)
        rounds = self.settings.most_context_rounds
        self.binder = Binder(calls, lambda: self.target.site, self.mint, self.wall_ms, rounds)

    async def close(self) -> None:
        """Renew no more leases, and close the session. Safe to call again."""
        await self.leases.close()
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def wall_ms(self) -> int:
        """Milliseconds since 1970 UTC, as the API's clock has them."""
        return self.ctx.wall_ms() + self.clock_offset_ms

    def use_key(self, chat_key: str) -> None:
        """Go on with another key of the organization, after a rotation."""
        self.target = replace(self.target, chat_key=chat_key)

    async def use_target(self, target: Target, issuer: IssuerTarget | None, *, same_instance: bool) -> None:
        """Drive a restarted API; of an instance that is gone all that was known is dropped (FX-027)."""
        await self.close()
        self.target, self._issuer_target = target, issuer
        if not same_instance:
            for known in (self.members, self.conversations, self.files, self.runs, self._intents):
                known.clear()
        await self.start()

    def member(self, who: str, *, team: str | None = None, external_user_id: str | None = None) -> Member:
        """The employee with this label, made up when it is named first: its external id is fresh in each run."""
        if who not in self.members:
            team_id = team or self.target.external_team_id
            if team_id is None:
                raise UsageError("no externalTeamId is known: give one in the step, the settings or the fixture file")
            self.members[who] = Member(who, external_user_id or f"employee-{self._employees.uuid()}", team_id)
        return self.members[who]

    async def mint(self, record: ConversationRecord, departure: Departure | None = None) -> Outcome[Grant]:
        """A fresh grant for a conversation, kept as its newest."""
        if self.issuer is None:
            raise UsageError("no grant issuer is known: the fixture file names none, and the lab's own is not running")
        outcome = await self.issuer.mint(record.told, departure)
        if isinstance(outcome, Done):
            record.grants.append(outcome.value)
        return outcome

    @property
    def site(self) -> Site:
        """Where the API's routes lie, with the key that is used now."""
        if self._session is None:
            raise MisuseError("a driver takes steps after start() and before close()")
        return self.target.site

    def key_of(self, intent: str) -> str:
        """One Idempotency-Key for one intention, whatever happens to its call (MSG-032)."""
        if intent not in self._intents:
            self._intents[intent] = self._keys.uuid()
        return self._intents[intent]

    def conversation_of(self, label: str) -> ConversationRecord:
        """A conversation. Raises `NotThere`."""
        if label not in self.conversations:
            raise NotThere(f"conversation {label} was never opened: its creation was refused or got no answer")
        return self.conversations[label]

    def with_member(self, conversation: str, who: str | None) -> tuple[ConversationRecord, Member]:
        """A conversation, and who acts in it: its own employee unless another is named."""
        record = self.conversation_of(conversation)
        return record, record.member if who is None else self.member(who)

    def file(self, label: str) -> FileRecord:
        """An uploaded file. Raises `NotThere`."""
        if label not in self.files:
            raise NotThere(f"file {label} was never stored: its upload was refused or got no answer")
        return self.files[label]

    def run(self, label: str) -> RunRecord:
        """A run. Raises `NotThere`."""
        if label not in self.runs:
            raise NotThere(f"run {label} never began: its message was refused or got no answer")
        return self.runs[label]


def odd_one(departure: Departure | None, chosen: bool) -> Departure | None:
    """A departure where the scenario chose a value itself, so that the journal says so."""
    return Departure() if departure is None and chosen else departure

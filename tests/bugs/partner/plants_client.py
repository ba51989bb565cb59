"""Slips of the driver, which stands for a partner's server: in its calls, its leases and its grants."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lab.clock import timestamp
from lab.partner.client import calls, lease, member_steps
from lab.partner.client.asking import Ask, Departure, Site
from lab.partner.client.calls import Calls
from lab.partner.client.context import Binder
from lab.partner.client.conversation_steps import ConversationSteps
from lab.partner.client.ground import Ground
from lab.partner.client.issuer import IssuerClient
from lab.partner.client.outcomes import ApiRefusal, Done
from lab.partner.client.run_steps import RunSteps
from lab.partner.client.words import POST_CONVERSATION, POST_MESSAGE, PUT_CONTEXT, PUT_MEMBERSHIP
from tests.bugs.partner.plants import plant
from tests.bugs.plants import Function, Patch


def asks(patch: Patch, change: Any) -> None:
    """Let `change` alter what a site is asked for, as keyword arguments; None leaves it as it is."""

    def make(original: Function) -> Function:
        def ask(self: Site, route: str, ids: Any, **more: Any) -> Ask:
            other = change(self, route, more)
            if other is not None:
                patch.slipped()
                more = {**more, **other}
            made: Ask = original(self, route, ids, **more)
            return made

        return ask

    patch.wrap(Site, "ask", make)


def tries(patch: Patch, change: Any) -> None:
    """Let `change` alter the request of one try, by its number; None leaves it as it is."""

    def make(original: Function) -> Function:
        async def tried(self: Calls, ask: Ask, call: str, attempt: int, *more: Any) -> Any:
            other = change(ask, attempt)
            if other is not None:
                patch.slipped()
            return await original(self, other or ask, call, attempt, *more)

        return tried

    patch.wrap(Calls, "_try", make)


# Keys of intentions and keys of routes


@plant("client-new-key-per-try", scenario="lost-202", law="one-key-per-message")
def new_key_per_try(patch: Patch) -> None:
    """A try is a message."""
    tries(
        patch,
        lambda ask, attempt: (
            replace(ask, idempotency_key=f"{ask.idempotency_key}-{attempt}")
            if ask.route == POST_MESSAGE and attempt > 1
            else None
        ),
    )


@plant("client-new-create-key-per-try", scenario="lost-create", law="one-key-per-message")
def new_create_key_per_try(patch: Patch) -> None:
    """A try is a conversation."""
    tries(
        patch,
        lambda ask, attempt: (
            replace(ask, idempotency_key=f"{ask.idempotency_key}-{attempt}")
            if ask.route == POST_CONVERSATION and attempt > 1
            else None
        ),
    )


@plant("client-provisioning-key-for-chat", scenario="partner-chat", law="right-key-for-the-route")
def provisioning_key_for_chat(patch: Patch) -> None:
    """Another key of the file confirms memberships."""

    def make(original: Function) -> Function:
        def ask(self: Site, route: str, ids: Any, **more: Any) -> Ask:
            if route != PUT_MEMBERSHIP:
                made: Ask = original(self, route, ids, **more)
                return made
            patch.slipped()
            with_other: Ask = original(replace(self, key=f"p{self.key}"), route, ids, **more)
            return with_other

        return ask

    patch.wrap(Site, "ask", make)


@plant("client-key-without-bearer", scenario="partner-chat", law="right-key-for-the-route")
def key_without_bearer(patch: Patch) -> None:
    """The header is the key."""

    def make(original: Function) -> Function:
        def headers(ask: Ask) -> dict[str, str]:
            told: dict[str, str] = original(ask)
            patch.slipped()
            return {name: text.removeprefix("Bearer ") for name, text in told.items()}

        return headers

    patch.wrap(calls, "headers_of", make)


@plant("client-chat-key-at-issuer", scenario="partner-chat", law="right-key-for-the-route")
def chat_key_at_issuer(patch: Patch) -> None:
    """One key opens all."""

    def make(original: Function) -> Function:
        async def mint(self: Ground, record: Any, departure: Departure | None = None) -> Any:
            assert self.issuer is not None
            patch.slipped()
            client = IssuerClient(self.calls, replace(self.issuer._target, issuer_key=self.target.chat_key))
            return await client.mint(record.told, departure)

        return mint

    patch.wrap(Ground, "mint", make)


@plant("client-trailing-slash", scenario="partner-chat", law="requests-fit-contract")
def trailing_slash(patch: Patch) -> None:
    """A path ends with a slash."""
    tries(
        patch,
        lambda ask, _: replace(ask, url=f"{ask.url}/") if ask.route == POST_CONVERSATION else None,
    )


@plant("client-actor-query-forgotten", scenario="partner-chat", law="requests-fit-contract")
def actor_query_forgotten(patch: Patch) -> None:
    """A read names the employee and no team."""

    def without_team(self: Site, route: str, more: Any) -> dict[str, Any] | None:
        query = more.get("query")
        if query is None or "externalTeamId" not in query:
            return None
        return {"query": {name: value for name, value in query.items() if name != "externalTeamId"}}

    asks(patch, without_team)


@plant("client-extra-membership-field", scenario="partner-chat", law="requests-fit-contract")
def extra_membership_field(patch: Patch) -> None:
    """The employee's name goes along."""

    def named(self: Site, route: str, more: Any) -> dict[str, Any] | None:
        return {"members": {**more["members"], "displayName": "Anna"}} if route == PUT_MEMBERSHIP else None

    asks(patch, named)


# Tries


@plant("client-retries-spent-budget", scenario="budget-spent", law="no-retry-after-final")
def retries_spent_budget(patch: Patch) -> None:
    """A budget may be there again in a moment."""
    retried(patch, 429)


@plant("client-retries-refusals", scenario="changed-input", law="no-retry-after-final")
def retries_refusals(patch: Patch) -> None:
    """A conflict may pass."""
    retried(patch, 409)


def retried(patch: Patch, status: int) -> None:
    """An answer of this status is tried again."""

    def make(original: Function) -> Function:
        def passing(outcome: Any) -> bool:
            if isinstance(outcome, ApiRefusal) and outcome.status == status:
                patch.slipped()
                return True
            return bool(original(outcome))

        return passing

    patch.wrap(calls, "passing", make)


# Leases


@plant("client-lease-renewed-late", scenario="renewed-leases", law="leases-renewed")
def lease_renewed_late(patch: Patch) -> None:
    """A lease is renewed when it is over."""

    def late(left_ms: int) -> float:
        patch.slipped()
        return left_ms / 1000 + 1

    patch.set(lease, "half_of", late)


@plant("client-renews-same-revision", scenario="renewed-leases", law="leases-renewed")
def renews_same_revision(patch: Patch) -> None:
    """A renewal says what was said."""
    asks(
        patch,
        lambda self, route, more: (
            {"members": {**more["members"], "sourceRevision": 1}}
            if route == PUT_MEMBERSHIP and more["members"]["sourceRevision"] > 1 and not patch.reached
            else None
        ),
    )


@plant("client-asks-for-long-lease", scenario="partner-chat", law="lease-asked")
def asks_for_long_lease(patch: Patch) -> None:
    """A lease of ten minutes saves calls."""

    original = member_steps.MemberSteps._confirm

    async def confirm(self: Any, member: Any, active: bool, revision: Any, lease_s: Any, departure: Any) -> Any:
        patch.slipped()
        return await original(self, member, active, revision, 600.0, departure)

    patch.set(member_steps.MemberSteps, "_confirm", confirm)


# Grants and contexts


@plant("client-message-before-bind", scenario="partner-chat", law="binds-before-message")
def message_before_bind(patch: Patch) -> None:
    """A bind can wait for the refusal of a message."""

    def make(original: Function) -> Function:
        async def bind(self: ConversationSteps, conversation: str, **more: Any) -> Any:
            patch.slipped()
            await RunSteps.message(self, conversation, "too-early", "Hello?")  # type: ignore[arg-type]
            return await original(self, conversation, **more)

        return bind

    patch.wrap(ConversationSteps, "bind", make)


@plant("client-first-bind-guesses", scenario="partner-chat", law="binds-before-message")
def first_bind_guesses(patch: Patch) -> None:
    """Versions begin with 1."""
    binds(patch, lambda members: {"expectedVersion": 1} if members["expectedVersion"] == 0 else None)


def binds(patch: Patch, change: Any) -> None:
    """Let `change` give other members of a bind; None leaves them as they are."""

    def other(self: Site, route: str, more: Any) -> dict[str, Any] | None:
        if route != PUT_CONTEXT:
            return None
        members = change(more["members"])
        return None if members is None else {"members": {**more["members"], **members}}

    asks(patch, other)


@plant("client-destination-rewritten", scenario="partner-chat", law="binds-as-told")
def destination_rewritten(patch: Patch) -> None:
    """The store's real address is bound."""
    binds(patch, lambda _: {"destination": "http://127.0.0.1:3006/mcp"})


@plant("client-grant-expiry-own", scenario="partner-chat", law="binds-as-told")
def grant_expiry_own(patch: Patch) -> None:
    """A grant lasts as long as the driver likes."""
    binds(patch, lambda _: {"expiresAt": timestamp(4_000_000_000_000)})


@plant("client-put-without-get", scenario="rival-bind", law="fresh-grants")
def put_without_get(patch: Patch) -> None:
    """The next version is one more."""

    def make(original: Function) -> Function:
        async def recover(self: Binder, record: Any, member: Any) -> Any:
            grant = await self._mint(record)
            assert isinstance(grant, Done)
            patch.slipped()
            return await self.bind(record, member, grant.value, 2)

        return recover

    patch.wrap(Binder, "recover", make)


@plant("client-expired-grant-again", scenario="grant-expired", law="fresh-grants")
def expired_grant_again(patch: Patch) -> None:
    """A grant is a grant."""

    def make(original: Function) -> Function:
        async def mint(self: Ground, record: Any, departure: Departure | None = None) -> Any:
            if record.grants:
                patch.slipped()
                return Done(record.grants[-1], 0)
            return await original(self, record, departure)

        return mint

    patch.wrap(Ground, "mint", make)


@plant("client-grant-for-agent", scenario="partner-chat", law="asks-for-grants-rightly")
def grant_for_agent(patch: Patch) -> None:
    """A grant is for the agent."""

    def make(original: Function) -> Function:
        async def mint(self: IssuerClient, conversation: Any, departure: Departure | None = None) -> Any:
            patch.slipped()
            return await original(self, replace(conversation, conversation_id=conversation.agent_id), departure)

        return mint

    patch.wrap(IssuerClient, "mint", make)


@plant("client-grant-where-none-is-due", scenario="conversation-only", law="asks-for-grants-rightly")
def grant_where_none_is_due(patch: Patch) -> None:
    """Every conversation has a grant."""

    def make(original: Function) -> Function:
        async def conversation(self: ConversationSteps, label: str, who: str, **more: Any) -> Any:
            made = await original(self, label, who, **more)
            if isinstance(made, Done) and made.value.mcp is None:
                patch.slipped()
                await self.mint(self.conversation_of(label))
            return made

        return conversation

    patch.wrap(ConversationSteps, "conversation", make)

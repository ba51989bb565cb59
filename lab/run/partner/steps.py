"""Carrying out the steps of the partner leg, one after the other, each with its own deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import singledispatchmethod
from typing import Any

from lab.context import RunContext
from lab.errors import MisuseError, RemoteError
from lab.partner.client.asking import Departure
from lab.partner.client.driver import PartnerDriver
from lab.run.conditions import Conditions, until
from lab.run.partner.content import content_of
from lab.run.partner.controls import LabControls
from lab.run.partner.expectations import Seen
from lab.run.partner.following import Following
from lab.run.partner.raw_call import RawCalls
from lab.run.partner.settling import by_order, in_brackets, not_refused, settle, too_few
from lab.run.partner.step_words import describe_partner
from lab.run.partner.world import PartnerWorld
from lab.run.step_course import StepFailed, take_step
from lab.run.strike import plan_fault, strike
from lab.scenario.model import FaultStep, IdleStep, Scenario, WaitStep
from lab.scenario.partner_model import (
    AttachStep,
    BindStep,
    CallStep,
    ContextStep,
    ControlStep,
    ConversationStep,
    DownloadStep,
    FollowStep,
    GrantStep,
    HistoryStep,
    MembershipStep,
    MessageStep,
    PollStep,
    RecoverStep,
    StoreStep,
)
from lab.scenario.read_partner import misbehaviour_of
from lab.scenario.step import Step

RUNNING_AGAIN_S = 0.05
"""Wait between two looks at a run that is to be seen running."""


class PartnerSteps:
    """Runs steps against a world. `seen` fills with what expectations are judged by."""

    def __init__(self, ctx: RunContext, scenario: Scenario, world: PartnerWorld, driver: PartnerDriver) -> None:
        self._ctx = ctx
        self._scenario = scenario
        self._world = world
        self._driver = driver
        self._conditions = Conditions(ctx, {})
        self._following: dict[str, Following] = {}
        self._members: dict[str, str] = {}
        """Label of each employee in the driver by their name: the same person may be in several teams."""
        self._controls = LabControls(ctx, world, driver)
        self._raw = RawCalls(ctx, world, driver)
        self.seen = Seen(driver)

    async def run(self) -> None:
        """Run all steps. Raises what ended them early: `StepFailed`, `NotApplicable`, or a defect of the lab."""
        for index, step in enumerate(self._scenario.steps):
            self._world.check_time()
            await take_step(self._ctx, index, step, describe_partner(step), self._one, self._waited_for)
        if self._ctx.defects:
            raise self._ctx.defects[0]

    async def close(self) -> None:
        """Stop looking at the journal, and at streams that are still followed."""
        self._conditions.close()
        for following in self._following.values():
            await following.close()

    async def _one(self, step: Step) -> str:
        try:
            return await self._do(step)
        except RemoteError as error:
            if self._scenario.patient:
                return f"it came to nothing: {error}"
            # Also of what an earlier step did not get.
            raise StepFailed(str(error)) from None

    def _waited_for(self, step: Step) -> str:
        match step:
            case FollowStep() if step.run in self._following:
                return f"{self._following[step.run].events.applied} events of the run came"
            case WaitStep():
                return "it did not come"
            case _:
                return "no answer came"

    async def _until(self, condition: Callable[[], bool]) -> None:
        await until(self._ctx, lambda: bool(self._ctx.defects) or condition())
        if self._ctx.defects:
            raise self._ctx.defects[0]

    # One method a kind of step; each returns a few words for people

    @singledispatchmethod
    async def _do(self, step: Step) -> str:
        raise MisuseError(f"no runner for {type(step).__name__}")

    @_do.register
    async def _(self, step: MembershipStep) -> str:
        outcome = await self._driver.membership(
            self._who(step.user, step.team),
            role=step.role,
            active=step.active,
            revision=step.revision,
            lease_s=step.lease,
            team=self._external(step.team),
            renew=None if step.lease is None else False,
            external_user_id=self._known(step.user),
            # A lease of the scenario's own choosing, or a refusal that is due, is no mistake of the driver's.
            departure=by_order(step.fails is not None or step.lease is not None),
        )
        member, refused = settle(outcome, step.fails)
        return refused or f"{member.role}, version {member.membership_version}{'' if member.active else ', ended'}"

    def _who(self, user: str, team: str) -> str:
        """The driver's label of an employee in a team."""
        label = user if team == self._first_team else f"{user}@{team}"
        self._members.setdefault(user, label)
        return label

    @property
    def _first_team(self) -> str:
        return self._scenario.partner.api.teams[0] if self._scenario.partner is not None else ""

    def _external(self, team: str) -> str:
        """The external id of a team; a partner API that its own file tells of names the one that it provisioned."""
        provisioned = self._driver.target.external_team_id
        return provisioned if provisioned is not None and team == self._first_team else team

    def _known(self, user: str) -> str | None:
        """The external id of an employee whom the driver knows from another team already."""
        known = self._driver.members.get(self._members.get(user, user))
        return known.external_user_id if known is not None else None

    def _actor(self, user: str | None) -> str | None:
        if user is None:
            return None
        label = self._members.get(user)
        if label is None:
            label = self._who(user, self._first_team)
            # Nobody ever confirmed this one: known to the driver by its team alone.
            self._driver.member(label, team=self._external(self._first_team))
        return label

    @_do.register
    async def _(self, step: ConversationStep) -> str:
        who = self._who(step.user, step.team)
        self._driver.member(who, team=self._external(step.team), external_user_id=self._known(step.user))
        outcome = await self._driver.conversation(
            step.conversation,
            who,
            agent=self._world.identity.agents[step.agent],
            intent=f"conversation {step.again}" if step.again else None,
            departure=by_order(step.fails is not None),
        )
        made, refused = settle(outcome, step.fails)
        again = self._driver.conversations.get(step.again) if step.again and not refused else None
        if again is not None and again.told.conversation_id != made.conversation_id:
            raise StepFailed(
                f"another conversation than {step.again} was made, though the Idempotency-Key was the same"
            )
        return refused or ("with a store" if made.mcp is not None else "conversation only")

    @_do.register
    async def _(self, step: GrantStep) -> str:
        if step.wrong:
            told = await self._controls.mint_wrong(step.conversation, step.wrong)
            if step.fails is not None:
                raise not_refused(step.fails)
            return told
        departure = by_order(step.fails is not None)
        _, refused = settle(await self._driver.grant(step.conversation, departure=departure), step.fails)
        return refused

    @_do.register
    async def _(self, step: BindStep) -> str:
        other = {"destination": step.destination, "serverId": step.server}
        members = {name: value for name, value in other.items() if value is not None}
        odd = bool(members) or step.user is not None or step.fails is not None
        outcome = await self._driver.bind(
            step.conversation,
            who=self._actor(step.user),
            expected_version=step.expected,
            recover=step.fails is None,
            departure=Departure(members=members) if odd else None,
        )
        version, refused = settle(outcome, step.fails)
        return refused or f"version {version}"

    @_do.register
    async def _(self, step: ContextStep) -> str:
        odd = by_order(step.user is not None or step.fails is not None)
        outcome = await self._driver.context(step.conversation, who=self._actor(step.user), departure=odd)
        context, refused = settle(outcome, step.fails)
        if refused:
            return refused
        self.seen.contexts[step.conversation] = context
        words = f"version {context.version}, {'active' if context.active else 'not active'}"
        if step.active not in (None, context.active) or step.version not in (None, context.version):
            due = [] if step.version is None else [f"version {step.version}"]
            due += [] if step.active is None else ["active" if step.active else "not active"]
            raise StepFailed(f"the context is {words}; {' and '.join(due)} was due")
        return words

    @_do.register
    async def _(self, step: RecoverStep) -> str:
        version, refused = settle(await self._driver.recover_context(step.conversation), step.fails)
        return refused or f"version {version}"

    @_do.register
    async def _(self, step: AttachStep) -> str:
        outcome = await self._driver.attach(
            step.conversation,
            step.file,
            content_of(step),
            name=step.name,
            mime_type=step.type,
            who=self._actor(step.user),
            departure=by_order(step.user is not None or step.fails is not None),
        )
        stored, refused = settle(outcome, step.fails)
        if not refused:
            self.seen.uploads[step.file] = content_of(step)
        return refused or f"{stored.kind}, {stored.size} bytes"

    @_do.register
    async def _(self, step: DownloadStep) -> str:
        odd = by_order(step.conversation is not None or step.fails is not None)
        outcome = await self._driver.content(step.file, conversation=step.conversation, departure=odd)
        file, refused = settle(outcome, step.fails)
        if refused:
            return refused
        if file.content != self.seen.uploads.get(step.file):
            raise StepFailed(f"{len(file.content)} bytes came that are not those of the upload")
        return f"{len(file.content)} bytes, {file.mime_type}"

    @_do.register
    async def _(self, step: MessageStep) -> str:
        outcome = await self._driver.message(
            step.conversation,
            step.run,
            step.text,
            files=step.files,
            timezone=step.timezone,
            who=self._actor(step.user),
            intent=f"message {step.again}" if step.again else None,
            departure=by_order(
                step.again is not None
                or step.user is not None
                or step.fails is not None
                or self._is_unbound(step.conversation)
            ),
        )
        run, refused = settle(outcome, step.fails)
        if refused:
            return refused
        again = self._driver.runs.get(step.again) if step.again else None
        if again is not None and again.told.run_id != run.run_id:
            raise StepFailed(f"another run than that of {step.again} began, though the Idempotency-Key was the same")
        return run.status if again is None else f"the run of {step.again}, {run.status}"

    def _is_unbound(self, label: str) -> bool:
        """Whether a bind that had to come before came to nothing: then it is the scenario that goes on all the same."""
        record = self._driver.conversations.get(label)
        return record is not None and record.told.mcp is not None and not record.version

    @_do.register
    async def _(self, step: FollowStep) -> str:
        if step.replay or step.after is not None or step.user is not None or step.fails is not None:
            return await self._follow_apart(step)
        following = self._following.get(step.run)
        if following is None:
            following = Following(self._driver, step.run)
            self._following[step.run] = following
        await following.reach(step.events)
        events = following.events
        if step.events is not None:
            if events.applied < step.events:
                raise too_few(events.applied, step.events)
            return f"{events.applied} events"
        followed, _ = settle(await following.end(), None)
        self.seen.followed[step.run] = followed
        told = f"{events.applied} events in {followed.streams} streams" if followed.streams > 1 else ""
        return f"{told or f'{events.applied} events'} · {followed.status}{in_brackets(followed.reason)}"

    async def _follow_apart(self, step: FollowStep) -> str:
        """A stream beside the one that is followed: read anew, or refused."""
        start = "on" if step.after is not None else "first"
        odd = by_order(step.user is not None or step.fails is not None)
        who = self._actor(step.user)
        outcome = await self._driver.follow(step.run, who=who, start=start, last_event_id=step.after, departure=odd)
        followed, refused = settle(outcome, step.fails)
        if not refused and step.events is not None and followed.events.applied < step.events:
            raise too_few(followed.events.applied, step.events)
        return refused or f"{followed.events.applied} events again"

    @_do.register
    async def _(self, step: PollStep) -> str:
        who = self._actor(step.user)
        if step.until == "ended" and step.fails is None:
            run, refused = settle(await self._driver.poll(step.run, who=who), step.fails)
        else:
            run, refused = await self._look(step, who)
        if refused:
            return refused
        self.seen.polled[step.run] = run
        return f"{run.status}{in_brackets(run.reason)}"

    async def _look(self, step: PollStep, who: str | None) -> tuple[Any, str]:
        """Ask once, or until the run is seen running."""
        odd = by_order(step.user is not None or step.fails is not None)
        while True:
            run, refused = settle(await self._driver.get_run(step.run, who=who, departure=odd), step.fails)
            if refused or step.until == "now" or run.status != "accepted":
                break
            await asyncio.sleep(RUNNING_AGAIN_S)
        if not refused and step.until == "running" and run.status != "running":
            raise StepFailed(f"the run is {run.status} already, running was due")
        return run, refused

    @_do.register
    async def _(self, step: HistoryStep) -> str:
        who = self._actor(step.user)
        if step.cursor is not None or step.fails is not None or step.user is not None:
            odd = Departure()
            outcome = await self._driver.page(
                step.conversation, who=who, limit=step.limit, cursor=step.cursor, departure=odd
            )
            page, refused = settle(outcome, step.fails)
            return refused or f"{len(page.items)} items"
        walk, _ = settle(await self._driver.history(step.conversation, limit=step.limit), None)
        self.seen.histories[step.conversation] = walk
        if walk.end != "end":
            raise StepFailed(f"the walk through the history ended at a {walk.end.replace('-', ' ')}")
        return f"{len(walk.items)} items in {walk.pages} pages"

    @_do.register
    async def _(self, step: CallStep) -> str:
        return await self._raw.make(step, self._actor(step.actor))

    @_do.register
    async def _(self, step: ControlStep) -> str:
        return await self._controls.use(step)

    @_do.register
    async def _(self, step: StoreStep) -> str:
        if step.misbehave is not None:
            self._world.store.misbehave(misbehaviour_of(one) for one in step.misbehave)
            return f"{len(step.misbehave)} rules" if step.misbehave else "behaves"
        return f"{self._world.store.lose_sessions()} sessions forgotten"

    @_do.register
    async def _(self, step: IdleStep) -> str:
        with suppress(TimeoutError):
            async with asyncio.timeout(step.seconds):
                await self._until(lambda: False)
        return ""

    @_do.register
    async def _(self, step: WaitStep) -> str:
        name = step.subject.removeprefix("fault.")
        await self._until(lambda: self._conditions.has_fired(name))
        return ""

    @_do.register
    async def _(self, step: FaultStep) -> str:
        plan_fault(self._ctx, step.fault)
        await strike(step.fault, self._world.services, self._world.faults)
        return ""

"""Slips for laws that no slip of the other modules is first to break."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from lab.partner.client.calls import Calls, CallSettings
from lab.partner.model import turns
from lab.partner.model.answers import ApiRequest
from lab.partner.model.context import UsableGrant, usable_grant
from lab.partner.model.parts import Parts
from lab.partner.model.runs import Run, find_run, tell_turn
from lab.partner.model.store_calls import CallOutcome, StoreCalls
from lab.partner.model.turn import Turn
from lab.partner.model.turn_record import TurnRecord
from lab.partner.model.words import CONVERSATION_HEADER
from tests.bugs.partner import patching
from tests.bugs.partner.patching import Data
from tests.bugs.partner.plants import plant
from tests.bugs.partner.plants_contexts import grant_cached_per_actor
from tests.bugs.partner.plants_figures import snapshots
from tests.bugs.partner.plants_store import headers
from tests.bugs.plants import Function, Patch


@plant("api-retried-turn-twice-in-history", scenario="partner-chat", law="one-turn-per-message")
def turn_twice_in_history(patch: Patch) -> None:
    """A message stands in history twice."""

    def twice(_: Parts, __: ApiRequest, page: Data) -> bool:
        asked = [item for item in page["items"] if item["role"] == "user"]
        page["items"] += [{**item, "id": f"{item['id']}-2", "turnId": f"{item['turnId']}-2"} for item in asked]
        return bool(asked)

    patching.pages(patch, twice)


def later(parts: Parts, run: Run, model: str) -> None:
    """The model is asked once more, when everybody knows that the run is over."""
    facts = {"iteration": 1, "model": model}
    asyncio.get_running_loop().call_later(2.0, lambda: tell_turn(parts, run, "model", facts=facts))


@plant("api-title-after-the-end", scenario="polled-to-the-end", law="no-effect-after-end")
def title_after_the_end(patch: Patch) -> None:
    """The conversation gets a title when there is an answer."""

    def ask(self: Turn, *_: Any, **__: Any) -> None:
        patch.slipped()
        later(self._parts, self._run, "titles")

    patch.after(Turn, "_end", ask)


@plant("api-interrupted-run-asks-again", scenario="killed-in-a-turn", law="interrupted-never-rerun")
def interrupted_run_asks_again(patch: Patch) -> None:
    """What was lost is asked for again."""

    def ask(parts: Parts, run_id: str, *_: Any) -> None:
        run = find_run(parts.state, run_id)
        if run is not None:
            patch.slipped()
            later(parts, run, "synthetic-1")

    patch.after(turns, "finish_run", ask)


@plant("api-timings-in-microseconds", scenario="partner-chat", law="timings-plausible")
def timings_in_microseconds(patch: Patch) -> None:
    """A duration is a number."""

    def micros(value: Any) -> Any:
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, list):
            return [micros(one) for one in value]
        if isinstance(value, dict):
            return {name: member if name == "usage" else micros(member) for name, member in value.items()}
        return value * 1000

    snapshots(patch, micros)


@plant("api-grant-in-text", scenario="partner-chat", law="no-secrets")
def grant_in_text(patch: Patch) -> None:
    """The model says what it was given."""

    def make(original: Function) -> Function:
        def text(self: TurnRecord, said: str) -> None:
            found = self._parts.authority.find_conversation(self.run.conversation_id)
            grant = usable_grant(self._parts, found) if found is not None else None
            if isinstance(grant, UsableGrant):
                patch.slipped()
                said = f"{said} {grant.grant}"
            original(self, said)

        return text

    patch.wrap(TurnRecord, "text", make)


@plant("api-grant-of-another-conversation", scenario="two-conversations", law="grant-binds-the-conversation")
def grant_of_another_conversation(patch: Patch) -> None:
    """An employee has one grant, and the store need not know for what."""
    grant_cached_per_actor(patch)
    headers(patch, CONVERSATION_HEADER, None)


@plant("api-store-call-twice", scenario="partner-chat", law="no-retry-of-tool")
def store_call_twice(patch: Patch) -> None:
    """To be sure, a call is made twice."""

    def make(original: Function) -> Function:
        async def call(self: StoreCalls, *args: Any) -> CallOutcome:
            await original(self, *args)
            patch.slipped()
            again: CallOutcome = await original(self, *args)
            return again

        return call

    patch.wrap(StoreCalls, "call", make)


@plant("client-tries-without-a-wait", scenario="lost-202", law="tries-bounded")
def tries_without_a_wait(patch: Patch) -> None:
    """The next try may be the one."""

    def make(original: Function) -> Function:
        def begin(self: Calls, *args: Any) -> None:
            original(self, *args)
            patch.slipped()
            self._settings = replace(CallSettings(), first_wait_s=0.1, longest_wait_s=0.1)

        return begin

    patch.wrap(Calls, "__init__", make)

"""The `call` step: a call of the partner API as a scenario writes it, for what the driver would never send."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import aiohttp

from lab.context import RunContext
from lab.partner.api_schema import api_schema
from lab.partner.client.answers import Raw, data_untrusted
from lab.partner.client.asking import JSON_TYPE, Ask
from lab.partner.client.calls import TooLong, bounded_body, kind_of, lower
from lab.partner.client.driver import PartnerDriver
from lab.partner.client.outcomes import ApiRefusal, Done, TransportError
from lab.run.partner.world import PartnerWorld
from lab.run.step_course import StepFailed
from lab.scenario.partner_model import ONLY, CallStep
from lab.tap.partner_facts import of_sent

MOST_BYTES = 16 * 1024 * 1024
_PLACE = re.compile(r"\{([A-Za-z][A-Za-z0-9_-]*)\}")


class RawCalls:
    """Makes calls with the keys and the ids of a run."""

    def __init__(self, ctx: RunContext, world: PartnerWorld, driver: PartnerDriver) -> None:
        self._ctx = ctx
        self._world = world
        self._driver = driver
        self._seeded: dict[str, str] = {}
        """Keys of one scope, by the scope."""

    async def make(self, step: CallStep, who: str | None) -> str:
        """Make the call; a few words of its answer. Raises `StepFailed` for another status or code than is due."""
        ask = self._ask(step, who)
        raw = await self._exchange(ask)
        data = data_untrusted(raw) if raw.status >= 400 else None
        code = data.code if isinstance(data, ApiRefusal) else None
        told = f"{raw.status}{f' {code}' if code else ''}"
        if raw.status != step.status or step.fails not in (None, code):
            raise StepFailed(f"{told} came; {step.status}{f' {step.fails}' if step.fails else ''} was due")
        return told

    def _ask(self, step: CallStep, who: str | None) -> Ask:
        path = _PLACE.sub(lambda place: self._id(place[1]), step.path)
        actor = {} if who is None else self._driver.member(who).actor
        query = f"?{urlencode(actor)}" if actor else ""
        ids = {place: self._id(place) for place in _PLACE.findall(step.path)}
        conversations = [ids[label] for label in ids if label in self._driver.conversations]
        return Ask(
            self._route(step),
            f"{self._driver.site.base}{path}{query}",
            self._key(step.key),
            None if step.body is None else step.body.encode(),
            None if step.body is None else JSON_TYPE,
            step.idempotency_key,
            step.headers,
            sent=of_sent(_members_of(step.body) | actor),
            conversation_id=conversations[0] if conversations else None,
            repeat=False,
            marks={"byOrder": True, "shows": step.key},
        )

    def _route(self, step: CallStep) -> str:
        """The contract's route that the path is one of; the path as it is written for one of no route."""
        segments = step.path.partition("?")[0].split("/")
        for route in api_schema().operations:
            method, _, template = route.partition(" ")
            parts = template.split("/")
            fits = len(parts) == len(segments) and all(
                part.startswith("{") or part == segment for part, segment in zip(parts, segments, strict=True)
            )
            if fits and method == step.method:
                return route
        return f"{step.method} {step.path}"

    async def _exchange(self, ask: Ask) -> Raw:
        if ask.route not in api_schema().operations:
            # What the contract does not know, no answer of it can miss.
            return await self._unjudged(ask)
        outcome = await self._driver.calls.call(ask, lambda raw: raw, lambda raw: raw)
        if not isinstance(outcome, Done):
            raise StepFailed(
                f"no usable answer: {outcome.kind if isinstance(outcome, TransportError) else outcome.code}"
            )
        answer: Raw = outcome.value
        return answer

    async def _unjudged(self, ask: Ask) -> Raw:
        try:
            async with self._driver.calls.request(ask) as response:
                return Raw(response.status, lower(response.headers), await bounded_body(response, MOST_BYTES))
        except TooLong:
            raise StepFailed("no usable answer: too-long") from None
        except (aiohttp.ClientError, OSError) as error:
            raise StepFailed(f"no usable answer: {kind_of(error)}") from None

    def _id(self, label: str) -> str:
        if label in self._driver.conversations:
            return self._driver.conversations[label].told.conversation_id
        if label in self._driver.runs:
            return self._driver.runs[label].told.run_id
        if label in self._driver.files:
            return self._driver.files[label].told.id
        raise StepFailed(f"the path names {label}, and no earlier step got it")

    def _key(self, word: str) -> str | None:
        identity = self._world.identity
        keys: Mapping[str, str | None] = {
            "chat": self._driver.site.key,
            "provisioning": identity.provisioning_key,
            "store": identity.static_credential,
            "issuer": identity.issuer_key,
            "unknown": f"{identity.provisioning_key}-of-nobody",
            "none": None,
        }
        if not word.startswith(ONLY):
            return keys[word]
        if word not in self._seeded:
            self._seeded[word] = self._world.controls.seed_key(word, [word.removeprefix(ONLY)])
        return self._seeded[word]


def _members_of(body: str | None) -> dict[str, Any]:
    """The members of a JSON body; none of anything else."""
    try:
        value = json.loads(body or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}

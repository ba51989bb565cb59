"""The `control` steps: what only the lab's own model and issuer can be made to do (PA-055)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from lab.context import RunContext
from lab.errors import MisuseError
from lab.grants.binding import WORDS
from lab.grants.issuer import Route
from lab.partner.client.driver import PartnerDriver
from lab.partner.client.members import moment_or_epoch_untrusted
from lab.partner.client.shapes import Grant
from lab.partner.model.keyring import CHAT_ROLE
from lab.run.partner.world import PartnerWorld
from lab.run.step_course import StepFailed
from lab.scenario.partner_model import ControlStep
from lab.scenario.partner_names import ISSUER

CLAIMS = {
    "actor": "actor_id",
    "team": "team_id",
    "agent": "agent_id",
    "conversation": "conversation_id",
    "organization": "organization_id",
    "environment": "environment",
    "destination": "destination",
}
"""The words of `wrong` in a scenario, by the members of a grant's binding."""


class LabControls:
    """Uses the controls of the model and the issuer of a run."""

    def __init__(self, ctx: RunContext, world: PartnerWorld, driver: PartnerDriver) -> None:
        self._ctx = ctx
        self._world = world
        self._driver = driver
        self._uses: Mapping[str, Callable[[str], str]] = {
            "rotate": self._rotate,
            "revoke": lambda user: self._identity(user, "revoke"),
            "reset": lambda user: self._identity(user, "reset"),
            "delete": lambda user: self._identity(user, "delete"),
            "unbind": self._unbind,
            "revoke_grant": self._revoke_grant,
            "remove": lambda label: self._remove("thread", self._conversation_id(label)),
            "remove_agent": lambda name: self._remove("agent", world.identity.agents[name]),
            "remove_team": lambda team: self._remove("team", self._team_id(team)),
            "budget": self._budget,
            "cancel": self._cancel,
            "queue": self._queue,
            "guest": self._guest,
        }

    async def use(self, step: ControlStep) -> str:
        """Use one; a few words of what it did."""
        if isinstance(step.value, float):
            return self._move_clock(step.value)
        return self._uses[step.control](step.value)

    async def mint_wrong(self, conversation: str, claims: Mapping[str, str]) -> str:
        """A grant of the conversation with other claims, kept as its newest."""
        record = self._driver.conversation_of(conversation)
        given = {WORDS[CLAIMS[word]]: self._claim(word, value) for word, value in claims.items()}
        body = {"conversationId": record.told.conversation_id, "claims": given}
        minted = self._issuer(Route.LAB_GRANTS, body)
        expires_at = moment_or_epoch_untrusted(minted["expiresAt"], "expiresAt")
        record.grants.append(Grant(str(minted["grant"]), expires_at))
        return f"with another {' and '.join(claims)}"

    def _claim(self, word: str, value: str) -> str:
        """A label of the scenario stands for its id."""
        if word == "conversation" and value in self._driver.conversations:
            return self._driver.conversations[value].told.conversation_id
        if word == "agent":
            return self._world.identity.agents.get(value, value)
        return value

    def _issuer(self, route: Route, body: Mapping[str, object]) -> Mapping[str, object]:
        key = self._world.identity.control_key
        answer = self._world.issuer_core.answer_untrusted(route, [f"Bearer {key}"], json.dumps(body).encode())
        self._ctx.journal.record(ISSUER, answer.event)
        if answer.status != 200:
            raise StepFailed(f"the issuer refused its control: {answer.event.code} ({answer.status})")
        return answer.body

    def _move_clock(self, seconds: float) -> str:
        by_ms = round(seconds * 1000)
        self._world.controls.move_clock(by_ms)
        self._world.around.clock.epoch_ms += by_ms
        self._driver.clock_offset_ms += by_ms
        return f"{seconds:g} s ahead"

    def _rotate(self, role: str) -> str:
        if role != CHAT_ROLE:
            raise MisuseError(f"no key called {role} is rotated by a scenario")
        self._driver.use_key(self._world.controls.rotate_key(role))
        return "the driver has the new one"

    def _identity(self, user: str, change: str) -> str:
        external_id = self._driver.member(user).external_user_id
        controls = self._world.controls
        if change == "reset":
            return f"subject version {controls.reset_identity(external_id)}"
        if change == "revoke":
            controls.revoke_identity(external_id)
        else:
            controls.delete_identity(external_id)
        return ""

    def _conversation_id(self, label: str) -> str:
        return self._driver.conversation_of(label).told.conversation_id

    def _team_id(self, team: str) -> str:
        stored = [one.stored for one in self._driver.members.values() if one.external_team_id == team]
        for membership in stored:
            if membership is not None:
                return membership.team_id
        raise StepFailed(f"no membership told the id of the team {team}")

    def _unbind(self, label: str) -> str:
        self._world.controls.revoke_binding(self._conversation_id(label))
        return ""

    def _revoke_grant(self, label: str) -> str:
        revoked = self._issuer(Route.LAB_REVOCATIONS, {"conversationId": self._conversation_id(label)})["revoked"]
        return f"{len(revoked) if isinstance(revoked, list) else 0} grants"

    def _remove(self, kind: str, id_: str) -> str:
        self._world.controls.remove(kind, id_)
        return ""

    def _budget(self, word: str) -> str:
        self._world.controls.spend_budget(word == "spent")
        return ""

    def _cancel(self, label: str) -> str:
        self._world.controls.cancel_run(self._driver.run(label).told.run_id)
        return ""

    def _queue(self, word: str) -> str:
        self._world.controls.hold_queue(word == "held")
        return ""

    def _guest(self, label: str) -> str:
        self._world.controls.set_guest(self._conversation_id(label), guest=True, closed=False)
        return ""

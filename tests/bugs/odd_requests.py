"""Content requests that no caller of the gateway double would make, and an agent that is started again.

As in `provocations.py`, scenarios name them as tags.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from lab.agent2.engine import Answer as Agent2Answer
from lab.agent2.engine import Engine
from lab.gateway.core import GatewayCore
from lab.journal.events import SutChanged
from lab.localagent.agent import LocalAgent
from lab.protocol.frames import Draft
from lab.run.conditions import until
from lab.run.driver import Driver
from lab.run.suts import ReferenceSut
from tests.bugs.plants import Function, Patch
from tests.bugs.provocations import Members, provocation

OTHER_WORKSPACE: Final = "ws-other"

INVENTED_CURSOR: Final = "bm9ib2R5LWV2ZXItaGFuZGVkLW91dC10aGlzLXBsYWN"

INVENTED_JOB: Final = "7d1f6a52-3c84-4e0b-9a7d-52c9e8b1f034"

POLLS: Final = 17
"""One more than an agent holds (CHAT-070)."""

LITTLE_ROOM: Final = 440
"""Bytes in which the newest turns of a conversation fit, and not all of them."""


def _asking(name: str, ask: Callable[[GatewayCore, str, str, float], object]) -> None:
    """A provocation: right behind the first assignment `ask(core, agent id, job id, now)` is called."""

    def put(patch: Patch) -> None:
        done: list[str] = []

        def make(original: Function) -> Function:
            def assign(self: GatewayCore, agent_id: str, order: Any, now: float) -> object:
                job = original(self, agent_id, order, now)
                if not done:
                    done.append(name)
                    ask(self, agent_id, order.job_id, now)
                return job

            return assign

        patch.wrap(GatewayCore, "assign", make)

    provocation(name)(put)


def _request(core: GatewayCore, agent_id: str, payload: Members, workspace: str, now: float) -> None:
    """What no call of the gateway's asks for: nobody waits for the answer."""
    core._send(agent_id, Draft("content.request", payload, workspace, core._ids()), now)


_asking(
    "foreign-workspace",
    lambda core, agent, job, now: _request(core, agent, {"kind": "job.stream", "ref": job}, OTHER_WORKSPACE, now),
)
_asking(
    "invented-cursor",
    lambda core, agent, _job, now: core.request_content(agent, "job.stream", INVENTED_CURSOR, now),
)
_asking(
    "invented-job",
    lambda core, agent, _job, now: core.request_content(agent, "job.stream", INVENTED_JOB, now),
)
_asking(
    "many-polls",
    lambda core, agent, job, now: [core.request_content(agent, "job.stream", job, now) for _ in range(POLLS)],
)


@provocation("little-room")
def little_room(patch: Patch) -> None:
    """A conversation is asked for with room for its newest turns only."""

    def make(original: Function) -> Function:
        def send(self: GatewayCore, agent_id: str, draft: Draft, now: float) -> object:
            if draft.payload.get("kind") == "chat.session":
                payload = {**draft.payload, "maxBytes": LITTLE_ROOM}
                draft = Draft(draft.type, payload, draft.workspace_id, draft.request_id)
            return original(self, agent_id, draft, now)

        return send

    patch.wrap(GatewayCore, "_send", make)


@provocation("agent-started-again")
def agent_started_again(patch: Patch) -> None:
    """Before a conversation is opened, the agent ends and another takes its place, with the same state on disk."""
    made: list[tuple[Any, ...]] = []
    suts: list[ReferenceSut] = []
    patch.after(LocalAgent, "__init__", lambda _self, *args: made.append(args))
    patch.after(ReferenceSut, "__init__", lambda self, *_: suts.append(self))

    def make(original: Function) -> Function:
        async def opened(self: Any, assigned: Any, opening: Any) -> None:
            sut, ctx = suts[0], self._ctx
            ctx.journal.record("sut", SutChanged(sut.name, "stopping"))
            with sut._log.speaking():
                await sut._agent.close()
                sut._agent = LocalAgent(*made[0])
                await sut._agent.start()
            ctx.journal.record("sut", SutChanged(sut.name, "started"))
            agent_id = self._identity.agents[sut.name].agent_id
            await until(ctx, lambda: self._gateway_of(assigned.agent).core.is_ready(agent_id))
            await original(self, assigned, opening)

        return opened

    patch.wrap(Driver, "_open", make)


@provocation("agent2-refuses-in-words")
def refuses_in_words(patch: Patch) -> None:
    """agent2 quotes the prompt that it refuses."""

    def make(original: Function) -> Function:
        def start(self: Engine, body: Any, now: float) -> Agent2Answer:
            answer: Agent2Answer = original(self, body, now)
            if answer.status < 400:
                return answer
            return Agent2Answer(answer.status, {**answer.body, "detail": f"cannot do: {body['requestText']}"})

        return start

    patch.wrap(Engine, "start_untrusted", make)

"""Ways in which an agent2 lives on strangely, and in which a gateway has forgotten what it assigned."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lab.agent2.beats import StreamName
from lab.agent2.server import Agent2Server
from lab.gateway.core import GatewayCore
from lab.gateway.jobs import Job, Order
from lab.localagent.work import AgentWork
from lab.protocol.frames import Draft
from lab.run import driver
from tests.bugs.plants import Function, Patch
from tests.bugs.provocations import provocation


class _NeverOver:
    """A reader of a stream that stays open when all is said."""

    ended = False

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self.take = reader.take

    @property
    def broken(self) -> bool:
        """As the reader says."""
        return bool(self._reader.broken)


@provocation("agent2-never-hangs-up")
def never_hangs_up(patch: Patch) -> None:
    """The content stream stays open after the job's end."""

    def make(original: Function) -> Function:
        async def serve(self: Any, request: Any, name: StreamName, reader: Any, encode: Any) -> Any:
            keeps = name is StreamName.STREAM and reader is not None
            return await original(self, request, name, _NeverOver(reader) if keeps else reader, encode)

        return serve

    patch.wrap(Agent2Server, "_serve", make)


@provocation("agent2-new-token")
def new_token(patch: Patch) -> None:
    """An agent2 that starts again has another token, and whoever supervises it tells the agent."""
    agents: list[AgentWork] = []
    patch.after(AgentWork, "__init__", lambda self, *_: agents.append(self))

    def make(original: Function) -> Function:
        async def crash(self: Any) -> None:
            await original(self)
            self._token += "-anew"
            for agent in agents:
                agent.new_agent2_token(self._token)

        return crash

    patch.wrap(Agent2Server, "crash", make)


@provocation("assigned-anew")
def assigned_anew(patch: Patch) -> None:
    """As a gateway does that started again, it assigns the first job once more, in a new frame."""
    known: list[str] = []

    def order(job_id: str, *members: Any) -> Order:
        known.append(job_id)
        return replace(Order(job_id, *members), job_id=known[0])

    def make(original: Function) -> Function:
        def assign(self: Any, agent_id: str, order: Order, now: float) -> Job:
            job: Job | None = self.jobs.get(order.job_id)
            if job is None:
                job = original(self, agent_id, order, now)
            else:
                workspace = self._agents[agent_id].workspace_id
                self._send(agent_id, Draft("job.assign", order.payload(), workspace, tag=order), now)
            return job

        return assign

    patch.set(driver, "Order", order)
    patch.wrap(GatewayCore, "assign", make)

"""What a step can wait for, as the doubles see it. Each journal entry is looked at once, however long a run is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from lab.context import RunContext
from lab.journal.events import FaultFired, Frame, SessionChanged, SocketOpened, SocketRefused
from lab.journal.writer import Entry


class Conditions:
    """Follows a run's journal from its first entry. `gateways` maps each local agent to its gateway's name."""

    def __init__(self, ctx: RunContext, gateways: Mapping[str, str]) -> None:
        self._gateways = gateways
        self._fired: dict[str, None] = {}
        self._sent: dict[tuple[str, str], None] = {}
        self._repeated: dict[str, None] = {}
        self._assigned: dict[object, object] = {}
        self._rejected: dict[str, None] = {}
        self._states: dict[str, list[str]] = {name: [] for name in gateways}
        self._marked: dict[str, int] = {}
        self._ended_by_gateway: dict[str, None] = {}
        self._capabilities: dict[str, tuple[str, ...]] = {}
        self._opened: dict[str, None] = {}
        self._refusals: dict[str, int] = {}
        for entry in ctx.journal.entries:
            self._take(entry)
        self.close = ctx.journal.listen(self._take)
        """Stops following; call it once."""

    def mark(self) -> None:
        """A fault step begins: `has_resumed` speaks of what comes from here on."""
        self._marked = {name: len(states) for name, states in self._states.items()}

    def has_fired(self, fault: str) -> bool:
        """Whether a planned fault took effect."""
        return fault in self._fired

    def is_repeated(self, job_id: str) -> bool:
        """Whether a local agent sent a frame of this job a second time."""
        return job_id in self._repeated

    def is_rejected(self, job_id: str) -> bool:
        """Whether a local agent rejected a job, also where its ack was lost and its gateway takes it for accepted."""
        return job_id in self._rejected

    def states(self, agent: str) -> list[str]:
        """What became of an agent's sessions, in order."""
        return self._states[agent]

    def came_up(self, agent: str) -> bool:
        """Whether an agent ever had a session that was ready."""
        return any(state in ("ready", "resumed") for state in self._states[agent])

    def capabilities(self, agent: str) -> tuple[str, ...]:
        """What an agent announced in its latest session that was ready."""
        return self._capabilities.get(agent, ())

    def has_resumed(self, agent: str) -> bool:
        """Whether an agent's session was resumed since the mark."""
        return "resumed" in self._states[agent][self._marked.get(agent, 0) :]

    def has_returned(self, agent: str) -> bool:
        """Whether an agent became ready since the mark, in its old session or in a new one."""
        return not {"ready", "resumed"}.isdisjoint(self._states[agent][self._marked.get(agent, 0) :])

    def speaks_v1(self, agent: str) -> bool:
        """Whether an agent's connection went on in v1, and is still there."""
        return self._states[agent][-1:] == ["v1"]

    def refusals(self, agent: str) -> int:
        """Connections that the agent's gateway refused for an unknown credential.

        Nobody can tell whose they were; once an agent was let in, they are not counted as its own.
        """
        return 0 if agent in self._opened else self._refusals.get(self._gateways[agent], 0)

    def was_refused(self, agent: str) -> bool:
        """Whether the gateway refused an agent's connection, or ended its session with a code."""
        return agent in self._ended_by_gateway or self.refusals(agent) > 0

    def has_connected(self, agent: str) -> bool:
        """Whether an agent was let in at its gateway."""
        return agent in self._opened

    def _take(self, entry: Entry) -> None:
        event = entry.event
        match event:
            case FaultFired():
                self._fired[event.fault] = None
            case Frame(type="ack", direction="la-to-cp"):
                self._take_ack(event)
            case Frame(type="job.assign", direction="cp-to-la"):
                self._assigned[event.msg_id] = event.payload.get("jobId")
            case Frame() if event.direction == "la-to-cp" and not event.by_lab:
                self._take_frame(event)
            case SessionChanged() if event.agent in self._states:
                self._states[event.agent].append(event.state)
                if event.state in ("ready", "resumed"):
                    self._capabilities[event.agent] = tuple(event.detail.get("capabilities", ()))
                by_gateway = event.detail.get("by") == "local" and event.detail.get("code") is not None
                if event.state == "ended" and by_gateway:
                    self._ended_by_gateway[event.agent] = None
            case SocketOpened():
                self._opened[event.agent] = None
            case SocketRefused():
                self._refusals[entry.by] = self._refusals.get(entry.by, 0) + 1
            case _:
                pass

    def _take_ack(self, ack: Frame) -> None:
        job_id = self._assigned.get(ack.payload.get("ackMsgId"))
        if isinstance(job_id, str) and ack.payload.get("status") == "rejected":
            self._rejected[job_id] = None

    def _take_frame(self, frame: Frame) -> None:
        job_id = frame.payload.get("jobId")
        if not isinstance(job_id, str) or frame.msg_id is None:
            return
        key = (job_id, frame.msg_id)
        if key in self._sent:
            self._repeated[job_id] = None
        self._sent[key] = None


async def until(ctx: RunContext, condition: Callable[[], bool]) -> None:
    """Return when `condition` holds; it is looked at again after every entry of the journal."""
    changed = asyncio.Event()
    stop = ctx.journal.listen(lambda _entry: changed.set())
    try:
        while not condition():
            changed.clear()
            await changed.wait()
    finally:
        stop()

"""Ways in which the reference agent connects, resumes and keeps silent by order, where links and frames cannot do it.

A scenario names one as a tag. What breaks a law of the agent's notes a fault in the journal that excuses the agent.
"""

from __future__ import annotations

import asyncio
from typing import Any

from lab.gateway import core
from lab.journal.events import FaultFired, FaultPlanned
from lab.localagent import gateway_link
from lab.localagent.gateway_link import GatewayLink
from lab.protocol.agent_side import AgentConnection
from lab.protocol.connection import Timer
from lab.protocol.session import SenderLimits
from tests.bugs.plants import Function, Patch
from tests.bugs.provocations import provocation

TWIN_AFTER: float = 0.3
"""Seconds from an agent's start to its second connection."""


def _note(link: Any, name: str, *laws: str) -> None:
    journal = link._ctx.journal
    journal.record("faults", FaultPlanned(name, "forge", "local_agent", 0, tuple((law, "local_agent") for law in laws)))
    journal.record("faults", FaultFired(name, "forge", "local_agent"))


def _links(patch: Patch) -> list[Any]:
    """Every agent's link, in the order in which they are made."""
    links: list[Any] = []
    patch.after(GatewayLink, "__init__", lambda self, *_: links.append(self))
    return links


@provocation("no-credential")
def no_credential(patch: Patch) -> None:
    """The agent's first upgrade bears no credential."""
    tried: list[bool] = []

    def make(original: Function) -> Function:
        def connect(url: str, **settings: Any) -> object:
            if not tried:
                tried.append(True)
                del settings["additional_headers"]
            return original(url, **settings)

        return connect

    patch.wrap(gateway_link, "connect", make)


@provocation("session-of-another")
def session_of_another(patch: Patch) -> None:
    """The second agent comes back with the session of the first."""
    links = _links(patch)
    done: list[bool] = []

    def make(original: Function) -> Function:
        def start(self: AgentConnection, *args: Any) -> object:
            if self.agent_id != links[0]._config.agent_id and self.session.session_id is not None and not done:
                done.append(True)
                _note(links[1], "session-of-another", "resume-rules")
                self.session.session_id = links[0]._outbox.session.session_id
            return original(self, *args)

        return start

    patch.wrap(AgentConnection, "start", make)


@provocation("second-connection")
def second_connection(patch: Patch) -> None:
    """A moment after its start the agent opens a second connection beside its first one, and keeps both."""
    twins: dict[Any, asyncio.Task[Any]] = {}
    others: list[Any] = []

    async def twin(link: Any) -> None:
        await asyncio.sleep(TWIN_AFTER)
        others.append(
            GatewayLink(link._ctx, "twin", link._config, link._contract, link._registration, lambda _frame: None)
        )
        await others[-1]._one_connection()

    def start(self: Any) -> None:
        twins[self] = asyncio.get_running_loop().create_task(twin(self), name="twin of the local agent")

    def make(original: Function) -> Function:
        async def close(self: Any) -> None:
            for websocket in [other._websocket for other in others if other._websocket is not None]:
                await websocket.close()
            twins[self].cancel()
            await asyncio.gather(twins[self], return_exceptions=True)
            await original(self)

        return close

    patch.after(GatewayLink, "start", start)
    patch.wrap(GatewayLink, "close", make)


def _without(patch: Patch, name: str, *timers: Timer) -> None:
    """The agent gives some signs of life no more, once it is ready."""
    links = _links(patch)

    def forget(self: AgentConnection, *_: object) -> None:
        _note(links[0], name, "heartbeats")
        for timer in timers:
            self._timers.pop(timer, None)

    patch.after(AgentConnection, "_on_handshake", forget)


@provocation("pings-only")
def pings_only(patch: Patch) -> None:
    """The agent sends no heartbeat, only its text pings."""
    _without(patch, "pings-only", Timer.HEARTBEAT)


@provocation("mute")
def mute(patch: Patch) -> None:
    """The agent says nothing of its own, and waits for ever for others."""
    _without(patch, "mute", Timer.HEARTBEAT, Timer.PING)

    def make(original: Function) -> Function:
        def receive(self: AgentConnection, message: str | bytes, now: float) -> object:
            events = original(self, message, now)
            self._timers.pop(Timer.LIVENESS, None)
            return events

        return receive

    patch.wrap(AgentConnection, "receive_untrusted", make)


@provocation("narrow-window")
def narrow_window(patch: Patch) -> None:
    """The gateway has one data frame without an ack at a time: how many it has is its own affair."""
    patch.set(core, "GATEWAY_SENDER", SenderLimits(1, 256))

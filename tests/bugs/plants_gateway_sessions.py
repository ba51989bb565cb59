"""Slips of a gateway in whom it lets in, which connection serves an agent, and when one is over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lab.gateway.core import GatewayCore
from lab.gateway.server import GatewayServer
from lab.protocol.connection import PING, Timer
from lab.protocol.events import Transmit
from lab.protocol.frames import Draft
from lab.protocol.gateway_side import GatewayConnection, KeptSession, SessionStore
from lab.protocol.handshake import State
from tests.bugs import odd_connections
from tests.bugs.plants import Function, Patch, plant


@plant("gateway-upgrade-without-token", scenario="gateway-no-credential", law="gateway-sockets")
def upgrade_without_token(patch: Patch) -> None:
    """A credential is checked where there is one."""

    def make(original: Function) -> Function:
        def agent_of(self: Any, headers: Sequence[str]) -> str | None:
            if headers:
                found: str | None = original(self, headers)
                return found
            patch.slipped()
            first: str = next(iter(self._tokens))
            return first

        return agent_of

    patch.wrap(GatewayServer, "_agent_of", make)


@plant("gateway-resumes-for-other-agent", scenario="gateway-session-of-another", law="gateway-resume-rules")
def resumes_for_other_agent(patch: Patch) -> None:
    """A session is whoever's names it."""

    def make(original: Function) -> Function:
        def resumable(self: Any, resume: Any, tenant_id: str, agent_id: str, now: float) -> KeptSession | None:
            named = self._kept.get(resume["sessionId"]) if resume is not None else None
            if named is not None and named.agent_id != agent_id:
                patch.slipped()
                agent_id = named.agent_id
            kept: KeptSession | None = original(self, resume, tenant_id, agent_id, now)
            return kept

        return resumable

    patch.wrap(SessionStore, "resumable", make)


@plant("gateway-old-connection-kept", scenario="gateway-second-connection", law="gateway-sockets")
def old_connection_kept(patch: Patch) -> None:
    """A newer connection changes nothing for the older one."""

    def make(original: Function) -> Function:
        def on_ready(self: Any, conn: str, connection: Any, *args: Any) -> None:
            agent = self._agents[connection.agent_id]
            if agent.ready is not None:
                patch.slipped()
                agent.ready = None
            original(self, conn, connection, *args)

        return on_ready

    patch.wrap(GatewayCore, "_on_ready", make)


@plant("gateway-cancel-overtakes", scenario="gateway-cancel-behind", law="gateway-numbering")
def cancel_overtakes(patch: Patch) -> None:
    """A cancel waits for nothing."""

    def make(original: Function) -> Function:
        def cancel(self: Any, job_id: str, reason: str, now: float) -> None:
            agent = self._agents[self._job(job_id).agent_id]
            outbound = agent.outbox.session.outbound
            if not outbound.queued:
                original(self, job_id, reason, now)
                return
            patch.slipped()
            draft = Draft("job.cancel", {"jobId": job_id, "reason": reason}, agent.workspace_id)
            text = agent.outbox._build(draft, agent.outbox.ids(), outbound.predicted_seq(), now)
            self._connections[agent.ready]._output.append(Transmit(text))
            self._touch(agent.ready)

        return cancel

    patch.wrap(GatewayCore, "cancel", make)


@plant("gateway-ping-is-no-life", scenario="gateway-pings-only", law="gateway-timeouts")
def ping_is_no_life(patch: Patch) -> None:
    """A text ping is answered, and no more."""

    def make(original: Function) -> Function:
        def receive(self: Any, message: str | bytes, now: float) -> object:
            before = self._timers.get(Timer.LIVENESS)
            events = original(self, message, now)
            if message == PING and before is not None and self.state is not State.ENDED:
                patch.slipped()
                self._timers[Timer.LIVENESS] = before
            return events

        return receive

    patch.wrap(GatewayConnection, "receive_untrusted", make)


@plant("gateway-silence-unnoticed", scenario="gateway-mute-agent", law="gateway-timeouts")
def silence_unnoticed(patch: Patch) -> None:
    """Only the end of a socket is an end."""

    def make(original: Function) -> Function:
        def on_timer(self: Any, timer: Timer, now: float) -> None:
            if timer is not Timer.LIVENESS:
                original(self, timer, now)
                return
            patch.slipped()
            del self._timers[timer]

        return on_timer

    patch.wrap(GatewayConnection, "_on_timer", make)


__all__ = ["odd_connections"]

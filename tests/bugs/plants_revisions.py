"""Slips of both sides towards a peer of an earlier revision: what they send or say though it cannot know it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from typing import Any

from lab.gateway import core
from lab.gateway.core import GatewayCore
from lab.gateway.jobs import Order
from lab.localagent import agent
from lab.localagent.gateway_link import GatewayLink
from lab.protocol.chunks import cut
from lab.protocol.events import BecameReady, Event
from lab.protocol.frames import Draft
from lab.protocol.gateway_side import GatewayConnection
from tests.bugs.plants import Function, Patch, plant

AGENT_LAW = "agent-within-peer-revision"
GATEWAY_LAW = "gateway-within-peer-revision"


@plant("gateway-list-for-every-agent", scenario="old-agent", law=GATEWAY_LAW)
def list_for_every_agent(patch: Patch) -> None:
    """ready has its list of capabilities, if need be an empty one."""

    def write(self: Any, *_: object) -> None:
        if not self._told_any:
            patch.slipped()
            self._told_any = True

    def make(original: Function) -> Function:
        def write_ready(self: Any, *args: Any) -> None:
            write(self)
            original(self, *args)

        return write_ready

    patch.wrap(GatewayConnection, "_write_ready", make)


def _sent_once_ready(patch: Patch, draft: Callable[[GatewayCore, str], Draft]) -> None:
    """Have the gateway send a frame unasked to each agent that has become ready."""

    def send(self: GatewayCore, _conn: str, connection: GatewayConnection, _ready: object, now: float) -> None:
        patch.slipped()
        self._send(connection.agent_id, draft(self, connection.workspace_id), now)

    patch.after(GatewayCore, "_on_ready", send)


@plant("gateway-model-key-to-every-agent", scenario="old-agent", law=GATEWAY_LAW)
def model_key_to_every_agent(patch: Patch) -> None:
    """A session begins with the key of its model."""
    payload = {"alias": "default", "provider": "local", "key": "k", "expiresAt": "2030-01-01T00:00:00.000Z"}
    _sent_once_ready(patch, lambda _, workspace: Draft("llm.key", payload, workspace))


@plant("gateway-policies-pushed", scenario="old-agent", law=GATEWAY_LAW)
def policies_pushed(patch: Patch) -> None:
    """What policy says goes out before anybody asks."""
    _sent_once_ready(
        patch, lambda gateway, workspace: Draft("policy.decision", {"decision": "deny"}, workspace, gateway._ids())
    )


@plant("gateway-webhook-in-chunks", scenario="old-agent", law=GATEWAY_LAW)
def webhook_in_chunks(patch: Patch) -> None:
    """A webhook is cut as a body is, also where one piece is all of it."""

    def draft(gateway: GatewayCore, workspace: str) -> Draft:
        chunk, data = cut(b"{}", 0, 16)
        payload = {"bodyB64": base64.b64encode(data).decode(), "transient": True}
        return Draft("webhook.forward", payload, workspace, gateway._ids(), chunk)

    _sent_once_ready(patch, draft)


@plant("gateway-gates-of-its-newest-agent", scenario="old-beside-new", law=GATEWAY_LAW)
def gates_of_its_newest_agent(patch: Patch) -> None:
    """What any agent of the tenant announced counts for all."""
    known: dict[str, None] = {}

    def make(original: Function) -> Function:
        def refuse(order: Order, announced: tuple[str, ...]) -> None:
            if set(known) - set(announced):
                patch.slipped()
            known.update(dict.fromkeys(announced))
            original(order, tuple(known))

        return refuse

    patch.wrap(core, "refuse_unsupported", make)


@plant("agent-capabilities-of-a-later-revision", scenario="agent-of-2-2", law=AGENT_LAW)
def capabilities_of_a_later_revision(patch: Patch) -> None:
    """The list of capabilities is newer than the handlers."""

    def of_revision(names: Iterable[str], _revision: str) -> tuple[str, ...]:
        patch.slipped()
        return tuple(names)

    patch.set(agent, "of_revision", of_revision)


@plant("agent-candidate-with-later-members", scenario="old-gateway", law=AGENT_LAW)
def candidate_with_later_members(patch: Patch) -> None:
    """A candidate has all members that this agent knows, whoever reads it."""

    def report(self: GatewayLink, event: Event) -> None:
        if isinstance(event, BecameReady) and self._connection:
            patch.slipped()
            payload = {"fingerprint": "0" * 64, "level": "error", "count": 1, "sizeBytes": 2048}
            self._connection.send(Draft("incident.candidate", payload, self._connection.workspace_id), self._ctx.now())

    patch.after(GatewayLink, "_on_event", report)

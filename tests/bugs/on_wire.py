"""Reaching into the reference agent: what it writes, past its own checks, and the session that its link keeps."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from lab.localagent.gateway_link import GatewayLink
from lab.protocol.agent_side import AgentConnection
from lab.protocol.events import Output, Transmit
from tests.bugs.plants import Function, Patch

Members = dict[str, Any]
Change = Callable[[Members], bool]
"""Changes the members of a frame in place; whether it did."""


def changed(output: Output, patch: Patch, *changes: Change) -> Output:
    """The output with its frame changed, if a change applies."""
    if not isinstance(output, Transmit) or not output.text.startswith("{"):
        return output
    members = json.loads(output.text)
    if not sum(change(members) for change in changes):
        return output
    patch.slipped()
    return Transmit(json.dumps(members, ensure_ascii=False, separators=(",", ":")))


def change_written(patch: Patch, change: Change) -> None:
    """Change each frame as the agent's connection hands it to the socket."""

    def make(original: Function) -> Function:
        def take_output(self: AgentConnection) -> list[Output]:
            return [changed(output, patch, change) for output in original(self)]

        return take_output

    patch.wrap(AgentConnection, "take_output", make)


def of_type(type_name: str, change: Callable[[Members], object]) -> Change:
    """A change of every frame of one type."""

    def act(members: Members) -> bool:
        if members.get("type") != type_name:
            return False
        change(members)
        return True

    return act


def every_frame(change: Callable[[Members], object]) -> Change:
    """A change of every v2 frame."""

    def act(members: Members) -> bool:
        if "schemaVersion" not in members:
            return False
        change(members)
        return True

    return act


def on_link(patch: Patch, act: Callable[[GatewayLink], object]) -> None:
    """Act on the agent's link once it is made: its session is in its outbox."""
    patch.after(GatewayLink, "__init__", lambda self, *_: act(self))


def leave_unanswered(connection: AgentConnection) -> None:
    """What is left of an answer to a data frame when no ack frame is written for it."""
    connection._unanswered = None

"""Slips of a Local Agent in its handshake and in what it says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lab.localagent.work import AgentWork
from lab.protocol.agent_side import AgentConnection
from lab.protocol.events import Output, Transmit
from tests.bugs.on_wire import Members, change_written, of_type
from tests.bugs.plants import Function, Patch, plant


def _after_start(patch: Patch, act: Function) -> None:
    """Act on the connection right after it has written register and hello."""
    patch.after(AgentConnection, "start", lambda self, *_: act(self, self._output))


@plant("agent-hello-before-register", scenario="ready", law="agent-frames-valid")
def hello_before_register(patch: Patch) -> None:
    def swap(_self: AgentConnection, output: list[Output]) -> None:
        patch.slipped()
        output[0], output[1] = output[1], output[0]

    _after_start(patch, swap)


@plant("agent-hello-waits-for-answer", scenario="ready", law="handshake")
def hello_waits_for_answer(patch: Patch) -> None:
    def hold(_self: AgentConnection, output: list[Output]) -> None:
        patch.slipped()
        output.pop()

    _after_start(patch, hold)


@plant(
    "agent-capabilities-missing-from-hello",
    scenario="chat",
    law="capabilities",
)
def capabilities_missing_from_hello(patch: Patch) -> None:
    change_written(patch, of_type("hello", lambda members: members["payload"].pop("capabilities")))


@plant("agent-chat-announced-unasked", scenario="fix", law="capabilities")
def chat_announced_unasked(patch: Patch) -> None:
    def make(original: Function) -> Function:
        def capabilities(self: AgentWork) -> tuple[str, ...]:
            patch.slipped()
            return (*original(self), "job.chat")

        return capabilities

    patch.wrap(AgentWork, "capabilities", make)


@plant("agent-handshake-frames-numbered", scenario="ready", law="agent-frames-valid")
def handshake_frames_numbered(patch: Patch) -> None:
    numbers = {"register": 1, "hello": 2}

    def change(members: Members) -> bool:
        if members.get("type") not in numbers:
            return False
        members["seq"] = numbers[members["type"]]
        return True

    change_written(patch, change)


@plant("agent-queue-flushed-before-ready", scenario="cut", law="agent-frames-valid")
def queue_flushed_before_ready(patch: Patch) -> None:
    def flush(self: AgentConnection, output: list[Output]) -> None:
        while (text := self.outbox.write_next(0.0)) is not None:
            patch.slipped()
            # In front of hello: it is written once the state report is there.
            output.insert(-1, Transmit(text))

    _after_start(patch, flush)


@plant("agent-workspace-path-in-register", scenario="ready", law="content-stays-in-its-fields")
def workspace_path_in_register(patch: Patch) -> None:
    def add(self: AgentConnection, output: list[Output]) -> None:
        patch.slipped()
        path = self._registration.v1_workspace_path
        register = output[0]
        assert isinstance(register, Transmit)
        mark = '"workspaceId":'
        head, _, tail = register.text.rpartition(mark)
        output[0] = Transmit(f'{head}"path":"{path}",{mark}{tail}')

    _after_start(patch, add)


def _limits(patch: Patch, act: Function) -> None:
    """Act on the connection after it has taken the limits of a ready."""
    patch.after(AgentConnection, "_take_limits", act)


@plant("agent-ready-limits-ignored", scenario="small-chunks", law="chunks")
def ready_limits_ignored(patch: Patch) -> None:
    def ignore(self: AgentConnection, _offered: Mapping[str, Any]) -> None:
        patch.slipped()
        self._chunk_raw_bytes = self.contract.limits.chunk_raw_bytes

    _limits(patch, ignore)


@plant("agent-ack-timeout-built-in", scenario="lost-ack", law="retransmission")
def ack_timeout_built_in(patch: Patch) -> None:
    def ignore(self: AgentConnection, _offered: Mapping[str, Any]) -> None:
        patch.slipped()
        self.ack_timeout = self.contract.limits.ack_timeout_ms / 1000

    _limits(patch, ignore)


@plant("agent-heartbeat-interval-built-in", scenario="heartbeat", law="heartbeats")
def heartbeat_interval_built_in(patch: Patch) -> None:
    def ignore(self: AgentConnection, _offered: Mapping[str, Any]) -> None:
        patch.slipped()
        self._heartbeat_seconds = float(self.contract.limits.heartbeat_seconds)

    _limits(patch, ignore)

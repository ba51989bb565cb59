"""Slips of an agent in what it logs, keeps on disk, and leaves behind."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Any, Final

from lab.errors import Agent2Error
from lab.localagent import agent2_client
from lab.localagent.agent2_client import Agent2Client
from lab.localagent.chatstore import ChatStore, StoredConversation
from lab.localagent.conversation import AnswerText, Turn
from lab.localagent.jobs import Jobs
from lab.localagent.work import AgentWork
from tests.bugs import odd_requests
from tests.bugs.plants import Function, Patch, plant

LOG: Final = logging.getLogger("lab.localagent")


# The log


@plant("agent-prompt-in-log", scenario="fix", law="content-stays-in-its-fields")
def prompt_in_log(patch: Patch) -> None:
    """A line for each job, with all that came."""

    def log(_self: Any, payload: Mapping[str, Any], workspace_id: str) -> None:
        patch.slipped()
        LOG.info("job assigned in %s: %s", workspace_id, json.dumps(payload))

    patch.after(Jobs, "assign", log)


@plant("agent-token-in-log", scenario="job-denied", law="content-stays-in-its-fields")
def token_in_log(patch: Patch) -> None:
    """A line for each failed call, with the request."""

    def make(original: Function) -> Function:
        async def call(self: Any, method: str, path: str, *args: Any) -> object:
            try:
                return await original(self, method, path, *args)
            except Agent2Error:
                patch.slipped()
                LOG.info("%s %s failed, headers %s", method, path, self._headers())
                raise

        return call

    patch.wrap(Agent2Client, "_call", make)


@plant("agent-stream-line-in-log", scenario="chat-odd-line", law="content-stays-in-its-fields")
def stream_line_in_log(patch: Patch) -> None:
    """A line that is no word of an answer is shown."""

    def log(_self: Any, line: str) -> None:
        if "text" not in json.loads(line):
            patch.slipped()
            LOG.info("unexpected line %s", line)

    patch.after(AnswerText, "take", log)


@plant("agent-refusal-text-in-log", scenario="job-refused-in-words", law="content-stays-in-its-fields")
def refusal_text_in_log(patch: Patch) -> None:
    """agent2's words are shown."""

    async def call(self: Any, method: str, path: str, body: Mapping[str, object] | None = None) -> object:
        address, headers = self._address(path), self._headers()
        async with self._session.request(method, address, json=body, headers=headers) as response:
            if response.status >= 400:
                patch.slipped()
                LOG.info("agent2 said %s", await response.text())
                raise agent2_client._status_error(response.status)
            return await agent2_client._bounded_json(response)

    patch.set(Agent2Client, "_call", call)


# The disk


@plant("agent-prompt-in-state-file", scenario="fix", law="state-private")
def prompt_in_state_file(patch: Patch) -> None:
    """The queue lies on the disk."""

    def save(self: Any, payload: Mapping[str, Any], _workspace_id: str) -> None:
        patch.slipped()
        folder = self._config.state_dir
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = folder / "queue.json"
        file.touch(mode=0o600)
        file.write_text(json.dumps(payload), "utf-8")

    patch.after(AgentWork, "assign", save)


@plant("agent-conversation-only-in-memory", scenario="agent-started-again", law="refs")
def conversation_only_in_memory(patch: Patch) -> None:
    """Turns are kept by the process that heard them."""

    def turn(self: Any, conversation_id: str, workspace_id: str, turn: Turn) -> None:
        patch.slipped()
        kept = self.__dict__.setdefault("kept", {})
        earlier = kept.get(conversation_id, StoredConversation(workspace_id, ()))
        kept[conversation_id] = StoredConversation(workspace_id, (*earlier.turns, turn))

    def turns(self: Any, conversation_id: str) -> StoredConversation | None:
        found: StoredConversation | None = self.__dict__.get("kept", {}).get(conversation_id)
        return found

    patch.set(ChatStore, "_turn", turn)
    patch.set(ChatStore, "turns", turns)


# The end


@plant("agent-agent2-connections-outlive-it", scenario="ended-in-mid-chat", law="nothing-left-over")
def agent2_connections_outlive_it(patch: Patch) -> None:
    """The link is ended and the work behind it is not."""
    late: list[asyncio.Task[None]] = []

    def make(original: Function) -> Function:
        async def close(self: Any) -> None:
            async def when_the_process_ends() -> None:
                try:
                    await asyncio.Event().wait()
                finally:
                    await original(self)

            patch.slipped()
            late.append(asyncio.create_task(when_the_process_ends()))

        return close

    patch.wrap(AgentWork, "close", make)


__all__ = ["odd_requests"]

"""The reference agent with a bug planted in it: `bad_agent.py BUG`, a program for runs that must fail."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lab.localagent.answer import Answer, refused
from lab.localagent.work import AgentWork

_content = AgentWork.content
_assign = AgentWork.assign


async def _loses_an_event(self: AgentWork, kind: str, ref: str, max_bytes: int | None, workspace_id: str) -> Answer:
    answer = await _content(self, kind, ref, max_bytes, workspace_id)
    if kind != "job.stream" or not answer.body:
        return answer
    page = json.loads(answer.body)
    page["events"] = [event for event in page["events"] if event["i"] != 5]
    return replace(answer, body=json.dumps(page).encode())


async def _tears_sessions(self: AgentWork, kind: str, ref: str, max_bytes: int | None, workspace_id: str) -> Answer:
    answer = await _content(self, kind, ref, max_bytes, workspace_id)
    return replace(answer, body=b'{"turns":["text"],"truncated":false}') if kind == "chat.session" else answer


async def _refuses_pages(self: AgentWork, kind: str, ref: str, max_bytes: int | None, workspace_id: str) -> Answer:
    return refused("error", "rate_limited")


def _tells_the_prompt(self: AgentWork, payload: Mapping[str, Any], workspace_id: str) -> str | None:
    print(payload["inputs"][0]["inline"], flush=True)
    return _assign(self, payload, workspace_id)


def _dies(self: AgentWork, payload: Mapping[str, Any], workspace_id: str) -> str | None:
    print("my last words, with", os.environ["LAB_AGENT2_TOKEN"], flush=True)
    os._exit(9)


BUGS: Mapping[str, tuple[str, Any]] = {
    "loses-an-event": ("content", _loses_an_event),
    "tears-sessions": ("content", _tears_sessions),
    "refuses-pages": ("content", _refuses_pages),
    "tells-the-prompt": ("assign", _tells_the_prompt),
    "dies": ("assign", _dies),
}


def main() -> None:
    """Be the agent."""
    from lab.cli import run_command_line

    name, bug = BUGS[sys.argv[1]]
    setattr(AgentWork, name, bug)
    os.environ["LAB_STATE_DIR"] = str(Path(os.environ["HOME"]) / "state")
    os.environ["LOCAL_AGENT_CHAT"] = "true"
    sys.exit(run_command_line(["serve", "local-agent"]))


if __name__ == "__main__":
    main()

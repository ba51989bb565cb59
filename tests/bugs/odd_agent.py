"""Ways in which the reference agent misbehaves by order, so that a slip of the gateway has something to slip on.

A scenario names one as a tag. It alters the first frame that fits, once, before the gateway's witness sees it, and
notes in the journal a fault that excuses the agent for the laws that it broke so.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from lab.journal.events import FaultFired, FaultPlanned
from lab.localagent.gateway_link import GatewayLink
from lab.protocol.agent_side import AgentConnection
from lab.protocol.events import Output, Transmit
from tests.bugs.plants import Function, Patch
from tests.bugs.provocations import Members, encoded, provocation

AGENT_LAWS: Final = (
    *("agent-frames-valid", "numbering", "acks", "chunks", "answer-limits", "stream-complete", "capabilities"),
    *("resume-rules", "retransmission", "content-stays-in-its-fields", "progress", "job-outcome", "requests"),
    *("content-in-time", "job-at-most-once"),
)
"""What an agent that forges a frame may break."""

STRANGER: Final = "3f2b8c1e-90d4-4c57-8a6e-1b7d5e2f4a90"

Fits = Callable[[Members], bool]
Act = Callable[[Any, Members], list[str]]
"""The texts that go out instead of a frame; the first argument is the agent's link."""


def _order(name: str, fits: Fits, act: Act) -> None:
    """A provocation of the agent's first frame that fits."""

    def put(patch: Patch) -> None:
        links: list[Any] = []
        done: list[str] = []

        def altered(output: Output) -> list[Output]:
            if done or not isinstance(output, Transmit) or not output.text.startswith("{"):
                return [output]
            members = json.loads(output.text)
            if not fits(members):
                return [output]
            done.append(name)
            journal = links[0]._ctx.journal
            excuses = tuple((law, "local_agent") for law in AGENT_LAWS)
            journal.record("faults", FaultPlanned(name, "forge", "local_agent", 0, excuses))
            journal.record("faults", FaultFired(name, "forge", "local_agent"))
            return [Transmit(text) for text in act(links[0], members)]

        def make(original: Function) -> Function:
            def take(self: AgentConnection) -> list[Output]:
                return [one for output in original(self) for one in altered(output)]

            return take

        patch.after(GatewayLink, "__init__", lambda self, *_: links.append(self))
        patch.wrap(AgentConnection, "take_output", make)

    provocation(name)(put)


def _of(type_name: str) -> Fits:
    return lambda members: bool(members.get("type") == type_name)


def _changed(name: str, fits: Fits, **members: object) -> None:
    """The frame with other members; one that is None is left out."""

    def act(_link: Any, before: Members) -> list[str]:
        return [encoded({key: value for key, value in {**before, **members}.items() if value is not None})]

    _order(name, fits, act)


def _earlier(members: Members, seconds: float) -> str:
    moment = datetime.fromisoformat(members["ts"]) - timedelta(seconds=seconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _in_payload(**members: object) -> Act:
    return lambda _link, before: [encoded({**before, "payload": {**before["payload"], **members}})]


def _resumes(members: Members) -> bool:
    return bool(members.get("type") == "register" and "resume" in members["payload"])


def _strange_resume(_link: Any, members: Members) -> list[str]:
    resume = {**members["payload"]["resume"], "sessionId": STRANGER}
    return [encoded({**members, "payload": {**members["payload"], "resume": resume}})]


def _skipping(_link: Any, members: Members) -> list[str]:
    return [encoded({**members, "chunk": {"index": 1, "total": 2, "last": True}})]


def _wrong_length(_link: Any, members: Members) -> list[str]:
    payload = {**members["payload"], "byteLength": members["payload"]["byteLength"] - 1}
    return [encoded({**members, "payload": payload})]


def _with_content(link: Any, members: Members) -> list[str]:
    path = link._config.workspaces[0].path
    return [encoded({**members, "payload": {**members["payload"], "note": path}})]


_order("late-clock", _of("register"), lambda _, members: [encoded({**members, "ts": _earlier(members, 120)})])
_order("warn-in-hello", _of("hello"), _in_payload(signatureMode="warn"))
_order("old-report", _of("job.event"), lambda _, members: [encoded({**members, "ts": _earlier(members, 100)})])
_changed("report-of-other-tenant", _of("job.event"), tenantId=STRANGER)
_changed("report-without-agent", _of("job.event"), agentId=None)
_order("key-twice", _of("job.event"), lambda _, members: ['{"seq":0,' + encoded(members)[1:]])
_order("junk-before-report", _of("job.event"), lambda _, members: [encoded(members)[:40], encoded(members)])
_order("content-in-report", _of("job.event"), _with_content)
_order("skipped-chunk", _of("content.response"), _skipping)
_order("wrong-length", _of("content.response"), _wrong_length)
_order("strange-resume", _resumes, _strange_resume)

"""The laws of capabilities: announced alike and truly, and asked before anything is sent that needs one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lab.laws.law import Judgement, Law, Tally
from lab.laws.seen import GATEWAY, LOCAL_AGENT, Connection, FrameAt
from lab.laws.view import JournalView

CHAT = "job.chat"
ASSIGN = "job.assign"
OPTIONS = "job.options"
LONG_INLINE = "job.inline.16k"

OPTIONAL = {"policy.check": "policy.check"}
"""Types that an agent sends only where ready lists their capability (HS-032)."""

LEGACY_INLINE = 4096
"""Characters that an inline may have without `job.inline.16k` (CP-004)."""


def _announced_in(seen: FrameAt | None) -> frozenset[str] | None:
    """What a frame's `capabilities` names; None where they cannot be read."""
    if seen is None:
        return None
    value = seen.frame.payload.get("capabilities", ())
    if isinstance(value, str) or not isinstance(value, Sequence):
        return None
    return frozenset(name for name in value if isinstance(name, str))


def _hello(connection: Connection) -> FrameAt | None:
    return next((seen for seen in connection.made(LOCAL_AGENT) if seen.frame.type == "hello"), None)


def announced(connection: Connection) -> frozenset[str] | None:
    """What the agent announced on a connection: hello is the later word where it has one (HS-034)."""
    hello = _hello(connection)
    tells = hello is not None and "capabilities" in hello.frame.payload
    return _announced_in(hello if tells else connection.register)


def _capabilities(view: JournalView) -> Judgement:
    tally = Tally("capabilities", LOCAL_AGENT)
    for connection in view.connections.values():
        register, hello = connection.register, _hello(connection)
        if register is None or register.frame.version is None:
            continue
        if hello is not None:
            _judge_alike(tally, view, connection, register, hello)
        _judge_chat(tally, view, connection, register)
        _judge_optional(tally, view, connection)
    return tally.judgement()


def _judge_alike(tally: Tally, view: JournalView, connection: Connection, register: FrameAt, hello: FrameAt) -> None:
    who = view.agent_of(connection)
    first, second = _announced_in(register), _announced_in(hello)
    if first is None or second is None:
        tally.unsure()
    elif first != second:
        # HS-033: the same in both
        odd = ", ".join(sorted(first ^ second))
        tally.broken(who, f"{odd} in one of register and hello", "the same set in both", (register.n, hello.n))
    else:
        tally.held()
    modes = (register.frame.payload.get("signatureMode"), hello.frame.payload.get("signatureMode"))
    if modes[0] != modes[1]:
        # HS-041, HS-043: the real mode, in both
        tally.broken(who, f"signatureMode {modes[0]}, then {modes[1]}", "one mode", (register.n, hello.n))


def _judge_chat(tally: Tally, view: JournalView, connection: Connection, register: FrameAt) -> None:
    """CHAT-003: chat is announced only when agent2's health listed it."""
    named = (_announced_in(register) or frozenset()) | (announced(connection) or frozenset())
    if not view.has_agent2 or CHAT not in named:
        return
    healths = [
        (entry, request)
        for entry, request in view.agent2_requests
        if request.route.endswith("/health") and request.status == 200 and entry.n < register.n
    ]
    who = view.agent_of(connection)
    if not healths:
        tally.broken(who, f"{CHAT} announced without asking agent2", "GET /health that lists chat", (register.n,))
    elif not any(_lists_chat(view, entry.by, request.facts) for entry, request in healths):
        entry = healths[-1][0]
        tally.broken(who, f"{CHAT} announced", "not announced: agent2 did not list chat", (entry.n, register.n))
    else:
        tally.held()


def _judge_optional(tally: Tally, view: JournalView, connection: Connection) -> None:
    """HS-032: an optional feature is used only where both sides have it."""
    listed = _announced_in(connection.ready)
    for seen in connection.data(LOCAL_AGENT):
        needed = OPTIONAL.get(seen.frame.type or "")
        if needed is None:
            continue
        if listed is None:
            tally.unsure()
        elif needed in listed:
            tally.held()
        else:
            entries = (connection.ready.n, seen.n) if connection.ready else (seen.n,)
            used = f"{seen.frame.type}, though ready does not list {needed}"
            tally.broken(view.agent_of(connection), used, "only what ready lists", entries)
            return


def _lists_chat(view: JournalView, agent2: str, facts: Mapping[str, Any]) -> bool:
    declared = view.participants.get(agent2)
    kinds = facts.get("kinds", declared.facts.get("kinds") if declared is not None else None)
    # Who was never declared said what nobody knows.
    return kinds is None or "chat" in kinds


# The gateway's gates


def _gateway_capabilities(view: JournalView) -> Judgement:
    tally = Tally("gateway-capabilities", GATEWAY)
    for connection in view.connections.values():
        known = announced(connection)
        if known is None:
            continue
        if connection.answered is not None:
            _judge_ready(tally, connection, known)
    for session in view.sessions:
        seqs: set[int | None] = set()
        for connection in session.connections:
            known = announced(connection)
            for seen in connection.data(GATEWAY):
                first = seen.frame.seq not in seqs
                seqs.add(seen.frame.seq)
                if seen.frame.type == "job.assign" and first and known is not None:
                    _judge_assign(tally, view, connection, seen, known)
    return tally.judgement()


def _judge_ready(tally: Tally, connection: Connection, known: frozenset[str]) -> None:
    ready = connection.answered
    listed = _announced_in(ready)
    if ready is None or listed is None:
        return
    extra = sorted(listed - known)
    if extra:
        # HS-031: only what the agent announced
        tally.broken(connection.gateway, f"ready lists {', '.join(extra)}", "what the agent announced", (ready.n,))
    else:
        tally.held()


def _judge_assign(
    tally: Tally, view: JournalView, connection: Connection, seen: FrameAt, known: frozenset[str]
) -> None:
    lacking = [name for name in _needed(view, connection, seen) if name not in known]
    if lacking:
        kind = seen.frame.payload.get("kind")
        what = f"job.assign ({kind}) to an agent without {lacking[0]}"
        tally.broken(connection.gateway, what, "503 AGENT_UNSUPPORTED, and nothing sent", (seen.n,))
    else:
        tally.held()


def _needed(view: JournalView, connection: Connection, seen: FrameAt) -> list[str]:
    payload = seen.frame.payload
    needed = []
    if payload.get("kind") == "chat":
        # CP-001
        needed.append(CHAT)
    elif CHAT not in (announced(connection) or ()) and _revision(view, connection) != "2.0":
        # CP-006, CP-007: job.chat implies job.assign; 2.0 knows no capabilities
        needed.append(ASSIGN)
    longest = seen.frame.facts.get("inlineChars")
    if isinstance(longest, int) and longest > LEGACY_INLINE:
        # CP-004, CP-030: a gate of its own
        needed.append(LONG_INLINE)
    if payload.get("options"):
        needed.append(OPTIONS)
    return needed


def _revision(view: JournalView, connection: Connection) -> object:
    declared = view.participants.get(connection.gateway)
    return declared.facts.get("revision") if declared is not None else None


LAWS = (
    Law(
        "capabilities",
        "An agent announces the same capabilities in register and hello, chat only when agent2 listed it, "
        "and uses only what ready lists",
        LOCAL_AGENT,
        ("CHAT-002", "CHAT-003", "HS-032", "HS-033", "HS-041", "HS-043"),
        _capabilities,
    ),
    Law(
        "gateway-capabilities",
        "A gateway sends a job only to an agent that announced what it needs, and lists nothing else in ready",
        GATEWAY,
        ("CP-001", "CP-004", "CP-006", "CP-007", "CP-030", "HS-031", "HS-034"),
        _gateway_capabilities,
    ),
)

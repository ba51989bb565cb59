"""Capabilities, announced and asked for."""

from __future__ import annotations

from typing import Any

import pytest

from lab.journal.events import Agent2Request, ParticipantDeclared
from lab.laws import Status
from tests.laws.journals import ALL_CAPABILITIES, SESSION, Tale, uuid

ASSIGN_ONLY = ("job.assign",)


def connected(capabilities: tuple[str, ...] = ALL_CAPABILITIES, health: dict[str, Any] | None = None) -> Tale:
    t = Tale()
    t.capabilities = capabilities
    t.health(**(health or {}))
    t.connect()
    return t


def test_announced_alike_and_truly() -> None:
    assert connected().status("capabilities") is Status.HELD


@pytest.mark.req("HS-033", "CHAT-002")
def test_one_frame_says_less() -> None:
    t = Tale()
    t.health()
    first = t.register()
    second = t.hello(capabilities=["job.assign"])
    found = t.violation("capabilities")
    assert found.seen.startswith("job.chat, job.inline.16k, job.options in one of")
    assert found.entries == (first, second)


@pytest.mark.req("HS-043")
def test_two_signature_modes() -> None:
    t = Tale()
    t.health()
    t.register()
    t.hello(signatureMode="warn")
    assert t.violation("capabilities").seen == "signatureMode enforce, then warn"


@pytest.mark.req("CHAT-003")
def test_chat_that_agent2_did_not_list() -> None:
    t = connected(health={"kinds": ["fix"]})
    assert t.violation("capabilities").due == "not announced: agent2 did not list chat"


@pytest.mark.req("CHAT-003")
def test_the_declared_kinds_stand_for_a_health_that_tells_none() -> None:
    t = Tale()
    t.add(ParticipantDeclared("agent2", "agent2", "double", {"kinds": ["fix"]}), "run")
    t.health(kinds=None)
    t.connect()
    assert t.status("capabilities") is Status.HELD
    t = Tale()
    t.add(ParticipantDeclared("agent2", "agent2", "double", {"kinds": ["fix"]}), "run")
    t.add(Agent2Request("GET", "/local/v1/health", 200), "agent2")
    t.connect()
    assert t.status("capabilities") is Status.BROKEN


@pytest.mark.req("CHAT-003")
@pytest.mark.parametrize("asked", [None, 503])
def test_chat_announced_without_an_answer(asked: int | None) -> None:
    t = Tale()
    t.add(ParticipantDeclared("agent2", "agent2", "double", {}), "run")
    if asked is not None:
        t.health(asked)
    t.connect()
    assert t.violation("capabilities").seen == "job.chat announced without asking agent2"


def test_without_chat_nobody_need_ask() -> None:
    t = Tale()
    t.capabilities = ASSIGN_ONLY
    t.connect()
    t.post()
    assert t.status("capabilities") is Status.HELD


@pytest.mark.parametrize(
    ("known", "kind", "chars", "options", "lacking"),
    [
        (ALL_CAPABILITIES, "chat", 5000, True, None),
        pytest.param(ASSIGN_ONLY, "chat", 10, False, "job.chat", marks=pytest.mark.req("CP-001")),
        pytest.param(("job.chat",), "chat", 4097, False, "job.inline.16k", marks=pytest.mark.req("CP-004", "CP-030")),
        (("job.chat",), "chat", 4096, False, None),
        (("job.chat",), "fix", 10, False, None),
        pytest.param((), "fix", 10, False, "job.assign", marks=pytest.mark.req("CP-007")),
        pytest.param(ASSIGN_ONLY, "fix", 10, True, "job.options", marks=pytest.mark.req("CP-007")),
    ],
)
def test_the_gates(known: tuple[str, ...], kind: str, chars: int, options: bool, lacking: str | None) -> None:
    t = connected(known)
    payload = {"options": {"conversationId": SESSION}} if options else {}
    entry = t.assign(kind=kind, payload=payload, facts={"inlineChars": chars})
    if lacking is None:
        assert t.status("gateway-capabilities") is Status.HELD
        return
    found = t.violation("gateway-capabilities")
    assert found.seen == f"job.assign ({kind}) to an agent without {lacking}"
    assert found.entries == (entry,)


def test_a_copy_is_not_judged_again() -> None:
    t = connected()
    t.assign()
    t.close()
    t.capabilities = ASSIGN_ONLY
    t.connect("c2", resume=(SESSION, 0), resumed=True)
    t.assign()
    assert t.status("gateway-capabilities") is Status.HELD


@pytest.mark.req("HS-034")
def test_hello_is_the_later_word() -> None:
    t = Tale()
    t.capabilities = ASSIGN_ONLY
    t.register()
    t.hello(capabilities=list(ALL_CAPABILITIES))
    t.ready()
    t.assign()
    assert t.status("gateway-capabilities") is Status.HELD


def test_a_hello_without_a_word_leaves_register_s() -> None:
    t = Tale()
    t.register()
    t.la("hello", payload={"signatureMode": "enforce"})
    payload = {"sessionId": SESSION, "resumed": False, "peerLastSeq": 0, "capabilities": ["job.chat"]}
    t.cp("ready", payload=payload)
    t.assign()
    assert t.status("gateway-capabilities") is Status.HELD


@pytest.mark.req("HS-031")
def test_ready_lists_what_nobody_announced() -> None:
    t = Tale()
    t.capabilities = ASSIGN_ONLY
    t.register()
    t.hello()
    payload = {"sessionId": SESSION, "resumed": False, "peerLastSeq": 0, "capabilities": ["job.assign", "policy.check"]}
    t.cp("ready", payload=payload)
    assert t.violation("gateway-capabilities").seen == "ready lists policy.check"


@pytest.mark.req("HS-032")
@pytest.mark.parametrize(
    ("listed", "status"), [([], Status.BROKEN), (["policy.check"], Status.HELD), ("policy.check", Status.HELD)]
)
def test_an_optional_feature_that_ready_does_not_list(listed: object, status: Status) -> None:
    t = Tale()
    t.health()
    t.register()
    t.hello()
    limits = {"ackTimeoutMs": 5000}
    payload = {"sessionId": SESSION, "resumed": False, "peerLastSeq": 0, "limits": limits, "capabilities": listed}
    ready = t.cp("ready", payload=payload)
    check = t.la("policy.check", 1, request_id=uuid("r"))
    found = t.judged("capabilities")
    assert found.status is status
    assert [one.entries for one in found.judgement.violations] == ([(ready, check)] if status is Status.BROKEN else [])
    assert found.judgement.unsure == (listed == "policy.check")

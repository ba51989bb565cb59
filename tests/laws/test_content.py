"""Content stays in its fields, clause by clause."""

from __future__ import annotations

from typing import Any

import pytest

from lab.journal.events import Agent2Request, GatewayKept, GatewayLogged, SocketOpened, SutOutput, digest
from lab.laws import Status
from tests.laws.journals import Tale

LAW = "content-stays-in-its-fields"
TWIN = "gateway-content-stays-in-its-fields"


def found_at(*places: str) -> dict[str, Any]:
    return {"canaries": [{"id": "k1", "place": place} for place in places]}


def tale() -> Tale:
    begun = Tale()
    begun.connect()
    return begun


@pytest.mark.req("WS-048")
def test_the_three_fields_and_their_echo() -> None:
    t = tale()
    t.la("content.response", 1, facts=found_at("payload.data"))
    t.assign(facts=found_at("payload.inputs[].inline", "paramsRaw"))
    t.cp("webhook.forward", 2, facts=found_at("payload.bodyB64", "paramsRaw"))
    assert t.status(LAW) is Status.HELD
    assert t.status(TWIN) is Status.HELD


@pytest.mark.parametrize(
    ("type_", "place"),
    [
        pytest.param("error", "payload.detail", marks=pytest.mark.req("WS-045", "SEC-009")),
        pytest.param("audit.event", "payload.code", marks=pytest.mark.req("SEC-008")),
        pytest.param("register", "payload.workspaces[].workspaceId", marks=pytest.mark.req("SEC-006")),
        pytest.param("job.event", "payload.phase", marks=pytest.mark.req("SEC-003", "CHAT-028")),
        pytest.param("job.result", "payload.branch", marks=pytest.mark.req("SEC-019")),
        ("content.response", "payload.contentType"),
        ("register", "payload.workspacePath"),
        (None, "text"),
    ],
)
def test_anywhere_else_is_a_leak(type_: str | None, place: str) -> None:
    t = tale()
    n = t.la(type_, 1, facts=found_at(place))
    found = t.violation(LAW)
    assert found.seen == f"canary k1 in {type_ or 'a message'} at {place}"
    assert found.entries == (n,)


def test_the_path_in_a_register_of_v1() -> None:
    t = Tale()
    t.la("register", version=None, facts=found_at("workspacePath"))
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("SEC-002")
def test_a_leak_of_the_gateway() -> None:
    t = tale()
    n = t.assign(facts=found_at("payload.kind", "paramsRaw"))
    assert t.violation(TWIN).entries == (n,)
    assert t.status(LAW) is Status.HELD


def test_paramsraw_of_a_type_without_content() -> None:
    t = tale()
    n = t.cp("content.request", 1, facts=found_at("paramsRaw"))
    assert t.violation(TWIN).entries == (n,)


@pytest.mark.req("SEC-002", "SEC-012")
def test_the_log_of_a_gateway() -> None:
    t = tale()
    t.add(GatewayLogged(digest("log", "all is well")))
    assert t.status(TWIN) is Status.HELD
    n = t.add(GatewayLogged(digest("log", "too much"), ("k1",)))
    assert (t.violation(TWIN).entries, t.violation(TWIN).seen) == ((n,), "canary k1 in its log")
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("SEC-001", "SEC-004", "CP-014")
@pytest.mark.parametrize(
    ("canaries", "status"),
    [(None, Status.NOTHING), ((), Status.HELD), (({"id": "k1", "place": "a.b"},), Status.BROKEN)],
)
def test_what_a_gateway_keeps(canaries: tuple[dict[str, str], ...] | None, status: Status) -> None:
    t = Tale()
    n = t.add(GatewayKept(canaries))
    assert t.status(TWIN) is status
    if canaries:
        assert (t.violation(TWIN).entries, t.violation(TWIN).seen) == ((n,), "canary k1 at a.b in what it keeps")


@pytest.mark.req("SEC-015", "SEC-005")
def test_the_output_of_the_process() -> None:
    t = tale()
    t.add(SutOutput("la", "stdout", digest("line", "x")))
    assert t.status(LAW) is Status.HELD
    n = t.add(SutOutput("la", "stderr", digest("line", "y"), ("k1", "k2")), "sut")
    found = t.violation(LAW)
    assert (found.seen, found.entries) == ("canary k1, k2 on stderr", (n,))


def test_a_copy_by_the_lab_is_no_second_leak() -> None:
    t = tale()
    t.la("job.event", 1, facts=found_at("payload.phase"), fate="copied", fault="f")
    assert t.status(LAW) is Status.HELD


def test_an_early_stop() -> None:
    t = tale()
    t.end("failed")
    assert t.status(LAW) is Status.HELD


@pytest.mark.req("SEC-006", "SEC-015")
@pytest.mark.parametrize("where", ["upgrade", "agent2"])
def test_a_token_in_the_target_of_a_request(where: str) -> None:
    t = Tale()
    if where == "upgrade":
        entry = t.add(SocketOpened("c1", "/agent", "la", ("gateway-token.la",)))
    else:
        facts = {"canaries": ["agent2-token"], "authorization": False}
        entry = t.add(Agent2Request("GET", "/local/v1/health", 200, None, facts), "agent2")
    found = t.violation("content-stays-in-its-fields")
    assert found.entries == (entry,)
    assert found.due == "no content and no token there"

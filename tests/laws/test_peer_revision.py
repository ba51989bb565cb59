"""Nobody sends what the other side's revision refuses."""

from __future__ import annotations

import pytest

from lab.journal.events import ParticipantDeclared
from lab.laws import Status
from tests.laws.journals import AGENT, ALL_CAPABILITIES, SESSION, Tale

AGENT_LAW = "agent-within-peer-revision"
GATEWAY_LAW = "gateway-within-peer-revision"
UP_TO_22 = ("job.assign", "job.options", "policy.check")


def between(gateway: str | None, agent: str | None, capabilities: tuple[str, ...] = ALL_CAPABILITIES) -> Tale:
    """A session between two sides of these revisions; None is one that the lab does not know."""
    t = Tale()
    t.capabilities = capabilities
    told = {} if gateway is None else {"revision": gateway}
    t.add(ParticipantDeclared("gw", "gateway", "double", told), "runner")
    facts = {"agentId": AGENT} if agent is None else {"agentId": AGENT, "revision": agent}
    t.add(ParticipantDeclared("la", "local_agent", "attach" if agent is None else "reference", facts), "runner")
    t.connect()
    return t


@pytest.mark.req("CP-018", "CP-019", "CP-020")
@pytest.mark.parametrize(
    ("agent", "since", "status"),
    [
        ("2.3", "2.3", Status.HELD),
        ("2.2", "2.3", Status.BROKEN),
        ("2.2", "2.2", Status.HELD),
        ("2.2", None, Status.HELD),
        ("2.0", "2.1", Status.BROKEN),
    ],
)
def test_a_gateway_to_an_agent_that_was_declared(agent: str, since: str | None, status: Status) -> None:
    t = between("2.3", agent)
    entry = t.assign(kind="chat", facts={} if since is None else {"since": since})
    assert t.status(GATEWAY_LAW) is status
    if status is Status.BROKEN:
        found = t.violation(GATEWAY_LAW)
        assert found.seen == f"job.assign of revision {since}, to a peer of {agent}"
        assert found.due == f"nothing that {agent} refuses"
        assert found.participant == "gw"
        assert found.entries[-1] == entry


@pytest.mark.req("CP-018")
@pytest.mark.parametrize(
    ("capabilities", "taken", "refused"),
    [
        ((), None, "2.1"),
        (("job.assign",), "2.1", "2.2"),
        (("another",), "2.1", "2.2"),
        (UP_TO_22, "2.2", "2.3"),
        (("job.assign", "job.chat"), "2.3", None),
    ],
)
def test_an_agent_that_nobody_declared_is_of_what_it_announced(
    capabilities: tuple[str, ...], taken: str | None, refused: str | None
) -> None:
    t = between("2.3", None, capabilities)
    t.assign(facts={"since": taken} if taken else {})
    assert t.status(GATEWAY_LAW) is Status.HELD
    if refused is not None:
        t = between("2.3", None, capabilities)
        t.assign(facts={"since": refused})
        assert t.status(GATEWAY_LAW) is Status.BROKEN


def test_a_copy_in_a_resumed_session_is_not_judged_again() -> None:
    """It was right when it was sent first; that it goes out unchanged is another rule."""
    t = between("2.3", None)
    t.assign(facts={"since": "2.3"})
    t.close()
    t.capabilities = UP_TO_22
    t.connect("c2", resume=(SESSION, 0), resumed=True)
    t.assign(facts={"since": "2.3"})
    assert t.status(GATEWAY_LAW) is Status.HELD


@pytest.mark.req("HS-032", "TY-045")
@pytest.mark.parametrize(("gateway", "status"), [("2.1", Status.BROKEN), ("2.2", Status.HELD), (None, Status.UNKNOWN)])
def test_an_agent_to_its_gateway(gateway: str | None, status: Status) -> None:
    t = between(gateway, "2.3")
    # The gateway's witness does not name a type that its revision has not.
    t.la(None, seq=1, facts={"type": "unknown_type", "since": "2.2", "typeSince": "2.2"})
    assert t.status(AGENT_LAW) is (Status.HELD if status is Status.UNKNOWN else status)
    if status is Status.BROKEN:
        assert t.violation(AGENT_LAW).seen == "a frame of revision 2.2, to a peer of 2.1"


@pytest.mark.req("HS-035")
@pytest.mark.parametrize(
    ("agent", "names", "odd"),
    [
        ("2.3", ALL_CAPABILITIES, None),
        ("2.2", UP_TO_22, None),
        ("2.2", ALL_CAPABILITIES, "job.chat of revision 2.3 announced by an agent of 2.2"),
        ("2.1", UP_TO_22, "policy.check of revision 2.2 announced by an agent of 2.1"),
        ("2.0", ("job.assign",), "job.assign of revision 2.1 announced by an agent of 2.0"),
        ("2.0", (), None),
        ("2.0", ("another",), None),
        (None, ALL_CAPABILITIES, None),
    ],
)
def test_an_agent_announces_what_its_revision_has(agent: str | None, names: tuple[str, ...], odd: str | None) -> None:
    t = between("2.3", agent, names)
    if odd is None:
        assert t.status(AGENT_LAW) is Status.HELD
    else:
        assert t.violation(AGENT_LAW).seen == odd


def test_without_a_session_nothing_is_judged() -> None:
    t = Tale()
    assert (t.status(AGENT_LAW), t.status(GATEWAY_LAW)) == (Status.NOTHING, Status.NOTHING)


@pytest.mark.req("CP-019")
def test_the_other_laws_read_a_frame_as_its_reader_has_to() -> None:
    """The refusal of a chat by an agent of 2.2 is right, and the chat was no valid frame for it."""
    t = between("2.3", "2.2", UP_TO_22)
    t.assign(kind="chat", facts={"since": "2.3"})
    t.la("error", payload={"code": "schema_violation", "retryable": False})
    t.close("remote", 4402)
    assert t.status("refusals") is Status.HELD
    assert t.violation("gateway-frames-valid").seen == "job.assign: schema_violation at the frame (since 2.3)"
